//! Lengths on the wire: seven bits a byte, lowest first, at most five bytes.

use bytes::{BufMut, BytesMut};

/// The most bytes of a length.
pub(crate) const LENGTH_MAX: usize = 5;

/// What the start of some bytes says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// A value, and how many bytes it took.
    Value(u64, usize),
    /// More bytes are needed.
    Incomplete,
    /// Longer than allowed.
    TooLong,
}

/// Reads a length.
pub(crate) fn read(bytes: &[u8]) -> Read {
    let mut value = 0u64;
    for (place, byte) in bytes.iter().take(LENGTH_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        value |= bits.checked_shl((place as u32).saturating_mul(7)).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Read::Value(value, place.saturating_add(1));
        }
    }
    if bytes.len() < LENGTH_MAX { Read::Incomplete } else { Read::TooLong }
}

/// Writes a length.
pub(crate) fn write(mut value: u64, out: &mut BytesMut) {
    while value >= 0x80 {
        out.put_u8((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_round_trip() {
        for value in [0, 1, 127, 128, 300, 16_383, 16_384, u64::from(u32::MAX)] {
            let mut out = BytesMut::new();
            write(value, &mut out);
            assert_eq!(read(&out), Read::Value(value, out.len()));
            for cut in 0..out.len() {
                assert_eq!(read(&out[..cut]), Read::Incomplete);
            }
        }
    }

    #[test]
    fn more_than_five_bytes_are_too_long() {
        assert_eq!(read(&[0x80; 5]), Read::TooLong);
        assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]), Read::TooLong);
        assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0]), Read::Value(0, 5));
    }
}
