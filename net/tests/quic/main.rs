//! The QUIC shell over loopback, with toy sessions in the place of real ones.

mod echo;
mod frames;
mod server;

mod connecting;
mod ending;
mod flowing;
