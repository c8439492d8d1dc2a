//! Which worker gets the next task (specification 3 and 4).

use std::collections::BTreeMap;
use std::time::Duration;

use slipswitch_core::{
    DrainScope, Node, Policy, Register, Reservation, Route, Selection, TaskOptions, WorkerId,
};

use crate::bed::{Bed, entry, key, register};

const POOL: &str = "main/default/work";

impl Bed {
    fn set_policy(&self, policy: Policy) {
        self.engine.set_policy(&self.operator, &key(POOL), Some(policy)).expect("an operator");
    }

    fn policies(&self) -> Vec<Policy> {
        self.engine.pools(&self.operator).1.iter().map(|pool| pool.policy).collect()
    }
}

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
            bed.set_policy(policy);
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
    bed.set_policy(Policy::Strict);
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
        options: TaskOptions::default(),
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
    worker.update(vec![entry(&key(POOL))], 1_000, bed.now).expect("admitted");
    assert_eq!(bed.accept(&mut worker).task.id(), id);
}

/// A worker of this name and weight.
fn named(bed: &mut Bed, name: &str, weight: u32, credit: u32) -> slipswitch_core::WorkerSession {
    let number = bed.number();
    let register = Register { identity: name.to_owned(), weight, ..register(&[POOL], number) };
    bed.join(register, credit)
}

fn wish(affinity: &[u8], prefer: &[&str]) -> TaskOptions {
    let mut options = TaskOptions::default();
    options.rare_mut().affinity_key = bytes::Bytes::copy_from_slice(affinity);
    let nodes = prefer.iter().map(|node| Node::new(node).expect("a node"));
    options.rare_mut().prefer = nodes.collect();
    options
}

fn hold<'a>(
    bed: &'a Bed,
    route: &Route,
    options: &TaskOptions,
) -> Reservation<'a, slipswitch_core::EpochCells> {
    match bed.engine.select_for(route, options) {
        Selection::Reserved(reservation) => reservation,
        refused => panic!("there is room: {refused:?}"),
    }
}

#[test]
fn least_loaded_asks_the_less_loaded_of_two() {
    let mut bed = Bed::new();
    // With two workers both are drawn, so the choice is exact. Room is credit × weight: 100 to 300.
    let light = named(&mut bed, "light", 1, 100);
    let heavy = named(&mut bed, "heavy", 3, 100);
    let route = bed.route(POOL);
    bed.set_policy(Policy::LeastLoaded);
    let options = TaskOptions::default();
    let mut held = Vec::new();
    for n in 1..=120 {
        held.push(hold(&bed, &route, &options));
        let (a, b) = (light.load().1, heavy.load().1);
        assert_eq!(a + b, n);
        // Neither is ahead of the other by more than the task that was placed last.
        assert!(3 * a <= b + 3 && b <= 3 * a + 3, "{a} and {b}");
    }
    assert_eq!((light.load().1, heavy.load().1), (30, 90));
    // Full workers are passed over down to the last credit, and no credit is given twice.
    for _ in 120..200 {
        held.push(hold(&bed, &route, &options));
    }
    assert_eq!((light.load().1, heavy.load().1), (100, 100));
    assert!(matches!(bed.engine.select_for(&route, &options), Selection::NoCapacity));
}

#[test]
fn least_loaded_levels_skewed_task_times() {
    // Every fourth task is never given back; the others are at once. In turn, those who drew the
    // long ones get as many of the short ones as the rest.
    let spread = |policy| {
        let mut bed = Bed::new();
        let workers: Vec<_> = (0..16).map(|_| bed.worker(&[POOL], 100)).collect();
        let route = bed.route(POOL);
        bed.set_policy(policy);
        let mut held = Vec::new();
        for n in 0..2_048 {
            let reservation = hold(&bed, &route, &TaskOptions::default());
            if n % 4 == 0 {
                held.push(reservation);
            }
        }
        let loads = workers.iter().map(|worker| worker.load().1);
        loads.clone().max().unwrap_or(0) - loads.min().unwrap_or(0)
    };
    assert!(spread(Policy::LeastLoaded) <= 4, "{}", spread(Policy::LeastLoaded));
    assert!(spread(Policy::Strict) >= 100, "{}", spread(Policy::Strict));
}

#[test]
fn least_loaded_breaks_ties_at_random() {
    let mut bed = Bed::new();
    let _workers: Vec<_> = (0..10).map(|_| bed.worker(&[POOL], 10)).collect();
    let route = bed.route(POOL);
    bed.set_policy(Policy::LeastLoaded);
    let counts = counts(&bed, &route, None, 10_000);
    let square = |count: &usize| (*count as f64 - 1_000.0).powi(2) / 1_000.0;
    let chi_square: f64 = counts.values().map(square).sum();
    // Nine degrees of freedom: one in a thousand is above 27.9. The seed is fixed.
    assert!(counts.len() == 10 && chi_square < 27.9, "{chi_square}: {counts:?}");
}

#[test]
fn sticky_moves_few_keys() {
    let mut bed = Bed::new();
    let mut workers: Vec<_> = (0..10).map(|n| named(&mut bed, &format!("w{n}"), 1, 100)).collect();
    let route = bed.route(POOL);
    bed.set_policy(Policy::Sticky);
    let place = |bed: &Bed| -> Vec<WorkerId> {
        let keys = 0..1_000u32;
        keys.map(|key| hold(bed, &route, &wish(&key.to_be_bytes(), &[])).worker_id()).collect()
    };
    let before = place(&bed);
    assert_eq!(before, place(&bed));
    let mut shares: BTreeMap<WorkerId, usize> = BTreeMap::new();
    for id in &before {
        *shares.entry(*id).or_default() += 1;
    }
    assert!(shares.len() == 10 && shares.values().all(|n| (60..150).contains(n)), "{shares:?}");
    // A worker comes: keys move to it and nowhere else.
    let guest = named(&mut bed, "guest", 1, 100);
    let with = place(&bed);
    let moved: Vec<_> = before.iter().zip(&with).filter(|(a, b)| a != b).collect();
    assert!(moved.iter().all(|(_, to)| **to == guest.worker_id()));
    assert!((50..150).contains(&moved.len()), "{}", moved.len());
    drop(guest);
    assert_eq!(place(&bed), before);
    // One leaves: only its keys move. One of its name takes them all back.
    let gone = workers.remove(3).worker_id();
    for (was, is) in before.iter().zip(place(&bed)) {
        assert!(*was == is || *was == gone);
    }
    let back = named(&mut bed, "w3", 1, 100);
    for (was, is) in before.iter().zip(place(&bed)) {
        assert_eq!(is, if *was == gone { back.worker_id() } else { *was });
    }
}

#[test]
fn sticky_spills_in_the_order_of_ranks() {
    let mut bed = Bed::new();
    let _workers: Vec<_> = (0..20).map(|n| named(&mut bed, &format!("w{n}"), 1, 2)).collect();
    let route = bed.route(POOL);
    bed.set_policy(Policy::Sticky);
    let options = wish(b"one key", &[]);
    let held: Vec<_> = (0..40).map(|_| hold(&bed, &route, &options)).collect();
    let order: Vec<_> = held.iter().map(Reservation::worker_id).collect();
    // Each is filled before the next is asked, beyond the eight that are asked by rank as well.
    let firsts: Vec<_> = order.chunks(2).map(|two| two[0]).collect();
    assert!(order.chunks(2).all(|two| two[0] == two[1]), "{order:?}");
    assert!(matches!(bed.engine.select_for(&route, &options), Selection::NoCapacity));
    drop(held);
    let again: Vec<_> = (0..40).map(|_| hold(&bed, &route, &options)).collect();
    let seconds: Vec<_> = again.chunks(2).map(|two| two[0].worker_id()).collect();
    assert_eq!(firsts, seconds);
    drop(again);
    // A task without a key goes in turn.
    let plain: Vec<_> = (0..20).map(|_| hold(&bed, &route, &TaskOptions::default())).collect();
    let distinct: std::collections::BTreeSet<_> = plain.iter().map(|r| r.worker_id()).collect();
    assert!(distinct.len() >= 19, "{distinct:?}");
}

#[test]
fn prefer_rotates() {
    let mut bed = Bed::new();
    let _a: Vec<_> = (0..3).map(|_| bed.worker_on(&[POOL], 10, "a")).collect();
    let _b = bed.worker_on(&[POOL], 10, "b");
    let far = bed.worker_on(&[POOL], 10, "far");
    let route = bed.route(POOL);
    // Two wishes that alternate do not fall into step.
    let (both, one) = (wish(&[], &["a", "b", "nowhere"]), wish(&[], &["a"]));
    let (mut of_both, mut of_one) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..4_000 {
        *of_both.entry(hold(&bed, &route, &both).worker_id()).or_insert(0) += 1;
        *of_one.entry(hold(&bed, &route, &one).worker_id()).or_insert(0) += 1;
    }
    assert!(
        of_both.len() == 4 && of_both.values().all(|n| (850..1_150).contains(n)),
        "{of_both:?}"
    );
    assert!(of_one.len() == 3 && of_one.values().all(|n| (1_150..1_500).contains(n)), "{of_one:?}");
    // Once all of them are full, anybody at once.
    let held: Vec<_> = (0..40).map(|_| hold(&bed, &route, &both)).collect();
    assert_eq!(far.load().1, 0);
    assert_eq!(hold(&bed, &route, &both).worker_id(), far.worker_id());
    drop(held);
    // Who serves none of them is no reason to wait.
    let nowhere = wish(&[], &["nowhere"]);
    let held: Vec<_> = (0..50).map(|_| hold(&bed, &route, &nowhere)).collect();
    assert_eq!(held.len(), 50);
}

#[test]
fn a_required_node_stands_above_policy_and_preference() {
    for policy in Policy::ALL {
        let mut bed = Bed::new();
        let _there = bed.worker_on(&[POOL], 10, "there");
        let here = bed.worker_on(&[POOL], 2, "here");
        let route = bed.route(POOL);
        bed.set_policy(policy);
        let mut options = wish(b"key", &["there"]);
        options.require = Some(Node::new("here").expect("a node"));
        let held = [hold(&bed, &route, &options), hold(&bed, &route, &options)];
        assert!(held.iter().all(|r| r.worker_id() == here.worker_id()));
        assert!(matches!(bed.engine.select_for(&route, &options), Selection::NoCapacity));
    }
}

#[test]
fn every_policy_places_tasks_and_says_why_it_does_not() {
    for policy in Policy::ALL {
        let mut bed = Bed::new();
        let route = bed.route(POOL);
        bed.set_policy(policy);
        let options = wish(b"key", &["box"]);
        assert!(matches!(bed.engine.select_for(&route, &options), Selection::NoWorker));
        let mut worker = bed.worker_on(&[POOL], 2, "box");
        let ids: Vec<_> = (0..3).map(|_| bed.submit_with(POOL, options.clone())).collect();
        assert_eq!(worker.load(), (2, 2));
        assert_eq!(bed.reason(ids[2]).as_str(), "AllFull");
        assert_eq!(bed.drain_offers(&mut worker), 3);
        bed.drain(DrainScope::Worker(worker.worker_id()));
        assert!(matches!(bed.engine.select_for(&route, &options), Selection::Draining));
        assert_eq!(bed.policies(), [policy]);
    }
}

#[test]
fn a_policy_outlasts_its_pool() {
    let mut bed = Bed::new();
    bed.set_policy(Policy::Sticky);
    assert!(bed.policies().is_empty());
    let worker = bed.worker(&[POOL], 1);
    assert_eq!(bed.policies(), [Policy::Sticky]);
    drop(worker);
    bed.pass(Duration::from_secs(3));
    assert!(bed.policies().is_empty());
    let _worker = bed.worker(&[POOL], 1);
    assert_eq!(bed.policies(), [Policy::Sticky]);
    bed.engine.set_policy(&bed.operator, &key(POOL), None).expect("an operator");
    assert_eq!(bed.policies(), [Policy::RoundRobin]);
}

#[test]
fn only_an_operator_sets_a_policy() {
    use slipswitch_core::{AdminError, Grant, Principal, Role};
    let bed = Bed::new();
    let set =
        |principal: &Principal| bed.engine.set_policy(principal, &key(POOL), Some(Policy::Sticky));
    let producer = Principal::new("p", [(Role::Producer, Grant::Every)]);
    assert_eq!(set(&producer), Err(AdminError::PermissionDenied));
    assert_eq!(set(&Principal::new("nobody", [])), Err(AdminError::NotFound));
    assert_eq!(set(&bed.operator), Ok(()));
}

/// What was submitted with a delay is placed by the pool's pass, and not by the submit.
#[test]
fn a_task_that_waited_goes_by_the_policy_too() {
    let delayed = |mut options: TaskOptions| {
        options.rare_mut().delay = Some(Duration::from_secs(1));
        options
    };
    // The same key goes to the same worker, whichever way its tasks are placed.
    let mut bed = Bed::new();
    let workers: Vec<_> = (0..8).map(|n| named(&mut bed, &format!("w{n}"), 1, 100)).collect();
    bed.set_policy(Policy::Sticky);
    let first = hold(&bed, &bed.route(POOL), &wish(b"key", &[])).worker_id();
    for _ in 0..40 {
        bed.submit_with(POOL, delayed(wish(b"key", &[])));
    }
    bed.pass(Duration::from_secs(2));
    for worker in &workers {
        let expected = if worker.worker_id() == first { 40 } else { 0 };
        assert_eq!(worker.load().1, expected);
    }
    // The node that is preferred, while it has room; then anybody.
    let mut bed = Bed::new();
    let near = bed.worker_on(&[POOL], 10, "near");
    let far: Vec<_> = (0..3).map(|_| bed.worker_on(&[POOL], 10, "far")).collect();
    for _ in 0..10 {
        bed.submit_with(POOL, delayed(wish(&[], &["near"])));
    }
    bed.pass(Duration::from_secs(2));
    assert_eq!(near.load().1, 10);
    for _ in 0..10 {
        bed.submit_with(POOL, delayed(wish(&[], &["near"])));
    }
    bed.pass(Duration::from_secs(2));
    assert_eq!(far.iter().map(|worker| worker.load().1).sum::<u32>(), 10);
    // Load is levelled: of two workers the one with half the credit gets half as much.
    let mut bed = Bed::new();
    let (small, large) = (bed.worker(&[POOL], 20), bed.worker(&[POOL], 40));
    bed.set_policy(Policy::LeastLoaded);
    for _ in 0..30 {
        bed.submit_with(POOL, delayed(TaskOptions::default()));
    }
    bed.pass(Duration::from_secs(2));
    assert_eq!((small.load().1, large.load().1), (10, 20));
}

#[test]
fn sticky_passes_over_those_who_leave() {
    let mut bed = Bed::new();
    let workers: Vec<_> = (0..20).map(|n| named(&mut bed, &format!("w{n}"), 1, 1)).collect();
    let route = bed.route(POOL);
    bed.set_policy(Policy::Sticky);
    let options = wish(b"one key", &[]);
    let order: Vec<_> = {
        let held: Vec<_> = (0..20).map(|_| hold(&bed, &route, &options)).collect();
        held.iter().map(Reservation::worker_id).collect()
    };
    // The eight that rank first are full, and the ninth leaves: the tenth is next.
    let held: Vec<_> = (0..8).map(|_| hold(&bed, &route, &options)).collect();
    assert!(held.iter().map(Reservation::worker_id).eq(order[..8].iter().copied()));
    bed.drain(DrainScope::Worker(order[8]));
    assert_eq!(hold(&bed, &route, &options).worker_id(), order[9]);
    drop(workers);
}
