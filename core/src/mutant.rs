//! Planted faults for the models: each must be found by the model that names it.

/// Says whether the planted fault `name` is switched on; never outside `cfg(slipswitch_loom)`.
#[cfg(not(slipswitch_loom))]
#[inline(always)]
pub(crate) const fn mutant(_name: &str) -> bool {
    false
}

/// Says whether the planted fault `name` is switched on by `SLIPSWITCH_MUTANT`.
#[cfg(slipswitch_loom)]
pub(crate) fn mutant(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("SLIPSWITCH_MUTANT").ok()).as_deref() == Some(name)
}
