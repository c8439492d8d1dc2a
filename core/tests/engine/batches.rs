//! Idempotency keys and batches (specification 11).

use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    BatchItem, NewTask, SubmitError, Submitted, TaskId, TaskOptions, TaskState, Watcher,
};

use crate::bed::{Bed, mailbox, take};

const POOL: &str = "main/default/work";
const OTHER: &str = "other/default/work";

fn with_key(key: &'static str) -> TaskOptions {
    let mut options = TaskOptions::default();
    options.rare_mut().idempotency_key = Bytes::from_static(key.as_bytes());
    options
}

impl Bed {
    fn new_task(&mut self, payload: &'static str, options: TaskOptions) -> NewTask {
        let id = TaskId::from_bytes(u128::from(self.number()).to_be_bytes());
        NewTask { id, payload: Bytes::from_static(payload.as_bytes()), options }
    }

    fn submit_key(
        &mut self,
        pool: &str,
        payload: &'static str,
        options: TaskOptions,
        watcher: Option<Watcher>,
    ) -> Result<Submitted, SubmitError> {
        let task = self.new_task(payload, options);
        let mut route = self.route(pool);
        let taken = self.engine.submit(&self.operator, &mut route, task, watcher, self.now);
        taken.map_err(|refused| refused.error)
    }

    fn item(&mut self, payload: &'static str, options: TaskOptions) -> BatchItem {
        let task = self.new_task(payload, options);
        BatchItem { route: self.route(POOL), task, watcher: None }
    }
}

#[test]
fn the_same_key_and_content_is_the_same_task() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL, OTHER], 8);
    let (mailbox, _) = mailbox();
    let watcher = |tag| Some(Watcher { mailbox: mailbox.clone(), tag });
    let first = bed.submit_key(POOL, "a", with_key("order-42"), watcher(1)).expect("taken");
    let again = bed.submit_key(POOL, "a", with_key("order-42"), watcher(2)).expect("the same");
    assert_eq!((first.deduplicated, again.deduplicated), (false, true));
    assert_eq!(first.id, again.id);
    // Other content under the same key is a mistake of the producer's.
    let other = bed.submit_key(POOL, "b", with_key("order-42"), None);
    assert_eq!(other, Err(SubmitError::KeyConflict));
    // Keys are a namespace's own.
    let foreign = bed.submit_key(OTHER, "b", with_key("order-42"), None).expect("taken");
    assert!(!foreign.deduplicated);
    assert_eq!(bed.drain_offers(&mut worker), 2);
    let told: Vec<u64> = take(&mailbox).iter().map(|delivered| delivered.tag).collect();
    assert_eq!(told, [1, 2]);
    // After the end the key is known as long as the task is; whoever comes gets the outcome.
    let late = bed.submit_key(POOL, "a", with_key("order-42"), watcher(3)).expect("the same");
    assert_eq!((late.id, late.deduplicated), (first.id, true));
    assert_eq!(take(&mailbox)[0].tag, 3);
    bed.pass(Duration::from_secs(62));
    let anew = bed.submit_key(POOL, "b", with_key("order-42"), None).expect("forgotten");
    assert!(!anew.deduplicated);
}

#[test]
fn a_refused_task_leaves_its_key() {
    let mut bed = Bed::new();
    let mut at_once = with_key("k");
    at_once.schedule_to_start = Some(Duration::ZERO);
    let refused = bed.submit_key(POOL, "a", at_once, None);
    assert_eq!(refused, Err(SubmitError::NoWorker));
    let taken = bed.submit_key(POOL, "b", with_key("k"), None).expect("free again");
    assert!(!taken.deduplicated);
}

#[test]
fn the_same_id_again_is_the_same_task_only_by_its_key() {
    let mut bed = Bed::new();
    let submit = |bed: &Bed, task: NewTask| {
        let mut route = bed.route(POOL);
        let taken = bed.engine.submit(&bed.operator, &mut route, task, None, bed.now);
        taken.map_err(|refused| refused.error)
    };
    let task = bed.new_task("a", with_key("k"));
    submit(&bed, task.clone()).expect("taken");
    assert!(submit(&bed, task).expect("the same").deduplicated);
    let task = bed.new_task("a", TaskOptions::default());
    submit(&bed, task.clone()).expect("taken");
    assert_eq!(submit(&bed, task), Err(SubmitError::Conflict));
}

#[test]
fn a_batch_is_all_or_nothing() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 100);
    let taken = bed.new_task("x", TaskOptions::default());
    let mut route = bed.route(POOL);
    bed.engine.submit(&bed.operator, &mut route, taken.clone(), None, bed.now).expect("the first");
    assert_eq!(bed.drain_offers(&mut worker), 1);
    let mut owned = TaskOptions::default();
    owned.owner_key = Bytes::from_static(b"owner");
    let mut bad: Vec<(BatchItem, SubmitError)> = Vec::new();
    let mut options = TaskOptions::default();
    options.priority = 10;
    bad.push((bed.item("p", options), SubmitError::Invalid("the priority is over 9")));
    let mut options = TaskOptions::default();
    options.schedule_to_start = Some(Duration::ZERO);
    let why = "a task that must start at once is in a batch";
    bad.push((bed.item("s", options), SubmitError::Invalid(why)));
    let mut item = bed.item("x", TaskOptions::default());
    item.task.id = taken.id;
    bad.push((item, SubmitError::Conflict));
    let namespace = taken_namespace();
    let owner = Bytes::from_static(b"owner");
    bed.engine.supersede(&bed.operator, &namespace, &owner, 1, bed.now).expect("superseded");
    bad.push((bed.item("o", owned), SubmitError::StaleGeneration { needed: 1 }));
    for (item, error) in bad {
        let mut later = with_key("later");
        later.rare_mut().delay = Some(Duration::from_secs(1));
        let items = vec![
            bed.item("a", TaskOptions::default()),
            bed.item("b", with_key("b")),
            bed.item("c", later),
            item,
            bed.item("d", TaskOptions::default()),
        ];
        let ids: Vec<_> = items.iter().map(|item| item.task.id).collect();
        let refused = bed.engine.submit_batch(&bed.operator, items, bed.now).expect_err("refused");
        assert_eq!((refused.index, &refused.error), (3, &error));
        bed.pass(Duration::from_secs(2));
        assert!(worker.poll_offer(bed.now).is_none(), "{error}");
        for id in ids.into_iter().filter(|id| *id != taken.id) {
            assert!(bed.engine.task(&bed.operator, id).is_none(), "{error}");
        }
        assert_eq!(bed.engine.backlog_bytes(), 0);
    }
    // The keys of what was refused are free, and a whole batch is taken in order.
    let (mailbox, _) = mailbox();
    let mut items: Vec<_> = (0..50).map(|_| bed.item("w", TaskOptions::default())).collect();
    items.push(bed.item("b", with_key("b")));
    items.push(bed.item("b", with_key("b")));
    for (tag, item) in items.iter_mut().enumerate() {
        item.watcher = Some(Watcher { mailbox: mailbox.clone(), tag: tag as u64 });
    }
    let taken = bed.engine.submit_batch(&bed.operator, items, bed.now).expect("taken");
    assert_eq!(taken.iter().filter(|submitted| submitted.deduplicated).count(), 1);
    assert_eq!(taken[50].id, taken[51].id);
    assert_eq!(bed.drain_offers(&mut worker), 51);
    let mut told: Vec<u64> = take(&mailbox).iter().map(|delivered| delivered.tag).collect();
    told.sort_unstable();
    assert_eq!(told, (0..52).collect::<Vec<u64>>());
}

fn taken_namespace() -> slipswitch_core::Namespace {
    slipswitch_core::Namespace::new("main").expect("a name")
}

#[test]
fn a_batch_waits_in_its_order() {
    let mut bed = Bed::new();
    let items: Vec<_> = (0..20).map(|_| bed.item("w", TaskOptions::default())).collect();
    let ids: Vec<_> = items.iter().map(|item| item.task.id).collect();
    bed.engine.submit_batch(&bed.operator, items, bed.now).expect("taken");
    let mut worker = bed.worker(&[POOL], 20);
    let got: Vec<_> = (0..20).map(|_| bed.accept(&mut worker).task.id()).collect();
    assert_eq!(got, ids);
    assert!(ids.iter().all(|id| bed.state(*id) == TaskState::Running));
}
