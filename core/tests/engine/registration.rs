//! Who gets in, and how they leave (specification 2 and 6).

use std::sync::{Arc, Barrier};
use std::time::Duration;

use slipswitch_core::{
    CloseReason, Config, EntryError, Generation, Grant, Namespace, NamespaceMode, PoolEntry,
    Principal, Register, RegisterError, Role, SessionId, limits,
};

use crate::bed::{Bed, Bell, entry, key, register};

const POOL: &str = "main/default/work";

fn try_register(
    bed: &Bed,
    principal: &Principal,
    register: Register,
) -> Result<slipswitch_core::WorkerSession, RegisterError> {
    let session = SessionId::from_bytes([7; 16]);
    bed.engine.register(principal, session, register, Arc::new(Bell::default()), bed.now)
}

#[test]
fn denied_leaves_no_trace() {
    let bed = Bed::new();
    let main = Namespace::new("main").expect("a name");
    let principal = Principal::new("w", [(Role::Worker, Grant::Namespace(main))]);
    let (before, _) = bed.engine.pools(&bed.operator);
    let denied = try_register(&bed, &principal, register(&[POOL, "other/default/work"], 1));
    let Err(RegisterError::Entries(entries)) = denied else { panic!("it must be refused") };
    let other = Namespace::new("other").expect("a name");
    assert_eq!(entries, [(1, EntryError::PermissionDenied(other))]);
    let (after, pools) = bed.engine.pools(&bed.operator);
    assert_eq!((before, pools.len()), (after, 0));
    assert!(bed.engine.workers(&bed.operator).1.is_empty());
}

#[test]
fn closed_namespaces_answer_not_found() {
    let main = Namespace::new("main").expect("a name");
    let namespaces = NamespaceMode::Closed(vec![main]);
    let bed = Bed::with(Config { namespaces, ..Config::default() });
    let missing = try_register(&bed, &bed.operator, register(&["ghost/default/work"], 1));
    assert!(
        matches!(missing, Err(RegisterError::Entries(e)) if matches!(e[0].1, EntryError::NotFound(_)))
    );
    assert!(bed.engine.route(&key("ghost/default/work")).is_err());
    assert!(bed.engine.route(&key(POOL)).is_ok());
}

#[test]
fn ghost_refused() {
    let bed = Bed::new();
    let good = register(&[POOL], 1);
    let mut no_pools = good.clone();
    no_pools.pools.clear();
    let mut no_types = good.clone();
    no_types.pools[0].types.clear();
    let mut no_namespaces = good.clone();
    no_namespaces.pools[0].namespaces.clear();
    let mut no_capacity = good.clone();
    no_capacity.capacity = 0;
    for ghost in [no_pools, no_types, no_namespaces, no_capacity] {
        let refused = try_register(&bed, &bed.operator, ghost);
        assert!(matches!(refused, Err(RegisterError::Empty(_))), "{refused:?}");
    }
    assert!(try_register(&bed, &bed.operator, good).is_ok());
}

#[test]
fn every_limit_of_a_registration_at_and_over() {
    let bed = Bed::new();
    let names = |count: usize| -> Vec<Namespace> {
        (0..count).map(|n| Namespace::new(&format!("n{n}")).expect("a name")).collect()
    };
    let one = entry(&key(POOL));
    let with = |pools: Vec<PoolEntry>| Register { pools, ..register(&[POOL], 1) };
    let wide = |count| with(vec![PoolEntry { namespaces: names(count), ..one.clone() }]);
    assert!(try_register(&bed, &bed.operator, wide(limits::NAMESPACES_MAX)).is_ok());
    assert!(try_register(&bed, &bed.operator, wide(limits::NAMESPACES_MAX + 1)).is_err());
    let many = |count| with(vec![one.clone(); count]);
    assert!(try_register(&bed, &bed.operator, many(limits::QUEUES_MAX)).is_ok());
    assert!(try_register(&bed, &bed.operator, many(limits::QUEUES_MAX + 1)).is_err());
    let mut labels = register(&[POOL], 1);
    labels.labels = vec![(String::new(), String::new()); limits::LABELS_MAX];
    assert!(try_register(&bed, &bed.operator, labels.clone()).is_ok());
    labels.labels.push((String::new(), String::new()));
    assert!(try_register(&bed, &bed.operator, labels).is_err());
    let weight = |weight| Register { weight, ..register(&[POOL], 1) };
    let judged = |number| try_register(&bed, &bed.operator, weight(number));
    assert!(judged(100).is_ok());
    assert!(matches!(judged(0), Err(RegisterError::Empty(_))));
    assert!(matches!(judged(101), Err(RegisterError::Limit { max: 100, .. })));
    let capacity = |capacity| Register { capacity, ..register(&[POOL], 1) };
    assert!(try_register(&bed, &bed.operator, capacity(slipswitch_core::CREDIT_MAX)).is_ok());
    assert!(try_register(&bed, &bed.operator, capacity(slipswitch_core::CREDIT_MAX + 1)).is_err());
}

// bug: S7
#[test]
fn max_size_registration_bounded() {
    let mut bed = Bed::new();
    let namespaces = (0..64).map(|n| Namespace::new(&format!("n{n}")).expect("a name"));
    let types =
        (0..64).map(|n| slipswitch_core::ActivityType::new(&format!("t{n}")).expect("a name"));
    let pools = vec![PoolEntry {
        namespaces: namespaces.collect(),
        types: types.collect(),
        ..entry(&key(POOL))
    }];
    let workers: Vec<_> = (0..10)
        .map(|n| bed.join(Register { pools: pools.clone(), ..register(&[POOL], 100 + n) }, 1))
        .collect();
    let (_, listed) = bed.engine.workers(&bed.operator);
    assert!(listed.iter().all(|worker| worker.pools.len() == limits::KEYS_MAX));
    // One shared object under 4,096 keys: taking one credit shows under every one of them.
    let held = bed.engine.select(&bed.route("n0/default/t0"), None);
    let full = bed.engine.pools(&bed.operator).1.iter().filter(|pool| pool.in_flight == 1).count();
    assert_eq!(full, limits::KEYS_MAX);
    drop(held);
    drop(workers);
    assert!(bed.engine.workers(&bed.operator).1.is_empty());
    bed.pass(Duration::from_secs(2));
    assert!(bed.engine.pools(&bed.operator).1.is_empty());
}

#[test]
fn concurrent_registers_all_survive() {
    let bed = Arc::new(Bed::new());
    let barrier = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8u64)
        .map(|thread| {
            let (bed, barrier) = (Arc::clone(&bed), Arc::clone(&barrier));
            std::thread::spawn(move || {
                barrier.wait();
                let mut generation = Generation::default();
                (0..50)
                    .map(|n| {
                        let number = thread * 1_000 + n;
                        let worker = try_register(&bed, &bed.operator, register(&[POOL], number))
                            .expect("admitted");
                        assert!(worker.generation() > generation);
                        generation = worker.generation();
                        // Visible to every selection that starts now.
                        let (_, listed) = bed.engine.workers(&bed.operator);
                        assert!(listed.iter().any(|other| other.id == worker.worker_id()));
                        worker
                    })
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let workers: Vec<_> =
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
    let (_, listed) = bed.engine.workers(&bed.operator);
    assert_eq!(listed.len(), 400);
    let mut ids: Vec<_> = workers.iter().map(|worker| worker.worker_id()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 400);
}

#[test]
fn late_close_spares_successor() {
    let mut bed = Bed::new();
    let mut old = bed.join(register(&[POOL], 5), 1);
    let new = bed.join(register(&[POOL], 5), 1);
    assert!(old.leave_requested());
    let listed = || bed.engine.workers(&bed.operator).1;
    assert_eq!(listed().iter().map(|w| w.id).collect::<Vec<_>>(), [new.worker_id()]);
    old.close(CloseReason::Superseded, bed.now);
    drop(old);
    assert_eq!(listed().iter().map(|w| w.id).collect::<Vec<_>>(), [new.worker_id()]);
}

// bug: B16
#[test]
fn old_close_spares_new() {
    let mut bed = Bed::new();
    for number in 0..20 {
        let mut old = bed.join(register(&[POOL], number), 4);
        let task = bed.submit(POOL);
        let mut new = bed.join(register(&[POOL], number), 4);
        // The old session hears of it late, after the new one serves already.
        old.close(CloseReason::StreamClosed, bed.now);
        old.close(CloseReason::ClientGoodbye, bed.now);
        drop(old);
        let offer = bed.accept(&mut new);
        assert_eq!(offer.task.id(), task);
        assert_eq!(bed.complete(&mut new, &offer), slipswitch_core::Verdict::Applied);
        assert_eq!(bed.engine.workers(&bed.operator).1.len(), 1);
    }
}

#[test]
fn a_strangers_instance_supersedes_nobody() {
    let mut bed = Bed::new();
    let first = bed.join(register(&[POOL], 5), 1);
    let stranger = Principal::operator("stranger");
    let second = try_register(&bed, &stranger, register(&[POOL], 5)).expect("admitted");
    assert!(!first.leave_requested());
    assert_eq!(bed.engine.workers(&bed.operator).1.len(), 2);
    drop(second);
    assert_eq!(bed.engine.workers(&bed.operator).1[0].id, first.worker_id());
}

#[test]
fn update_is_one_publish_and_all_or_nothing() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&["main/default/a", "main/default/b"], 4);
    let before = worker.generation();
    worker
        .update(vec![entry(&key("main/default/b")), entry(&key("main/default/c"))], 1_000, bed.now)
        .expect("admitted");
    assert!(worker.generation() > before);
    let served = |bed: &Bed| -> Vec<String> {
        bed.engine.workers(&bed.operator).1[0].pools.iter().map(ToString::to_string).collect()
    };
    assert_eq!(served(&bed), ["main/default/b", "main/default/c"]);
    assert!(worker.update(Vec::new(), 1_000, bed.now).is_err());
    assert_eq!(served(&bed), ["main/default/b", "main/default/c"]);
    let offer_of = |bed: &mut Bed, worker: &mut slipswitch_core::WorkerSession, text: &str| {
        let id = bed.submit(text);
        let offer = bed.accept(worker);
        assert_eq!(offer.task.id(), id);
        worker.pools()[offer.pool_ref as usize].to_string()
    };
    assert_eq!(offer_of(&mut bed, &mut worker, "main/default/c"), "main/default/c");
    assert_eq!(offer_of(&mut bed, &mut worker, "main/default/b"), "main/default/b");
    let gone = bed.submit("main/default/a");
    assert_eq!(bed.reason(gone).as_str(), "NoWorker");
}

// bug: S2
#[test]
fn writer_panic_still_deregisters() {
    let mut bed = Bed::new();
    let worker = bed.worker(&[POOL], 4);
    let task = bed.submit(POOL);
    // Whoever owns the session panics: unwinding drops it, and the registration with it.
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _owned = worker;
        panic!("on purpose");
    }));
    assert!(caught.is_err());
    assert!(bed.engine.workers(&bed.operator).1.is_empty());
    let mut next = bed.worker(&[POOL], 4);
    assert_eq!(bed.accept(&mut next).task.id(), task);
}

// bug: S3
#[test]
fn gauge_never_negative() {
    let bed = Arc::new(Bed::new());
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let reader = {
        let (bed, stop) = (Arc::clone(&bed), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let (_, pools) = bed.engine.pools(&bed.operator);
                for pool in pools {
                    assert!(pool.workers <= 8 && pool.waiting <= 1 << 32, "{pool:?}");
                    assert!(pool.in_flight <= 8, "{pool:?}");
                }
            }
        })
    };
    let writers: Vec<_> = (0..4u64)
        .map(|thread| {
            let bed = Arc::clone(&bed);
            std::thread::spawn(move || {
                for n in 0..300 {
                    let number = thread * 10_000 + n;
                    let mut worker = try_register(&bed, &bed.operator, register(&[POOL], number))
                        .expect("admitted");
                    worker.credit(1, 1, bed.now);
                    let held = bed.engine.select(&bed.route(POOL), None);
                    drop(worker);
                    drop(held);
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|thread| thread.join().expect("no panic"));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    reader.join().expect("no panic");
    assert!(bed.engine.workers(&bed.operator).1.is_empty());
    assert_eq!(bed.engine.in_flight(), 0);
}

#[test]
fn list_matches_selector() {
    let mut bed = Bed::new();
    let worker = bed.worker(&[POOL], 3);
    let (generation, listed) = bed.engine.workers(&bed.operator);
    assert_eq!(generation, worker.generation());
    let slipswitch_core::Selection::Reserved(held) = bed.engine.select(&bed.route(POOL), None)
    else {
        panic!("there is room");
    };
    assert_eq!(held.decision().generation, generation);
    assert_eq!(held.worker_id(), listed[0].id);
    assert_eq!(bed.engine.workers(&bed.operator).1[0].in_flight, 1);
}
