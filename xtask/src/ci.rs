//! The one test command: every step in its order, its time, and one line of counts at the end.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use crate::out::say;
use crate::process::{self, End};
use crate::tally::Tally;
use crate::{bugs, clock, model, tidy};

const TESTING: &str = "slipswitch-server/testing";
const EXAMPLE_LIMIT: Duration = Duration::from_secs(120);

/// A step: a name, what it shows, and how it is done.
struct Step {
    name: &'static str,
    about: &'static str,
    how: How,
}

enum How {
    /// One command that is green or red.
    Command { words: &'static [&'static str], env: Option<(&'static str, &'static str)> },
    /// Something that counts by itself.
    Own { words: &'static str, run: fn(&Path) -> Verdict },
}

/// What a step says about itself.
struct Verdict {
    tally: Tally,
    /// Why it, or part of it, was left out.
    note: Option<String>,
    /// What the steps that need its build must know.
    built: bool,
}

impl From<Tally> for Verdict {
    fn from(tally: Tally) -> Self {
        Self { tally, note: None, built: true }
    }
}

/// Whose programs doctests and examples run: without them they have nothing to say.
const NEED_BUILD: [&str; 2] = ["doctests", "examples"];

const STEPS: [Step; 12] = [
    Step {
        name: "fmt",
        about: "the formatter has nothing to change",
        how: How::Command { words: &["cargo", "fmt", "--all", "--", "--check"], env: None },
    },
    Step {
        name: "tidy",
        about: "the rules of the house, and the memory-edge table against the code",
        how: How::Own { words: "cargo xtask tidy", run: |root| tidy::report(root).into() },
    },
    Step {
        name: "bugs",
        about: "every known bug of a part that exists has its test",
        how: How::Own { words: "cargo xtask bugs", run: known_bugs },
    },
    Step {
        name: "clippy",
        about: "every target, warnings denied",
        how: How::Command {
            words: &[
                "cargo",
                "clippy",
                "--locked",
                "--workspace",
                "--all-targets",
                "--features",
                TESTING,
                "--",
                "-D",
                "warnings",
            ],
            env: None,
        },
    },
    Step {
        name: "docs",
        about: "the documentation builds, warnings denied",
        how: How::Command {
            words: &["cargo", "doc", "--workspace", "--no-deps", "--features", TESTING],
            env: Some(("RUSTDOCFLAGS", "-D warnings")),
        },
    },
    Step {
        name: "tests",
        about: "unit, integration, bug and end-to-end tests",
        how: How::Own {
            words: "cargo nextest run --workspace --features slipswitch-server/testing",
            run: tests,
        },
    },
    Step {
        name: "doctests",
        about: "the examples in the documentation",
        how: How::Own {
            words: "cargo test --workspace --doc --features slipswitch-server/testing",
            run: doctests,
        },
    },
    Step {
        name: "examples",
        about: "the programs in server/examples run to their end",
        how: How::Own {
            words: "cargo run -p slipswitch-server --features testing --example NAME",
            run: examples,
        },
    },
    Step {
        name: "models",
        about: "hand-offs between threads, every interleaving",
        how: How::Own {
            words: "cargo xtask loom --quick",
            run: |root| model::models(root, true, None).into(),
        },
    },
    Step {
        name: "mutants",
        about: "each planted fault is found by its model",
        how: How::Own {
            words: "cargo xtask loom-mutants",
            run: |root| model::mutants(root, None).into(),
        },
    },
    Step {
        name: "bare",
        about: "the protocol builds without its transport",
        how: How::Command {
            words: &["cargo", "check", "-p", "slipswitch-net", "--no-default-features"],
            env: None,
        },
    },
    Step {
        name: "deny",
        about: "version floors, banned crates, licences, sources",
        how: How::Own { words: "cargo deny --all-features check bans licenses sources", run: deny },
    },
];

/// Runs the named steps, or all; true if nothing is red.
pub(crate) fn run(root: &Path, args: &[&str]) -> bool {
    if args.contains(&"--list") {
        for step in &STEPS {
            say(&format!("{:<9} {}\n          {}", step.name, step.about, step.repeat()));
        }
        return true;
    }
    let stop = args.contains(&"--stop");
    let names: Vec<&str> = args.iter().copied().filter(|word| *word != "--stop").collect();
    let known = |name: &&str| STEPS.iter().any(|step| step.name == *name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        say(&format!("no step is called {name}; the steps are {}", all.join(", ")));
        return false;
    }
    let wanted = STEPS.iter().filter(|step| names.is_empty() || names.contains(&step.name));
    steps(root, wanted, stop)
}

fn steps<'a>(root: &Path, wanted: impl Iterator<Item = &'a Step>, stop: bool) -> bool {
    let begin = clock::now();
    let mut total = Tally::default();
    let mut summary = Vec::new();
    let mut built = true;
    for step in wanted {
        say(&format!("\n==> {}: {}\n    {}", step.name, step.about, step.repeat()));
        let start = clock::now();
        let verdict = if built || !NEED_BUILD.contains(&step.name) {
            step.run(root)
        } else {
            skipped("the tests did not build")
        };
        built &= verdict.built;
        let Verdict { tally, note, .. } = verdict;
        let word = match tally {
            Tally { failed: 1.., .. } => "red",
            Tally { passed: 0, skipped: 1.., .. } => "SKIPPED",
            _ => "green",
        };
        let note = note.map_or_else(String::new, |note| format!(" ({note})"));
        let seconds = start.elapsed().as_secs_f64();
        let line = format!("{:<9} {word:<7} {seconds:7.1} s  {}{note}", step.name, tally.line());
        say(&format!("<== {line}"));
        if !tally.green() {
            say(&format!("    alone: cargo xtask ci {}\n    or:    {}", step.name, step.repeat()));
        }
        summary.push(line);
        total.add(tally);
        if stop && !tally.green() {
            break;
        }
    }
    say(&format!("\n{}", summary.join("\n")));
    say(&format!("all of it {:.1} s", begin.elapsed().as_secs_f64()));
    if !total.green() {
        say("a red step is repeated alone by `cargo xtask ci STEP`");
    }
    say(&total.line());
    total.green()
}

impl Step {
    /// The command that does this step alone, as one types it.
    fn repeat(&self) -> String {
        match &self.how {
            How::Command { words, env: None } => words.join(" "),
            How::Command { words, env: Some((name, value)) } => {
                format!("{name}=\"{value}\" {}", words.join(" "))
            }
            How::Own { words, .. } => (*words).to_owned(),
        }
    }

    fn run(&self, root: &Path) -> Verdict {
        match &self.how {
            How::Command { words, env } => {
                let mut command = process::command(root, words);
                command.envs(env.iter().copied());
                let end = process::run(command, |_| {});
                Tally::check(end == End::Success).into()
            }
            How::Own { run, .. } => run(root),
        }
    }
}

fn skipped(why: &str) -> Verdict {
    Verdict { tally: Tally::skip(), note: Some(why.to_owned()), built: true }
}

/// Runs a command that reports counts; one that ends red without a red count is one failure.
fn counted(root: &Path, words: &[&str]) -> Verdict {
    let mut tally = Tally::default();
    let mut heard = false;
    let end = process::run(process::command(root, words), |line| {
        if let Some(counts) = Tally::read(line) {
            tally.add(counts);
            heard = true;
        }
    });
    if end != End::Success && tally.green() {
        tally.add(Tally::check(false));
    }
    Verdict { tally, note: None, built: heard || end == End::Success }
}

fn tests(root: &Path) -> Verdict {
    if process::is_there(root, "cargo-nextest") {
        let words =
            ["cargo", "nextest", "run", "--workspace", "--features", TESTING, "--no-fail-fast"];
        return counted(root, &words);
    }
    say("cargo-nextest is not there (.ci/run installs it): the built-in harness runs the tests");
    let words =
        ["cargo", "test", "--workspace", "--all-targets", "--features", TESTING, "--no-fail-fast"];
    counted(root, &words)
}

fn doctests(root: &Path) -> Verdict {
    counted(
        root,
        &["cargo", "test", "--workspace", "--doc", "--features", TESTING, "--no-fail-fast"],
    )
}

fn examples(root: &Path) -> Verdict {
    let mut names: Vec<String> = fs::read_dir(root.join("server/examples"))
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            entry.ok()?.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned)
        })
        .collect();
    names.sort();
    if names.is_empty() {
        return skipped("server/examples holds none");
    }
    // The same selection as the tests, so that nothing is built twice.
    let words = ["cargo", "build", "--workspace", "--examples", "--features", TESTING];
    if process::run(process::command(root, &words), |_| {}) != End::Success {
        return Tally::check(false).into();
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut tally = Tally::default();
    for name in &names {
        let program = root.join(&target).join("debug/examples").join(name);
        let start = clock::now();
        let command = process::command(root, &[&program.to_string_lossy()]);
        let (end, output) = process::capture(command, EXAMPLE_LIMIT);
        let word = match end {
            End::Success => "ok",
            End::Failure => "FAILED",
            End::Absent => "cannot be started",
            End::TimedOut => "did not end",
        };
        say(output.trim_end());
        say(&format!("example {name}: {word} in {:.1} s", start.elapsed().as_secs_f64()));
        tally.add(Tally::check(end == End::Success));
    }
    tally.into()
}

fn deny(root: &Path) -> Verdict {
    if !process::is_there(root, "cargo-deny") {
        return skipped("cargo-deny is not there; .ci/run installs it");
    }
    let words = ["cargo-deny", "--all-features", "check", "bans", "licenses", "sources"];
    let end = process::run(process::command(root, &words), |_| {});
    Tally::check(end == End::Success).into()
}

fn known_bugs(root: &Path) -> Verdict {
    bugs::report(root).into()
}
