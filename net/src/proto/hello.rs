//! What two versions of the protocol agree upon.

use super::code::WireCode;
use super::frame::ProtocolError;

/// The version that this build speaks.
pub const PROTO_VERSION: u32 = 1;

/// An optional part of the protocol, one bit each. Both sides must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// `Submit.wait`: the outcome comes without an Await.
    Wait,
    /// Payloads on streams of their own.
    PayloadStreams,
}

impl Feature {
    /// Its bit.
    #[must_use]
    pub const fn bit(self) -> u64 {
        match self {
            Self::Wait => 1,
            Self::PayloadStreams => 2,
        }
    }

    /// The bits that this build knows.
    pub const ALL: u64 = Self::Wait.bit() | Self::PayloadStreams.bit();
}

/// The features that both sides know.
#[must_use]
pub const fn agree_features(theirs: u64) -> u64 {
    theirs & Feature::ALL
}

/// The highest version that both sides speak.
///
/// # Errors
///
/// There is none.
pub fn agree_version(min: u32, max: u32) -> Result<u32, ProtocolError> {
    if min <= PROTO_VERSION && PROTO_VERSION <= max {
        return Ok(PROTO_VERSION);
    }
    let message = format!("this server speaks version {PROTO_VERSION}, the client {min} to {max}");
    Err(ProtocolError::new(WireCode::VersionUnsupported, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_version_is_needed() {
        assert_eq!(agree_version(1, 1).ok(), Some(1));
        assert_eq!(agree_version(0, 9).ok(), Some(1));
        for (min, max) in [(2, 3), (0, 0), (9, 0)] {
            let refused = agree_version(min, max).map_err(|error| error.code());
            assert_eq!(refused, Err(WireCode::VersionUnsupported));
        }
    }

    #[test]
    fn features_are_the_common_bits() {
        assert_eq!(agree_features(u64::MAX), Feature::ALL);
        assert_eq!(agree_features(0), 0);
        assert_eq!(agree_features(1 << 40 | 1), 1);
    }
}
