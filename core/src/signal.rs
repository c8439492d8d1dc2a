//! Bytes for whoever holds a lease, and what became of them.

use std::fmt;

use bytes::Bytes;

use crate::admission::Principal;
use crate::cell::CellFamily;
use crate::engine::{AdminError, Engine};
use crate::id::{TaskId, WorkerId};
use crate::inbox::{Batch, Inbox, Pushed};
use crate::limits::SIGNALS_MAX;
use crate::outcome::Notify;
use crate::sync::StdArc;
use crate::task::TaskState;
use crate::text::Text;
use crate::worker::{Note, Worker};

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SignalVerdict {
    /// The handler has it.
    Applied,
    /// The handler takes no signals.
    Unsupported,
    /// Nobody is at work on the task, or the delivery was over before the handler had it.
    Stale,
}

impl SignalVerdict {
    /// The word for the verdict on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Unsupported => "unsupported",
            Self::Stale => "stale",
        }
    }
}

/// Where the verdicts on one session's signals arrive.
pub struct Verdicts {
    inbox: Inbox<(u64, SignalVerdict)>,
    owner: StdArc<dyn Notify>,
}

impl Verdicts {
    /// Creates a place whose owner is woken when the first verdict arrives.
    #[must_use]
    pub fn new(owner: StdArc<dyn Notify>) -> Self {
        Self { inbox: Inbox::new(), owner }
    }

    /// Takes what has arrived, each with the number that the signal was given.
    pub fn take(&self) -> Batch<(u64, SignalVerdict)> {
        self.inbox.take()
    }
}

impl fmt::Debug for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdicts").finish_non_exhaustive()
    }
}

/// Who gave a signal and waits for its verdict. Whoever drops it unanswered has answered `Stale`.
#[derive(Debug)]
pub(crate) struct Signaller {
    verdicts: StdArc<Verdicts>,
    tag: u64,
    /// Whose handler is to answer.
    worker: Option<StdArc<Worker>>,
    answered: bool,
}

impl Signaller {
    pub(crate) fn answer(mut self, verdict: SignalVerdict) {
        self.give(verdict);
    }

    fn give(&mut self, verdict: SignalVerdict) {
        self.answered = true;
        if let Some(worker) = self.worker.take() {
            worker.signal_answered();
        }
        // A session that is gone hears nothing.
        if self.verdicts.inbox.push((self.tag, verdict)) == Ok(Pushed::First) {
            self.verdicts.owner.notify();
        }
    }
}

impl Drop for Signaller {
    fn drop(&mut self) {
        if !self.answered {
            self.give(SignalVerdict::Stale);
        }
    }
}

/// A signal on its way to the session of a lease.
#[derive(Debug)]
pub(crate) struct Signal {
    pub(crate) kind: Text,
    pub(crate) payload: Bytes,
    pub(crate) from: Signaller,
}

impl<F: CellFamily> Engine<F> {
    /// Sends bytes to the handler that is at work on a task. The verdict comes to `verdicts` with
    /// the number `tag`; nobody being at work on it is a verdict too.
    ///
    /// # Errors
    ///
    /// There is no such task, or it is not the principal's to see, or the principal is neither
    /// producer nor operator there, or the worker has too many signals to answer.
    pub fn signal(
        &self,
        principal: &Principal,
        id: TaskId,
        kind: Text,
        payload: Bytes,
        verdicts: StdArc<Verdicts>,
        tag: u64,
    ) -> Result<(), AdminError> {
        let task = self.tasks.get(&id).ok_or(AdminError::NotFound)?;
        self.may_change(principal, &task)?;
        let (epoch, worker) = task.last_offer();
        let is_at_work = matches!(task.word().state(), TaskState::Running | TaskState::Cancelling);
        let worker = self.registry.worker(WorkerId::new(worker)).filter(|_| is_at_work);
        if let Some(worker) = &worker
            && !worker.signal_given()
        {
            return Err(AdminError::TooMany {
                what: "signals that the worker has not answered",
                max: u64::from(SIGNALS_MAX),
            });
        }
        let from = Signaller { verdicts, tag, worker: worker.clone(), answered: false };
        let signal = Signal { kind, payload, from };
        // Dropped if nobody is there, which answers it.
        if let Some(worker) = worker {
            worker.tell(Note::Signal(epoch, signal));
        }
        Ok(())
    }
}
