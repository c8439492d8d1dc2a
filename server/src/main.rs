//! The `slip` command.

fn main() {}
