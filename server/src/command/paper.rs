//! Completion scripts and manual pages, both from the command tree.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::report::{Exit, Report};
use crate::stop::note;

/// Writes a shell's completion script to standard output.
pub(super) fn completions(shell: Shell) -> Result<Exit, Report> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "slip", &mut script);
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(&script).and_then(|()| stdout.flush());
    written.map_err(|error| Report::output(&error))?;
    Ok(Exit::Done)
}

/// Writes a manual page for each command into a directory.
pub(super) fn manual(dir: &Path) -> Result<Exit, Report> {
    let failed = |error: io::Error| {
        Report::environment(
            format!("manual pages cannot be written to {}: {error}", dir.display()),
            "name a directory that you may write",
        )
    };
    fs::create_dir_all(dir).map_err(failed)?;
    let mut tree = Cli::command().name("slip");
    tree.build();
    let count = page(&tree, "slip", dir).map_err(failed)?;
    note(&format!("{count} manual pages are in {}", dir.display()));
    Ok(Exit::Done)
}

/// Writes the page of a command and of those below it; returns how many.
fn page(command: &clap::Command, name: &str, dir: &Path) -> io::Result<usize> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name).render(&mut text)?;
    fs::write(dir.join(format!("{name}.1")), text)?;
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    let below = below.filter(|below| below.get_name() != "help");
    below
        .map(|below| page(below, &format!("{name}-{}", below.get_name()), dir))
        .sum::<io::Result<usize>>()
        .map(|n| n + 1)
}
