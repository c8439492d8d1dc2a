//! Behaviour of the engine through its public interface, by the sections of the specification.
#![expect(clippy::disallowed_types, reason = "tests stand outside the engine")]

mod bed;
mod credits;
mod drain;
mod leases;
mod oracle;
mod publishing;
mod registration;
mod scale;
mod scopes;
mod selection;
mod settlement;
mod tally;
mod waiting;
