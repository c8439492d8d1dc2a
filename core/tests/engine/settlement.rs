//! One terminal transition a task (specification 10).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    CloseReason, End, FailureClass, Lease, Principal, Report, TaskId, TaskOptions, TaskState,
    Verdict, Watcher,
};

use crate::bed::{Bed, completed, mailbox, register, take};

const POOL: &str = "main/default/work";

// bug: B19
#[test]
fn late_result_rejected() {
    let mut bed = Bed::new();
    let mut slow = bed.worker(&[POOL], 1);
    let id = bed.submit(POOL);
    let first = bed.accept(&mut slow);
    bed.pass_with(Duration::from_secs(31), &mut [&mut slow]);
    let mut quick = bed.worker(&[POOL], 1);
    let second = bed.accept(&mut quick);
    assert_eq!(quick.result(completed(&second, b"quick"), bed.now), Verdict::Applied);
    assert_eq!(slow.result(completed(&first, b"slow"), bed.now), Verdict::Stale);
    assert_eq!(bed.status(id).outcome.expect("ended").payload, "quick");
}

#[test]
fn forged_results_refused() {
    let mut bed = Bed::new();
    let mut honest = bed.worker(&[POOL], 1);
    let mut forger = bed.worker(&[POOL], 1);
    let id = bed.submit(POOL);
    let other = bed.submit(POOL);
    let (a, b) = (honest.poll_offer(bed.now), forger.poll_offer(bed.now));
    let (offer, own) = (a.expect("an offer"), b.expect("an offer"));
    honest.accept(offer.lease, bed.now);
    forger.accept(own.lease, bed.now);
    let end = || End::Completed {
        payload: Bytes::from_static(b"forged"),
        content_type: slipswitch_core::Text::EMPTY,
        encoding: slipswitch_core::Text::EMPTY,
    };
    let mut refused = |task: TaskId, id: u64, epoch: u64| {
        let verdict =
            forger.result(Report { task, lease: Lease { id, epoch }, end: end() }, bed.now);
        assert!(matches!(verdict, Verdict::Stale | Verdict::UnknownLease), "{verdict:?}");
    };
    // The lease of another session, with its own words.
    refused(offer.task.id(), offer.lease.id, offer.lease.epoch);
    // Its own lease for somebody else's task.
    refused(offer.task.id(), own.lease.id, own.lease.epoch);
    // Epochs and places that nobody was given.
    refused(offer.task.id(), offer.lease.id, offer.lease.epoch + 100);
    refused(offer.task.id(), u64::MAX, u64::MAX);
    refused(TaskId::from_bytes([0xff; 16]), 0, 1);
    assert_eq!(bed.state(offer.task.id()), TaskState::Running);
    assert_eq!(bed.complete(&mut honest, &offer), Verdict::Applied);
    assert_eq!(bed.complete(&mut forger, &own), Verdict::Applied);
    assert_eq!(bed.status(id).outcome.expect("ended").payload, "done");
    assert_eq!(bed.status(other).outcome.expect("ended").payload, "done");
}

#[test]
fn a_foreign_task_looks_like_none() {
    let mut bed = Bed::new();
    let id = bed.submit("secret/default/work");
    let mut holder = bed.worker(&["secret/default/work"], 1);
    let offer = bed.accept(&mut holder);
    let main = slipswitch_core::Namespace::new("main").expect("a name");
    let grant = slipswitch_core::Grant::Namespace(main);
    let stranger = Principal::new("s", [(slipswitch_core::Role::Worker, grant)]);
    let mut session = bed
        .engine
        .register(
            &stranger,
            slipswitch_core::SessionId::from_bytes([3; 16]),
            register(&[POOL], 77),
            Arc::new(crate::bed::Bell::default()),
            bed.now,
        )
        .expect("admitted");
    let verdict = session.result(completed(&offer, b"x"), bed.now);
    assert_eq!(verdict, Verdict::UnknownLease);
    assert!(bed.engine.task(&stranger, id).is_none());
    let (mailbox, _) = mailbox();
    assert!(bed.engine.watch(&stranger, id, Watcher { mailbox, tag: 0 }).is_err());
    assert!(bed.engine.tasks(&stranger, &Default::default(), None, 10).is_empty());
    assert!(bed.engine.pools(&stranger).1.iter().all(|pool| pool.key.namespace.as_str() == "main"));
}

#[test]
fn duplicate_after_lost_ack() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    bed.submit(POOL);
    let offer = bed.accept(&mut worker);
    assert_eq!(bed.complete(&mut worker, &offer), Verdict::Applied);
    assert_eq!(bed.complete(&mut worker, &offer), Verdict::Duplicate);
    // Also from the next session of the same worker.
    drop(worker);
    let mut again = bed.worker(&[POOL], 1);
    assert_eq!(bed.complete(&mut again, &offer), Verdict::Duplicate);
    // And after a retryable failure, which settled its lease and not the task.
    bed.submit(POOL);
    let offer = bed.accept(&mut again);
    assert_eq!(bed.fail(&mut again, &offer, FailureClass::Retryable), Verdict::Applied);
    assert_eq!(bed.fail(&mut again, &offer, FailureClass::Retryable), Verdict::Duplicate);
    assert_eq!(again.load(), (1, 0));
}

#[test]
fn binary_output_survives() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let (mailbox, _) = mailbox();
    let watcher = Watcher { mailbox: mailbox.clone(), tag: 3 };
    bed.try_submit(POOL, TaskOptions::default(), Some(watcher)).expect("taken");
    let offer = bed.accept(&mut worker);
    let payload: Bytes = (0..=255u8).cycle().take(100_000).collect();
    let report = Report {
        task: offer.task.id(),
        lease: offer.lease,
        end: End::Completed {
            payload: payload.clone(),
            content_type: "image/png".into(),
            encoding: "br".into(),
        },
    };
    worker.result(report, bed.now);
    let delivered = take(&mailbox).pop().expect("an outcome");
    assert_eq!(delivered.tag, 3);
    assert_eq!(delivered.outcome.content_type, "image/png");
    assert_eq!(delivered.outcome.encoding, "br");
    // The very bytes, not a copy.
    assert_eq!(delivered.outcome.payload.as_ptr(), payload.as_ptr());
    assert_eq!(delivered.outcome.payload, payload);
}

#[test]
fn await_within_retention_gets_the_outcome() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let id = bed.submit(POOL);
    bed.drain_offers(&mut worker);
    let (mailbox, _) = mailbox();
    let watch = |bed: &Bed| {
        bed.engine.watch(&bed.operator, id, Watcher { mailbox: mailbox.clone(), tag: 9 })
    };
    watch(&bed).expect("known");
    assert_eq!(take(&mailbox).len(), 1);
    bed.pass(Duration::from_secs(62));
    assert!(watch(&bed).is_err());
}

#[test]
fn a_closed_mailbox_holds_up_nobody() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let (gone, _) = mailbox();
    let (stays, _) = mailbox();
    let watcher = Watcher { mailbox: gone.clone(), tag: 1 };
    let id = bed.try_submit(POOL, TaskOptions::default(), Some(watcher)).expect("taken").id;
    let second = Watcher { mailbox: stays.clone(), tag: 2 };
    bed.engine.watch(&bed.operator, id, second).expect("known");
    gone.close();
    bed.drain_offers(&mut worker);
    assert!(take(&gone).is_empty());
    assert_eq!(take(&stays).len(), 1);
}

#[test]
fn duplicate_ids_are_a_conflict() {
    let mut bed = Bed::new();
    let mut route = bed.route(POOL);
    let task = slipswitch_core::NewTask {
        id: TaskId::from_bytes([5; 16]),
        payload: Bytes::from_static(b"first"),
        options: TaskOptions::default(),
    };
    let twin = task.clone();
    bed.engine.submit(&bed.operator, &mut route, task, None, bed.now).expect("taken");
    let refused = bed.engine.submit(&bed.operator, &mut route, twin, None, bed.now);
    let refused = refused.expect_err("it exists");
    assert_eq!(refused.error, slipswitch_core::SubmitError::Conflict);
    assert_eq!(refused.task.payload, "first");
    let mut worker = bed.worker(&[POOL], 4);
    assert_eq!(bed.drain_offers(&mut worker), 1);
}

// bug: S8
#[test]
fn push_races_deregister() {
    let bed = Arc::new(Bed::new());
    let total = 4_000u128;
    let producers: Vec<_> = (0..2u128)
        .map(|thread| {
            let bed = Arc::clone(&bed);
            std::thread::spawn(move || {
                let mut route = bed.route(POOL);
                for n in 0..total {
                    let task = slipswitch_core::NewTask {
                        id: TaskId::from_bytes((thread << 64 | n | 1 << 100).to_be_bytes()),
                        payload: Bytes::new(),
                        options: TaskOptions::default(),
                    };
                    bed.engine
                        .submit(&bed.operator, &mut route, task, None, bed.now)
                        .expect("taken");
                }
            })
        })
        .collect();
    // Workers come and go under it; what they do not finish must come to the next one.
    let mut done = 0;
    let mut number = 0;
    while done < 2 * total as usize {
        number += 1;
        let session = slipswitch_core::SessionId::from_bytes([1; 16]);
        let mut worker = bed
            .engine
            .register(
                &bed.operator,
                session,
                register(&[POOL], number),
                Arc::new(crate::bed::Bell::default()),
                bed.now,
            )
            .expect("admitted");
        worker.credit(64, 1, bed.now);
        for _ in 0..number % 50 {
            let Some(offer) = worker.poll_offer(bed.now) else { break };
            worker.accept(offer.lease, bed.now);
            assert_eq!(bed.complete(&mut worker, &offer), Verdict::Applied);
            done += 1;
        }
        worker.close(CloseReason::ClientGoodbye, bed.now);
        bed.engine.advance(bed.now);
    }
    producers.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(done, 2 * total as usize);
    assert_eq!(bed.engine.in_flight(), 0);
    let (_, pools) = bed.engine.pools(&bed.operator);
    assert!(pools.iter().all(|pool| pool.waiting == 0), "{pools:?}");
}

#[test]
fn one_winner_per_epoch() {
    for round in 0..300u64 {
        let mut bed = Bed::new();
        let mut worker = bed.worker(&[POOL], 1);
        let mut options = TaskOptions::default();
        options.deadline = Some(Duration::from_secs(1));
        let (mailbox, _) = mailbox();
        let watcher = Watcher { mailbox: mailbox.clone(), tag: 1 };
        bed.try_submit(POOL, options, Some(watcher)).expect("taken");
        let offer = bed.accept(&mut worker);
        let engine = Arc::clone(&bed.engine);
        let late = bed.now + Duration::from_secs(2);
        let timer = std::thread::spawn(move || {
            engine.advance(late);
        });
        if round % 2 == 0 {
            std::thread::yield_now();
        }
        let verdict = bed.complete(&mut worker, &offer);
        timer.join().expect("no panic");
        let outcomes = take(&mailbox);
        assert_eq!(outcomes.len(), 1);
        let completed = outcomes[0].outcome.state == TaskState::Completed;
        assert_eq!(completed, verdict == Verdict::Applied);
    }
}
