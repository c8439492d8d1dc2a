//! The slipswitch wire: protocol state machines and the QUIC shell.
