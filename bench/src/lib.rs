//! Benchmarks of slipswitch: the designs to beat behind one trait, a harness for several threads,
//! and the suites that the bench targets run.
//!
//! | command | what it shows |
//! |---|---|
//! | `cargo bench -p slipswitch-bench --bench track` | ours alone, one line an id |
//! | `cargo bench -p slipswitch-bench --bench compare` | ours against the rivals, as tables |
//! | `cargo bench -p slipswitch-bench --bench instr` | instructions an operation, against bounds |
//! | `cargo run --release -p slipswitch-bench --bin load` | tasks over QUIC, open loop |
//!
//! The harness is our own and not criterion, for three reasons. The figures that count are ratios,
//! and a ratio on a shared machine holds only between series that took turns in one run; criterion
//! measures one series after the other. Two threads that hold reservations while they select do
//! not fit its `iter`. And no time gates here: wall clocks of a shared machine must not; counts of
//! instructions do.
#![forbid(unsafe_code)]

pub mod baseline;
pub mod clock;
pub mod floor;
pub mod harness;
pub mod machine;
pub mod report;
pub mod turn;
