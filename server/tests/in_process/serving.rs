//! What a server promises to whoever starts it.

use slipswitch::{Client, Failure, SubmitOptions};
use slipswitch_net::quic::BindError;
use slipswitch_server::serve::{ServeConfig, ServeError, serve};
use slipswitch_server::testing::TestServer;

use crate::bed::{Running, client, until, worker};

#[test]
fn a_server_for_others_is_refused() {
    for addr in ["0.0.0.0:0", "192.0.2.1:4777", "[::]:0"] {
        let addr = addr.parse().unwrap();
        let refused = serve(ServeConfig::new(addr)).unwrap_err();
        assert!(matches!(refused, ServeError::NotLoopback { addr: named } if named == addr));
    }
}

#[test]
fn a_port_in_use_is_typed() {
    let server = TestServer::start().unwrap();
    let refused = serve(ServeConfig::new(server.address())).unwrap_err();
    let ServeError::Bind(BindError::PortInUse { addr }) = refused else { panic!("{refused:?}") };
    assert_eq!(addr, server.address());
}

#[tokio::test]
async fn a_server_that_nobody_uses_drains_at_once() {
    let server = TestServer::start().unwrap();
    assert_eq!(server.stop().await.unfinished, 0);
}

#[tokio::test]
async fn connections_are_bounded_and_a_place_is_free_again() {
    let config = TestServer::config().connections_max(2);
    let server = TestServer::with(config).unwrap();
    let one = client(&server).await;
    let _two = client(&server).await;
    assert!(Client::connect(server.options()).await.is_err());
    assert_eq!(server.server().connections(), 2);
    one.close().await;
    until(|| server.server().connections() == 1).await;
    client(&server).await.close().await;
}

#[tokio::test]
async fn a_drain_lets_workers_finish_and_says_goodbye() {
    let server = TestServer::start().unwrap();
    let (release, released) = tokio::sync::watch::channel(false);
    let (began, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let worker = worker(&server).raw("t", move |input, _cx| {
        let (mut released, began) = (released.clone(), began.clone());
        async move {
            let _ = began.send(());
            let _ = released.wait_for(|released| *released).await;
            Ok::<_, Failure>(input)
        }
    });
    let worker = Running::start(worker).await;
    let client = client(&server).await;
    let mut task = client.submit_raw("t", "1", SubmitOptions::default()).await.unwrap();
    begun.recv().await.unwrap();
    let engine = std::sync::Arc::clone(server.engine());
    let draining = tokio::spawn(server.stop());
    until(|| engine.is_draining()).await;
    let refused = client.submit_raw("t", "2", SubmitOptions::default()).await.unwrap_err();
    assert!(refused.kind.is_retryable(), "{refused:?}");
    assert_eq!(refused.into_task().bytes().as_ref(), b"2");
    release.send(true).unwrap();
    assert!(task.outcome().await.unwrap().is_completed());
    assert_eq!(draining.await.unwrap().unfinished, 0);
    drop(worker);
}
