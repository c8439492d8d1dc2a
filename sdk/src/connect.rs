//! Where a server is and how to know it.

use std::fmt;
use std::time::Duration;

use slipswitch_net::quic::{Fingerprint, InvalidFingerprint};
use thiserror::Error;

use crate::backoff::Backoff;
use crate::profile::{DevProfile, ProfileError};

/// The variable that holds the server's address.
pub const ENV_ADDRESS: &str = "SLIP_ADDRESS";
/// The variable that holds the fingerprint of the server's certificate.
pub const ENV_FINGERPRINT: &str = "SLIP_FINGERPRINT";

/// The most lanes that a session opens.
pub const LANES_MAX: u8 = 8;

/// How to reach a server.
///
/// # Examples
///
/// ```
/// use slipswitch::ConnectOptions;
///
/// let options = ConnectOptions::new("127.0.0.1:4777", "ab".repeat(32).parse()?);
/// assert_eq!(options.address(), Some("127.0.0.1:4777"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    pub(crate) target: Target,
    pub(crate) sdk_name: String,
    pub(crate) lanes: u8,
    pub(crate) dial_timeout: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) backoff: Backoff,
}

/// Where the address comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// It was given.
    Fixed { address: String, fingerprint: Fingerprint },
    /// It is read from the development server's note, anew for each dial: a server that was
    /// started again has another certificate.
    Dev,
}

/// The address or fingerprint cannot be used. The caller's configuration is at fault.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A fingerprint has the wrong form.
    #[error("{place} is wrong")]
    Fingerprint {
        /// Where it was found.
        place: &'static str,
        /// What is wrong.
        source: InvalidFingerprint,
    },
    /// One of two variables is set, the other is not.
    #[error("{set} is set, but {missing} is not; set both, or neither to use `slip dev`")]
    Half {
        /// The variable that is set.
        set: &'static str,
        /// The one that is missing.
        missing: &'static str,
    },
    /// The note of the development server cannot be used.
    #[error("no server was named, and the development server's note cannot be used")]
    Profile(#[from] ProfileError),
}

impl ConnectOptions {
    /// Names a server by `host:port` and the SHA-256 fingerprint of its certificate.
    #[must_use]
    pub fn new(address: impl Into<String>, fingerprint: Fingerprint) -> Self {
        Self::to(Target::Fixed { address: address.into(), fingerprint })
    }

    /// Finds the development server of the same user on this machine, anew for each dial.
    #[must_use]
    pub fn dev() -> Self {
        Self::to(Target::Dev)
    }

    fn to(target: Target) -> Self {
        Self {
            target,
            sdk_name: "slipswitch-rust".to_owned(),
            lanes: 1,
            dial_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(10),
            backoff: Backoff::default(),
        }
    }

    /// Reads `SLIP_ADDRESS` and `SLIP_FINGERPRINT`; if neither is set, finds the development
    /// server of the same user.
    ///
    /// # Errors
    ///
    /// When a variable is wrong or missing, or when no development server left its note.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_variables(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from_variables(get: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        match (get(ENV_ADDRESS), get(ENV_FINGERPRINT)) {
            (Some(address), Some(fingerprint)) => {
                let place = ENV_FINGERPRINT;
                let fingerprint = fingerprint
                    .parse()
                    .map_err(|source| ConfigError::Fingerprint { place, source })?;
                Ok(Self::new(address, fingerprint))
            }
            (Some(_), None) => {
                Err(ConfigError::Half { set: ENV_ADDRESS, missing: ENV_FINGERPRINT })
            }
            (None, Some(_)) => {
                Err(ConfigError::Half { set: ENV_FINGERPRINT, missing: ENV_ADDRESS })
            }
            (None, None) => {
                DevProfile::read()?;
                Ok(Self::dev())
            }
        }
    }

    /// Names the program towards the server.
    #[must_use]
    pub fn sdk_name(mut self, name: impl Into<String>) -> Self {
        self.sdk_name = name.into();
        self
    }

    /// Sets how many lanes carry tasks, 1 to [`LANES_MAX`]; other numbers are moved into it.
    #[must_use]
    pub fn lanes(mut self, lanes: u8) -> Self {
        self.lanes = lanes.clamp(1, LANES_MAX);
        self
    }

    /// Sets how long one dial may take, the server's greeting included. 5 s by default.
    #[must_use]
    pub fn dial_timeout(mut self, limit: Duration) -> Self {
        self.dial_timeout = limit;
        self
    }

    /// Sets how long a submission or query may wait for the server's answer. 10 s by default.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// Sets when to dial again after a loss.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Returns the address, if it was given and is not looked up at each dial.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        match &self.target {
            Target::Fixed { address, .. } => Some(address),
            Target::Dev => None,
        }
    }
}

impl Target {
    /// Finds out where to dial now.
    pub(crate) fn resolve(&self) -> Result<(String, Fingerprint), ConfigError> {
        match self {
            Self::Fixed { address, fingerprint } => Ok((address.clone(), *fingerprint)),
            Self::Dev => {
                let note = DevProfile::read()?;
                let place = "the fingerprint in the development server's note";
                let fingerprint = note
                    .fingerprint
                    .parse()
                    .map_err(|source| ConfigError::Fingerprint { place, source })?;
                Ok((note.address, fingerprint))
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { address, .. } => f.write_str(address),
            Self::Dev => f.write_str("the development server"),
        }
    }
}

#[cfg(test)]
mod tests;
