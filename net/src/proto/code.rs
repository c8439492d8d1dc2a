//! Typed errors as they are named on the wire.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal $(, retryable $retryable:literal)?;)*) => {
        /// Why something was refused. Numbers are never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u32)]
        pub enum WireCode {
            $($(#[$doc])* $name = $number,)*
        }

        impl WireCode {
            /// All codes, by number.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The number on the wire.
            #[must_use]
            pub const fn number(self) -> u32 {
                self as u32
            }

            /// The code of a number; one of a later version is none.
            #[must_use]
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The name on every surface.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Says whether the same request may succeed later.
            #[must_use]
            pub const fn is_retryable(self) -> bool {
                match self {
                    $(Self::$name => false $(|| $retryable)?,)*
                }
            }
        }
    };
}

codes! {
    /// A name has a form that is not allowed.
    InvalidName = 1;
    /// A registration could never be reached.
    EmptyRegistration = 2;
    /// A number or size is over its limit.
    LimitExceeded = 3;
    /// Nobody knows who is asking.
    Unauthenticated = 4;
    /// The asking principal may not do this.
    PermissionDenied = 5;
    /// There is no such thing, or it is not the asking principal's to see.
    NotFound = 6;
    /// The namespace lives elsewhere.
    PlacementRefused = 7;
    /// The server is leaving.
    Draining = 8, retryable true;
    /// Nobody serves the pool.
    NoWorker = 9, retryable true;
    /// Those who serve the pool are full.
    NoCapacity = 10, retryable true;
    /// Too many in a short time.
    RateLimited = 11, retryable true;
    /// Too much waits already.
    QuotaExceeded = 12, retryable true;
    /// Something else exists under that id.
    Conflict = 13;
    /// An older generation than the owner's.
    StaleGeneration = 14;
    /// Overtaken by something else.
    Stale = 15;
    /// No such delivery.
    UnknownLease = 16;
    /// Not possible in this state.
    InvalidState = 17;
    /// No common version.
    VersionUnsupported = 18;
    /// This server does not do that.
    Unsupported = 19;
    /// The peer broke the protocol.
    ProtocolViolation = 20;
    /// The store cannot be written.
    StoreUnavailable = 21, retryable true;
    /// Another server owns this.
    NotOwner = 22, retryable true;
    /// The time for it is over.
    DeadlineExceeded = 23;
    /// The same instance came back on another session.
    Superseded = 24;
    /// It cannot be read.
    Malformed = 25;
    /// The server's own fault.
    Internal = 26, retryable true;
}

impl fmt::Display for WireCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_dense_and_round_trip() {
        for (at, code) in WireCode::ALL.iter().enumerate() {
            assert_eq!(code.number() as usize, at + 1);
            assert_eq!(WireCode::from_number(code.number()), Some(*code));
        }
        assert_eq!(WireCode::from_number(0), None);
        assert_eq!(WireCode::from_number(27), None);
    }

    #[test]
    fn what_may_be_retried_is_as_the_table_says() {
        let retryable: Vec<u32> =
            WireCode::ALL.iter().filter(|c| c.is_retryable()).map(|c| c.number()).collect();
        assert_eq!(retryable, [8, 9, 10, 11, 12, 21, 22, 26]);
    }
}
