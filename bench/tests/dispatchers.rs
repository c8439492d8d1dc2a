//! The designs to beat keep the same contract as ours: what is compared does the same work.

use slipswitch_bench::baseline::{
    Actor, Dispatcher, FairMutex, OldMutex, OnNode, Ours, ParkingLot, SharedLock, StdLock, Strict,
};
use slipswitch_bench::harness::{Bed, Keys, Scenario};
use slipswitch_bench::turn::Turn;
use slipswitch_core::{ArcSwapCells, EpochCells, ModelCells, PoolKey};

fn keeps_the_contract<D: Dispatcher>() {
    let dispatcher = D::create();
    let pool = |name: &str| PoolKey::new("test", "default", name).unwrap();
    let (here, there) = (pool("here"), pool("there"));
    let key = dispatcher.key(&here);
    assert!(dispatcher.select(&key).is_none(), "{}: nobody is there", D::NAME);
    let first = dispatcher.register(std::slice::from_ref(&here), 2);
    let second = dispatcher.register(&[here.clone(), there.clone()], 1);
    let stranger = dispatcher.register(std::slice::from_ref(&there), 100);
    let key = dispatcher.key(&here);
    let held: Vec<_> = (0..3).map(|_| dispatcher.select(&key).expect("credit is free")).collect();
    let mut counts = [0; 4];
    for reservation in &held {
        counts[dispatcher.worker(reservation) as usize] += 1;
    }
    assert_eq!(counts[dispatcher.number(&first) as usize], 2, "{}", D::NAME);
    assert_eq!(counts[dispatcher.number(&second) as usize], 1, "{}", D::NAME);
    assert_eq!(counts[dispatcher.number(&stranger) as usize], 0, "{}", D::NAME);
    assert!(dispatcher.select(&key).is_none(), "{}: all credit is used", D::NAME);
    for reservation in held {
        dispatcher.release(reservation);
    }
    let gone = dispatcher.number(&first);
    dispatcher.deregister(first);
    for _ in 0..10 {
        let reservation = dispatcher.select(&key).expect("credit is free again");
        assert_ne!(dispatcher.worker(&reservation), gone, "{}", D::NAME);
        dispatcher.release(reservation);
    }
    dispatcher.deregister(second);
    assert!(dispatcher.select(&key).is_none(), "{}: nobody is there any more", D::NAME);
    dispatcher.deregister(stranger);
}

/// The harness itself checks counts and evenness.
fn is_driven<D: Dispatcher>() {
    for (threads, keys) in [(1, Keys::One), (2, Keys::Own), (2, Keys::One)] {
        let bed = Bed::<D>::lay(Scenario::new(7, threads, keys));
        let run = bed.run(std::time::Duration::from_millis(20));
        assert!(run.operations > 0, "{}", D::NAME);
    }
}

macro_rules! contract {
    ($($name:ident: $dispatcher:ty;)*) => {
        $(
            mod $name {
                use super::*;

                #[test]
                fn keeps_the_contract() {
                    super::keeps_the_contract::<$dispatcher>();
                }

                #[test]
                fn is_driven() {
                    super::is_driven::<$dispatcher>();
                }
            }
        )*
    };
}

contract! {
    epoch: Ours<EpochCells>;
    epoch_strict: Ours<EpochCells, Strict>;
    arc_swap: Ours<ArcSwapCells>;
    locked: Ours<ModelCells>;
    fair_std: FairMutex<StdLock>;
    fair_parking_lot: FairMutex<ParkingLot>;
    shared: SharedLock;
    actor: Actor;
    old_with_credits: OldMutex<true>;
}

#[test]
fn one_node_of_ten_serves_what_is_pinned_to_it() {
    let bed = Bed::<Ours<EpochCells, OnNode>>::lay(Scenario::new(40, 1, Keys::One));
    let mut chosen = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let reservation = bed.dispatcher().select(&bed.keys()[0]).expect("credit is free");
        chosen.insert(bed.dispatcher().worker(&reservation));
    }
    // Workers are numbered from 1, and go round ten nodes.
    assert!(chosen.iter().copied().eq([1, 11, 21, 31]), "{chosen:?}");
}

#[test]
fn every_floor_does_its_steps() {
    for floor in slipswitch_bench::floor::FLOORS {
        assert!(floor.ns(10_000) > 0.0);
    }
}

#[test]
fn a_turn_carries_every_task() {
    Turn::new(3, 2).carry(1_000, 64);
}

#[test]
fn long_times_are_not_cut_short() {
    let mut times = slipswitch_bench::harness::histogram();
    times.saturating_record(5_000_000);
    let max = slipswitch_bench::harness::Tail::of(&times).max;
    assert!((4_990_000..=5_010_000).contains(&max), "{max}");
}
