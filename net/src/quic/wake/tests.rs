use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::*;

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn note_before_parking_is_found() {
    let wake = Wake::new();
    assert!(poll(pin!(wake.noted())).is_ready(), "the first wait returns at once");
    wake.wake();
    wake.wake();
    assert!(poll(pin!(wake.noted())).is_ready());
    assert!(poll(pin!(wake.noted())).is_pending(), "two notes are one");
}

#[test]
fn note_while_parked_wakes() {
    let wake = Wake::new();
    assert!(wake.take());
    let mut wait = pin!(wake.noted());
    assert!(poll(wait.as_mut()).is_pending());
    wake.wake();
    assert!(poll(wait.as_mut()).is_ready());
}

#[test]
fn dropped_wait_loses_no_note() {
    let wake = Wake::new();
    assert!(wake.take());
    {
        let mut wait = pin!(wake.noted());
        assert!(poll(wait.as_mut()).is_pending());
    }
    wake.wake();
    assert!(poll(pin!(wake.noted())).is_ready());
    // The ring of that note may be left over; it must not count as another note.
    assert!(poll(pin!(wake.noted())).is_pending());
}

#[test]
fn every_note_of_another_thread_is_seen() {
    const ROUNDS: u64 = 50_000;
    let wake = Arc::new(Wake::new());
    let (values, inbox) = std::sync::mpsc::channel();
    let notifier = std::thread::spawn({
        let wake = Arc::clone(&wake);
        move || {
            for value in 0..ROUNDS {
                values.send(value).unwrap();
                wake.wake();
            }
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let seen = runtime.block_on(async {
        let mut seen = 0;
        while seen < ROUNDS {
            // Hangs here if a note is lost: the inbox was emptied before.
            wake.noted().await;
            seen += inbox.try_iter().count() as u64;
        }
        seen
    });
    notifier.join().unwrap();
    assert_eq!(seen, ROUNDS);
}
