//! A server, workers and clients in one process, over QUIC on loopback.

mod bed;
mod faults;
mod handlers;
mod life;
mod loss;
mod serving;
