//! What is said about a line whose values are wrong: one sentence, as about everything else.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::report::Report;

/// Puts clap's error into a report, if it is about a value. Its own words for a wrong or missing
/// argument, and its help, are better.
pub(crate) fn of(error: &clap::Error) -> Option<Report> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let place = context(ContextKind::InvalidArg)?;
    match error.kind() {
        ErrorKind::ValueValidation => {
            let why = error.source().map(ToString::to_string)?;
            Some(Report::input(
                format!("{place} is wrong: {why}"),
                "correct it; --help has examples",
            ))
        }
        ErrorKind::InvalidValue => {
            let value = context(ContextKind::InvalidValue).filter(|value| !value.is_empty())?;
            let Some(ContextValue::Strings(allowed)) = error.get(ContextKind::ValidValue) else {
                return None;
            };
            Some(Report::input(
                format!("{place} cannot be {value:?}"),
                format!("give one of {}", allowed.join(", ")),
            ))
        }
        _ => None,
    }
}
