//! The command `slip` as its users meet it: real processes, QUIC on loopback.

mod bad_input;
mod bed;
mod dealing;
mod demo;
mod listing;
mod operating;
mod paper;
mod serving;
mod submitting;
mod working;
