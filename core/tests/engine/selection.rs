//! Which worker gets the next task (specification 3 and 4).

use std::collections::BTreeMap;
use std::time::Duration;

use slipswitch_core::{DrainScope, Node, Policy, Route, Selection, WorkerId};

use crate::bed::{Bed, entry, key};

const POOL: &str = "main/default/work";

fn pick(bed: &Bed, route: &Route, node: Option<&Node>) -> Option<WorkerId> {
    match bed.engine.select(route, node) {
        Selection::Reserved(reservation) => Some(reservation.worker_id()),
        _ => None,
    }
}

fn counts(bed: &Bed, route: &Route, node: Option<&Node>, n: usize) -> BTreeMap<WorkerId, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..n {
        *counts.entry(pick(bed, route, node).expect("a worker")).or_default() += 1;
    }
    counts
}

#[test]
fn second_worker_gets_half() {
    let mut bed = Bed::new();
    let _first = bed.worker(&[POOL], 10);
    let _second = bed.worker(&[POOL], 10);
    let counts = counts(&bed, &bed.route(POOL), None, 1_000);
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [500, 500]);
}

// bug: S4
#[test]
fn two_workers_share_evenly() {
    let mut bed = Bed::new();
    let mut workers = [bed.worker(&[POOL], 100), bed.worker(&[POOL], 100)];
    for _ in 0..100 {
        bed.submit(POOL);
    }
    let got: Vec<usize> = workers.iter_mut().map(|worker| bed.drain_offers(worker)).collect();
    // Under load one thread holds blocks of consecutive tickets: one unfinished block.
    assert!(got[0].abs_diff(got[1]) <= 2, "{got:?}");
    assert_eq!(got[0] + got[1], 100);
}

#[test]
fn ties_rotate() {
    let mut bed = Bed::new();
    let _workers: Vec<_> = (0..5).map(|_| bed.worker(&[POOL], 4)).collect();
    let route = bed.route(POOL);
    let turn: Vec<_> = (0..10).filter_map(|_| pick(&bed, &route, None)).collect();
    assert_eq!(turn[..5], turn[5..]);
    let mut distinct = turn[..5].to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 5);
}

#[test]
fn kn_selections_give_k_each() {
    for policy in [Policy::RoundRobin, Policy::Strict] {
        for n in 1..=17 {
            let mut bed = Bed::new();
            let _workers: Vec<_> = (0..n).map(|_| bed.worker(&[POOL], 1)).collect();
            let route = bed.route(POOL);
            bed.engine.set_policy(&route, policy);
            // Each reservation is given back at once, so the workers stay idle.
            let counts = counts(&bed, &route, None, 7 * n);
            assert!(counts.len() == n && counts.values().all(|count| *count == 7), "{counts:?}");
        }
    }
}

#[test]
fn blocks_under_load_give_k_each_too() {
    let mut bed = Bed::new();
    let n = 17;
    let _workers: Vec<_> = (0..n).map(|_| bed.worker(&[POOL], 1_000)).collect();
    let route = bed.route(POOL);
    let mut held = Vec::new();
    for _ in 0..100 * n {
        let Selection::Reserved(reservation) = bed.engine.select(&route, None) else {
            panic!("there is room");
        };
        held.push(reservation);
    }
    let mut counts: BTreeMap<WorkerId, usize> = BTreeMap::new();
    for reservation in &held {
        *counts.entry(reservation.worker_id()).or_default() += 1;
    }
    // One thread: its tickets are consecutive, but for the singles before the first block.
    let (least, most) = (counts.values().min(), counts.values().max());
    assert!(most.copied().unwrap_or(0) - least.copied().unwrap_or(0) <= 2, "{counts:?}");
}

#[test]
fn require_never_spills() {
    let mut bed = Bed::new();
    let mut plain = bed.worker(&[POOL], 10);
    let mut here = bed.worker_on(&[POOL], 1, "box-7");
    let first = bed.submit_pinned(POOL, "box-7");
    let second = bed.submit_pinned(POOL, "box-7");
    let nowhere = bed.submit_pinned(POOL, "box-8");
    assert!(plain.poll_offer(bed.now).is_none());
    let offer = bed.accept(&mut here);
    assert_eq!(offer.task.id(), first);
    assert!(here.poll_offer(bed.now).is_none());
    assert_eq!(bed.reason(second).as_str(), "AllFull");
    assert_eq!(bed.reason(nowhere).as_str(), "NoWorkerOnNode");
    bed.complete(&mut here, &offer);
    assert_eq!(bed.accept(&mut here).task.id(), second);
    assert!(plain.poll_offer(bed.now).is_none());
}

#[test]
fn a_pinned_task_holds_up_no_unpinned_one() {
    let mut bed = Bed::new();
    let pinned = bed.submit_pinned(POOL, "elsewhere");
    let plain = bed.submit(POOL);
    let mut worker = bed.worker(&[POOL], 4);
    assert_eq!(bed.accept(&mut worker).task.id(), plain);
    assert!(worker.poll_offer(bed.now).is_none());
    let mut there = bed.worker_on(&[POOL], 4, "elsewhere");
    assert_eq!(bed.accept(&mut there).task.id(), pinned);
}

// bug: S5
#[test]
fn pin_has_own_cursor() {
    let mut bed = Bed::new();
    let _workers: Vec<_> = (0..4).map(|_| bed.worker_on(&[POOL], 10, "box")).collect();
    let route = bed.route(POOL);
    let node = Node::new("box").expect("a node");
    let mut unpinned = BTreeMap::new();
    for _ in 0..400 {
        *unpinned.entry(pick(&bed, &route, None)).or_insert(0) += 1;
        pick(&bed, &route, Some(&node));
    }
    assert!(unpinned.values().all(|count| *count == 100), "{unpinned:?}");
}

#[test]
fn pin_mix_starves_nobody() {
    let mut bed = Bed::new();
    let mut workers: Vec<_> = (0..3).map(|_| bed.worker_on(&[POOL], 1, "box")).collect();
    for round in 0..300 {
        if round % 2 == 0 {
            bed.submit_pinned(POOL, "box");
        } else {
            bed.submit(POOL);
        }
    }
    let mut got = [0; 3];
    for _ in 0..100 {
        for (worker, got) in workers.iter_mut().zip(&mut got) {
            let offer = bed.accept(worker);
            bed.complete(worker, &offer);
            *got += 1;
        }
    }
    assert_eq!(got, [100; 3]);
}

// bug: B12
#[test]
fn fairness_after_pool_shrink() {
    let mut bed = Bed::new();
    let mut workers: Vec<_> = (0..6).map(|_| bed.worker(&[POOL], 10)).collect();
    let route = bed.route(POOL);
    counts(&bed, &route, None, 25);
    workers.truncate(3);
    let counts = counts(&bed, &route, None, 300);
    assert!(counts.len() == 3 && counts.values().all(|count| *count == 100), "{counts:?}");
}

#[test]
fn churn_bound_holds() {
    let mut bed = Bed::new();
    let _stays: Vec<_> = (0..4).map(|_| bed.worker(&[POOL], 10)).collect();
    let route = bed.route(POOL);
    bed.engine.set_policy(&route, Policy::Strict);
    let mut counts: BTreeMap<WorkerId, usize> = BTreeMap::new();
    let mut changes = 0;
    for round in 0..200 {
        let guest = bed.worker(&[POOL], 10);
        changes += 2;
        for _ in 0..round % 7 {
            *counts.entry(pick(&bed, &route, None).expect("a worker")).or_default() += 1;
        }
        drop(guest);
    }
    let of_stayers: Vec<_> = _stays.iter().map(|w| counts[&w.worker_id()]).collect();
    let spread = of_stayers.iter().max().unwrap_or(&0) - of_stayers.iter().min().unwrap_or(&0);
    assert!(spread <= 1 + changes, "{of_stayers:?}");
    // Publishing never resets the rotation: nobody is left behind systematically.
    assert!(spread < 60, "{of_stayers:?}");
}

#[test]
fn cursor_retires() {
    let mut bed = Bed::new();
    let _anchor = bed.worker(&[POOL], 1);
    let node = Node::new("box").expect("a node");
    let route = bed.route(POOL);
    let pinned = bed.worker_on(&[POOL], 10, "box");
    for _ in 0..5 {
        pick(&bed, &route, Some(&node));
    }
    drop(pinned);
    let _again = bed.worker_on(&[POOL], 10, "box");
    let Selection::Reserved(reservation) = bed.engine.select(&route, Some(&node)) else {
        panic!("there is room");
    };
    assert_eq!(reservation.decision().ticket, 0);
}

#[test]
fn a_refused_selection_says_why() {
    let mut bed = Bed::new();
    let route = bed.route(POOL);
    assert!(matches!(bed.engine.select(&route, None), Selection::NoWorker));
    let worker = bed.worker(&[POOL], 1);
    let held = bed.engine.select(&route, None);
    assert!(matches!(held, Selection::Reserved(_)));
    assert!(matches!(bed.engine.select(&route, None), Selection::NoCapacity));
    let elsewhere = Node::new("elsewhere").expect("a node");
    assert!(matches!(bed.engine.select(&route, Some(&elsewhere)), Selection::NoWorker));
    drop(held);
    bed.drain(DrainScope::Worker(worker.worker_id()));
    assert!(matches!(bed.engine.select(&route, None), Selection::Draining));
}

#[test]
fn a_panic_gives_the_credit_back() {
    let mut bed = Bed::new();
    let worker = bed.worker(&[POOL], 1);
    let route = bed.route(POOL);
    let engine = bed.engine.clone();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _held = engine.select(&route, None);
        panic!("on purpose");
    }));
    assert!(caught.is_err());
    assert_eq!(worker.load(), (1, 0));
}

#[test]
fn routes_outlive_publishes_and_pools() {
    let mut bed = Bed::new();
    let mut route = bed.route(POOL);
    drop(bed.worker(&[POOL], 1));
    bed.pass(Duration::from_secs(3));
    let worker = bed.worker(&[POOL], 1);
    // The pool was retired and made again: the old route finds nobody, a submit mends it.
    let task = slipswitch_core::NewTask {
        id: slipswitch_core::TaskId::from_bytes([9; 16]),
        payload: bytes::Bytes::new(),
        options: slipswitch_core::TaskOptions::default(),
    };
    bed.engine.submit(&bed.operator, &mut route, task, None, bed.now).expect("taken");
    assert_eq!(pick(&bed, &route, None), None);
    assert_eq!(worker.load(), (1, 1));
}

#[test]
fn unknown_type_leaves_the_pool_until_update() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL, "main/default/other"], 10);
    let id = bed.submit(POOL);
    let offer = worker.poll_offer(bed.now).expect("an offer");
    worker.reject(offer.lease, slipswitch_core::RejectCode::UnknownType, bed.now);
    assert_eq!(bed.reason(id).as_str(), "NoWorker");
    assert_eq!(bed.status(id).deliveries, 0);
    bed.submit("main/default/other");
    assert_eq!(bed.drain_offers(&mut worker), 1);
    worker.update(vec![entry(&key(POOL))], bed.now).expect("admitted");
    assert_eq!(bed.accept(&mut worker).task.id(), id);
}
