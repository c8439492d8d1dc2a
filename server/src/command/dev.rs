//! `slip dev`: a server for this user and machine, found without a flag.

use slipswitch::profile::DevProfile;
use tracing::Level;

use super::serve::{Listening, log, start, until_drained};
use super::{reach, runtime};
use crate::cli::{DevArgs, Format};
use crate::output;
use crate::report::{Exit, Report};
use crate::stop::{Interrupts, note};

const DRAIN_MAX: std::time::Duration = std::time::Duration::from_secs(25);

/// Serves until the first interrupt, with a note for the other commands of this user.
pub(super) fn run(args: &DevArgs, format: Format) -> Result<Exit, Report> {
    log(Level::WARN);
    runtime()?.block_on(async {
        let interrupts = Interrupts::listen()?;
        let server = start(args.listen, args.io_threads)?;
        let address = server.local_addr().to_string();
        let profile = DevProfile::new(address, server.fingerprint().to_string());
        let path = profile.write().map_err(|error| reach::no_note(&error))?;
        let _note = Note { profile, path };
        match format {
            Format::Table => output::text(&welcome(&server.local_addr().to_string()))?,
            Format::Json | Format::Jsonl => output::object(&Listening::of(&server))?,
        }
        until_drained(server, interrupts, DRAIN_MAX).await
    })
}

/// The note for other commands, removed at the end.
struct Note {
    profile: DevProfile,
    path: std::path::PathBuf,
}

impl Drop for Note {
    fn drop(&mut self) {
        self.profile.remove_from(&self.path);
        if self.path.exists() {
            note("another server's note was left in place");
        }
    }
}

fn welcome(address: &str) -> String {
    format!(
        "slip dev listens on {address}; tasks live in memory and go with it. In other terminals:\n\
         \n  slip worker --type shout --exec 'tr a-z A-Z'\
         \n  slip submit shout '\"hello\"' --wait\
         \n  slip workers list\n\
         \nCtrl-C drains and ends it."
    )
}
