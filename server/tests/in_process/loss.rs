//! Workers that go, with a word and without.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use slipswitch::{Context, Failure, SubmitOptions, WorkerEvent};
use slipswitch_core::{Config, DrainScope, Instant, Notify, Principal, TaskState, WorkerId};
use slipswitch_server::testing::TestServer;

use crate::bed::{Count, Running, client, until, worker, workers};

fn drain(server: &TestServer, id: WorkerId, now: Instant) {
    struct Nobody;
    impl Notify for Nobody {
        fn notify(&self) {}
    }
    let (operator, scope) = (Principal::operator("test"), DrainScope::Worker(id));
    server.engine().drain_scope(&operator, scope, None, Arc::new(Nobody), now).unwrap();
}

fn echo(server: &TestServer) -> slipswitch::WorkerBuilder {
    worker(server)
        .raw("t", |input: bytes::Bytes, _cx: Context| async move { Ok::<_, Failure>(input) })
}

/// A worker that takes tasks and never ends one.
fn endless(server: &TestServer) -> slipswitch::WorkerBuilder {
    worker(server).raw("t", |_input: bytes::Bytes, _cx: Context| async move {
        std::future::pending::<Result<bytes::Bytes, Failure>>().await
    })
}

#[tokio::test]
async fn registered_iff_alive() {
    let server = TestServer::start().unwrap();
    let client = client(&server).await;
    let mut alive = Vec::new();
    for round in 0..6 {
        for _ in 0..4 {
            alive.push(Running::start(echo(&server)).await);
        }
        // One leaves in order, one dies, and one comes back after its connection was cut.
        alive.remove(round % alive.len()).leave().await;
        alive.remove((round * 5) % alive.len()).die();
        until(|| workers(&server).len() == alive.len()).await;
        // Whoever is registered is alive: every one of them gets its share, and answers.
        let batch = vec![slipswitch::Payload::from("x"); 4 * alive.len()];
        let tasks = client.submit_batch_raw("t", batch, SubmitOptions::default()).await.unwrap();
        for mut task in tasks {
            assert!(task.outcome().await.unwrap().is_completed());
        }
    }
    // Whoever is alive is registered: each is told to leave and says so.
    let ids: Vec<_> = workers(&server).iter().map(|worker| worker.id).collect();
    assert_eq!(ids.len(), alive.len());
    for id in ids {
        let now = server.server().clock().now();
        drain(&server, id, now);
    }
    for worker in alive {
        worker.left().await;
    }
    until(|| workers(&server).is_empty()).await;
}

#[tokio::test]
async fn a_goodbye_frees_leases() {
    // Nothing but the goodbye can free them: the lease would live for an hour.
    let hour = Duration::from_secs(3600);
    let engine = Config { lease_ttl: hour, resume_grace: hour, ..Config::default() };
    let server = TestServer::with(TestServer::config().engine(engine)).unwrap();
    let client = client(&server).await;
    let first = endless(&server).credit(2).drain_timeout(Duration::ZERO);
    let first = Running::start(first).await;
    let one = client.submit_raw("t", "1", SubmitOptions::default()).await.unwrap();
    let two = client.submit_raw("t", "2", SubmitOptions::default()).await.unwrap();
    let state = |id| server.engine().task(&Principal::operator("test"), id).unwrap().state;
    until(|| [one.id(), two.id()].iter().all(|id| state(*id) == TaskState::Running)).await;
    let left = first.leave().await;
    assert_eq!((left.finished, left.abandoned), (0, 2));
    // Both are free for the next one.
    let second = Running::start(echo(&server)).await;
    for mut task in [one, two] {
        assert!(task.outcome().await.unwrap().is_completed());
    }
    second.leave().await;
    until(|| server.engine().in_flight() == 0).await;
}

#[tokio::test]
async fn a_worker_that_died_is_replaced() {
    let engine = Config { resume_grace: Duration::from_millis(50), ..Config::default() };
    let server = TestServer::with(TestServer::config().engine(engine)).unwrap();
    let client = client(&server).await;
    let first = Running::start(endless(&server)).await;
    let mut task = client.submit_raw("t", "1", SubmitOptions::default()).await.unwrap();
    let status = |id| server.engine().task(&Principal::operator("test"), id).unwrap();
    until(|| status(task.id()).state == TaskState::Running).await;
    first.die();
    let second = Running::start(echo(&server)).await;
    assert!(task.outcome().await.unwrap().is_completed());
    let status = status(task.id());
    assert_eq!((status.attempt, status.deliveries, status.lost), (1, 2, 1));
    second.leave().await;
}

#[tokio::test]
async fn busy_hears_drain() {
    let server = TestServer::start().unwrap();
    let client = client(&server).await;
    let (release, released) = tokio::sync::watch::channel(false);
    let runs = Count::default();
    let counted = Arc::clone(&runs);
    let busy = worker(&server).credit(1).raw("t", move |input: bytes::Bytes, _cx: Context| {
        counted.fetch_add(1, Ordering::Relaxed);
        let mut released = released.clone();
        async move {
            let _ = released.wait_for(|released| *released).await;
            Ok::<_, Failure>(input)
        }
    });
    let mut busy = Running::start(busy).await;
    let mut one = client.submit_raw("t", "1", SubmitOptions::default()).await.unwrap();
    until(|| runs.load(Ordering::Relaxed) == 1).await;
    let two = client.submit_raw("t", "2", SubmitOptions::default()).await.unwrap();
    let (id, now) = (workers(&server)[0].id, server.server().clock().now());
    drain(&server, id, now);
    // It hears it while its only slot is taken.
    busy.event(|event| matches!(event, WorkerEvent::Draining)).await;
    release.send(true).unwrap();
    assert!(one.outcome().await.unwrap().is_completed());
    let left = busy.left().await;
    assert_eq!((left.reason, left.finished), (slipswitch::LeftReason::Drained, 1));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    let second = Running::start(echo(&server)).await;
    let mut two = two;
    assert!(two.outcome().await.unwrap().is_completed());
    second.leave().await;
}
