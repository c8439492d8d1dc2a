//! The same random operations on the engine and on a plain registry behind one mutex.

use std::collections::BTreeMap;
use std::sync::Mutex;

use slipswitch_core::{DrainScope, Node, Policy, Reservation, Selection, WorkerSession};

use crate::bed::{Bed, entry, key};

const KEYS: [&str; 3] = ["a/default/t", "a/default/u", "b/default/t"];
const NODES: [Option<&str>; 3] = [None, Some("x"), Some("y")];

#[derive(Clone, Debug)]
struct Record {
    keys: Vec<usize>,
    node: Option<&'static str>,
    limit: u32,
    in_flight: u32,
    draining: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Worker(u64),
    NoWorker,
    NoCapacity,
    Draining,
}

/// The oracle: obviously right, one lock, no sharing.
#[derive(Default)]
struct Plain(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    workers: BTreeMap<u64, Record>,
    cursors: BTreeMap<(usize, Option<&'static str>), u64>,
}

impl Plain {
    fn select(&self, key: usize, node: Option<&'static str>) -> Answer {
        let mut tables = self.0.lock().expect("no panic");
        let serves = |record: &&mut Record| {
            record.keys.contains(&key) && (node.is_none() || record.node == node)
        };
        let Tables { workers, cursors } = &mut *tables;
        let mut slice: Vec<(&u64, &mut Record)> =
            workers.iter_mut().filter(|(_, record)| serves(record)).collect();
        if slice.is_empty() {
            return Answer::NoWorker;
        }
        let cursor = cursors.entry((key, node)).or_default();
        let start = (*cursor % slice.len() as u64) as usize;
        *cursor += 1;
        slice.rotate_left(start);
        let mut full = false;
        for (id, record) in slice {
            if record.draining {
                continue;
            }
            if record.in_flight < record.limit {
                record.in_flight += 1;
                return Answer::Worker(*id);
            }
            full = true;
        }
        if full { Answer::NoCapacity } else { Answer::Draining }
    }

    /// A slice that nobody is in any more loses its cursor.
    fn retire_cursors(&self, pools_too: bool) {
        let mut tables = self.0.lock().expect("no panic");
        let Tables { workers, cursors } = &mut *tables;
        cursors.retain(|(key, node), _| {
            let mut serving = workers.values().filter(|record| record.keys.contains(key));
            match node {
                Some(_) => serving.any(|record| record.node == *node),
                None => !pools_too || serving.next().is_some(),
            }
        });
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

struct Pair<'a> {
    bed: &'a mut Bed,
    plain: Plain,
    sessions: BTreeMap<u64, WorkerSession>,
    seq: u64,
}

impl Pair<'_> {
    fn some_keys(dice: &mut Dice) -> Vec<usize> {
        let bits = dice.below(7) + 1;
        (0..KEYS.len()).filter(|key| bits >> key & 1 == 1).collect()
    }

    fn step(&mut self, dice: &mut Dice) {
        let any = |dice: &mut Dice, sessions: &BTreeMap<u64, WorkerSession>| {
            let at = dice.below(sessions.len().max(1));
            sessions.keys().nth(at).copied()
        };
        match dice.below(6) {
            0 => {
                let keys = Self::some_keys(dice);
                let node = NODES[dice.below(3)];
                let limit = dice.below(4) as u32;
                let names: Vec<&str> = keys.iter().map(|key| KEYS[*key]).collect();
                let session = match node {
                    Some(node) => self.bed.worker_on(&names, limit, node),
                    None => self.bed.worker(&names, limit),
                };
                let id = session.worker_id().as_u64();
                let record = Record { keys, node, limit, in_flight: 0, draining: false };
                self.plain.0.lock().expect("no panic").workers.insert(id, record);
                self.sessions.insert(id, session);
            }
            1 => {
                if let Some(id) = any(dice, &self.sessions) {
                    self.sessions.remove(&id);
                    self.plain.0.lock().expect("no panic").workers.remove(&id);
                    self.plain.retire_cursors(true);
                }
            }
            2 => {
                if let Some(id) = any(dice, &self.sessions) {
                    let keys = Self::some_keys(dice);
                    let entries = keys.iter().map(|at| entry(&key(KEYS[*at]))).collect();
                    let session = self.sessions.get_mut(&id).expect("it is there");
                    session.update(entries, 1_000, self.bed.now).expect("admitted");
                    let mut tables = self.plain.0.lock().expect("no panic");
                    tables.workers.get_mut(&id).expect("it is there").keys = keys;
                    drop(tables);
                    self.plain.retire_cursors(true);
                }
            }
            3 => {
                if let Some(id) = any(dice, &self.sessions) {
                    let limit = dice.below(6) as u32;
                    self.seq += 1;
                    let session = self.sessions.get_mut(&id).expect("it is there");
                    session.credit(limit, 10 + self.seq, self.bed.now);
                    let mut tables = self.plain.0.lock().expect("no panic");
                    tables.workers.get_mut(&id).expect("it is there").limit = limit;
                }
            }
            4 if dice.below(4) == 0 => {
                if let Some(id) = any(dice, &self.sessions) {
                    let worker = self.sessions[&id].worker_id();
                    self.bed.drain(DrainScope::Worker(worker));
                    let mut tables = self.plain.0.lock().expect("no panic");
                    tables.workers.get_mut(&id).expect("it is there").draining = true;
                }
            }
            _ => {}
        }
    }
}

#[test]
fn differential_vs_mutex() {
    let mut selections = [0u32; 4];
    for seed in 1..=60u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut bed = Bed::with(slipswitch_core::Config {
            policy: Policy::Strict,
            ..slipswitch_core::Config::default()
        });
        let engine = bed.engine.clone();
        let mut pair =
            Pair { bed: &mut bed, plain: Plain::default(), sessions: BTreeMap::new(), seq: 0 };
        let mut held: Vec<(u64, Reservation<'_, _>)> = Vec::new();
        for _ in 0..400 {
            pair.step(&mut dice);
            for _ in 0..dice.below(6) {
                let (at, node) = (dice.below(KEYS.len()), NODES[dice.below(3)]);
                let route = engine.route(&key(KEYS[at])).expect("a route");
                let wanted = node.map(|node| Node::new(node).expect("a node"));
                let ours = match engine.select(&route, wanted.as_ref()) {
                    Selection::Reserved(reservation) => {
                        let id = reservation.worker_id().as_u64();
                        held.push((id, reservation));
                        Answer::Worker(id)
                    }
                    Selection::NoWorker => Answer::NoWorker,
                    Selection::NoCapacity => Answer::NoCapacity,
                    _ => Answer::Draining,
                };
                let theirs = pair.plain.select(at, node);
                assert_eq!(ours, theirs, "seed {seed}");
                let kind = match ours {
                    Answer::Worker(_) => 0,
                    Answer::NoWorker => 1,
                    Answer::NoCapacity => 2,
                    Answer::Draining => 3,
                };
                selections[kind] += 1;
            }
            while held.len() > 12 || (!held.is_empty() && dice.below(3) == 0) {
                let (id, reservation) = held.swap_remove(dice.below(held.len()));
                drop(reservation);
                let mut tables = pair.plain.0.lock().expect("no panic");
                if let Some(record) = tables.workers.get_mut(&id) {
                    record.in_flight -= 1;
                }
            }
        }
    }
    assert!(selections.iter().all(|count| *count > 100), "{selections:?}");
}
