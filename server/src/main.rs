//! The `slip` command.
#![forbid(unsafe_code)]

mod cli;
mod command;
mod demo;
mod exec;
mod output;
mod report;
mod stop;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser};

use cli::{Cli, Staff};
use report::{Exit, Report};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if Staff::is_meant(std::env::args_os().nth(1).as_deref()) {
        return end(command::run_staff(Staff::parse()), ColorChoice::Auto);
    }
    let color = asked_color(std::env::args_os().skip(1));
    let parsed = Cli::command()
        .color(color)
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(refuse(&error, color).code()),
    };
    let color = cli.view.color;
    end(command::run(cli), color)
}

/// Says what there is to say at the end, and with which code.
fn end(ended: Result<Exit, Report>, color: ColorChoice) -> ExitCode {
    match ended {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(report) => {
            say(&report, color);
            ExitCode::from(report.exit.code())
        }
    }
}

/// Writes why a command ended without having done its work.
fn say(report: &Report, color: ColorChoice) {
    if report.is_quiet() {
        return;
    }
    let stderr = io::stderr();
    let mut stderr = stderr.lock();
    // Nobody is left to tell if this fails, too.
    let _ = if output::paints(color, stderr.is_terminal()) {
        writeln!(stderr, "\x1b[1;31merror:\x1b[0m {report}")
    } else {
        writeln!(stderr, "error: {report}")
    };
}

/// Answers a line that was not understood, or one that asks for help.
fn refuse(error: &clap::Error, color: ColorChoice) -> Exit {
    if let Some(report) = cli::refusal::of(error) {
        say(&report, color);
        return report.exit;
    }
    // A broken pipe: nobody reads the help.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done,
        _ => Exit::Usage,
    }
}

/// Finds `--color` before anything is parsed: what is said about a wrong line obeys it, too.
fn asked_color(args: impl Iterator<Item = std::ffi::OsString>) -> ColorChoice {
    let mut args = args.map_while(|arg| arg.into_string().ok());
    let mut choice = ColorChoice::Auto;
    while let Some(arg) = args.next() {
        let value = match arg.strip_prefix("--color") {
            Some("") => args.next(),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None if arg == "--" => break,
            None => None,
        };
        choice = value.and_then(|value| value.parse().ok()).unwrap_or(choice);
    }
    choice
}
