//! Threads for models: loom's under `cfg(slipswitch_loom)`, else std's.

#[cfg(slipswitch_loom)]
pub use loom::thread::{JoinHandle, spawn, yield_now};
#[cfg(not(slipswitch_loom))]
pub use std::thread::{JoinHandle, spawn, yield_now};

/// Waits for a thread of the model and hands on its panic.
///
/// # Panics
///
/// If the thread did.
pub fn join<T>(thread: JoinHandle<T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Runs a future to its end on this thread. Under loom a wake-up that never comes is a deadlock,
/// and so a counterexample.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    #[cfg(slipswitch_loom)]
    {
        loom::future::block_on(future)
    }
    #[cfg(not(slipswitch_loom))]
    {
        use std::sync::Arc;
        use std::task::{Context, Poll, Wake, Waker};

        struct Unpark(std::thread::Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut future = std::pin::pin!(future);
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return value;
            }
            std::thread::park();
        }
    }
}
