//! F2: any frames, in any order, at any time, never break a server's session or its engine.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use slipswitch_core::{Config, Engine, Instant, Notify, Principal, SessionId, TaskId};
use slipswitch_net::proto::{Channel, Decoder, Driver};
use slipswitch_net::server::{Greeting, ServerSession, TaskIds};

struct Nobody;

impl Notify for Nobody {
    fn notify(&self) {}
}

struct Rising(u128);

impl TaskIds for Rising {
    fn next(&mut self, _now: Instant) -> TaskId {
        self.0 += 1;
        TaskId::from_bytes(self.0.to_be_bytes())
    }
}

fuzz_target!(|data: &[u8]| {
    let mut now = Instant::from_micros(1);
    let engine: Arc<Engine> = Engine::new(Config::default(), Arc::new(Nobody), now);
    let greeting = Greeting {
        server_id: [1; 16],
        incarnation: 1,
        lease_ttl: Duration::from_secs(30),
        accept_timeout: Duration::from_secs(2),
        payload_max: 1 << 20,
        wall_clock: 0,
    };
    let mut session = ServerSession::new(
        Arc::clone(&engine),
        Principal::operator("fuzz"),
        SessionId::from_bytes([1; 16]),
        Arc::new(Nobody),
        Box::new(Rising(0)),
        greeting,
        now,
    );
    let mut decoder = Decoder::default();
    decoder.push(Bytes::copy_from_slice(data));
    while let Ok(Some(frame)) = decoder.next() {
        // Time passes by what the frame says of itself, so that timers fire in between.
        now += Duration::from_millis(u64::from(frame.number()) * 7);
        if session.poll_timeout().is_some_and(|due| due <= now) {
            session.handle_timeout(now);
        }
        engine.advance(now);
        let ended = session.handle_frame(Channel::Lane(0), frame, now).is_err();
        while session.poll_transmit(now).is_some() {}
        if ended {
            break;
        }
    }
    session.handle_lost(slipswitch_net::proto::Lost::Reset, now);
    engine.advance(now + Duration::from_secs(3));
    assert_eq!(engine.in_flight(), 0);
    assert!(engine.workers(&Principal::operator("fuzz")).1.is_empty());
});
