//! Durations and sizes as they are typed: `30s`, `64KiB`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A duration as typed: a number and `us`, `ms`, `s`, `m`, `h` or `d`, perhaps several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

/// A number of bytes as typed: a number and `B`, `KiB`, `MiB` or `GiB`; a bare number is bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

/// A text is not a duration or a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum InvalidUnit {
    /// Not a duration.
    #[error("{0:?} is not a duration; write it as 250ms, 30s, 5m or 1h30m")]
    Span(String),
    /// Not a size.
    #[error("{0:?} is not a size; write it as 512B, 64KiB or 1MiB")]
    Size(String),
}

impl FromStr for Span {
    type Err = InvalidUnit;

    fn from_str(text: &str) -> Result<Self, InvalidUnit> {
        let invalid = || InvalidUnit::Span(text.to_owned());
        let mut rest = text;
        let mut micros = 0u64;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(invalid)?;
            let (number, tail) = rest.split_at(digits);
            let unit_len = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(unit_len);
            let scale = match unit {
                "us" => 1,
                "ms" => 1000,
                "s" => 1_000_000,
                "m" => 60_000_000,
                "h" => 3_600_000_000,
                "d" => 86_400_000_000,
                _ => return Err(invalid()),
            };
            let number: u64 = number.parse().map_err(|_| invalid())?;
            micros = number
                .checked_mul(scale)
                .and_then(|part| micros.checked_add(part))
                .ok_or_else(invalid)?;
            rest = tail;
        }
        if text.is_empty() { Err(invalid()) } else { Ok(Self(Duration::from_micros(micros))) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        match micros {
            0 => f.write_str("0s"),
            _ if micros.is_multiple_of(60_000_000) => write!(f, "{}m", micros / 60_000_000),
            _ if micros.is_multiple_of(1_000_000) => write!(f, "{}s", micros / 1_000_000),
            _ if micros.is_multiple_of(1000) => write!(f, "{}ms", micros / 1000),
            _ => write!(f, "{micros}us"),
        }
    }
}

impl FromStr for Size {
    type Err = InvalidUnit;

    fn from_str(text: &str) -> Result<Self, InvalidUnit> {
        let invalid = || InvalidUnit::Size(text.to_owned());
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let scale: u64 = match unit {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(invalid()),
        };
        let number: u64 = number.parse().map_err(|_| invalid())?;
        number.checked_mul(scale).map(Self).ok_or_else(invalid)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0B"),
            bytes if bytes % (1 << 30) == 0 => write!(f, "{}GiB", bytes >> 30),
            bytes if bytes % (1 << 20) == 0 => write!(f, "{}MiB", bytes >> 20),
            bytes if bytes % (1 << 10) == 0 => write!(f, "{}KiB", bytes >> 10),
            bytes => write!(f, "{bytes}B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        let read = |text: &str| text.parse::<Span>().map(|span| span.0);
        assert_eq!(read("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(read("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(read("1h30m"), Ok(Duration::from_secs(5400)));
        for wrong in ["", "30", "s", "1.5s", "-1s", "3 s", "30sec", "99999999999999999d"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for text in ["250ms", "30s", "5m", "7us", "0s"] {
            assert_eq!(text.parse::<Span>().map(|span| span.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn sizes_are_read_and_written() {
        for text in ["64KiB", "1MiB", "2GiB", "100B"] {
            assert_eq!(text.parse::<Size>().map(|size| size.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("100".parse(), Ok(Size(100)));
        for wrong in ["", "KiB", "1.5KiB", "64kb", "-1", "99999999999GiB"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
