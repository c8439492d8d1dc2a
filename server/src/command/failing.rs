//! What a failure of the SDK means to the person at the keyboard.

use std::error::Error;

use slipswitch::{
    ConfigError, ConnectError, Outcome, QueryError, Refusal, SubmitErrorKind, WireCode, WorkerError,
};

use super::reach;
use crate::report::{Exit, Fault, Report};

/// An error and what it came from, as one phrase.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some errors repeat what they came from.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// There is no session.
pub(crate) fn connect(error: &ConnectError) -> Report {
    let report = |exit, fault, advice: &str| Report::new(exit, fault, chain(error), advice);
    match error {
        ConnectError::Config(ConfigError::Profile(error)) => reach::no_note(error),
        ConnectError::Config(_) => report(Exit::Usage, Fault::Input, "correct the configuration"),
        ConnectError::Resolve { .. } => {
            report(Exit::Unreachable, Fault::Input, "check the host name in --address")
        }
        ConnectError::WrongCertificate { .. } => report(
            Exit::Denied,
            Fault::Input,
            "take the fingerprint that the server printed when it started; if it did not start \
             anew, somebody else answers at this address",
        ),
        ConnectError::VersionMismatch { .. } => {
            report(Exit::Denied, Fault::Input, "check that --address names a slipswitch server")
        }
        ConnectError::Unreachable { .. } | ConnectError::TimedOut { .. } => report(
            Exit::Unreachable,
            Fault::Environment,
            "start the server with `slip dev` or `slip serve`, or correct --address",
        ),
        ConnectError::Refused { source, .. } => refused(source),
        ConnectError::Local { .. } => {
            report(Exit::Failed, Fault::Environment, "free file descriptors or threads")
        }
        _ => report(Exit::Unreachable, Fault::Environment, "try again, and look at the server"),
    }
}

/// The server said no.
pub(crate) fn refused(refusal: &Refusal) -> Report {
    let what = format!("the server refused: {refusal}");
    let (exit, fault, advice) = match refusal.code {
        WireCode::InvalidName
        | WireCode::EmptyRegistration
        | WireCode::LimitExceeded
        | WireCode::Malformed => (Exit::Usage, Fault::Input, "correct what was sent"),
        WireCode::Unauthenticated | WireCode::PermissionDenied => {
            (Exit::Denied, Fault::Input, "ask whoever runs the server for the right to do this")
        }
        WireCode::NotFound => (
            Exit::NotFound,
            Fault::Input,
            "check the id; outcomes are kept for a while only, and a restart forgets them",
        ),
        WireCode::Conflict
        | WireCode::Stale
        | WireCode::StaleGeneration
        | WireCode::InvalidState
        | WireCode::Superseded => (Exit::Conflict, Fault::Input, "look at its state first"),
        WireCode::NoWorker => {
            (Exit::TryAgain, Fault::Environment, "start a worker, or let the task wait for one")
        }
        WireCode::NoCapacity => {
            (Exit::TryAgain, Fault::Environment, "add workers, or let the task wait")
        }
        WireCode::Draining => (Exit::TryAgain, Fault::Server, "try again when it is back"),
        WireCode::RateLimited | WireCode::QuotaExceeded | WireCode::StoreUnavailable => {
            (Exit::TryAgain, Fault::Server, "try again later")
        }
        WireCode::VersionUnsupported | WireCode::Unsupported => {
            (Exit::Usage, Fault::Input, "use versions of slip and server that go together")
        }
        _ => (Exit::Failed, Fault::Server, "look at the server's log"),
    };
    Report::new(exit, fault, what, advice)
}

/// Work was not accepted.
pub(crate) fn submit(kind: &SubmitErrorKind) -> Report {
    let what = chain(kind);
    match kind {
        SubmitErrorKind::Refused(refusal) => refused(refusal),
        SubmitErrorKind::TooLarge { .. } => Report::input(what, "send less, or a reference to it"),
        SubmitErrorKind::NotConnected { .. } => Report::new(
            Exit::Unreachable,
            Fault::Environment,
            format!("{what}; nothing was sent"),
            "start the server and try again",
        ),
        SubmitErrorKind::AnswerLost => Report::new(
            Exit::Unreachable,
            Fault::Environment,
            what,
            "look with `slip tasks list` before it is submitted again",
        ),
        SubmitErrorKind::Closed => {
            Report::new(Exit::Failed, Fault::Ours, what, "report this as a bug")
        }
        _ => Report::input(what, "correct it; `slip submit --help` has examples"),
    }
}

/// A question has no answer.
pub(crate) fn query(error: &QueryError) -> Report {
    let what = chain(error);
    match error {
        QueryError::Refused(refusal) => refused(refusal),
        QueryError::TimedOut { .. } => Report::new(
            Exit::Unreachable,
            Fault::Environment,
            what,
            "look whether the server is up and try again",
        ),
        QueryError::AnswerLost => Report::new(
            Exit::Unreachable,
            Fault::Environment,
            what,
            "look at the state before the command is given again",
        ),
        QueryError::Malformed { .. } => Report::new(
            Exit::Failed,
            Fault::Server,
            what,
            "use versions of slip and server that go together",
        ),
        _ => Report::new(Exit::Failed, Fault::Ours, what, "report this as a bug"),
    }
}

/// A worker ended without having been asked to.
pub(crate) fn worker(error: &WorkerError) -> Report {
    match error {
        WorkerError::Connect(error) => connect(error),
        WorkerError::Build(error) => {
            Report::input(chain(error), "correct it; `slip worker --help` has examples")
        }
        WorkerError::Thread(_) => Report::environment(chain(error), "free threads"),
        _ => Report::new(Exit::Failed, Fault::Ours, chain(error), "report this as a bug"),
    }
}

/// A task ended without a result.
pub(crate) fn task(outcome: &Outcome) -> Report {
    let (fault, advice) = match outcome.class() {
        "lost_deliveries" | "lost_offers" => (
            Fault::Handler,
            "its workers were lost with it in their hands: look at their logs".to_owned(),
        ),
        "expired" => {
            (Fault::Environment, "give it more time, or add workers to its pool".to_owned())
        }
        "cancelled" => (Fault::Input, "submit it again if it is still wanted".to_owned()),
        _ => (Fault::Handler, "correct its handler or its payload and submit it again".to_owned()),
    };
    let attempts = outcome.attempts();
    let mut what = format!(
        "{} ended as {} after {attempts} {}",
        outcome.task_id(),
        outcome.class(),
        if attempts == 1 { "attempt" } else { "attempts" },
    );
    for part in [outcome.code(), outcome.message()] {
        if !part.is_empty() {
            what = format!("{what}: {part}");
        }
    }
    Report::new(Exit::Failed, fault, what, advice)
}
