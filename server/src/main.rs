//! The `slip` command.
#![forbid(unsafe_code)]

mod cli;
mod exec;
mod report;

fn main() {}
