//! A small engine for models that go through the public interface.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    CellFamily, Config, End, Engine, InstanceId, Instant, ModelCells, NewTask, Notify, Offer,
    Policy, PoolEntry, PoolKey, Principal, Register, RegisterError, Report, Route, Selection,
    SessionId, TaskId, TaskOptions, TaskState, Text, Verdict, WorkerSession,
};

/// The pool of models that need only one.
pub const POOL: &str = "main/default/work";

/// Wakes nobody: a model looks for itself.
#[derive(Debug)]
struct Nobody;

impl Notify for Nobody {
    fn notify(&self) {}
}

/// An engine; unless said otherwise over the specification of a snapshot cell, a locked pointer.
#[derive(Debug)]
pub struct Bed<F: CellFamily = ModelCells> {
    /// The engine.
    pub engine: Arc<Engine<F>>,
    /// May do everything.
    pub operator: Principal,
}

impl<F: CellFamily> Clone for Bed<F> {
    fn clone(&self) -> Self {
        Self { engine: Arc::clone(&self.engine), operator: self.operator.clone() }
    }
}

/// Reads a pool key.
///
/// # Panics
///
/// If it is none.
#[must_use]
pub fn key(text: &str) -> PoolKey {
    text.parse().expect("a pool key")
}

/// A task with that number for an id.
#[must_use]
pub fn task(number: u8) -> NewTask {
    NewTask {
        id: TaskId::from_bytes([number; 16]),
        payload: Bytes::new(),
        options: TaskOptions::default(),
    }
}

impl Bed {
    /// The time in every model, unless it says otherwise.
    pub const NOW: Instant = Instant::from_micros(1_000);
    /// After every deadline that a model sets.
    pub const LATER: Instant = Instant::from_micros(9_000_000);

    /// Makes an engine over the specification of a snapshot cell.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is made anew in each execution")]
    pub fn new() -> Self {
        Self::over()
    }
}

impl<F: CellFamily> Bed<F> {
    /// Makes an engine over a cell of the family's.
    #[must_use]
    pub fn over() -> Self {
        // Single tickets: blocks belong to a thread, and loom plays all threads on one.
        let config = Config { policy: Policy::Strict, ..Config::default() };
        let engine = Engine::new(config, Arc::new(Nobody), Bed::NOW);
        Self { engine, operator: Principal::operator("model") }
    }

    /// Registers a worker for some pools.
    ///
    /// # Errors
    ///
    /// As the engine says.
    pub fn register(&self, pools: &[&str], number: u8) -> Result<WorkerSession<F>, RegisterError> {
        let entry = |text: &&str| {
            let key = key(text);
            PoolEntry {
                namespaces: vec![key.namespace],
                task_queue: key.task_queue,
                types: vec![key.activity_type],
            }
        };
        let register = Register {
            pools: pools.iter().map(entry).collect(),
            node: None,
            identity: String::new(),
            instance: InstanceId::from_bytes([number; 16]),
            build: String::new(),
            labels: Vec::new(),
            capacity: 8,
            weight: 1,
        };
        let session = SessionId::from_bytes([number; 16]);
        self.engine.register(&self.operator, session, register, Arc::new(Nobody), Bed::NOW)
    }

    /// Registers a worker and grants it credit.
    ///
    /// # Panics
    ///
    /// If it is refused.
    #[must_use]
    pub fn worker(&self, pools: &[&str], number: u8, credit: u32) -> WorkerSession<F> {
        let mut worker = self.register(pools, number).expect("admitted");
        worker.credit(credit, 1, Bed::NOW);
        worker
    }

    /// Hands a task in.
    ///
    /// # Panics
    ///
    /// If it is refused.
    pub fn submit(&self, pool: &str, number: u8) {
        let mut route = self.engine.route(&key(pool)).expect("a route");
        let task = task(number);
        self.engine.submit(&self.operator, &mut route, task, None, Bed::NOW).expect("taken");
    }

    /// Hands a task in that is dead by [`Bed::LATER`] if nobody has accepted it.
    ///
    /// # Panics
    ///
    /// If it is refused.
    pub fn submit_until(&self, pool: &str, number: u8) {
        let mut route = self.route(pool);
        let mut task = task(number);
        task.options.schedule_to_start = Some(Duration::from_secs(1));
        self.engine.submit(&self.operator, &mut route, task, None, Bed::NOW).expect("taken");
    }

    /// Resolves a pool.
    ///
    /// # Panics
    ///
    /// If it cannot be.
    #[must_use]
    pub fn route(&self, pool: &str) -> Route {
        self.engine.route(&key(pool)).expect("a route")
    }

    /// Takes a credit of the pool's and keeps it.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn occupy(&self, pool: &str) {
        match self.engine.select(&self.route(pool), None) {
            Selection::Reserved(reservation) => std::mem::forget(reservation),
            other => panic!("no credit: {other:?}"),
        }
    }

    /// How many of those tasks are on their way to a worker.
    #[must_use]
    pub fn placed(&self, tasks: &[u8]) -> usize {
        tasks.iter().filter(|task| self.state(**task) == TaskState::Offered).count()
    }

    /// Where a task is.
    ///
    /// # Panics
    ///
    /// If it is not known.
    #[must_use]
    pub fn state(&self, number: u8) -> TaskState {
        let id = TaskId::from_bytes([number; 16]);
        self.engine.task(&self.operator, id).expect("a known task").state
    }

    /// Where a task is, if it is known.
    #[must_use]
    pub fn state_of(&self, number: u8) -> Option<TaskState> {
        let id = TaskId::from_bytes([number; 16]);
        self.engine.task(&self.operator, id).map(|status| status.state)
    }

    /// The numbers of the tasks that the worker is sent, in their order.
    pub fn offers(&self, worker: &mut WorkerSession<F>) -> Vec<u8> {
        let offers = std::iter::from_fn(|| worker.poll_offer(Bed::NOW));
        offers.map(|offer| offer.task.id().as_bytes()[0]).collect()
    }

    /// Says whether the task is known and waits.
    #[must_use]
    pub fn waits(&self, number: u8) -> bool {
        let id = TaskId::from_bytes([number; 16]);
        let status = self.engine.task(&self.operator, id);
        status.is_some_and(|status| status.state == TaskState::Pending)
    }

    /// Completes an offer.
    pub fn complete(&self, worker: &mut WorkerSession<F>, offer: &Offer) -> Verdict {
        let end = End::Completed {
            payload: Bytes::new(),
            content_type: Text::EMPTY,
            encoding: Text::EMPTY,
        };
        let report = Report { task: offer.task.id(), lease: offer.lease, end };
        worker.result(report, Bed::NOW)
    }

    /// Has the worker complete the next task that it is sent; `None` if there is none.
    pub fn finish_one(&self, worker: &mut WorkerSession<F>) -> Option<u8> {
        let offer = worker.poll_offer(Bed::NOW)?;
        assert_eq!(self.complete(worker, &offer), Verdict::Applied);
        Some(offer.task.id().as_bytes()[0])
    }

    /// Drives everything that is left on this thread: the engine, and a worker that completes all
    /// that it is offered. Returns how many it completed.
    pub fn settle(&self, worker: &mut WorkerSession<F>) -> usize {
        let mut done = 0;
        loop {
            self.engine.advance(Bed::NOW);
            let mut idle = true;
            while let Some(offer) = worker.poll_offer(Bed::NOW) {
                self.complete(worker, &offer);
                done += 1;
                idle = false;
            }
            if idle {
                return done;
            }
        }
    }
}
