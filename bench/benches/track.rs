//! Ours alone: one line an id, in nanoseconds. `cargo bench -p slipswitch-bench --bench track`
//!
//! `-o json` for one JSON object, `--quick` for short measurements; any other word restricts the
//! ids to those that contain it.

use std::time::Duration;

use slipswitch_bench::baseline::{Dispatcher, Named, OnNode, Ours, Strict};
use slipswitch_bench::clock;
use slipswitch_bench::floor::FLOORS;
use slipswitch_bench::harness::{Bed, Keys, Scenario, Series, interleave};
use slipswitch_bench::report::{Cell, Report, Wishes};
use slipswitch_bench::turn::Turn;
use slipswitch_core::{ArcSwapCells, EpochCells, ModelCells, PoolKey};

type Epoch = Ours<EpochCells>;

const TURNS: u64 = 200_000;

fn main() -> std::io::Result<()> {
    let wishes = Wishes::of_process()?;
    let mut report = Report::begin(wishes.json)?;
    measure(&mut report, &wishes, "What a step costs here", floors(&wishes))?;
    measure(&mut report, &wishes, "Selecting, with reserve and release", selections(&wishes))?;
    let mut publishes = publishes::<EpochCells>(&wishes, "epoch");
    publishes.extend(self::publishes::<ArcSwapCells>(&wishes, "arc-swap"));
    publishes.extend(self::publishes::<ModelCells>(&wishes, "locked"));
    publishes.extend(registrations(&wishes));
    measure(&mut report, &wishes, "Publishing", publishes)?;
    measure(&mut report, &wishes, "A task's turn in this process", turns(&wishes))?;
    report.end()
}

fn measure(
    report: &mut Report,
    wishes: &Wishes,
    title: &str,
    series: Vec<Series<'_>>,
) -> std::io::Result<()> {
    let rounds = if wishes.quick { 1 } else { 5 };
    let rows: Vec<_> = interleave(series, rounds)
        .into_iter()
        .map(|line| {
            let spread = line.spread;
            let value = serde_json::json!({
                "median": spread.median, "least": spread.min, "most": spread.max,
            });
            vec![Cell::name(&line.id), Cell::new(spread, value)]
        })
        .collect();
    report.table(title, &["id", "ns: median (least–most)"], &rows)
}

fn floors<'a>(wishes: &Wishes) -> Vec<Series<'a>> {
    let wanted = FLOORS.iter().filter(|floor| wishes.want(floor.id));
    wanted.map(|floor| Series::new(floor.id, || floor.ns(5_000_000))).collect()
}

fn selections<'a>(wishes: &Wishes) -> Vec<Series<'a>> {
    fn add<D: Dispatcher>(
        all: &mut Vec<Series<'_>>,
        wishes: &Wishes,
        manner: &str,
        scenario: Scenario,
    ) {
        let slice = Duration::from_millis(if wishes.quick { 5 } else { 150 });
        let id = format!("select/{manner}/{}/{}", scenario.name(), scenario.workers);
        if wishes.want(&id) {
            let bed = Bed::<D>::lay(scenario);
            all.push(Series::new(id, move || bed.run(slice).ns));
        }
    }
    let mut all = Vec::new();
    for workers in [1, 8, 64, 1_000, 10_000] {
        for (threads, keys) in [(1, Keys::One), (2, Keys::Own), (2, Keys::One)] {
            let scenario = Scenario::new(workers, threads, keys);
            add::<Epoch>(&mut all, wishes, "round-robin", scenario);
            if [8, 1_000].contains(&workers) {
                add::<Ours<EpochCells, Strict>>(&mut all, wishes, "strict", scenario);
                add::<Ours<EpochCells, OnNode>>(&mut all, wishes, "on-node", scenario);
            }
        }
    }
    // Sixteen times the tasks in flight: no worker is idle, so tickets are drawn in blocks.
    for (threads, keys) in [(1, Keys::One), (2, Keys::Own), (2, Keys::One)] {
        let scenario = Scenario { held: 1_024, ..Scenario::new(1_000, threads, keys) };
        add::<Epoch>(&mut all, wishes, "round-robin-busy", scenario);
    }
    all
}

fn pool() -> Vec<PoolKey> {
    vec![PoolKey::new("bench", "default", "publish").expect("the name is valid")]
}

fn publishes<'a, F: Named>(wishes: &Wishes, cell: &str) -> Vec<Series<'a>> {
    let mut all = Vec::new();
    for present in [100, 1_000, 10_000, 100_000] {
        let id = format!("publish/{cell}/{present}");
        if !wishes.want(&id) {
            continue;
        }
        let ours: Ours<F> = Ours::create();
        let keys = pool();
        let there: Vec<_> = (0..present).map(|_| ours.register(&keys, 1)).collect();
        all.push(Series::new(id, move || {
            let start = clock::now();
            for _ in 0..500 {
                ours.deregister(ours.register(&keys, 1));
            }
            std::hint::black_box(&there);
            // Two publishes each.
            clock::nanos_since(start) as f64 / 1_000.0
        }));
    }
    all
}

fn registrations<'a>(wishes: &Wishes) -> Vec<Series<'a>> {
    let id = "publish/register-100000";
    if !wishes.want(id) {
        return Vec::new();
    }
    vec![Series::new(id, || {
        let ours: Epoch = Ours::create();
        let keys = pool();
        let start = clock::now();
        let there: Vec<_> = (0..100_000).map(|_| ours.register(&keys, 1)).collect();
        let nanos = clock::nanos_since(start);
        assert_eq!(there.len(), 100_000);
        assert_eq!(ours.engine().generation().1, 100_000);
        nanos as f64
    })]
}

fn turns<'a>(wishes: &Wishes) -> Vec<Series<'a>> {
    let mut all = Vec::new();
    // Four workers: with credit for all tasks of a window, with credit for half, one task at once.
    for (id, credit, window) in
        [("turn/direct", 1_000, 64), ("turn/through-the-line", 8, 64), ("turn/one-in-flight", 8, 1)]
    {
        if wishes.want(id) {
            let mut turn = Turn::new(4, credit);
            let count = if wishes.quick { TURNS / 20 } else { TURNS };
            all.push(Series::new(id, move || {
                let start = clock::now();
                turn.carry(count, window);
                clock::nanos_since(start) as f64 / count as f64
            }));
        }
    }
    all
}
