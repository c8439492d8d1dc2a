//! Frames on their way.

use bytes::Bytes;
use slipswitch_net::proto::Channel;
use slipswitch_net::quic::DriveConfig;

use crate::echo::Session;
use crate::frames::{bytes_of, load, loaded, nonce, piece, ping};
use crate::server::{Server, config, on_client, start};

fn echo() -> Session {
    Session::new(true)
}

#[test]
fn frames_arrive_in_order_on_every_channel() {
    const EACH: u64 = 20_000;
    let server = Server::start(2, echo);
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let session = Session::new(false);
        let driving = start(connection, &session, DriveConfig { lanes: 4, ..config() });
        let channels = [Channel::Control, Channel::Lane(0), Channel::Lane(1), Channel::Lane(3)];
        let number = |at: usize, n: u64| n * 4 + at as u64;
        for n in 0..EACH {
            // Sizes on both sides of what is copied and what is sliced.
            let payload = Bytes::from(vec![n as u8; (n % 97 * 31) as usize]);
            session.send(
                channels
                    .iter()
                    .enumerate()
                    .map(|(at, &channel)| (channel, loaded(number(at, n), payload.clone()))),
            );
            if n % 500 == 0 {
                tokio::task::yield_now().await;
            }
        }
        session.until(|driver| driver.heard.len() == 4 * EACH as usize).await;
        for (at, &channel) in channels.iter().enumerate() {
            let driver = session.driver.borrow();
            let heard = driver.heard.iter().filter(|(on, _)| *on == channel);
            let mut expected = 0..EACH;
            for (_, frame) in heard {
                let n = expected.next().unwrap();
                let (got, payload) = load(frame).unwrap();
                assert_eq!(got, number(at, n), "{channel:?}");
                assert_eq!(payload.len() as u64, n % 97 * 31);
                assert!(payload.iter().all(|&byte| byte == n as u8));
            }
            assert_eq!(expected.next(), None);
        }
        assert!(!driving.is_finished());
    });
}

#[test]
fn large_payload_arrives_beside_pings() {
    const SIZE: usize = 1 << 20;
    const PIECE: usize = 64 << 10;
    let server = Server::start(1, echo);
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let session = Session::new(false);
        let _driving = start(connection, &session, config());
        let whole: Bytes = (0..SIZE).map(|at| (at / 7) as u8).collect::<Vec<_>>().into();
        // More payloads than may be open at once, and a ping behind each.
        for stream_ref in 1..=9_u64 {
            session.send((0..SIZE).step_by(PIECE).map(|at| {
                let last = at + PIECE == SIZE;
                (Channel::Lane(0), piece(stream_ref, at as u64, last, whole.slice(at..at + PIECE)))
            }));
            session.send([(Channel::Control, ping(stream_ref))]);
        }
        session
            .until(|driver| {
                let pieces = driver.heard.iter().filter_map(|(_, frame)| bytes_of(frame));
                let pings = driver.heard.iter().filter_map(|(_, frame)| nonce(frame)).count();
                pings == 9 && pieces.filter(|(_, _, last, _)| *last).count() == 9
            })
            .await;
        let driver = session.driver.borrow();
        for stream_ref in 1..=9 {
            let mut got = Vec::new();
            for (of, offset, _, bytes) in driver.heard.iter().filter_map(|(_, f)| bytes_of(f)) {
                if of == stream_ref {
                    assert_eq!(offset as usize, got.len());
                    got.extend_from_slice(bytes);
                }
            }
            assert!(got == whole, "payload {stream_ref}");
        }
    });
}

/// The peer takes no byte of the lane: nothing but the control stream can move.
#[test]
fn heartbeat_not_behind_payload() {
    let server = Server::start_with(1, |_ended| {
        |connection| async move {
            // Echoes what comes on control and never reads a lane.
            let (mut send, mut recv) = connection.accept_bi().await.unwrap();
            let mut lanes = Vec::new();
            loop {
                tokio::select! {
                    lane = connection.accept_bi() => match lane {
                        Ok(lane) => lanes.push(lane),
                        Err(_) => return,
                    },
                    read = recv.read_chunk(usize::MAX, true) => match read {
                        Ok(Some(chunk)) => send.write_chunk(chunk.bytes).await.unwrap(),
                        _ => return,
                    },
                }
            }
        }
    });
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let session = Session::new(false);
        let _driving = start(connection, &session, DriveConfig { lanes: 4, ..config() });
        let payload = Bytes::from(vec![7; 60 << 10]);
        // 15 MiB, three times what the connection may hold.
        session.send((0..256).map(|n| (Channel::Lane((n % 4) as u8), loaded(n, payload.clone()))));
        for beat in 0..100 {
            session.send([(Channel::Control, ping(beat))]);
            session
                .until(|driver| driver.heard.iter().any(|(_, frame)| nonce(frame) == Some(beat)))
                .await;
        }
    });
}
