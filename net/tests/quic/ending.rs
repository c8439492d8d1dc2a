//! How sessions end.

use std::time::Duration;

use bytes::Bytes;
use slipswitch_net::proto::{Channel, Lost};
use slipswitch_net::quic::{DriveConfig, LinkError, StreamName};

use crate::echo::{LAST_WORD, Session};
use crate::frames::{load, loaded, nonce, piece, ping};
use crate::server::{Server, config, on_client, start};

#[test]
fn goodbye_flushes() {
    const FRAMES: usize = 300;
    let server = Server::start(1, || Session::new(true));
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let session = Session::new(false);
        let driving = start(connection, &session, config());
        // Everything is queued at once, the goodbye last, on the link's stream of control.
        let payload = Bytes::from(vec![1; 30 << 10]);
        session.send((0..FRAMES).map(|n| (Channel::Control, loaded(n as u64, payload.clone()))));
        session.say_goodbye();
        driving.await.unwrap().unwrap();
        let driver = session.driver.borrow();
        let heard = driver.heard.iter().filter_map(|(_, frame)| load(frame)).map(|(n, _)| n);
        assert!(heard.eq(0..FRAMES as u64), "the peer's answers are before its goodbye");
        assert_eq!(driver.lost, Some(Lost::Closed));
    });
    assert!(matches!(server.ended.recv(), Ok(Ok(()))), "the peer heard it as a goodbye");
}

// bug: B44
#[test]
fn goodbye_heard_when_congested() {
    // The goodbye is queued behind far more than the link takes at once, on other streams too.
    let server = Server::start(1, || Session::new(true));
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let session = Session::new(false);
        let driving = start(connection, &session, DriveConfig { lanes: 2, ..config() });
        let payload = Bytes::from(vec![1; 60 << 10]);
        session.send((0..400).map(|n| (Channel::Lane((n % 2) as u8), loaded(n, payload.clone()))));
        session.say_goodbye();
        driving.await.unwrap().unwrap();
    });
    assert!(matches!(server.ended.recv(), Ok(Ok(()))));
}

#[test]
fn closed_server_is_noticed() {
    let server = Server::start(1, || Session::new(true));
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let session = Session::new(false);
        let driving = start(connection, &session, config());
        session.send([(Channel::Control, ping(1))]);
        session.until(|driver| driver.heard.len() == 1).await;
        server.listener.close();
        session.until(|driver| driver.lost.is_some()).await;
        assert_eq!(session.driver.borrow().lost, Some(Lost::Reset));
        assert!(matches!(driving.await.unwrap(), Err(LinkError::Connection(_))));
    });
}

#[test]
fn dropped_drive_tells_both_sides() {
    let server = Server::start(1, || Session::new(true));
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let session = Session::new(false);
        let driving = start(connection, &session, config());
        session.send([(Channel::Control, ping(1))]);
        session.until(|driver| driver.heard.len() == 1).await;
        driving.abort();
        session.until(|driver| driver.lost.is_some()).await;
        assert_eq!(session.driver.borrow().lost, Some(Lost::Cancelled));
        assert!(driving.await.unwrap_err().is_cancelled());
        let ended = tokio::task::spawn_blocking(move || server.ended.recv());
        assert!(matches!(ended.await.unwrap(), Ok(Err(LinkError::Connection(_)))));
    });
}

// bug: B47
#[test]
fn stream_open_times_out() {
    let server = Server::start_with(1, |_ended| {
        |connection| async move {
            // Takes streams of payload and neither reads nor gives one back.
            let mut held = Vec::new();
            while let Ok(stream) = connection.accept_uni().await {
                held.push(stream);
            }
        }
    });
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let session = Session::new(false);
        let stream_open = Duration::from_millis(50);
        let driving = start(connection, &session, DriveConfig { stream_open, ..config() });
        session.send((1..=20).map(|stream_ref| {
            (Channel::Lane(0), piece(stream_ref, 0, true, Bytes::from_static(b"large")))
        }));
        let error = driving.await.unwrap().unwrap_err();
        let LinkError::StreamOpenTimedOut { stream: StreamName::Payload, after } = error else {
            panic!("{error:?}");
        };
        assert_eq!(after, stream_open);
        assert!(session.driver.borrow().lost.is_some());
    });
}

#[test]
fn a_peer_that_takes_nothing_does_not_hold_the_end_up() {
    // It keeps its streams open, keeps the connection alive, and reads nothing.
    let server = Server::start_with(1, |_ended| {
        |connection| async move {
            let mut held = Vec::new();
            while let Ok(streams) = connection.accept_bi().await {
                held.push(streams);
            }
        }
    });
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let session = Session::new(false);
        let flush = Duration::from_millis(100);
        let driving = start(connection, &session, DriveConfig { flush, ..config() });
        let payload = Bytes::from(vec![1; 60 << 10]);
        // More than a stream's window, and all of it taken by the writer.
        session.send((0..16).map(|n| (Channel::Lane(0), loaded(n, payload.clone()))));
        session.until(|driver| driver.sent == 16).await;
        session.driver.borrow_mut().heard_goodbye = true;
        session.say_goodbye();
        // Well before the transport itself would give an idle connection up.
        let ended = tokio::time::timeout(Duration::from_secs(4), driving).await;
        ended.expect("it has ended").unwrap().unwrap();
        assert_eq!(session.driver.borrow().lost, Some(Lost::Closed));
    });
}

#[test]
fn lane_that_the_client_never_opens_times_out() {
    let stream_open = Duration::from_millis(50);
    let server = Server::start_with(1, move |session_ended| {
        move |connection| {
            let session_ended = session_ended.clone();
            async move {
                let session = Session::new(false);
                session.send([(Channel::Lane(5), loaded(1, Bytes::new()))]);
                let driving = start(connection, &session, DriveConfig { stream_open, ..config() });
                let _ = session_ended.send(driving.await.unwrap());
            }
        }
    });
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let session = Session::new(false);
        let _ = start(connection, &session, config()).await.unwrap();
    });
    let ended = server.ended.recv().unwrap();
    let Err(LinkError::StreamOpenTimedOut { stream: StreamName::Lane(5), .. }) = ended else {
        panic!("{ended:?}");
    };
}

#[test]
fn violation_ends_the_session_after_its_last_word() {
    let server = Server::start(1, || {
        let session = Session::new(true);
        session.driver.borrow_mut().fails_at = Some(13);
        session
    });
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let session = Session::new(false);
        let driving = start(connection, &session, config());
        session.send([(Channel::Control, ping(13))]);
        let _ = driving.await.unwrap().unwrap_err();
        let driver = session.driver.borrow();
        assert!(driver.heard.iter().any(|(_, frame)| nonce(frame) == Some(LAST_WORD)));
    });
    assert!(matches!(server.ended.recv(), Ok(Err(LinkError::Protocol(_)))));
}

#[test]
fn panic_in_one_session_spares_the_others() {
    let server = Server::start(1, || {
        let session = Session::new(true);
        session.driver.borrow_mut().panics_at = Some(13);
        session
    });
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let (_other_dialer, other_connection) = server.connect().await;
        let (unlucky, other) = (Session::new(false), Session::new(false));
        let unlucky_driving = start(connection, &unlucky, config());
        let other_driving = start(other_connection, &other, config());
        unlucky.send([(Channel::Control, ping(13))]);
        assert!(unlucky_driving.await.unwrap().is_err());
        other.send([(Channel::Control, ping(14))]);
        other.until(|driver| driver.heard.len() == 1).await;
        other.say_goodbye();
        other_driving.await.unwrap().unwrap();
    });
    assert!(matches!(server.ended.recv(), Ok(Err(LinkError::Panicked))));
    assert!(matches!(server.ended.recv(), Ok(Ok(()))));
}

#[test]
fn stream_that_ends_within_a_frame_ends_the_session() {
    let server = Server::start(1, || Session::new(true));
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let (mut send, _recv) = connection.open_bi().await.unwrap();
        send.write_all(&[4]).await.unwrap();
        send.finish().unwrap();
        let _ = connection.closed().await;
    });
    let ended = server.ended.recv().unwrap();
    let Err(LinkError::StreamGone { stream: StreamName::Control }) = ended else {
        panic!("{ended:?}");
    };
}

#[test]
fn streams_beyond_the_lanes_are_turned_away() {
    let server = Server::start(1, || Session::new(true));
    on_client(async {
        let (_dialer, connection) = server.connect().await;
        let mut streams = Vec::new();
        for _ in 0..16 {
            streams.push(connection.open_bi().await.unwrap());
        }
        let (send, _recv) = streams.last_mut().unwrap();
        send.write_all(&[4]).await.unwrap();
        assert!(send.stopped().await.unwrap().is_some());
        assert!(connection.close_reason().is_none());
    });
}
