//! Ours beside the designs to beat, all in one run. `cargo bench -p slipswitch-bench --bench compare`
//!
//! `-o json` for one JSON object, `--quick` for short measurements; any other word restricts the
//! tables to those whose titles contain it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slipswitch_bench::baseline::{
    Actor, Dispatcher, FairMutex, OldMutex, Ours, ParkingLot, SharedLock, StdLock, Strict,
};
use slipswitch_bench::clock;
use slipswitch_bench::harness::{Bed, Keys, Line, Scenario, Series, Tail, interleave};
use slipswitch_bench::report::{Cell, Report, Wishes};
use slipswitch_core::{ArcSwapCells, EpochCells, ModelCells};

/// How often workers join in the storm.
const JOINS_PER_SECOND: u32 = 10_000;

type Epoch = Ours<EpochCells>;
type EpochStrict = Ours<EpochCells, Strict>;
type ArcSwap = Ours<ArcSwapCells>;
type Locked = Ours<ModelCells>;
type Old = OldMutex<false>;
type OldCounting = OldMutex<true>;

fn main() -> io::Result<()> {
    let wishes = Wishes::of_process()?;
    let mut report = Report::begin(wishes.json)?;
    for workers in [8, 1_000] {
        for (threads, keys) in [(1, Keys::One), (2, Keys::Own), (2, Keys::One)] {
            means(&mut report, &wishes, Scenario::new(workers, threads, keys))?;
        }
    }
    means(&mut report, &wishes, Scenario { held: 1_024, ..Scenario::new(1_000, 2, Keys::One) })?;
    for workers in [8, 1_000] {
        tails(&mut report, &wishes, Scenario::new(workers, 2, Keys::One))?;
    }
    storm(&mut report, &wishes, Scenario::new(1_000, 1, Keys::One))?;
    report.end()
}

/// Runs a generic function for every design that is compared.
macro_rules! for_each_design {
    ($function:ident($($argument:expr),*)) => {
        vec![
            $function::<Epoch>($($argument),*),
            $function::<EpochStrict>($($argument),*),
            $function::<ArcSwap>($($argument),*),
            $function::<Locked>($($argument),*),
            $function::<FairMutex<ParkingLot>>($($argument),*),
            $function::<FairMutex<StdLock>>($($argument),*),
            $function::<SharedLock>($($argument),*),
            $function::<Actor>($($argument),*),
            $function::<Old>($($argument),*),
            $function::<OldCounting>($($argument),*),
        ]
    };
}

fn tail_cells(tail: Tail) -> [Cell; 4] {
    [tail.p50, tail.p99, tail.p999, tail.max].map(Cell::count)
}

/// Nanoseconds of a selection with its release, and how many times ours each takes.
fn means(report: &mut Report, wishes: &Wishes, scenario: Scenario) -> io::Result<()> {
    fn series<'a, D: Dispatcher>(scenario: Scenario, slice: Duration) -> Series<'a> {
        let bed = Bed::<D>::lay(scenario);
        Series::new(D::NAME, move || bed.run(slice).ns)
    }
    let Scenario { workers, held, .. } = scenario;
    let title =
        format!("select + release, {workers} workers, {}, {held} held a thread", scenario.name());
    if !wishes.want(&title) {
        return Ok(());
    }
    let (slice, rounds) = if wishes.quick { (5, 1) } else { (150, 5) };
    let all = for_each_design!(series(scenario, Duration::from_millis(slice)));
    let lines = interleave(all, rounds);
    let ours = lines.first().map_or(1.0, |line: &Line| line.spread.median);
    let rows: Vec<_> = lines
        .iter()
        .map(|line| {
            let times = line.spread.median / ours;
            vec![
                Cell::name(&line.id),
                Cell::new(line.spread, line.spread.median),
                Cell::new(format!("{times:.2}"), times),
            ]
        })
        .collect();
    report.table(&title, &["design", "ns: median (least–most)", "times ours"], &rows)
}

/// Percentiles of single selections.
fn tails(report: &mut Report, wishes: &Wishes, scenario: Scenario) -> io::Result<()> {
    fn row<D: Dispatcher>(scenario: Scenario, time: Duration) -> Vec<Cell> {
        let bed = Bed::<D>::lay(scenario);
        // One to warm up, one that counts.
        drop(bed.sample(time / 5));
        let mut cells = vec![Cell::name(D::NAME)];
        cells.extend(tail_cells(Tail::of(&bed.sample(time))));
        cells
    }
    let title = format!("one selection, {} workers, {}", scenario.workers, scenario.name());
    if !wishes.want(&title) {
        return Ok(());
    }
    let time = Duration::from_millis(if wishes.quick { 10 } else { 1_000 });
    let rows = for_each_design!(row(scenario, time));
    report.table(&title, &["design", "p50 ns", "p99", "p99.9", "max"], &rows)
}

/// Percentiles of single selections while workers come and go, evenly spaced.
fn storm(report: &mut Report, wishes: &Wishes, scenario: Scenario) -> io::Result<()> {
    fn under<D: Dispatcher>(bed: &Bed<D>, time: Duration, storms: bool) -> (Tail, u64) {
        let stop = AtomicBool::new(false);
        let gap = Duration::from_secs(1) / JOINS_PER_SECOND;
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut joins = 0u32;
                let start = clock::now();
                while !stop.load(Ordering::Relaxed) {
                    if !storms {
                        std::thread::sleep(Duration::from_millis(1));
                    } else if clock::now() < start + gap * joins {
                        std::hint::spin_loop();
                    } else {
                        let guest = bed.dispatcher().register(bed.pools(), 1);
                        bed.dispatcher().deregister(guest);
                        joins += 1;
                    }
                }
                (f64::from(joins) * 1e9 / clock::nanos_since(start) as f64) as u64
            });
            let reader = scope.spawn(|| bed.sample_until(&bed.keys()[0], &stop));
            std::thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
            let times = reader.join().expect("no selection panics");
            (Tail::of(&times), writer.join().expect("no registration panics"))
        })
    }
    fn row<D: Dispatcher>(scenario: Scenario, time: Duration) -> Vec<Cell> {
        let bed = Bed::<D>::lay(scenario);
        let (quiet, _) = under(&bed, time, false);
        let (tail, joins) = under(&bed, time, true);
        let mut cells = vec![Cell::name(D::NAME), Cell::count(joins)];
        cells.extend(tail_cells(tail));
        cells.push(Cell::count(quiet.p999));
        let times = tail.p999 as f64 / quiet.p999.max(1) as f64;
        cells.push(Cell::new(format!("{times:.1}"), times));
        cells
    }
    let title =
        format!("one selection while workers come and go, {} workers, t1", scenario.workers);
    if !wishes.want(&title) {
        return Ok(());
    }
    let time = Duration::from_millis(if wishes.quick { 10 } else { 1_000 });
    let rows = for_each_design!(row(scenario, time));
    let heads =
        ["design", "joins/s", "p50 ns", "p99", "p99.9", "max", "quiet p99.9", "times quiet"];
    report.table(&title, &heads, &rows)
}
