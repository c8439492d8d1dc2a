//! A toy session: echoes, records, and says goodbye.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use slipswitch_core::Instant;
use slipswitch_net::proto::{Channel, Driver, Frame, Lost, ProtocolError};
use slipswitch_net::quic::Wake;

use crate::frames::{goodbye, goodbye_ack, nonce, ping, violation};

/// The ping with which a session answers a violation.
pub(crate) const LAST_WORD: u64 = u64::MAX;

/// Longer than any test takes, so that one that hangs fails by name.
const PATIENCE: Duration = Duration::from_secs(30);

/// A session that records what it hears.
pub(crate) struct Echo {
    /// Answers what it hears.
    answers: bool,
    /// Goes out before everything on lanes, as in every session.
    control: VecDeque<Frame>,
    lanes: VecDeque<(Channel, Frame)>,
    pub(crate) heard: Vec<(Channel, Frame)>,
    pub(crate) lost: Option<Lost>,
    /// Frames handed to the shell.
    pub(crate) sent: usize,
    said_goodbye: bool,
    pub(crate) heard_goodbye: bool,
    /// Breaks at the ping with this nonce.
    pub(crate) panics_at: Option<u64>,
    pub(crate) fails_at: Option<u64>,
    /// Wakes the test.
    changed: Rc<tokio::sync::Notify>,
}

/// A session and the way to wake its writer.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) driver: Rc<RefCell<Echo>>,
    pub(crate) wake: Arc<Wake>,
}

impl Session {
    pub(crate) fn new(answers: bool) -> Self {
        let driver = Echo {
            answers,
            control: VecDeque::new(),
            lanes: VecDeque::new(),
            heard: Vec::new(),
            lost: None,
            sent: 0,
            said_goodbye: false,
            heard_goodbye: false,
            panics_at: None,
            fails_at: None,
            changed: Rc::default(),
        };
        Self { driver: Rc::new(RefCell::new(driver)), wake: Arc::new(Wake::new()) }
    }

    /// Queues frames and rings once.
    pub(crate) fn send(&self, frames: impl IntoIterator<Item = (Channel, Frame)>) {
        let mut driver = self.driver.borrow_mut();
        frames.into_iter().for_each(|(channel, frame)| driver.queue(channel, frame));
        self.wake.wake();
    }

    pub(crate) fn say_goodbye(&self) {
        let mut driver = self.driver.borrow_mut();
        driver.said_goodbye = true;
        driver.control.push_back(goodbye());
        drop(driver);
        self.wake.wake();
    }

    /// Waits until the driver is as wished.
    pub(crate) async fn until(&self, wished: impl Fn(&Echo) -> bool) {
        let changed = Rc::clone(&self.driver.borrow().changed);
        let waited = tokio::time::timeout(PATIENCE, async {
            while !wished(&self.driver.borrow()) {
                changed.notified().await;
            }
        });
        waited.await.expect("the session did not get there");
    }
}

impl Echo {
    fn queue(&mut self, channel: Channel, frame: Frame) {
        match channel {
            Channel::Control => self.control.push_back(frame),
            Channel::Lane(_) => self.lanes.push_back((channel, frame)),
        }
    }
}

impl Driver for Echo {
    fn handle_frame(
        &mut self,
        channel: Channel,
        frame: Frame,
        _now: Instant,
    ) -> Result<(), ProtocolError> {
        self.changed.notify_one();
        let nonce = nonce(&frame);
        assert!(nonce.is_none() || nonce != self.panics_at, "planted");
        if nonce.is_some() && nonce == self.fails_at {
            self.control.push_back(ping(LAST_WORD));
            return Err(violation());
        }
        match &frame {
            Frame::Goodbye { .. } => {
                self.heard_goodbye = true;
                self.said_goodbye = true;
                self.control.push_back(goodbye_ack());
            }
            Frame::GoodbyeAck { .. } => self.heard_goodbye = true,
            _ if self.answers => self.queue(channel, frame.clone()),
            _ => {}
        }
        self.heard.push((channel, frame));
        Ok(())
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Channel, Frame)> {
        let control = self.control.pop_front().map(|frame| (Channel::Control, frame));
        let frame = control.or_else(|| self.lanes.pop_front())?;
        self.sent += 1;
        self.changed.notify_one();
        Some(frame)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn handle_lost(&mut self, reason: Lost, _now: Instant) {
        self.lost.get_or_insert(reason);
        self.changed.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.said_goodbye && self.heard_goodbye
    }
}
