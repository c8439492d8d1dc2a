//! Publishing never stands in the way of selecting.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use slipswitch_core::{
    CellFamily, Config, Engine, EpochCell, Instant, Principal, Selection, SessionId, SnapshotCell,
};

use crate::bed::{Bell, key, register};

const POOL: &str = "main/default/work";

/// Where a publish stops until it is told to go on.
struct Stop {
    reached: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

static STOP: OnceLock<Stop> = OnceLock::new();

/// An epoch cell whose publish can be held up in the middle: after the new snapshot was made, before
/// readers see it.
struct Halting<T: Send + Sync + 'static>(EpochCell<T>);

impl<T: Send + Sync + 'static> SnapshotCell<T> for Halting<T> {
    type Guard<'a>
        = <EpochCell<T> as SnapshotCell<T>>::Guard<'a>
    where
        Self: 'a;

    fn new(value: T) -> Self {
        Self(EpochCell::new(value))
    }

    fn load(&self) -> Self::Guard<'_> {
        self.0.load()
    }

    fn publish(&self, value: T) {
        if thread::current().name() == Some("publisher")
            && let Some(stop) = STOP.get()
        {
            stop.reached.send(()).expect("the test waits");
            stop.go_on.lock().expect("no panic").recv().expect("the test goes on");
        }
        self.0.publish(value);
    }
}

#[derive(Debug)]
struct HaltingCells;

impl CellFamily for HaltingCells {
    type Cell<T: Send + Sync + 'static> = Halting<T>;
}

#[test]
fn selection_goes_on_while_a_publisher_is_suspended() {
    let (reached, is_reached) = channel();
    let (go, go_on) = channel();
    assert!(STOP.set(Stop { reached, go_on: Mutex::new(go_on) }).is_ok());
    let now = Instant::from_micros(1);
    let engine: Arc<Engine<HaltingCells>> =
        Engine::new(Config::default(), Arc::new(Bell::default()), now);
    let operator = Principal::operator("test");
    let join = {
        let (engine, operator) = (Arc::clone(&engine), operator.clone());
        move |number: u64| {
            let session = SessionId::from_bytes([1; 16]);
            let link = Arc::new(Bell::default());
            engine
                .register(&operator, session, register(&[POOL], number), link, now)
                .expect("admitted")
        }
    };
    let mut present = join(1);
    present.credit(4, 1, now);
    let publisher = {
        let join = join.clone();
        thread::Builder::new().name("publisher".to_owned()).spawn(move || join(2))
    };
    let publisher = publisher.expect("a thread");
    is_reached.recv().expect("the publish began");
    // The publisher stands still with the writer's lock in its hand. Selecting, submitting and
    // settling go on.
    let mut route = engine.route(&key(POOL)).expect("a route");
    for _ in 0..10_000 {
        assert!(matches!(engine.select(&route, None), Selection::Reserved(_)));
    }
    for n in 0..100u128 {
        let task = slipswitch_core::NewTask {
            id: slipswitch_core::TaskId::from_bytes(n.to_be_bytes()),
            payload: bytes::Bytes::new(),
            options: slipswitch_core::TaskOptions::default(),
        };
        engine.submit(&operator, &mut route, task, None, now).expect("taken");
        let offer = present.poll_offer(now).expect("an offer");
        let verdict = present.result(crate::bed::completed(&offer, b"done"), now);
        assert_eq!(verdict, slipswitch_core::Verdict::Applied);
    }
    assert_eq!(engine.workers(&operator).1.len(), 1);
    go.send(()).expect("the publisher waits");
    let second = publisher.join().expect("no panic");
    assert_eq!(engine.workers(&operator).1.len(), 2);
    drop(second);
}
