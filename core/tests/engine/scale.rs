//! What must not grow with the number of workers or pools (specification 1, 2).

use std::time::Duration;

use crate::bed::{Bed, register};
use crate::tally::{allocated, allocations};

#[test]
fn empty_queue_is_default() {
    let key = slipswitch_core::PoolKey::new("main", "", "work").expect("a key");
    assert_eq!(key.task_queue.as_str(), "default");
    assert_eq!(key, crate::bed::key("main/default/work"));
}

#[test]
fn keys_never_share_workers() {
    let mut bed = Bed::new();
    let keys = ["a/q/t", "b/q/t", "a/r/t", "a/q/u"];
    let mut workers: Vec<_> = keys.iter().map(|key| bed.worker(&[key], 10)).collect();
    for key in keys {
        bed.submit_many(key, 5);
    }
    for (worker, key) in workers.iter_mut().zip(keys) {
        for _ in 0..5 {
            assert_eq!(bed.accept(worker).task.pool().to_string(), key);
        }
        assert!(worker.poll_offer(bed.now).is_none());
    }
}

#[test]
fn million_short_lived_pools() {
    let mut bed = Bed::new();
    for round in 0..200 {
        for n in 0..5_000 {
            bed.route(&format!("n{}/default/t{round}-{n}", n % 7));
        }
        bed.pass(Duration::from_secs(2));
        assert!(bed.engine.pools(&bed.operator).1.is_empty());
    }
}

// bug: S10
#[test]
fn mass_register_linear() {
    // Counts the work, not the time: bytes allocated for n and for 4n registrations.
    let bytes = |count: u64| {
        let mut bed = Bed::new();
        let before = allocated();
        let workers: Vec<_> =
            (0..count).map(|n| bed.join(register(&["main/default/work"], n), 1)).collect();
        let bytes = allocated() - before;
        assert_eq!(bed.engine.workers(&bed.operator).1.len(), count as usize);
        drop(workers);
        bytes as f64 / count as f64
    };
    let (few, many) = (bytes(1_000), bytes(4_000));
    assert!(many < few * 1.5, "{few} and {many} bytes a registration");
}

#[test]
fn select_allocates_nothing() {
    let mut bed = Bed::new();
    let _plain: Vec<_> = (0..20).map(|_| bed.worker(&["main/default/work"], 2)).collect();
    let _there: Vec<_> = (0..20).map(|_| bed.worker_on(&["main/default/work"], 2, "box")).collect();
    let route = bed.route("main/default/work");
    let empty = bed.route("main/default/nobody");
    let node = slipswitch_core::Node::new("box").expect("a node");
    let missing = slipswitch_core::Node::new("nowhere").expect("a node");
    let select = |route, node| drop(bed.engine.select(route, node));
    let mut held = Vec::with_capacity(200);
    for warm in [true, false] {
        let before = allocations();
        for _ in 0..1_000 {
            select(&route, None);
            select(&route, Some(&node));
            select(&empty, None);
            select(&route, Some(&missing));
        }
        // Under load, with blocks of tickets, and then with everybody full.
        for _ in 0..100 {
            held.push(bed.engine.select(&route, None));
        }
        held.clear();
        let made = allocations() - before;
        // The first load of a slice makes its blocks, once.
        assert!(warm || made == 0, "{made} allocations");
    }
}

#[test]
fn no_policy_allocates() {
    use slipswitch_core::{Node, Policy, TaskOptions};
    let mut bed = Bed::new();
    let _plain: Vec<_> = (0..20).map(|_| bed.worker(&["main/default/work"], 2)).collect();
    let _there: Vec<_> = (0..20).map(|_| bed.worker_on(&["main/default/work"], 2, "box")).collect();
    let route = bed.route("main/default/work");
    let mut keyed = TaskOptions::default();
    keyed.rare_mut().affinity_key = bytes::Bytes::from_static(b"key");
    let mut prefers = TaskOptions::default();
    prefers.rare_mut().prefer = vec![Node::new("box").expect("a node")];
    let mut requires = keyed.clone();
    requires.require = Some(Node::new("box").expect("a node"));
    let mut held = Vec::with_capacity(400);
    for policy in Policy::ALL {
        let key = route.key();
        bed.engine.set_policy(&bed.operator, key, Some(policy)).expect("an operator");
        for warm in [true, false] {
            let before = allocations();
            for options in [&TaskOptions::default(), &keyed, &prefers, &requires] {
                for _ in 0..100 {
                    drop(bed.engine.select_for(&route, options));
                }
                // All that there is, and then in vain.
                held.extend((0..100).map(|_| bed.engine.select_for(&route, options)));
                held.clear();
            }
            let made = allocations() - before;
            assert!(warm || made == 0, "{policy:?}: {made} allocations");
        }
    }
}

#[test]
fn address_round_trips() {
    use slipswitch_core::Address;
    let names = ["a", "Z9", "box-7", "x.y_z", &"n".repeat(128)];
    let types = ["t", "charge:card", "a/b/c", "x.y_z-1"];
    let mut seen = std::collections::BTreeMap::new();
    for namespace in names {
        for queue in names {
            for activity_type in types {
                for node in [None, Some("box-7"), Some("Z9")] {
                    let node = node.map(|name| slipswitch_core::Node::new(name).expect("a name"));
                    let pool = slipswitch_core::PoolKey::new(namespace, queue, activity_type);
                    let address = Address { pool: pool.expect("a key"), node };
                    let text = address.to_string();
                    assert_eq!(text.parse(), Ok(address.clone()));
                    // No two addresses have one text.
                    assert!(seen.insert(text, address).is_none());
                }
            }
        }
    }
    for wrong in ["", "a", "a/b", "/b/c", "a//", "a/b/c@", "a/b/c@_x", "_a/b/c", "a/b/c d", "ä/b/c"]
    {
        assert!(wrong.parse::<Address>().is_err(), "{wrong}");
    }
    // An empty queue in the text form means the default one, as everywhere.
    let short: Address = "a//t".parse().expect("an address");
    assert_eq!(short.pool.task_queue.as_str(), "default");
}
