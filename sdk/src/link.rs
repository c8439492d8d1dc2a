//! The two queues between a user's threads and the IO thread.
//!
//! Both are emptied whole, and whoever adds to one that is not empty wakes nobody: a burst costs
//! one wake-up however long it is.

use tokio::sync::Notify;

use crate::sync::{Arc, Mutex};

/// What ends the wait of the side that empties a queue.
pub(crate) trait Wake: Send + Sync + 'static {
    fn wake(&self);
}

impl Wake for Notify {
    fn wake(&self) {
        self.notify_one();
    }
}

/// A queue with any number of writers and one reader.
pub(crate) struct Queue<T, W> {
    items: Mutex<Items<T>>,
    wake: W,
}

struct Items<T> {
    items: Vec<T>,
    closed: bool,
}

/// A queue whose reader is async.
pub(crate) type Outbox<T> = Queue<T, Notify>;

impl<T, W: Wake> Queue<T, W> {
    pub(crate) fn new(wake: W) -> Arc<Self> {
        let items = Items { items: Vec::new(), closed: false };
        Arc::new(Self { items: Mutex::new(items), wake })
    }

    #[cfg(test)]
    pub(crate) const fn waker(&self) -> &W {
        &self.wake
    }

    /// Adds an item; gives it back if the queue is closed.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        let mut queue = self.items.lock();
        if queue.closed {
            return Err(item);
        }
        queue.items.push(item);
        let first = queue.items.len() == 1;
        drop(queue);
        if first {
            self.wake.wake();
        }
        Ok(())
    }

    /// Adds all items of a batch and leaves it empty; its memory stays for the next one. Items of
    /// a closed queue are dropped.
    pub(crate) fn push_all(&self, batch: &mut Vec<T>) {
        if batch.is_empty() {
            return;
        }
        let mut queue = self.items.lock();
        if queue.closed {
            drop(queue);
            batch.clear();
            return;
        }
        let first = queue.items.is_empty();
        if first {
            std::mem::swap(&mut queue.items, batch);
        } else {
            queue.items.append(batch);
        }
        drop(queue);
        if first {
            self.wake.wake();
        }
    }

    /// Moves all items into `batch`, which must be empty; false if the queue is closed and empty.
    pub(crate) fn take(&self, batch: &mut Vec<T>) -> bool {
        debug_assert!(batch.is_empty(), "items of an earlier batch would change places");
        let mut queue = self.items.lock();
        std::mem::swap(&mut queue.items, batch);
        !(queue.closed && batch.is_empty())
    }

    /// Refuses further items; those inside can still be taken.
    pub(crate) fn close(&self) {
        self.items.lock().closed = true;
        self.wake.wake();
    }
}

impl<T> Outbox<T> {
    /// Waits for items and moves them into `batch`; false when the queue is closed and empty.
    ///
    /// # Cancel safety
    ///
    /// Items stay in the queue until the future is ready.
    pub(crate) async fn recv(&self, batch: &mut Vec<T>) -> bool {
        loop {
            if !self.take(batch) {
                return false;
            }
            if !batch.is_empty() {
                return true;
            }
            self.wake.notified().await;
        }
    }
}

#[cfg(test)]
mod tests;
