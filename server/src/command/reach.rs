//! Which server a command speaks to, and how it gets there.

use std::time::Duration;

use slipswitch::profile::{DevProfile, ProfileError};
use slipswitch::{Client, ConnectOptions};

use super::failing;
use crate::cli::ServerArgs;
use crate::report::{Exit, Fault, Report};

/// How long a dial may take before a command gives up.
const DIAL_MAX: Duration = Duration::from_secs(3);

/// A server that was named, or the development server of this user.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    options: ConnectOptions,
}

impl Reach {
    /// Finds out which server is meant.
    pub(crate) fn new(args: ServerArgs) -> Result<Self, Report> {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let options = match (given(args.address), given(args.fingerprint)) {
            (Some(address), Some(fingerprint)) => {
                let fingerprint = fingerprint.parse().map_err(|error| {
                    Report::input(
                        format!("--fingerprint is wrong: {error}"),
                        "copy what `slip serve` printed",
                    )
                })?;
                if !address.contains(':') {
                    return Err(Report::input(
                        format!("--address {address:?} has no port"),
                        "write it as HOST:PORT",
                    ));
                }
                ConnectOptions::new(address, fingerprint)
            }
            (Some(_), None) => return Err(half("--address", "--fingerprint")),
            (None, Some(_)) => return Err(half("--fingerprint", "--address")),
            (None, None) => {
                DevProfile::read().map_err(|error| no_note(&error))?;
                ConnectOptions::dev()
            }
        };
        Ok(Self { options: options.sdk_name("slip").dial_timeout(DIAL_MAX) })
    }

    /// Returns the options for a worker.
    pub(crate) fn options(&self) -> ConnectOptions {
        self.options.clone()
    }

    /// Connects a client.
    pub(crate) async fn client(&self) -> Result<Client, Report> {
        Client::connect(self.options()).await.map_err(|error| failing::connect(&error))
    }
}

fn half(given: &str, missing: &str) -> Report {
    Report::input(
        format!("{given} is given and {missing} is not"),
        "give both, or neither to reach the server of `slip dev`",
    )
}

/// The note of the development server cannot be used.
pub(super) fn no_note(error: &ProfileError) -> Report {
    let (exit, fault) = match error {
        ProfileError::Missing { .. } => (Exit::Unreachable, Fault::Environment),
        _ => (Exit::Usage, Fault::Environment),
    };
    let advice = match error {
        ProfileError::NotOurs { .. } => "make the directory yours alone (mode 0700)",
        _ => "start a server with `slip dev`, or name one with --address and --fingerprint",
    };
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    Report::new(exit, fault, format!("{error}{}", cause.unwrap_or_default()), advice)
}
