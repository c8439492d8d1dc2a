//! What a handler answers when it has no output.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use slipswitch_core::cut;

use crate::context::CancelReason;

/// The longest message of a failure in bytes; a longer one is cut.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// The longest code of a failure in bytes; a longer one is cut.
const CODE_BYTES_MAX: usize = 256;
/// The largest details of a failure in bytes; larger ones are left out.
pub const DETAILS_BYTES_MAX: usize = 16 * 1024;

/// How the engine goes on after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureClass {
    /// Spends one attempt; the task is tried again by its retry policy.
    Retryable,
    /// Ends the task: no further attempt can help.
    Terminal,
    /// The worker's surroundings failed, not the task: no attempt is spent.
    Infrastructure,
    /// The handler stopped because it was asked to.
    Cancelled,
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Retryable => "retryable failure",
            Self::Terminal => "terminal failure",
            Self::Infrastructure => "infrastructure loss",
            Self::Cancelled => "cancelled",
        })
    }
}

/// A typed failure of one attempt: class, code and message stay apart, nothing is inferred from
/// text.
///
/// Any error converts into a retryable failure with code `error`, so that `?` works in handlers.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use slipswitch::{Failure, FailureClass};
///
/// let busy = Failure::retryable("the bank is busy").after(Duration::from_secs(30));
/// assert_eq!(busy.class(), FailureClass::Retryable);
/// let refused = Failure::terminal("card refused").code("card-refused");
/// assert_eq!(refused.to_string(), "terminal failure card-refused: card refused");
///
/// fn parse(text: &str) -> Result<u32, Failure> {
///     Ok(text.parse()?)
/// }
/// assert_eq!(parse("x").unwrap_err().class(), FailureClass::Retryable);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    class: FailureClass,
    code: String,
    message: String,
    details: Bytes,
    retry_after: Option<Duration>,
}

impl Failure {
    /// A failure that may go away: the task is tried again.
    #[must_use]
    pub fn retryable(message: impl fmt::Display) -> Self {
        Self::new(FailureClass::Retryable, "error", message)
    }

    /// A failure that no further attempt can mend.
    #[must_use]
    pub fn terminal(message: impl fmt::Display) -> Self {
        Self::new(FailureClass::Terminal, "error", message)
    }

    /// The worker's surroundings failed (disk full, a device gone): the task is delivered again
    /// and no attempt is spent.
    #[must_use]
    pub fn infrastructure(message: impl fmt::Display) -> Self {
        Self::new(FailureClass::Infrastructure, "infrastructure", message)
    }

    /// The handler stopped because it was asked to.
    #[must_use]
    pub fn cancelled(reason: CancelReason) -> Self {
        Self::new(FailureClass::Cancelled, "cancelled", reason)
    }

    pub(crate) fn new(class: FailureClass, code: &str, message: impl fmt::Display) -> Self {
        let mut message = message.to_string();
        cut(&mut message, MESSAGE_BYTES_MAX);
        Self { class, code: code.to_owned(), message, details: Bytes::new(), retry_after: None }
    }

    /// Replaces the delay that the retry policy would choose. Only a retryable failure uses it.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Names the failure for programs: `card-refused`. What is over 256 bytes is cut off.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        cut(&mut self.code, CODE_BYTES_MAX);
        self
    }

    /// Adds bytes for whoever waits for the outcome. More than [`DETAILS_BYTES_MAX`] are left out.
    #[must_use]
    pub fn details(mut self, details: impl Into<Bytes>) -> Self {
        let details = details.into();
        if details.len() > DETAILS_BYTES_MAX {
            tracing::warn!(bytes = details.len(), "the details of a failure are over the limit");
        } else {
            self.details = details;
        }
        self
    }

    /// Returns how the engine goes on.
    #[must_use]
    pub const fn class(&self) -> FailureClass {
        self.class
    }

    /// Returns the code.
    #[must_use]
    pub fn code_text(&self) -> &str {
        &self.code
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the details, empty if there are none.
    #[must_use]
    pub const fn details_bytes(&self) -> &Bytes {
        &self.details
    }

    /// Returns the delay that replaces the policy's.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.class, self.code, self.message)
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::retryable(Chain(&error))
    }
}

/// An error and all that caused it, in one line.
pub(crate) struct Chain<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
