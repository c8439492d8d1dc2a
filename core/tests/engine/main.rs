//! Behaviour of the engine through its public interface, by the sections of the specification.
#![expect(clippy::disallowed_types, reason = "tests stand outside the engine")]

mod batches;
mod bed;
mod cancel;
mod credits;
mod dead;
mod drain;
mod leases;
mod life;
mod oracle;
mod publishing;
mod registration;
mod scale;
mod scopes;
mod selection;
mod settlement;
mod tally;
mod time;
mod waiting;
