//! The slipswitch dispatch engine: registry, selection, credits, leases.
