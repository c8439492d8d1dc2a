//! A connected worker as the engine holds it, and the way in which its units come back.

use std::fmt;

use crate::admission::{Principal, Register};
use crate::credit::{GiveBack, Word};
use crate::drain::Order;
use crate::id::{InstanceId, SessionId, WorkerId};
use crate::inbox::{Batch, Inbox, Pushed};
use crate::limits::SIGNALS_MAX;
use crate::line::Line;
use crate::mutant::mutant;
use crate::name::Node;
use crate::outcome::Notify;
use crate::pool::Pool;
use crate::report::CancelReason;
use crate::signal::Signal;
use crate::sync::{AtomicU32, Ordering, StdArc};
use crate::task::Task;
use crate::time::Instant;

/// A worker in a slice: its id, by which slices are ordered, and its place in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Member {
    pub(crate) worker: WorkerId,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// A task on its way to a worker, with the unit of credit that it travels on.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) task: StdArc<Task>,
    pub(crate) epoch: u64,
    /// The serial of the pool that placed it.
    pub(crate) pool: u64,
}

/// What a session is told about one of its leases, by its epoch.
#[derive(Debug)]
pub(crate) enum Note {
    /// Somebody else ended it.
    Ended(u64, CancelReason),
    /// Its task is to stop; the session asks the task why and until when.
    Stop(u64),
    /// Bytes for its handler.
    Signal(u64, Signal),
}

/// What a worker's session is asked to do, beside tasks.
pub(crate) const ASKED_DRAIN: u32 = 1;
pub(crate) const ASKED_LEAVE: u32 = 2;
pub(crate) const ASKED_EVICTED: u32 = 4;
/// There are orders.
const ASKED_HEAR: u32 = 8;

/// A connected worker.
pub(crate) struct Worker {
    pub(crate) member: Member,
    pub(crate) session: SessionId,
    pub(crate) principal: Principal,
    pub(crate) instance: InstanceId,
    pub(crate) node: Option<Node>,
    pub(crate) identity: String,
    /// The same name hashes alike on every machine, and after every start.
    pub(crate) identity_hash: u64,
    pub(crate) weight: u32,
    pub(crate) build: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) connected: Instant,
    /// Pools that wait for one of its credits.
    pub(crate) waiters: Line<StdArc<Pool>>,
    /// Tasks that were placed on it and not sent yet. Its gate closes with drain and loss.
    pub(crate) inbox: Inbox<Delivery>,
    /// Whom to wake about the inbox and `asked`.
    pub(crate) link: StdArc<dyn Notify>,
    /// What others did about its leases: the session tells the worker.
    pub(crate) notes: Inbox<Note>,
    /// What drains ask of the session.
    orders: Inbox<Order>,
    asked: AtomicU32,
    /// Signals for its handlers that were not answered.
    signals: AtomicU32,
}

impl Worker {
    pub(crate) fn new(
        member: Member,
        session: SessionId,
        principal: Principal,
        register: Register,
        link: StdArc<dyn Notify>,
        connected: Instant,
    ) -> Self {
        Self {
            member,
            session,
            principal,
            instance: register.instance,
            node: register.node,
            identity_hash: crate::mix::hash(register.identity.as_bytes()),
            identity: register.identity,
            weight: register.weight,
            build: register.build,
            labels: register.labels,
            connected,
            waiters: Line::new(),
            inbox: Inbox::new(),
            notes: Inbox::new(),
            orders: Inbox::new(),
            link,
            asked: AtomicU32::new(0),
            signals: AtomicU32::new(0),
        }
    }

    /// Asks the session to do something and wakes it.
    pub(crate) fn ask(&self, what: u32) {
        // Release [E7]: pairs with the Acquire in `Worker::asked`; the gate closed before.
        self.asked.fetch_or(what, Ordering::Release);
        self.link.notify();
    }

    /// What the session was asked to do so far.
    pub(crate) fn asked(&self) -> u32 {
        // Acquire [E7]: pairs with the Release in `Worker::ask`.
        self.asked.load(Ordering::Acquire)
    }

    /// Says whether the worker will not stay.
    pub(crate) fn is_leaving(&self) -> bool {
        self.asked() & (ASKED_DRAIN | ASKED_LEAVE | ASKED_EVICTED) != 0
    }

    /// Gives the session an order. Dropped if the session is over.
    pub(crate) fn order(&self, order: Order) {
        if self.orders.push(order).is_ok() {
            self.ask(ASKED_HEAR);
        }
    }

    /// Takes what was ordered since.
    pub(crate) fn take_orders(&self) -> Batch<Order> {
        // Acquire [E7]: pairs with the Release in `Worker::ask`; what is ordered after this asks
        // anew.
        self.asked.fetch_and(!ASKED_HEAR, Ordering::Acquire);
        self.orders.take()
    }

    /// Says whether there are orders.
    pub(crate) fn has_orders(&self) -> bool {
        self.asked() & ASKED_HEAR != 0
    }

    /// The session is over: orders that nobody heard are dropped, as are those to come.
    pub(crate) fn end_orders(&self) {
        drop(self.orders.close());
    }

    /// Tells the session something about one of its leases. Dropped if the session is over.
    pub(crate) fn tell(&self, note: Note) {
        if let Ok(Pushed::First) = self.notes.push(note) {
            self.link.notify();
        }
    }

    /// Counts a signal for one of its handlers. False if there are too many.
    pub(crate) fn signal_given(&self) -> bool {
        // Relaxed: a limit, passed by nobody: each count is drawn once.
        if self.signals.fetch_add(1, Ordering::Relaxed) < SIGNALS_MAX {
            return true;
        }
        self.signal_answered();
        false
    }

    pub(crate) fn signal_answered(&self) {
        // Relaxed: as above.
        self.signals.fetch_sub(1, Ordering::Relaxed);
    }

    /// Puts a delivery into the inbox and wakes the session if it may sleep.
    ///
    /// # Errors
    ///
    /// Hands the delivery back if the gate is closed.
    pub(crate) fn deliver(&self, delivery: Delivery) -> Result<(), Delivery> {
        match self.inbox.push(delivery) {
            Ok(Pushed::First) => {
                self.link.notify();
                Ok(())
            }
            Ok(Pushed::Behind) => Ok(()),
            Err(delivery) => Err(delivery),
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("member", &self.member)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// Pools whose pump this thread must run, because it found them idle.
pub(crate) type RunList = Vec<StdArc<Pool>>;

/// Gives `units` back: the one way in which a unit of credit returns.
///
/// While a pool waits for this worker a unit does not become visible: it is handed as a token to
/// the first pool of the waiting line, whether or not that pool looks empty. The caller holds each
/// unit until the step that ends it.
pub(crate) fn release(word: &Word, worker: &Worker, mut units: u32, run: &mut RunList) {
    if mutant("L7a") {
        word.give_back();
    }
    while units > 0 {
        if word.give_back() == GiveBack::Done {
            units -= 1;
            continue;
        }
        if let Some(pool) = worker.waiters.pop() {
            if mutant("L10b-g") && pool.looks_empty() {
                continue;
            }
            units -= 1;
            if !mutant("L10b-e") {
                pool.hand(worker.member, run);
            }
            continue;
        }
        if !word.clear_wanted() || mutant("L10b-a") {
            continue;
        }
        // A pool that queued up before the flag was cleared is seen here, one that does so later
        // sets the flag itself. Other releasers may have made room meanwhile: all of it is taken,
        // until the word is full and the flag can be set.
        if !worker.waiters.is_empty() {
            while word.rearm() {
                units += 1;
                if mutant("L10b-i") {
                    break;
                }
            }
        }
    }
}
