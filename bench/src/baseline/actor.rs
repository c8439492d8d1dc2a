//! A single-writer loop: one thread owns good data, everybody else asks it through a channel.
//!
//! A caller keeps one reply channel for its life instead of making one a request, and a release
//! wants no answer: both spare the rival what a simple version would pay.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use slipswitch_core::PoolKey;

use super::Dispatcher;
use super::fair::{Plain, Unit};

#[derive(Debug)]
enum Request {
    Register { keys: Vec<PoolKey>, credit: u32, reply: Sender<Reply> },
    Deregister { unit: Unit, reply: Sender<Reply> },
    Pool { key: PoolKey, reply: Sender<Reply> },
    Select { pool: u32, reply: Sender<Reply> },
    Release { unit: Unit },
    Stop,
}

#[derive(Debug)]
enum Reply {
    Unit(Option<Unit>),
    Pool(u32),
    Done,
}

thread_local! {
    static MAILBOX: (Sender<Reply>, Receiver<Reply>) = channel();
}

/// The loop and the way to it.
#[derive(Debug)]
pub struct Actor {
    requests: Sender<Request>,
    thread: Option<JoinHandle<()>>,
}

impl Actor {
    fn send(&self, request: Request) {
        self.requests.send(request).expect("the loop runs until it is told to stop");
    }

    #[inline]
    fn ask(&self, request: impl FnOnce(Sender<Reply>) -> Request) -> Reply {
        MAILBOX.with(|(sender, receiver)| {
            self.send(request(sender.clone()));
            receiver.recv().expect("a mailbox holds a sender of its own")
        })
    }
}

fn run(requests: &Receiver<Request>) {
    let mut plain = Plain::default();
    while let Ok(request) = requests.recv() {
        // A caller that is gone wants no answer.
        let _ = match request {
            Request::Register { keys, credit, reply } => {
                reply.send(Reply::Unit(Some(plain.register(&keys, credit))))
            }
            Request::Deregister { unit, reply } => {
                plain.deregister(unit);
                reply.send(Reply::Done)
            }
            Request::Pool { key, reply } => reply.send(Reply::Pool(plain.pool(&key))),
            Request::Select { pool, reply } => reply.send(Reply::Unit(plain.select(pool))),
            Request::Release { unit } => {
                plain.release(unit);
                Ok(())
            }
            Request::Stop => return,
        };
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // A loop that is gone already needs no word; its panic was printed by itself.
        let _ = self.requests.send(Request::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Dispatcher for Actor {
    const NAME: &'static str = "actor loop";

    type Registration = Unit;
    type Key = u32;
    type Reservation<'a> = Unit;

    fn create() -> Self {
        let (requests, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("actor".to_owned())
            .spawn(move || run(&receiver))
            .expect("the system can start a thread");
        Self { requests, thread: Some(thread) }
    }

    fn register(&self, keys: &[PoolKey], credit: u32) -> Unit {
        match self.ask(|reply| Request::Register { keys: keys.to_vec(), credit, reply }) {
            Reply::Unit(Some(unit)) => unit,
            other => unreachable!("answer to a registration: {other:?}"),
        }
    }

    fn number(&self, registration: &Unit) -> u64 {
        registration.id
    }

    fn deregister(&self, registration: Unit) {
        self.ask(|reply| Request::Deregister { unit: registration, reply });
    }

    fn key(&self, pool: &PoolKey) -> u32 {
        match self.ask(|reply| Request::Pool { key: pool.clone(), reply }) {
            Reply::Pool(pool) => pool,
            other => unreachable!("answer about a pool: {other:?}"),
        }
    }

    #[inline]
    fn select(&self, key: &u32) -> Option<Unit> {
        match self.ask(|reply| Request::Select { pool: *key, reply }) {
            Reply::Unit(unit) => unit,
            other => unreachable!("answer to a selection: {other:?}"),
        }
    }

    #[inline]
    fn worker(&self, reservation: &Unit) -> u64 {
        reservation.id
    }

    #[inline]
    fn release(&self, reservation: Unit) {
        self.send(Request::Release { unit: reservation });
    }
}
