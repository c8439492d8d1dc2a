//! Instructions an operation, counted by callgrind. `cargo bench -p slipswitch-bench --bench instr`
//!
//! The guard against regressions that a shared machine can keep: the count of one thread is the
//! same in every run of one compiler. Ours has a bound for each case, a tenth above what it took when
//! the bound was set; a count above it fails. The rivals are counted to compare.
//!
//! This program runs itself under callgrind twice a case, with few and with many operations. The
//! difference is free of whatever setting up costs.

use std::io;
use std::process::{Command, ExitCode};

use slipswitch_bench::baseline::{
    Dispatcher, FairMutex, OldMutex, OnNode, Ours, ParkingLot, SharedLock, StdLock, Strict,
};
use slipswitch_bench::harness::{Bed, Keys, Scenario};
use slipswitch_bench::report::{Cell, Report, Wishes};
use slipswitch_bench::turn::Turn;
use slipswitch_core::{ArcSwapCells, EpochCells, ModelCells};

/// How a case is told to the process under callgrind.
const CHILD: &str = "--under-callgrind";
/// Rounds, of 64 operations each, in the short and in the long run.
const FEW: u64 = 50;
const MANY: u64 = 250;

struct Case {
    id: &'static str,
    /// The most instructions an operation may take; none for rivals.
    bound: Option<f64>,
    /// Does so many rounds of 64 operations.
    run: fn(u64),
}

const CASES: [Case; 14] = [
    ours("select/round-robin/8", 340.0, selects::<Ours<EpochCells>, 8>),
    ours("select/round-robin/1000", 340.0, selects::<Ours<EpochCells>, 1_000>),
    ours("select/strict/1000", 332.0, selects::<Ours<EpochCells, Strict>, 1_000>),
    ours("select/on-node/1000", 616.0, selects::<Ours<EpochCells, OnNode>, 1_000>),
    ours("select/arc-swap/1000", 328.0, selects::<Ours<ArcSwapCells>, 1_000>),
    ours("select/locked/1000", 295.0, selects::<Ours<ModelCells>, 1_000>),
    rival("select/fair-parking-lot/1000", selects::<FairMutex<ParkingLot>, 1_000>),
    rival("select/fair-std/1000", selects::<FairMutex<StdLock>, 1_000>),
    rival("select/reader-writer/1000", selects::<SharedLock, 1_000>),
    rival("select/old/8", selects::<OldMutex<false>, 8>),
    rival("select/old/1000", selects::<OldMutex<false>, 1_000>),
    rival("select/old-with-credits/1000", selects::<OldMutex<true>, 1_000>),
    ours("turn/direct", 4880.0, |rounds| Turn::new(4, 1_000).carry(rounds * 64, 64)),
    ours("turn/through-the-line", 6230.0, |rounds| Turn::new(4, 8).carry(rounds * 64, 64)),
];

const fn ours(id: &'static str, bound: f64, run: fn(u64)) -> Case {
    Case { id, bound: Some(bound), run }
}

const fn rival(id: &'static str, run: fn(u64)) -> Case {
    Case { id, bound: None, run }
}

fn selects<D: Dispatcher, const WORKERS: usize>(rounds: u64) {
    let bed = Bed::<D>::lay(Scenario::new(WORKERS, 1, Keys::One));
    let run = bed.run_turns(rounds);
    assert_eq!(run.operations, rounds * 64);
}

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, id, rounds] = arguments.as_slice()
        && first == CHILD
    {
        let case = CASES.iter().find(|case| case.id == id).expect("the parent names a case");
        (case.run)(rounds.parse().expect("the parent names a number"));
        return Ok(ExitCode::SUCCESS);
    }
    let wishes = Wishes::of_process()?;
    let mut report = Report::begin(wishes.json)?;
    let mut rows = Vec::new();
    let mut is_within = true;
    for case in CASES.iter().filter(|case| wishes.want(case.id)) {
        let few = count(case.id, FEW)?;
        let many = count(case.id, MANY)?;
        let each = many.saturating_sub(few) as f64 / (64 * (MANY - FEW)) as f64;
        let holds = case.bound.is_none_or(|bound| each <= bound);
        is_within &= holds;
        let bound = match case.bound {
            None => Cell::new("", serde_json::Value::Null),
            Some(bound) if holds => Cell::new(bound, bound),
            Some(bound) => Cell::new(format!("{bound}: exceeded"), bound),
        };
        rows.push(vec![Cell::name(case.id), Cell::new(format!("{each:.0}"), each), bound]);
    }
    report.table("Instructions an operation, one thread", &["id", "count", "bound"], &rows)?;
    report.end()?;
    Ok(if is_within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Counts the instructions of a whole run.
fn count(id: &str, rounds: u64) -> io::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args([CHILD, id, &rounds.to_string()])
        .output()
        .map_err(|error| io::Error::other(format!("valgrind cannot be started: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said
        .lines()
        .find_map(|line| line.split_once("Collected : "))
        .and_then(|(_, count)| count.trim().parse().ok());
    match collected {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(io::Error::other(format!("{id} did not run under callgrind: {said}"))),
    }
}
