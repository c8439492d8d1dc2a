//! A task's whole turn through an engine in this process: submit, offer, accept, result, outcome.

use std::sync::Arc;

use bytes::Bytes;
use slipswitch_core::{
    End, Engine, EpochCells, Instant, Mailbox, NewTask, Notify, PoolKey, Principal, Report, Route,
    TaskId, TaskOptions, Text, Watcher, WorkerSession,
};

use crate::baseline::{Dispatcher, Ours};

struct Nobody;

impl Notify for Nobody {
    fn notify(&self) {}
}

/// An engine with workers, and a producer that waits for every outcome.
pub struct Turn {
    engine: Arc<Engine<EpochCells>>,
    operator: Principal,
    workers: Vec<WorkerSession<EpochCells>>,
    route: Route,
    mailbox: Arc<Mailbox>,
    next: u64,
}

impl Turn {
    const NOW: Instant = Instant::from_micros(1);

    /// Registers `workers` workers with so much credit each.
    ///
    /// # Panics
    ///
    /// If the pool's name is refused, which would be a fault of this function.
    #[must_use]
    pub fn new(workers: usize, credit: u32) -> Self {
        let ours: Ours = Ours::create();
        let key = PoolKey::new("bench", "default", "turn").expect("the name is valid");
        let workers =
            (0..workers).map(|_| ours.register(std::slice::from_ref(&key), credit)).collect();
        let route = ours.key(&key);
        let engine = Arc::clone(ours.engine());
        let mailbox = Arc::new(Mailbox::new(Arc::new(Nobody)));
        Self { engine, operator: Principal::operator("bench"), workers, route, mailbox, next: 0 }
    }

    /// Hands `count` tasks in and carries each through to its outcome, `window` at a time.
    ///
    /// # Panics
    ///
    /// If a task is refused or lost.
    pub fn carry(&mut self, count: u64, window: u64) {
        let payload = Bytes::from_static(&[7; 64]);
        let mut left = count;
        while left > 0 {
            let some = window.min(left);
            left -= some;
            for _ in 0..some {
                self.next += 1;
                let task = NewTask {
                    id: TaskId::from_bytes(u128::from(self.next).to_be_bytes()),
                    payload: payload.clone(),
                    options: TaskOptions::default(),
                };
                let watcher = Watcher { mailbox: Arc::clone(&self.mailbox), tag: self.next };
                let route = &mut self.route;
                self.engine
                    .submit(&self.operator, route, task, Some(watcher), Self::NOW)
                    .expect("the engine takes it");
            }
            let mut told = 0;
            while told < some {
                self.work();
                self.engine.advance(Self::NOW);
                told += self.mailbox.take().count() as u64;
            }
        }
    }

    fn work(&mut self) {
        for worker in &mut self.workers {
            while let Some(offer) = worker.poll_offer(Self::NOW) {
                worker.accept(offer.lease, Self::NOW);
                let end = End::Completed {
                    payload: offer.task.payload(),
                    content_type: Text::EMPTY,
                    encoding: Text::EMPTY,
                };
                let report = Report { task: offer.task.id(), lease: offer.lease, end };
                worker.result(report, Self::NOW);
            }
        }
    }
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn").field("engine", &self.engine).finish_non_exhaustive()
    }
}
