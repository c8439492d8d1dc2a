//! Ours alone: one line an id, in nanoseconds. `cargo bench -p slipswitch-bench --bench track`
//!
//! The first argument restricts the ids to those that contain it.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slipswitch_bench::baseline::{Dispatcher, Ours};
use slipswitch_bench::clock;
use slipswitch_bench::harness::{Bed, Keys, Scenario, Series, interleave};
use slipswitch_bench::machine::Machine;
use slipswitch_bench::turn::Turn;
use slipswitch_core::{EpochCells, PoolKey};

/// What the machine itself takes for a locked instruction that nobody contends.
fn floors<'a>(wanted: &impl Fn(&str) -> bool) -> Vec<Series<'a>> {
    const TIMES: u64 = 5_000_000;
    let word = AtomicU64::new(0);
    let other = AtomicU64::new(0);
    let series = vec![
        Series::new("floor/fetch-add", move || {
            let start = clock::now();
            for _ in 0..TIMES {
                std::hint::black_box(word.fetch_add(1, Ordering::Relaxed));
            }
            clock::nanos_since(start) as f64 / TIMES as f64
        }),
        Series::new("floor/compare-exchange", move || {
            let start = clock::now();
            for _ in 0..TIMES {
                let seen = other.load(Ordering::Relaxed);
                let (acquire, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
                let won = other.compare_exchange(seen, seen + 1, acquire, relaxed);
                std::hint::black_box(won.is_ok());
            }
            clock::nanos_since(start) as f64 / TIMES as f64
        }),
    ];
    series.into_iter().filter(|one| wanted(&one.id)).collect()
}

const ROUNDS: usize = 5;
const SLICE: Duration = Duration::from_millis(200);

fn main() -> std::io::Result<()> {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let wanted = |id: &str| only.as_deref().is_none_or(|part| id.contains(part));
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", Machine::look_up())?;
    writeln!(out, "{:<44} {:>28}", "id", "ns: median (least–most)")?;
    let mut series: Vec<Series<'_>> = floors(&wanted);
    for workers in [8, 1_000] {
        for (threads, keys) in [(1, Keys::One), (2, Keys::Own), (2, Keys::One)] {
            let scenario = Scenario::new(workers, threads, keys);
            let id = format!("select/reserve-release/{}/{workers}", scenario.name());
            if wanted(&id) {
                let bed = Bed::<Ours<EpochCells>>::lay(scenario);
                series.push(Series::new(id, move || bed.run(SLICE).ns));
            }
        }
    }
    for line in interleave(series, ROUNDS) {
        writeln!(out, "{:<44} {:>28}", line.id, line.spread.to_string())?;
    }
    let mut series: Vec<Series<'_>> = Vec::new();
    for present in [100, 10_000, 100_000] {
        let id = format!("publish/join-and-leave/{present}");
        if wanted(&id) {
            let ours = Ours::<EpochCells>::create();
            let key = PoolKey::new("bench", "default", "publish").expect("the name is valid");
            let keys = vec![key];
            let there: Vec<_> = (0..present).map(|_| ours.register(&keys, 1)).collect();
            series.push(Series::new(id, move || {
                let start = clock::now();
                for _ in 0..500 {
                    ours.deregister(ours.register(&keys, 1));
                }
                std::hint::black_box(&there);
                // Two publishes each.
                clock::nanos_since(start) as f64 / 1_000.0
            }));
        }
    }
    let id = "publish/register-100000".to_owned();
    if wanted(&id) {
        series.push(Series::new(id, || {
            let ours = Ours::<EpochCells>::create();
            let key = PoolKey::new("bench", "default", "publish").expect("the name is valid");
            let start = clock::now();
            let there: Vec<_> =
                (0..100_000).map(|_| ours.register(std::slice::from_ref(&key), 1)).collect();
            let nanos = clock::nanos_since(start);
            assert_eq!(there.len(), 100_000);
            nanos as f64
        }));
    }
    for (id, credit) in [("turn/direct", 1_000), ("turn/through-the-line", 8)] {
        if wanted(id) {
            let mut turn = Turn::new(4, credit);
            series.push(Series::new(id, move || {
                let start = clock::now();
                turn.carry(200_000, 64);
                clock::nanos_since(start) as f64 / 200_000.0
            }));
        }
    }
    for line in interleave(series, ROUNDS) {
        writeln!(out, "{:<44} {:>28}", line.id, line.spread.to_string())?;
    }
    Ok(())
}
