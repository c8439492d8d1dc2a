//! The thread that drives an engine.
//!
//! It calls [`Engine::advance`] when the returned time has come and whenever somebody notifies it,
//! and parks in between. A notification that comes while it is at work is kept by the thread's park
//! token: the next park returns at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle, Thread};

use slipswitch_core::{Config, Engine, Notify};
use slipswitch_net::clock::Clock;
use tokio::sync::watch;

/// A running engine. Dropping it stops the thread and joins it.
#[derive(Debug)]
pub(crate) struct Driver {
    engine: Arc<Engine>,
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    /// Closed when the thread ends.
    alive: watch::Receiver<()>,
}

/// Unparks the driver.
struct Unpark(Thread);

impl Notify for Unpark {
    fn notify(&self) {
        self.0.unpark();
    }
}

impl Driver {
    /// Makes an engine and starts the thread that drives it.
    ///
    /// # Errors
    ///
    /// When the system refuses a thread.
    pub(crate) fn start(config: Config, clock: Clock) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (made, engine) = mpsc::sync_channel(1);
        let (living, alive) = watch::channel(());
        let thread = thread::Builder::new().name("slip-driver".to_owned()).spawn(move || {
            // Dropped with the thread, also when it panics.
            let _living = living;
            let driver = Arc::new(Unpark(thread::current()));
            let engine = Engine::new(config, driver, clock.now());
            let _ = made.send(Arc::clone(&engine));
            // Acquire: pairs with the Release in `Drop`; only that it is seen in the end matters,
            // the unpark after it brings the thread here.
            while !stopped.load(Ordering::Acquire) {
                let due = engine.advance(clock.now());
                thread::park_timeout(due.saturating_since(clock.now()));
            }
        })?;
        let engine = engine.recv().map_err(|_| io::Error::other("the driver ended at once"))?;
        Ok(Self { engine, thread: Some(thread), stop, alive })
    }

    /// Waits until the thread has ended by itself, which only a panic makes it do.
    ///
    /// # Cancel safety
    ///
    /// Waits only.
    pub(crate) async fn died(&self) {
        let mut alive = self.alive.clone();
        while alive.changed().await.is_ok() {}
    }

    /// Returns the engine.
    pub(crate) const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in the thread's loop.
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there was printed by its hook; the engine's users do not depend on it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_driver_sleeps_and_stops_when_dropped() {
        let driver = Driver::start(Config::default(), Clock::start()).unwrap();
        assert!(!driver.engine().is_draining());
        // Joins the thread: it has to wake from a park of up to a second.
        drop(driver);
    }

    #[tokio::test]
    async fn a_driver_that_is_alive_has_not_died() {
        let driver = Driver::start(Config::default(), Clock::start()).unwrap();
        let died = tokio::time::timeout(Duration::from_millis(10), driver.died()).await;
        assert!(died.is_err());
    }

    #[tokio::test]
    async fn a_driver_whose_thread_ends_has_died() {
        let mut driver = Driver::start(Config::default(), Clock::start()).unwrap();
        driver.stop.store(true, Ordering::Release);
        driver.thread.take().map(|thread| {
            thread.thread().unpark();
            thread.join()
        });
        driver.died().await;
    }
}
