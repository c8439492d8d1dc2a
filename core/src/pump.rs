//! Placing the waiting tasks of a pool: one pass of its pump.

use crate::cell::CellFamily;
use crate::engine::Engine;
use crate::limits::PLACEMENTS_PER_TURN;
use crate::mutant::mutant;
use crate::pool::{Pass, Pool};
use crate::select::Chosen;
use crate::snapshot::{Entry, PoolView, Snapshot};
use crate::sync::StdArc;
use crate::table::Table;
use crate::task::Task;
use crate::worker::{Delivery, Member, RunList, Worker, release};

/// What became of a task and the unit it was to travel on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// Both are on their way.
    Sent,
    /// The task had ended meanwhile. The unit is still the caller's.
    Ended,
    /// The worker's gate is closed. The offer of that epoch, and the unit, are still the caller's.
    Refused(u64),
}

/// What a pass looks at: the pool's view, if it has workers and is not drained, and the workers.
struct Sight {
    view: Option<StdArc<PoolView>>,
    workers: Table<StdArc<Entry>>,
}

impl Sight {
    fn load<F: CellFamily>(engine: &Engine<F>, pool: &Pool) -> Self {
        let snapshot = engine.registry.load();
        let snapshot: &Snapshot = &snapshot;
        let view = snapshot.view(pool).filter(|view| !view.is_drained).cloned();
        Self { view, workers: snapshot.workers.clone() }
    }

    fn entry(&self, member: Member) -> Option<&Entry> {
        let entry = self.workers.get(member.slot)?;
        (entry.worker.member == member).then_some(entry)
    }
}

impl<F: CellFamily> Engine<F> {
    /// Runs the pools that this thread found idle. What is over the budget goes to the driver.
    pub(crate) fn run(&self, run: &mut RunList) {
        let mut budget = PLACEMENTS_PER_TURN;
        while let Some(pool) = run.pop() {
            self.run_pool(&pool, run, &mut budget);
        }
    }

    fn run_pool(&self, pool: &StdArc<Pool>, run: &mut RunList, budget: &mut usize) {
        let mut pass = pool.begin();
        loop {
            // The snapshot is loaded after the pass began: what was published before a
            // notification is seen by the pass that the notification causes.
            let sight = Sight::load(self, pool);
            self.take_in(pool, &mut pass, &sight, run);
            let within = self.place_waiting(pool, &mut pass, &sight, run, budget);
            if !within {
                pass.hand_on();
                self.registry.driver.take_over(StdArc::clone(pool));
                return;
            }
            self.give_tokens_on(&mut pass, &sight, run);
            if pass.end() {
                return;
            }
            pass.restart();
        }
    }

    /// Takes in what has arrived: tokens first, then tasks.
    fn take_in(&self, pool: &StdArc<Pool>, pass: &mut Pass<'_>, sight: &Sight, run: &mut RunList) {
        for member in pass.tokens() {
            let entry = sight.entry(member);
            let fits = sight.view.is_some()
                && entry.is_some_and(|entry| {
                    entry.pools.iter().any(|other| other.serial == pool.serial)
                });
            let node = entry.and_then(|entry| entry.worker.node.as_ref());
            pass.waiting(|waiting| waiting.token_arrived(member, node));
            if !fits {
                // The worker serves this pool no more: its unit is not ours to use.
                pass.waiting(|waiting| waiting.tokens.retain(|other| *other != member));
                self.give_on(member, entry.map(|entry| &*entry.worker), run);
            }
        }
        let arrivals = pass.arrivals();
        pass.waiting(|waiting| {
            for task in arrivals {
                waiting.backlog.push(task);
            }
            waiting.backlog.drop_ended();
            if waiting.backlog.len() as u64 > pool.waiting().saturating_mul(2).saturating_add(64) {
                waiting.backlog.compact();
            }
            if let Some(view) = &sight.view
                && !waiting.backlog.is_empty()
            {
                waiting.refresh(view);
            }
        });
    }

    /// Places what can be placed. False if the budget ran out first.
    fn place_waiting(
        &self,
        pool: &StdArc<Pool>,
        pass: &mut Pass<'_>,
        sight: &Sight,
        run: &mut RunList,
        budget: &mut usize,
    ) -> bool {
        loop {
            let Some((member, entry)) = self.next_unit(pool, pass, sight, run) else { return true };
            let mut unit = Some(member);
            while let Some(member) = unit.take() {
                let node = entry.worker.node.as_ref();
                let Some(task) = pass.waiting(|waiting| waiting.backlog.pop_for(node)) else {
                    self.give_on(member, Some(&entry.worker), run);
                    break;
                };
                if mutant("L10b-h") {
                    self.left_line(pool, &task);
                }
                match self.place(&task, pool.serial, &entry.worker, false) {
                    Placed::Sent => {
                        *budget = budget.saturating_sub(1);
                        if !mutant("L10b-h") {
                            self.left_line(pool, &task);
                        }
                    }
                    Placed::Ended => unit = Some(member),
                    Placed::Refused(epoch) => {
                        let is_back = task.take_back(epoch);
                        let is_aside =
                            is_back && self.is_owner_held(&task) && task.park(task.word());
                        if is_back && !is_aside {
                            pass.waiting(|waiting| waiting.backlog.push(task));
                        } else {
                            self.left_line(pool, &task);
                        }
                        self.give_on(member, Some(&entry.worker), run);
                    }
                }
            }
            if *budget == 0 {
                return pass
                    .waiting(|waiting| waiting.backlog.is_empty() && waiting.tokens.is_empty());
            }
        }
    }

    /// A unit for some waiting task: a token that fits, or the free credit of a member.
    fn next_unit<'a>(
        &self,
        pool: &StdArc<Pool>,
        pass: &mut Pass<'_>,
        sight: &'a Sight,
        run: &mut RunList,
    ) -> Option<(Member, &'a Entry)> {
        while let Some(member) = pass.waiting(|waiting| waiting.tokens.pop_front()) {
            let entry = sight.entry(member);
            if let Some(entry) = entry
                && pass.waiting(|waiting| waiting.backlog.wants(entry.worker.node.as_ref()))
            {
                return Some((member, entry));
            }
            self.give_on(member, entry.map(|entry| &*entry.worker), run);
        }
        if !pool.goes_in_turn() || pass.waiting(|waiting| waiting.backlog.prefers()) {
            if let Some(found) = self.next_wished(pool, pass, sight, run) {
                return Some(found);
            }
        }
        let view = sight.view.as_ref()?;
        let find = |member: Member| {
            let entry = sight.entry(member)?;
            Some((self.registry.slab.word(member.slot)?, &*entry.worker))
        };
        let member = pass.waiting(|waiting| {
            waiting.backlog.drop_ended();
            if waiting.backlog.wants_any()
                && let Some(member) = waiting.take_or_arm(pool, view, None, find)
            {
                return Some(member);
            }
            let nodes: Vec<_> = waiting.backlog.nodes().cloned().collect();
            nodes.iter().find_map(|node| waiting.take_or_arm(pool, view, Some(node), find))
        })?;
        sight.entry(member).map(|entry| (member, entry))
    }

    /// The free credit of the worker that a pool's policy, or the wish of a task that waits in it,
    /// would choose.
    #[cold]
    fn next_wished<'a>(
        &self,
        pool: &StdArc<Pool>,
        pass: &mut Pass<'_>,
        sight: &'a Sight,
        run: &mut RunList,
    ) -> Option<(Member, &'a Entry)> {
        sight.view.as_ref()?;
        let in_turn = pool.goes_in_turn();
        let first = pass.waiting(|waiting| {
            waiting.backlog.drop_ended();
            let mut heads = waiting.backlog.heads();
            heads.find(|task| !in_turn || !task.options().rare().prefer.is_empty()).cloned()
        })?;
        let snapshot = self.registry.load();
        let chosen = self.registry.choose_for(&snapshot, pool, first.options());
        let Chosen::Reserved(member, ..) = chosen else { return None };
        drop(snapshot);
        let entry = sight.entry(member);
        if entry.is_none() {
            // It came after this pass had looked: the pass that its coming causes will see it.
            self.give_on(member, None, run);
        }
        entry.map(|entry| (member, entry))
    }

    fn give_tokens_on(&self, pass: &mut Pass<'_>, sight: &Sight, run: &mut RunList) {
        while let Some(member) = pass.waiting(|waiting| waiting.tokens.pop_front()) {
            self.give_on(member, sight.entry(member).map(|entry| &*entry.worker), run);
        }
    }

    /// Gives back a unit of a worker that the caller's snapshot may not hold any more.
    pub(crate) fn give_on(&self, member: Member, worker: Option<&Worker>, run: &mut RunList) {
        let Some(word) = self.registry.slab.word(member.slot) else { return };
        match worker {
            Some(worker) => release(word, worker, 1, run),
            None => self.registry.release_late(member, word),
        }
    }

    /// Offers a task to a worker of which the caller holds a unit: a task that is being handed in,
    /// or one from the line.
    pub(crate) fn place(
        &self,
        task: &StdArc<Task>,
        pool: u64,
        worker: &Worker,
        is_fresh: bool,
    ) -> Placed {
        let epoch = self.next_epoch();
        if !task.offer(epoch, worker.member.worker.as_u64(), is_fresh) {
            return Placed::Ended;
        }
        let delivery = Delivery { task: StdArc::clone(task), epoch, pool };
        match worker.deliver(delivery) {
            Ok(()) => Placed::Sent,
            Err(_) => Placed::Refused(epoch),
        }
    }
}
