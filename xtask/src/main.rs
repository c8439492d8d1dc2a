//! Development tasks, run as `cargo xtask TASK`. `cargo xtask ci` is the one test command.
#![forbid(unsafe_code)]

mod bugs;
mod ci;
mod clock;
mod model;
mod out;
mod process;
mod rows;
mod tally;
mod tidy;
mod tree;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use out::say;

const HELP: &str = "\
cargo xtask TASK

  ci [STEP...]           the test command: every step, or the named ones
     --list              says which steps there are
     --stop              ends at the first red step
  tidy                   the rules of the house that a machine can check
  bugs                   known bugs of this kind: which have their test
  loom [--quick] [NAME]  every model, or those whose name contains NAME
  loom-mutants [NAME]    every planted fault, or those whose name starts with NAME";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let root = root();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let green = match words.as_slice() {
        ["ci", rest @ ..] => ci::run(&root, rest),
        ["tidy"] => tidy::report(&root).failed == 0,
        ["bugs"] => bugs::report(&root).failed == 0,
        ["loom", "--quick", name @ ..] => model::models(&root, true, name.first().copied()).green(),
        ["loom", name @ ..] => model::models(&root, false, name.first().copied()).green(),
        ["loom-mutants", name @ ..] => model::mutants(&root, name.first().copied()).green(),
        [] | ["help" | "-h" | "--help"] => {
            say(HELP);
            true
        }
        [other, ..] => {
            say(&format!("no task is called {other}\n\n{HELP}"));
            return ExitCode::from(2);
        }
    };
    if green { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The workspace: the folder above this crate's, as cargo says at run time.
fn root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    here.and_then(|dir| dir.parent().map(PathBuf::from)).unwrap_or_else(|| PathBuf::from("."))
}
