//! Workers and clients for the slipswitch dispatch engine.
