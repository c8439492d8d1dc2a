//! Requests that wait for the server, and what becomes of them.

use std::collections::BTreeMap;

use slipswitch_core::TaskId;

use super::request::{Accepted, AckSender, AnswerSender, Command, Question, Sink};
use crate::error::{QueryError, Refusal, SubmitErrorKind};
use crate::task::OutcomeSender;

/// What waits for an answer of the server.
pub(super) enum Open {
    Submit {
        ack: Option<AckSender<Accepted>>,
        outcome: Option<Sink>,
    },
    Batch {
        ack: Option<AckSender<Vec<Accepted>>>,
        outcomes: Vec<OutcomeSender>,
    },
    /// The task was accepted; its outcome is to come.
    Outcome {
        id: TaskId,
        sink: Sink,
    },
    /// As `Outcome`, for the tasks of a batch.
    Outcomes(BTreeMap<TaskId, OutcomeSender>),
    Ask {
        question: Box<Question>,
        answer: AnswerSender,
    },
}

pub(super) const BAD_ID: QueryError = QueryError::Malformed { what: "a task id in the answer" };

/// Nothing of it was sent.
pub(super) fn fail_unsent(
    command: Command,
    submit: impl Fn() -> SubmitErrorKind,
    query: impl Fn() -> QueryError,
) {
    // Whoever waited may have given up, here and below.
    match command {
        Command::Submit(submission) => {
            if let Some(ack) = submission.ack {
                drop(ack.send(Err(submit())));
            }
            if let Some(sink) = submission.outcome {
                sink.refused(submit());
            }
        }
        Command::Batch(batch) => drop(batch.ack.send(Err(submit()))),
        Command::Watch(_, outcome) => drop(outcome.send(Err(query()))),
        Command::Ask(_, answer) => drop(answer.send(Err(query()))),
        Command::Close(done) => {
            done.send(()).ok();
        }
    }
}

/// It was sent, and there will be no answer.
pub(super) fn fail_sent(open: Open, error: &QueryError) {
    match open {
        Open::Submit { ack, outcome } => {
            if let Some(ack) = ack {
                drop(ack.send(Err(SubmitErrorKind::AnswerLost)));
            }
            if let Some(sink) = outcome {
                sink.refused(SubmitErrorKind::AnswerLost);
            }
        }
        Open::Batch { ack, .. } => {
            if let Some(ack) = ack {
                drop(ack.send(Err(SubmitErrorKind::AnswerLost)));
            }
        }
        Open::Outcome { id, sink } => sink.unknown(id, error.clone()),
        Open::Outcomes(waiting) => {
            for outcome in waiting.into_values() {
                drop(outcome.send(Err(error.clone())));
            }
        }
        Open::Ask { answer, .. } => drop(answer.send(Err(error.clone()))),
    }
}

/// The server refused it without an answer of its own.
pub(super) fn refuse_sent(open: Open, refusal: Refusal) {
    match open {
        Open::Submit { ack, outcome } => {
            if let Some(ack) = ack {
                drop(ack.send(Err(refusal.clone().into())));
            }
            if let Some(sink) = outcome {
                sink.refused(refusal.into());
            }
        }
        Open::Batch { ack: Some(ack), .. } => drop(ack.send(Err(refusal.into()))),
        open => fail_sent(open, &QueryError::Refused(refusal)),
    }
}
