//! Ours beside the designs to beat, all in one run. `cargo bench -p slipswitch-bench --bench compare`

use std::io::{StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slipswitch_bench::baseline::{
    Actor, Dispatcher, FairMutex, OldMutex, Ours, ParkingLot, SharedLock, StdLock,
};
use slipswitch_bench::harness::{Bed, Keys, Line, Scenario, Series, Tail, interleave};
use slipswitch_bench::machine::Machine;
use slipswitch_core::{ArcSwapCells, EpochCells, ModelCells};

const ROUNDS: usize = 5;
const SLICE: Duration = Duration::from_millis(150);
const SAMPLING: Duration = Duration::from_millis(700);

type Epoch = Ours<EpochCells>;
type ArcSwap = Ours<ArcSwapCells>;
type Locked = Ours<ModelCells>;
type Old = OldMutex<false>;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", Machine::look_up())?;
    for workers in [8, 1_000] {
        for (threads, keys) in [(1, Keys::One), (2, Keys::Own), (2, Keys::One)] {
            means(&mut out, Scenario::new(workers, threads, keys))?;
        }
    }
    for workers in [8, 1_000] {
        tails(&mut out, Scenario::new(workers, 2, Keys::One))?;
    }
    churn(&mut out, Scenario::new(1_000, 1, Keys::One))
}

/// Nanoseconds of a selection with its release, and how many times ours each takes.
fn means(out: &mut StdoutLock<'_>, scenario: Scenario) -> std::io::Result<()> {
    fn series<'a, D: Dispatcher>(scenario: Scenario) -> Series<'a> {
        let bed = Bed::<D>::lay(scenario);
        Series::new(D::NAME, move || bed.run(SLICE).ns)
    }
    let all = vec![
        series::<Epoch>(scenario),
        series::<ArcSwap>(scenario),
        series::<Locked>(scenario),
        series::<FairMutex<ParkingLot>>(scenario),
        series::<FairMutex<StdLock>>(scenario),
        series::<SharedLock>(scenario),
        series::<Actor>(scenario),
        series::<Old>(scenario),
    ];
    let lines = interleave(all, ROUNDS);
    writeln!(out)?;
    writeln!(out, "select + release, {} workers, {}", scenario.workers, scenario.name())?;
    writeln!(out, "| design | ns: median (least–most) | times ours |")?;
    writeln!(out, "|---|---|---|")?;
    let ours = lines.first().map_or(1.0, |line: &Line| line.spread.median);
    for line in &lines {
        let times = line.spread.median / ours;
        writeln!(out, "| {} | {} | {times:.1} |", line.id, line.spread)?;
    }
    Ok(())
}

/// Percentiles of single selections.
fn tails(out: &mut StdoutLock<'_>, scenario: Scenario) -> std::io::Result<()> {
    fn tail<D: Dispatcher>(scenario: Scenario) -> (&'static str, Tail) {
        let bed = Bed::<D>::lay(scenario);
        // One to warm up, one that counts.
        drop(bed.sample(SLICE));
        (D::NAME, Tail::of(&bed.sample(SAMPLING)))
    }
    writeln!(out)?;
    writeln!(out, "one selection, {} workers, {}", scenario.workers, scenario.name())?;
    writeln!(out, "| design | p50 ns | p99 | p99.9 | max |")?;
    writeln!(out, "|---|---|---|---|---|")?;
    for (name, tail) in [
        tail::<Epoch>(scenario),
        tail::<ArcSwap>(scenario),
        tail::<FairMutex<ParkingLot>>(scenario),
        tail::<FairMutex<StdLock>>(scenario),
        tail::<SharedLock>(scenario),
        tail::<Actor>(scenario),
        tail::<Old>(scenario),
    ] {
        let Tail { p50, p99, p999, max } = tail;
        writeln!(out, "| {name} | {p50} | {p99} | {p999} | {max} |")?;
    }
    Ok(())
}

/// Percentiles of single selections while workers come and go, 10,000 registrations a second.
fn churn(out: &mut StdoutLock<'_>, scenario: Scenario) -> std::io::Result<()> {
    fn under<D: Dispatcher>(scenario: Scenario, storm: bool) -> (Tail, u64) {
        let bed = Bed::<D>::lay(scenario);
        let stop = AtomicBool::new(false);
        let pools = bed.pools().to_vec();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut done = 0u64;
                while storm && !stop.load(Ordering::Relaxed) {
                    // Ten joins and leaves a millisecond.
                    for _ in 0..10 {
                        let guest = bed.dispatcher().register(&pools, 1);
                        bed.dispatcher().deregister(guest);
                        done += 1;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                done
            });
            let reader = scope.spawn(|| bed.sample_until(&bed.keys()[0], &stop));
            std::thread::sleep(SAMPLING);
            stop.store(true, Ordering::Relaxed);
            let times = reader.join().expect("no selection panics");
            let done = writer.join().expect("no registration panics");
            (Tail::of(&times), (done as f64 / SAMPLING.as_secs_f64()) as u64)
        })
    }
    writeln!(out)?;
    writeln!(out, "one selection while workers come and go, {} workers", scenario.workers)?;
    writeln!(out, "| design | joins/s | p50 ns | p99 | p99.9 | max | quiet p99.9 |")?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    let rows = [
        (Epoch::NAME, under::<Epoch>(scenario, true), under::<Epoch>(scenario, false)),
        (ArcSwap::NAME, under::<ArcSwap>(scenario, true), under::<ArcSwap>(scenario, false)),
        (
            FairMutex::<ParkingLot>::NAME,
            under::<FairMutex<ParkingLot>>(scenario, true),
            under::<FairMutex<ParkingLot>>(scenario, false),
        ),
        (
            FairMutex::<StdLock>::NAME,
            under::<FairMutex<StdLock>>(scenario, true),
            under::<FairMutex<StdLock>>(scenario, false),
        ),
        (
            SharedLock::NAME,
            under::<SharedLock>(scenario, true),
            under::<SharedLock>(scenario, false),
        ),
        (Old::NAME, under::<Old>(scenario, true), under::<Old>(scenario, false)),
    ];
    for (name, (tail, joins), (quiet, _)) in rows {
        let Tail { p50, p99, p999, max } = tail;
        let quiet = quiet.p999;
        writeln!(out, "| {name} | {joins} | {p50} | {p99} | {p999} | {max} | {quiet} |")?;
    }
    Ok(())
}
