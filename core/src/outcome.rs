//! How a task ended, and who waits to hear of it.

use bytes::Bytes;

use crate::id::TaskId;
use crate::inbox::{Batch, Inbox, Pushed};
use crate::sync::StdArc;
use crate::task::{Task, TaskState};
use crate::text::Text;

/// Wakes the owner of an inbox, from any thread.
///
/// Called when something arrived in an inbox that was empty. It must not block, and must not call
/// back into the engine.
pub trait Notify: Send + Sync {
    /// Wakes the owner.
    fn notify(&self);
}

/// Why a task did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// It completed.
    Completed,
    /// The application failed, and there was no attempt left.
    AttemptsExhausted,
    /// The application said that no further attempt helps.
    TerminalFailure,
    /// Too many accepted deliveries were lost with their workers.
    LostDeliveries,
    /// Too many offers in a row were never accepted.
    LostOffers,
    /// A deadline or the time to start was over.
    Expired,
    /// Somebody asked for it.
    Cancelled,
}

impl Class {
    const ALL: [Self; 7] = [
        Self::Completed,
        Self::AttemptsExhausted,
        Self::TerminalFailure,
        Self::LostDeliveries,
        Self::LostOffers,
        Self::Expired,
        Self::Cancelled,
    ];

    /// The class of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }

    /// The word for the class on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::TerminalFailure => "terminal_failure",
            Self::LostDeliveries => "lost_deliveries",
            Self::LostOffers => "lost_offers",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

/// How a task ended. Bytes and texts are the worker's, untouched.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The terminal state.
    pub state: TaskState,
    /// Why.
    pub class: Class,
    /// The application's failure code, empty if none.
    pub code: String,
    /// A text for people, empty if none.
    pub message: String,
    /// The application's details, empty if none.
    pub details: Bytes,
    /// The result, empty unless completed.
    pub payload: Bytes,
    /// What the result is, as a media type.
    pub content_type: Text,
    /// How the result is encoded.
    pub encoding: Text,
    /// The last attempt.
    pub attempt: u32,
    /// How many deliveries were accepted in all.
    pub deliveries: u32,
}

impl Outcome {
    /// A task that ended without a result or failure of its own; state and class are for the caller
    /// to say.
    pub(crate) fn of_nothing(task: &Task) -> Self {
        Self {
            state: TaskState::Dead,
            class: Class::Expired,
            code: String::new(),
            message: String::new(),
            details: Bytes::new(),
            payload: Bytes::new(),
            content_type: Text::EMPTY,
            encoding: Text::EMPTY,
            attempt: task.attempt(),
            deliveries: task.deliveries(),
        }
    }
}

/// An outcome on its way to one waiter.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// The waiter's own number.
    pub tag: u64,
    /// The task.
    pub task: StdArc<Task>,
    /// How it ended.
    pub outcome: StdArc<Outcome>,
}

impl Delivered {
    /// The task's id.
    #[must_use]
    pub fn task_id(&self) -> TaskId {
        self.task.id()
    }
}

/// Where the outcomes for one session arrive.
pub struct Mailbox {
    inbox: Inbox<Delivered>,
    owner: StdArc<dyn Notify>,
}

impl Mailbox {
    /// Creates a mailbox whose owner is woken when the first outcome arrives.
    #[must_use]
    pub fn new(owner: StdArc<dyn Notify>) -> Self {
        Self { inbox: Inbox::new(), owner }
    }

    /// Takes everything that has arrived, oldest first.
    pub fn take(&self) -> Batch<Delivered> {
        self.inbox.take()
    }

    /// Says whether nothing has arrived.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inbox.is_empty()
    }

    /// Refuses everything that is still to come: the session is gone.
    pub fn close(&self) {
        drop(self.inbox.close());
    }

    /// False if the mailbox is closed.
    pub(crate) fn deliver(&self, delivered: Delivered) -> bool {
        match self.inbox.push(delivered) {
            Ok(Pushed::First) => {
                self.owner.notify();
                true
            }
            Ok(Pushed::Behind) => true,
            Err(_) => false,
        }
    }
}

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox").field("inbox", &self.inbox).finish_non_exhaustive()
    }
}

/// Someone who waits for the outcome of a task.
#[derive(Clone, Debug)]
pub struct Watcher {
    /// Where the outcome goes.
    pub mailbox: StdArc<Mailbox>,
    /// The waiter's own number, handed back with the outcome.
    pub tag: u64,
}
