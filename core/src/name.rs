//! Names, pool keys and addresses.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use thiserror::Error;

use crate::sync::StdArc;

/// The longest name in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// The task queue that an empty name stands for.
pub const DEFAULT_TASK_QUEUE: &str = "default";

/// A text is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// A name that must be given is empty.
    #[error("{what} is empty")]
    Empty {
        /// Which name.
        what: &'static str,
    },
    /// The name has more than [`NAME_BYTES_MAX`] bytes.
    #[error("{what} has {bytes} bytes, at most {NAME_BYTES_MAX} are allowed")]
    TooLong {
        /// Which name.
        what: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// The name starts with or holds a character that is not allowed there.
    #[error("{what} has {character:?} at byte {at}; {expected}")]
    Character {
        /// Which name.
        what: &'static str,
        /// The offending character.
        character: char,
        /// Its offset in bytes.
        at: usize,
        /// What is allowed there.
        expected: &'static str,
    },
    /// An address does not have the form `namespace/queue/type[@node]`.
    #[error("an address has the form namespace/queue/type, plus @node if pinned")]
    AddressForm,
}

fn check(what: &'static str, text: &str, is_type: bool) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty { what });
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(InvalidName::TooLong { what, bytes: text.len() });
    }
    for (at, character) in text.char_indices() {
        if at == 0 && !character.is_ascii_alphanumeric() && character != '_' {
            let expected = "a name starts with an ASCII letter or digit";
            return Err(InvalidName::Character { what, character, at, expected });
        }
        let allowed = character.is_ascii_alphanumeric()
            || matches!(character, '.' | '_' | '-')
            || (is_type && matches!(character, '/' | ':'));
        if !allowed {
            let expected = if is_type {
                "letters, digits and . _ - / : are allowed"
            } else {
                "letters, digits and . _ - are allowed"
            };
            return Err(InvalidName::Character { what, character, at, expected });
        }
    }
    if text.starts_with('_') {
        let expected = "names that start with _ are internal";
        return Err(InvalidName::Character { what, character: '_', at: 0, expected });
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $is_type:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(StdArc<str>);

        impl $name {
            /// Takes a name of 1 to 128 bytes: first an ASCII letter or digit, then letters,
            /// digits, `.`, `_` and `-` (activity types also `/` and `:`). Case matters.
            ///
            /// # Errors
            ///
            /// Says which byte is wrong, and what is allowed.
            pub fn new(text: &str) -> Result<Self, InvalidName> {
                check($what, text, $is_type)?;
                Ok(Self(text.into()))
            }

            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.hash(state);
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }
    };
}

name! {
    /// The isolation boundary: nothing moves a task from one to another.
    Namespace, "namespace", false
}
name! {
    /// A lane inside a namespace.
    TaskQueue, "task queue", false
}
name! {
    /// The name of a handler.
    ActivityType, "activity type", true
}
name! {
    /// A locality that many workers may share, and to which a task may be pinned.
    Node, "node", false
}

impl TaskQueue {
    /// Takes a task queue's name; an empty text is [`DEFAULT_TASK_QUEUE`].
    ///
    /// # Errors
    ///
    /// As [`TaskQueue::new`].
    pub fn or_default(text: &str) -> Result<Self, InvalidName> {
        Self::new(if text.is_empty() { DEFAULT_TASK_QUEUE } else { text })
    }
}

impl Node {
    /// Takes a node's name; an empty text means none.
    ///
    /// # Errors
    ///
    /// As [`Node::new`].
    pub fn optional(text: &str) -> Result<Option<Self>, InvalidName> {
        if text.is_empty() { Ok(None) } else { Self::new(text).map(Some) }
    }
}

/// The key of a pool. Pools that differ in any part share nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolKey {
    /// The isolation boundary.
    pub namespace: Namespace,
    /// The lane in it.
    pub task_queue: TaskQueue,
    /// The handler's name.
    pub activity_type: ActivityType,
}

impl PoolKey {
    /// Builds a key from texts; an empty task queue is `default`.
    ///
    /// # Errors
    ///
    /// Names the part that is wrong.
    pub fn new(
        namespace: &str,
        task_queue: &str,
        activity_type: &str,
    ) -> Result<Self, InvalidName> {
        Ok(Self {
            namespace: Namespace::new(namespace)?,
            task_queue: TaskQueue::or_default(task_queue)?,
            activity_type: ActivityType::new(activity_type)?,
        })
    }
}

impl fmt::Display for PoolKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.task_queue, self.activity_type)
    }
}

impl FromStr for PoolKey {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let mut parts = text.splitn(3, '/');
        let (Some(namespace), Some(queue), Some(activity)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(InvalidName::AddressForm);
        };
        Self::new(namespace, queue, activity)
    }
}

/// Where a task wants to go: a pool, perhaps pinned to a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The pool.
    pub pool: PoolKey,
    /// The only node on which the task may run, if any.
    pub node: Option<Node>,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.pool, f)?;
        match &self.node {
            Some(node) => write!(f, "@{node}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Address {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let (pool, node) = match text.rsplit_once('@') {
            Some((pool, node)) => (pool, Some(Node::new(node)?)),
            None => (text, None),
        };
        Ok(Self { pool: pool.parse()?, node })
    }
}
