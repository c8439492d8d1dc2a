//! A bed for tests: an engine, a clock in the test's hand, and short ways to say things.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    CancelReason, Config, Delivered, DrainScope, Drained, End, Engine, Failure, FailureClass,
    InstanceId, Instant, Lease, Mailbox, NewTask, Node, Notify, Offer, PoolEntry, PoolKey,
    Principal, Reason, Register, Report, Route, SessionId, Submitted, TaskId, TaskOptions,
    TaskState, TaskStatus, Text, Verdict, Watcher, WorkerSession,
};

/// Counts how often somebody was woken.
#[derive(Debug, Default)]
pub(crate) struct Bell(AtomicUsize);

impl Bell {
    pub(crate) fn rings(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Notify for Bell {
    fn notify(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn key(text: &str) -> PoolKey {
    text.parse().expect("a pool key")
}

pub(crate) fn entry(key: &PoolKey) -> PoolEntry {
    PoolEntry {
        namespaces: vec![key.namespace.clone()],
        task_queue: key.task_queue.clone(),
        types: vec![key.activity_type.clone()],
    }
}

pub(crate) fn instance(number: u64) -> InstanceId {
    InstanceId::from_bytes(u128::from(number).to_be_bytes())
}

pub(crate) fn register(keys: &[&str], number: u64) -> Register {
    Register {
        pools: keys.iter().map(|text| entry(&key(text))).collect(),
        node: None,
        identity: "worker".to_owned(),
        instance: instance(number),
        build: "test".to_owned(),
        labels: Vec::new(),
        capacity: 1_000,
        weight: 1,
    }
}

pub(crate) struct Bed {
    pub(crate) engine: Arc<Engine>,
    pub(crate) operator: Principal,
    pub(crate) now: Instant,
    next: u64,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let now = Instant::from_micros(1_000_000);
        let engine = Engine::new(config, Arc::new(Bell::default()), now);
        Self { engine, operator: Principal::operator("test"), now, next: 0 }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Registers a worker and grants it credit.
    pub(crate) fn worker(&mut self, keys: &[&str], credit: u32) -> WorkerSession {
        let number = self.number();
        self.join(register(keys, number), credit)
    }

    pub(crate) fn worker_on(&mut self, keys: &[&str], credit: u32, node: &str) -> WorkerSession {
        let number = self.number();
        let node = Some(Node::new(node).expect("a node"));
        self.join(Register { node, ..register(keys, number) }, credit)
    }

    pub(crate) fn join(&mut self, register: Register, credit: u32) -> WorkerSession {
        let number = self.number();
        let session = SessionId::from_bytes(u128::from(number).to_be_bytes());
        let link = Arc::new(Bell::default());
        let mut worker = self
            .engine
            .register(&self.operator, session, register, link, self.now)
            .expect("admitted");
        worker.credit(credit, 1, self.now);
        worker
    }

    pub(crate) fn route(&self, text: &str) -> Route {
        self.engine.route(&key(text)).expect("a route")
    }

    pub(crate) fn submit(&mut self, text: &str) -> TaskId {
        self.submit_with(text, TaskOptions::default())
    }

    pub(crate) fn submit_many(&mut self, text: &str, count: usize) -> Vec<TaskId> {
        (0..count).map(|_| self.submit(text)).collect()
    }

    pub(crate) fn submit_with(&mut self, text: &str, options: TaskOptions) -> TaskId {
        self.try_submit(text, options, None).expect("taken").id
    }

    pub(crate) fn submit_pinned(&mut self, text: &str, node: &str) -> TaskId {
        let mut options = TaskOptions::default();
        options.require = Some(Node::new(node).expect("a node"));
        self.submit_with(text, options)
    }

    pub(crate) fn try_submit(
        &mut self,
        text: &str,
        options: TaskOptions,
        watcher: Option<Watcher>,
    ) -> Result<Submitted, slipswitch_core::Refused> {
        let number = self.number();
        let id = TaskId::from_bytes(u128::from(number).to_be_bytes());
        let task = NewTask { id, payload: Bytes::from(number.to_be_bytes().to_vec()), options };
        let mut route = self.route(text);
        self.engine.submit(&self.operator, &mut route, task, watcher, self.now)
    }

    /// Lets time pass in steps of ten milliseconds, driving the engine.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.pass_with(time, &mut []);
    }

    /// As [`Bed::pass`], with the sessions' own timers driven too.
    pub(crate) fn pass_with(&mut self, time: Duration, sessions: &mut [&mut WorkerSession]) {
        let end = self.now + time;
        while self.now < end {
            self.now = (self.now + Duration::from_millis(10)).min(end);
            self.engine.advance(self.now);
            for session in sessions.iter_mut() {
                session.handle_timeout(self.now);
            }
        }
        self.engine.advance(self.now);
    }

    pub(crate) fn drain(&self, scope: DrainScope) -> Drained {
        self.drain_until(scope, None)
    }

    pub(crate) fn drain_until(&self, scope: DrainScope, deadline: Option<Duration>) -> Drained {
        let drained = self.engine.drain_scope(
            &self.operator,
            scope,
            deadline,
            Arc::new(Bell::default()),
            self.now,
        );
        drained.expect("drained")
    }

    pub(crate) fn cordon(&self, scope: DrainScope) -> Drained {
        let bell = Arc::new(Bell::default());
        self.engine.cordon(&self.operator, scope, bell, self.now).expect("cordoned")
    }

    pub(crate) fn uncordon(&self, scope: &DrainScope) -> u64 {
        self.engine.uncordon(&self.operator, scope, self.now).expect("uncordoned")
    }

    pub(crate) fn status(&self, id: TaskId) -> TaskStatus {
        self.engine.task(&self.operator, id).expect("a known task")
    }

    pub(crate) fn state(&self, id: TaskId) -> TaskState {
        self.status(id).state
    }

    pub(crate) fn reason(&self, id: TaskId) -> Reason {
        self.status(id).reason
    }

    pub(crate) fn accept(&self, worker: &mut WorkerSession) -> Offer {
        let offer = worker.poll_offer(self.now).expect("an offer");
        worker.accept(offer.lease, self.now);
        offer
    }

    pub(crate) fn complete(&self, worker: &mut WorkerSession, offer: &Offer) -> Verdict {
        worker.result(completed(offer, b"done"), self.now)
    }

    pub(crate) fn fail(
        &self,
        worker: &mut WorkerSession,
        offer: &Offer,
        class: FailureClass,
    ) -> Verdict {
        worker.result(failed(offer, class, "boom"), self.now)
    }

    /// Accepts and completes all that a worker is offered, and returns how much that was.
    pub(crate) fn drain_offers(&self, worker: &mut WorkerSession) -> usize {
        let mut done = 0;
        while let Some(offer) = worker.poll_offer(self.now) {
            worker.accept(offer.lease, self.now);
            assert_eq!(self.complete(worker, &offer), Verdict::Applied);
            done += 1;
        }
        done
    }
}

pub(crate) fn completed(offer: &Offer, payload: &'static [u8]) -> Report {
    Report {
        task: offer.task.id(),
        lease: offer.lease,
        end: End::Completed {
            payload: Bytes::from_static(payload),
            content_type: "application/octet-stream".into(),
            encoding: Text::EMPTY,
        },
    }
}

pub(crate) fn failed(offer: &Offer, class: FailureClass, code: &str) -> Report {
    let failure = Failure {
        class,
        code: code.to_owned(),
        message: "it went wrong".to_owned(),
        details: Bytes::new(),
        retry_after: None,
    };
    Report { task: offer.task.id(), lease: offer.lease, end: End::Failed(failure) }
}

/// The next lease on which a worker is told to stop, and why.
pub(crate) fn told(worker: &mut WorkerSession) -> Option<(Lease, CancelReason)> {
    worker.poll_cancel().map(|stop| (stop.lease, stop.reason))
}

/// A place where outcomes arrive.
pub(crate) fn mailbox() -> (Arc<Mailbox>, Arc<Bell>) {
    let bell = Arc::new(Bell::default());
    (Arc::new(Mailbox::new(bell.clone())), bell)
}

pub(crate) fn take(mailbox: &Mailbox) -> Vec<Delivered> {
    mailbox.take().collect()
}
