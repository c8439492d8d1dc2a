//! Identifiers. Each is a type of its own, so that two cannot be swapped.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TASK_PREFIX: &str = "task_";

macro_rules! bytes16 {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Wraps sixteen bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Returns the sixteen bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            /// Reads sixteen bytes from a slice of exactly that length.
            #[must_use]
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:032x})", stringify!($name), u128::from_be_bytes(self.0))
            }
        }
    };
}

bytes16! {
    /// A task. Ordered by creation when the bytes are a version 7 UUID.
    TaskId
}
bytes16! {
    /// One authenticated connection, random for each.
    SessionId
}
bytes16! {
    /// One worker process, random for each start.
    InstanceId
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        f.write_str(TASK_PREFIX)?;
        for digit in (0..26).rev() {
            let index = ((value >> (digit * 5)) & 31) as usize;
            fmt::Write::write_char(f, char::from(BASE32[index]))?;
        }
        Ok(())
    }
}

/// A text is not a task id: `task_` and 26 base-32 digits were expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a task id: expected `task_` and 26 base-32 digits")]
pub struct InvalidTaskId;

impl FromStr for TaskId {
    type Err = InvalidTaskId;

    fn from_str(text: &str) -> Result<Self, InvalidTaskId> {
        let digits = text.strip_prefix(TASK_PREFIX).ok_or(InvalidTaskId)?;
        if digits.len() != 26 {
            return Err(InvalidTaskId);
        }
        let mut value: u128 = 0;
        for (place, byte) in digits.bytes().enumerate() {
            let lower = byte.to_ascii_lowercase();
            let digit = BASE32.iter().position(|&d| d == lower).ok_or(InvalidTaskId)?;
            // 26 digits hold 130 bits: the first may only use three of its five.
            if place == 0 && digit > 7 {
                return Err(InvalidTaskId);
            }
            value = (value << 5) | digit as u128;
        }
        Ok(Self(value.to_be_bytes()))
    }
}

/// A registered worker: rising from 1, never reused in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(u64);

impl WorkerId {
    /// Wraps a number.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// Returns the number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The generation of a snapshot: rises with every publish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// Wraps a number.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// Returns the number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// One delivery of a task to one worker, as it is named on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// Where the lease lives: slot and reuse count. Says nothing about order.
    pub id: u64,
    /// The fencing number: incarnation in the high half, a rising counter in the low half.
    pub epoch: u64,
}
