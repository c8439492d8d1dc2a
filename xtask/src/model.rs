//! Models of the hand-offs between threads, and the faults planted for them to find.
//!
//! One build serves both: `loom-tests` under `cfg(slipswitch_loom)`, in release with assertions, in
//! a target folder of its own. Each model runs in a process of its own, as many at once as there
//! are cores.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use crate::clock;
use crate::out::say;
use crate::process::{self, End};
use crate::rows;
use crate::tally::Tally;
use crate::tidy::mask::words;
use crate::tree::Tree;

const FLAGS: &str = "--cfg slipswitch_loom --cfg crossbeam_loom -C debug-assertions";
const TABLE: &str = "loom-tests/mutants.toml";

const QUICK_LIMIT: Duration = Duration::from_secs(10 * 60);
const WHOLE_LIMIT: Duration = Duration::from_secs(3 * 60 * 60);
const MUTANT_LIMIT: Duration = Duration::from_secs(5 * 60);

/// The words of the build, for whoever repeats it by hand.
pub(crate) const BUILD: &str =
    "cargo test --release -p slipswitch-loom-tests --target-dir target-loom --no-run";

/// A test of a test program.
#[derive(Clone, Debug)]
struct Model {
    program: PathBuf,
    /// File name of the program's source, without its ending.
    binary: String,
    test: String,
    /// It carries a reason to be left out of quick runs.
    is_ignored: bool,
}

/// A planted fault and the model that must find it.
#[derive(Debug)]
struct Mutant {
    name: String,
    bug: String,
    model: Model,
    /// How the model must fail: a mutant that dies of something else was not found.
    fails: String,
}

struct Run {
    end: End,
    output: String,
    seconds: f64,
}

/// Runs every model whose name contains `only`.
pub(crate) fn models(root: &Path, quick: bool, only: Option<&str>) -> Tally {
    let Some(models) = build(root) else { return Tally::check(false) };
    let wanted =
        |m: &Model| only.is_none_or(|part| format!("{}::{}", m.binary, m.test).contains(part));
    let (left, models): (Vec<_>, Vec<_>) =
        models.into_iter().filter(wanted).partition(|model| quick && model.is_ignored);
    let mut tally = Tally { skipped: left.len() as u64, ..Tally::default() };
    for model in left {
        say(&format!("model {}::{} left out of quick runs", model.binary, model.test));
    }
    let limit = if quick { QUICK_LIMIT } else { WHOLE_LIMIT };
    let (mut seen, mut executions) = (0, 0);
    side_by_side(
        models,
        |model| launch(root, model, None, limit),
        |model, run| {
            let counts: Vec<Count<'_>> = run.output.lines().filter_map(Count::read).collect();
            let truncated = counts.iter().any(|count| count.is_truncated);
            let green = run.end == End::Success && ran(&run.output) && !truncated;
            let word = if green { "ok    " } else { "FAILED" };
            say(&format!("model {word} {:7.1} s  {}::{}", run.seconds, model.binary, model.test));
            for count in &counts {
                say(&format!("    {}", count.line));
                executions += count.executions;
            }
            seen += counts.len();
            if !green {
                say(&explain(&run, truncated));
            }
            tally.add(Tally::check(green));
        },
    );
    if seen == 0 {
        say("no model said how many executions it had: nothing was shown");
        tally.add(Tally::check(false));
    }
    say(&format!("models: {}, {executions} executions", tally.line()));
    tally
}

/// Plants every fault whose name starts with `only`; each must be found by its model.
pub(crate) fn mutants(root: &Path, only: Option<&str>) -> Tally {
    let Some(models) = build(root) else { return Tally::check(false) };
    let mutants = match listed(root, &models) {
        Ok(mutants) => mutants,
        Err(error) => {
            say(&format!("error: {error}"));
            return Tally::check(false);
        }
    };
    let wanted = |m: &Mutant| only.is_none_or(|start| m.name.starts_with(start));
    let mutants: Vec<Mutant> = mutants.into_iter().filter(wanted).collect();
    let all = mutants.len();
    let mut tally = Tally::default();
    let plant = |m: &Mutant| launch(root, &m.model, Some(&m.name), MUTANT_LIMIT);
    side_by_side(mutants, plant, |mutant, run| {
        let Mutant { name, bug, model, fails } = mutant;
        let rightly = first_panic(&run.output).contains(fails.as_str());
        let killed = run.end == End::Failure && ran(&run.output) && rightly;
        let word = if killed { "killed by" } else { "SURVIVED" };
        say(&format!(
            "mutant {name:<12} {word} {}::{} in {:.1} s ({bug})",
            model.binary, model.test, run.seconds
        ));
        if !killed {
            if run.end == End::Failure && !rightly {
                say(&format!("    it had to fail with: {fails}"));
            }
            say(&explain(&run, false));
        }
        tally.add(Tally::check(killed));
    });
    if all == 0 {
        say("no mutant is listed: nothing was shown");
        tally.add(Tally::check(false));
    }
    say(&format!("mutants killed {} of {all}", tally.passed));
    tally
}

/// A line such as `loom L4: 18231 executions, exhaustive`.
struct Count<'a> {
    line: &'a str,
    executions: u64,
    is_truncated: bool,
}

impl<'a> Count<'a> {
    fn read(line: &'a str) -> Option<Self> {
        // Without capture the harness may have begun the line: `test name ... loom L4: ..`.
        let line = line.get(line.find("loom L")?..)?;
        let (_, rest) = line.split_once(": ")?;
        let (number, rest) = rest.split_once(' ')?;
        let executions = number.replace(['_', ','], "").parse().ok()?;
        let is_truncated = rest.starts_with("executions") && rest.contains("truncated");
        rest.starts_with("executions").then_some(Self { line, executions, is_truncated })
    }
}

/// The harness ran exactly the one test that was named.
fn ran(output: &str) -> bool {
    output.lines().any(|line| line.trim() == "running 1 test")
}

/// What the first panic said. Later ones come of taking a failed execution down.
fn first_panic(output: &str) -> String {
    let after = output.split_once(" panicked at ").and_then(|(_, rest)| rest.split_once('\n'));
    let lines = after.map_or("", |(_, message)| message).lines();
    let message = lines.take_while(|line| !line.starts_with("note: ") && !line.is_empty());
    message.collect::<Vec<_>>().join("\n")
}

fn explain(run: &Run, truncated: bool) -> String {
    let why = match run.end {
        End::TimedOut => "not finished within its limit",
        End::Absent => "cannot be started",
        _ if !ran(&run.output) => "no test of that name ran",
        _ if truncated => "cut short, which counts as failed",
        End::Success => "the model found nothing",
        End::Failure => "failed",
    };
    let lines: Vec<&str> = run.output.lines().collect();
    let last = lines.get(lines.len().saturating_sub(60)..).unwrap_or_default();
    format!("    {why}\n    | {}", last.join("\n    | "))
}

fn build(root: &Path) -> Option<Vec<Model>> {
    let words: Vec<&str> = BUILD.split(' ').collect();
    let mut command = process::command(root, &words);
    command.env("RUSTFLAGS", FLAGS);
    let mut programs = Vec::new();
    let end = process::run(command, |line| programs.extend(program(root, line)));
    if end != End::Success {
        say(&format!("the models do not build: RUSTFLAGS=\"{FLAGS}\" {BUILD}"));
        return None;
    }
    let mut models = Vec::new();
    for (binary, program) in programs {
        let all = list(root, &program, &[]);
        let ignored = list(root, &program, &["--ignored"]);
        models.extend(all.into_iter().map(|test| Model {
            is_ignored: ignored.contains(&test),
            program: program.clone(),
            binary: binary.clone(),
            test,
        }));
    }
    Some(models)
}

/// Reads `  Executable tests/gate.rs (target-loom/release/deps/gate-0a1b)`.
fn program(root: &Path, line: &str) -> Option<(String, PathBuf)> {
    let at = line.find("tests/")?;
    line.get(..at)?.contains("Executable").then_some(())?;
    let (source, rest) = line.get(at..)?.split_once(" (")?;
    let path = rest.split(')').next()?;
    let binary = Path::new(source).file_stem()?.to_str()?;
    // A folder with `main.rs` is a test program too, called after the folder.
    let binary =
        if binary == "main" { Path::new(source).parent()?.file_name()?.to_str()? } else { binary };
    Some((binary.to_owned(), root.join(path)))
}

fn list(root: &Path, program: &Path, more: &[&str]) -> Vec<String> {
    let mut command = process::command(root, &[&program.to_string_lossy()]);
    command.args(["--list", "--format", "terse"]).args(more);
    let (_, text) = process::capture(command, Duration::from_secs(60));
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

fn launch(root: &Path, model: &Model, mutant: Option<&str>, limit: Duration) -> Run {
    let mut command = process::command(root, &[&model.program.to_string_lossy()]);
    command.args([
        "--exact",
        &model.test,
        "--include-ignored",
        "--nocapture",
        "--test-threads",
        "1",
    ]);
    command.env("CARGO_MANIFEST_DIR", root.join("loom-tests"));
    command.env_remove("SLIPSWITCH_MUTANT").env("RUST_BACKTRACE", "0");
    if let Some(name) = mutant {
        command.env("SLIPSWITCH_MUTANT", name);
    }
    let begin = clock::now();
    let (end, output) = process::capture(command, limit);
    Run { end, output, seconds: begin.elapsed().as_secs_f64() }
}

/// The table of planted faults; it and the source of core must name the same ones.
fn listed(root: &Path, models: &[Model]) -> Result<Vec<Mutant>, String> {
    let tree =
        Tree::read(root).map_err(|error| format!("the workspace cannot be read: {error}"))?;
    let file = tree.file(TABLE).ok_or_else(|| format!("{TABLE} is not there"))?;
    let rows = rows::parse(&file.text).map_err(|error| format!("{TABLE}: {error}"))?;
    let planted = planted(&tree);
    let mut mutants: Vec<Mutant> = Vec::new();
    for row in rows.iter().filter(|row| row.section == "mutant") {
        let name = row.text("name")?.to_owned();
        let test = row.text("test")?;
        let (binary, test) = test.split_once("::").unwrap_or(("", test));
        let model = models.iter().find(|m| m.binary == binary && m.test == test);
        let model =
            model.ok_or_else(|| format!("{TABLE}:{}: {binary}::{test} is no model", row.line))?;
        if !planted.contains(&name) {
            return Err(format!(
                "{TABLE}:{}: no `mutant(\"{name}\")` is planted in core",
                row.line
            ));
        }
        if mutants.iter().any(|m| m.name == name && m.model.test == test) {
            return Err(format!("{TABLE}:{}: {name} is listed twice", row.line));
        }
        let (bug, fails) = (row.text("bug")?.to_owned(), row.text("fails")?.to_owned());
        mutants.push(Mutant { name, bug, model: model.clone(), fails });
    }
    if let Some(name) = planted.iter().find(|name| !mutants.iter().any(|m| m.name == **name)) {
        return Err(format!(
            "`mutant(\"{name}\")` is planted in core, and no row of {TABLE} kills it"
        ));
    }
    Ok(mutants)
}

/// The names of all `mutant("..")` in core.
fn planted(tree: &Tree) -> Vec<String> {
    let mut names = Vec::new();
    for file in tree.rust().filter(|file| file.path.starts_with("core/src/") && !file.is_test()) {
        let code = file.masked.shipped();
        for at in words(&code, "mutant") {
            let rest = file.text.get(at + "mutant".len()..).unwrap_or_default();
            let name = rest.strip_prefix("(\"").and_then(|rest| rest.split('"').next());
            names.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    names.sort();
    names.dedup();
    names
}

/// Works on as many jobs at once as there are cores; reports in the order in which they end.
fn side_by_side<J: Send>(
    jobs: Vec<J>,
    work: impl Fn(&J) -> Run + Sync,
    mut report: impl FnMut(J, Run),
) {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let queue = Mutex::new(VecDeque::from(jobs));
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers {
            let sender = sender.clone();
            scope.spawn(|| {
                let sender = sender;
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(job) = job else { return };
                    let run = work(&job);
                    if sender.send((job, run)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (job, run) in ended {
            report(job, run);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_executions_are_read() {
        let line = "test l4 ... loom L4: 18231 executions, exhaustive";
        let count = Count::read(line).expect("a count");
        assert_eq!((count.executions, count.is_truncated), (18231, false));
        assert_eq!(count.line, "loom L4: 18231 executions, exhaustive");
        let count = Count::read("loom L10b: 1_000 executions, truncated").expect("a count");
        assert_eq!((count.executions, count.is_truncated), (1000, true));
        assert!(Count::read("loom L4: nothing").is_none());
        assert!(Count::read("running 1 test").is_none());
    }

    #[test]
    fn programs_are_found_in_the_build() {
        let line = "  Executable tests/gate.rs (target-loom/release/deps/gate-0a1b)";
        let (binary, path) = program(Path::new("w"), line).expect("a program");
        assert_eq!(binary, "gate");
        assert_eq!(path, Path::new("w/target-loom/release/deps/gate-0a1b"));
        assert!(program(Path::new("w"), "  Executable unittests src/lib.rs (t/a-1)").is_none());
    }

    #[test]
    fn planted_faults_are_found_in_core() {
        let mut tree = Tree::default();
        let text =
            "fn f() { if mutant(\"L4a\") {} }\n// mutant(\"L9\")\nfn mutant(name: &str) {}\n";
        tree.insert("core/src/a.rs", text);
        tree.insert("loom-tests/tests/a.rs", "fn f() { mutant(\"L5\"); }");
        assert_eq!(planted(&tree), ["L4a"]);
    }

    #[test]
    fn the_first_panic_counts() {
        let output = "running 1 test\nthread 'l4' panicked at a.rs:1:2:\na task sleeps\n  left: 0\n\
            note: run with\nthread 'l4' panicked at b.rs:1:2:\nin a destructor\n";
        assert_eq!(first_panic(output), "a task sleeps\n  left: 0");
        assert_eq!(first_panic("running 1 test\n"), "");
    }

    #[test]
    fn every_job_is_reported_once() {
        let run = || Run { end: End::Success, output: String::new(), seconds: 0.0 };
        let mut seen = Vec::new();
        side_by_side((0..50).collect(), |_| run(), |job, _| seen.push(job));
        seen.sort_unstable();
        assert_eq!(seen, (0..50).collect::<Vec<_>>());
    }
}
