//! Ours: the engine of `slipswitch-core` over one of its snapshot cells.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use slipswitch_core::{
    ArcSwapCells, CellFamily, Config, Engine, EpochCells, InstanceId, Instant, ModelCells, Notify,
    PoolEntry, PoolKey, Principal, Register, Reservation, Route, Selection, SessionId,
    WorkerSession,
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

/// The engine over the cell `F`.
pub struct Ours<F: Named = EpochCells> {
    engine: Arc<Engine<F>>,
    operator: Principal,
    cell: PhantomData<F>,
}

impl<F: Named> Ours<F> {
    /// The time of everything: benchmarks of selections know no other.
    const NOW: Instant = Instant::from_micros(1);

    /// Returns the engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine<F>> {
        &self.engine
    }
}

impl<F: Named> fmt::Debug for Ours<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ours").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl<F: Named> Dispatcher for Ours<F> {
    const NAME: &'static str = F::NAME;

    type Registration = WorkerSession<F>;
    type Key = Route;
    type Reservation<'a> = Reservation<'a, F>;

    fn create() -> Self {
        let engine = Engine::new(Config::default(), Arc::new(Nobody), Self::NOW);
        Self { engine, operator: Principal::operator("bench"), cell: PhantomData }
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
            node: None,
            identity: String::new(),
            instance: InstanceId::from_bytes(rand::random()),
            build: String::new(),
            labels: Vec::new(),
            capacity: credit,
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
        self.engine.route(pool).expect("the pool's name is valid")
    }

    #[inline]
    fn select(&self, key: &Route) -> Option<Reservation<'_, F>> {
        match self.engine.select(key, None) {
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
