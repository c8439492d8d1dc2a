//! Ours: the engine of `slipswitch-core` over one of its snapshot cells.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use slipswitch_core::{
    ArcSwapCells, CellFamily, Config, Engine, EpochCells, InstanceId, Instant, ModelCells, Node,
    Notify, Policy, PoolEntry, PoolKey, Principal, Register, Reservation, Route, Selection,
    SessionId, WorkerSession,
};

use super::Dispatcher;

/// Nobody sleeps in a benchmark of selections.
struct Nobody;

impl Notify for Nobody {
    fn notify(&self) {}
}

/// What rows of a table call a cell.
pub trait Named: CellFamily {
    /// The name.
    const NAME: &'static str;
}

impl Named for EpochCells {
    const NAME: &'static str = "ours, epoch cell";
}

impl Named for ArcSwapCells {
    const NAME: &'static str = "ours, arc-swap cell";
}

impl Named for ModelCells {
    const NAME: &'static str = "ours, locked cell";
}

/// How selections are made.
pub trait Manner: Send + Sync + 'static {
    /// What rows of a table call it; empty for the name of the cell.
    const NAME: &'static str = "";
    /// How tickets are drawn.
    const POLICY: Policy = Policy::RoundRobin;
    /// On how many nodes the workers are, in turn. Selections ask for the first; 0 for none.
    const NODES: u64 = 0;
}

/// The default: blocks of tickets that follow the load.
#[derive(Debug)]
pub struct Following;

impl Manner for Following {}

/// Single tickets, in order among all threads.
#[derive(Debug)]
pub struct Strict;

impl Manner for Strict {
    const NAME: &'static str = "ours, strict tickets";
    const POLICY: Policy = Policy::Strict;
}

/// Every task is for one of ten nodes.
#[derive(Debug)]
pub struct OnNode;

impl Manner for OnNode {
    const NAME: &'static str = "ours, one node of ten";
    const NODES: u64 = 10;
}

/// The engine over the cell `F`.
pub struct Ours<F: Named = EpochCells, M: Manner = Following> {
    engine: Arc<Engine<F>>,
    operator: Principal,
    /// The node that selections ask for.
    node: Option<Node>,
    manner: PhantomData<M>,
}

impl<F: Named, M: Manner> Ours<F, M> {
    /// The time of everything: benchmarks of selections know no other.
    const NOW: Instant = Instant::from_micros(1);

    /// Returns the engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine<F>> {
        &self.engine
    }
}

fn node(number: u64) -> Node {
    Node::new(&format!("node-{number}")).expect("the name is valid")
}

impl<F: Named, M: Manner> fmt::Debug for Ours<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ours").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl<F: Named, M: Manner> Dispatcher for Ours<F, M> {
    const NAME: &'static str = if M::NAME.is_empty() { F::NAME } else { M::NAME };
    /// Over the workers of a node, which are not all of the pool.
    const ROTATES: bool = M::NODES == 0;

    type Registration = WorkerSession<F>;
    type Key = Route;
    type Reservation<'a> = Reservation<'a, F>;

    fn create() -> Self {
        let engine = Engine::new(Config::default(), Arc::new(Nobody), Self::NOW);
        let node = (M::NODES > 0).then(|| node(0));
        Self { engine, operator: Principal::operator("bench"), node, manner: PhantomData }
    }

    fn register(&self, keys: &[PoolKey], credit: u32) -> WorkerSession<F> {
        let entry = |key: &PoolKey| PoolEntry {
            namespaces: vec![key.namespace.clone()],
            task_queue: key.task_queue.clone(),
            types: vec![key.activity_type.clone()],
        };
        let (_, count) = self.engine.generation();
        let register = Register {
            pools: keys.iter().map(entry).collect(),
            node: (M::NODES > 0).then(|| node(count as u64 % M::NODES)),
            identity: String::new(),
            instance: InstanceId::from_bytes(rand::random()),
            build: String::new(),
            labels: Vec::new(),
            capacity: credit,
            weight: 1,
        };
        let session = SessionId::from_bytes((count as u128).to_be_bytes());
        let link = Arc::new(Nobody);
        let mut worker = self
            .engine
            .register(&self.operator, session, register, link, Self::NOW)
            .expect("an operator may register");
        worker.credit(credit, 1, Self::NOW);
        worker
    }

    fn number(&self, registration: &WorkerSession<F>) -> u64 {
        registration.worker_id().as_u64()
    }

    fn deregister(&self, registration: WorkerSession<F>) {
        drop(registration);
    }

    fn key(&self, pool: &PoolKey) -> Route {
        let route = self.engine.route(pool).expect("the pool's name is valid");
        self.engine.set_policy(&self.operator, route.key(), Some(M::POLICY)).expect("an operator");
        route
    }

    #[inline]
    fn select(&self, key: &Route) -> Option<Reservation<'_, F>> {
        match self.engine.select(key, self.node.as_ref()) {
            Selection::Reserved(reservation) => Some(reservation),
            _ => None,
        }
    }

    #[inline]
    fn worker(&self, reservation: &Reservation<'_, F>) -> u64 {
        reservation.worker_id().as_u64()
    }

    #[inline]
    fn release(&self, reservation: Reservation<'_, F>) {
        drop(reservation);
    }
}
