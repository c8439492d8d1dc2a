//! Cancelling, progress and signals, as handlers and producers see them.

use std::time::Duration;

use bytes::Bytes;
use slipswitch::{
    Activity, CancelReason, Context, Failure, QueryError, SubmitErrorKind, SubmitOptions, WireCode,
};
use slipswitch_server::testing::TestServer;
use tokio::sync::mpsc;

use crate::bed::{Running, client, until, worker, workers};

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Job(u64);

impl Activity for Job {
    const TYPE: &'static str = "job";
    type Output = String;
}

fn code(error: &QueryError) -> Option<WireCode> {
    match error {
        QueryError::Refused(refusal) => Some(refusal.code),
        _ => None,
    }
}

#[tokio::test]
async fn a_handler_sees_the_cancel_and_may_finish() {
    let server = TestServer::start().unwrap();
    let worker = worker(&server).credit(2).activity(|Job(n), cx: Context| async move {
        let why = cx.cancelled().await;
        assert_eq!(why, CancelReason::Requested);
        if n == 0 { Ok("in time".to_owned()) } else { Err(Failure::cancelled(why)) }
    });
    let worker = Running::start(worker).await;
    let client = client(&server).await;
    let mut finishes = client.submit(Job(0)).await.unwrap();
    let mut stops = client.submit(Job(1)).await.unwrap();
    until(|| workers(&server)[0].in_flight == 2).await;
    for task in [&finishes, &stops] {
        let running = async {
            while client.task(task.id()).await.unwrap().state != "running" {
                tokio::task::yield_now().await;
            }
        };
        running.await;
        let cancelled = task.cancel("enough").await.unwrap();
        assert_eq!((cancelled.changed, cancelled.state.as_str()), (true, "cancelling"));
    }
    assert_eq!(finishes.output().await.unwrap(), "in time");
    let outcome = stops.outcome().await.unwrap();
    assert_eq!((outcome.class(), outcome.message()), ("cancelled", "enough"));
    assert!(!stops.cancel("again").await.unwrap().changed);
    until(|| workers(&server)[0].in_flight == 0).await;
    server.assert_conserved();
    assert_eq!(worker.leave().await.finished, 2);
}

#[tokio::test]
async fn a_task_that_waits_is_cancelled_at_once() {
    let server = TestServer::start().unwrap();
    let client = client(&server).await;
    let mut task = client.submit(Job(0)).await.unwrap();
    assert_eq!(task.cancel("enough").await.unwrap().state, "cancelled");
    assert_eq!(task.outcome().await.unwrap().class(), "cancelled");
    let unknown = slipswitch::TaskId::from_bytes([7; 16]);
    let error = client.cancel(unknown, "", None).await.unwrap_err();
    assert_eq!(code(&error), Some(WireCode::NotFound));
}

#[tokio::test]
async fn progress_outlives_a_lost_delivery() {
    let server = TestServer::start().unwrap();
    let (seen, mut said) = mpsc::unbounded_channel();
    let handler = move |Job(_), cx: Context| {
        let seen = seen.clone();
        async move {
            let Some(last) = cx.last_progress() else {
                cx.beat("step 1");
                cx.beat("step 2");
                seen.send(None).unwrap();
                return std::future::pending::<Result<String, Failure>>().await;
            };
            seen.send(Some(last.clone())).unwrap();
            Ok(format!("resumed after {}", cx.deliveries()))
        }
    };
    let dies = Running::start(worker(&server).credit(1).activity(handler.clone())).await;
    let client = client(&server).await;
    let mut task = client.submit(Job(0)).resume_grace(Duration::ZERO).await.unwrap();
    assert_eq!(said.recv().await, Some(None));
    let id = task.id();
    let operator = slipswitch_core::Principal::operator("test");
    let progress = || server.engine().task(&operator, id).unwrap().task.progress();
    until(|| progress() == Some(Bytes::from_static(b"step 2"))).await;
    dies.die();
    let _next = Running::start(worker(&server).credit(1).activity(handler)).await;
    assert_eq!(said.recv().await, Some(Some(Bytes::from_static(b"step 2"))));
    assert_eq!(task.output().await.unwrap(), "resumed after 1");
}

#[tokio::test]
async fn heartbeat_timeout_is_for_the_handler_alone() {
    let server = TestServer::start().unwrap();
    let handler = |Job(n), cx: Context| async move {
        if n == 0 {
            // Not heard of. The session beats for all leases all the while.
            let why = cx.cancelled().await;
            return Err(Failure::cancelled(why));
        }
        for _ in 0..20 {
            cx.beat("alive");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok("done".to_owned())
    };
    let worker = Running::start(worker(&server).credit(2).activity(handler)).await;
    let client = client(&server).await;
    let mut once = slipswitch::RetryPolicy::default();
    once.max_attempts = 1;
    let limit = Duration::from_millis(500);
    let submit = |n| client.submit(Job(n)).heartbeat_timeout(limit).retry(once.clone());
    let (mut silent, mut alive) = (submit(0).await.unwrap(), submit(1).await.unwrap());
    let outcome = silent.outcome().await.unwrap();
    assert_eq!((outcome.class(), outcome.code()), ("attempts_exhausted", "heartbeat_timeout"));
    assert_eq!(alive.output().await.unwrap(), "done");
    worker.leave().await;
}

#[tokio::test]
async fn signals_reach_a_handler_that_listens() {
    let server = TestServer::start().unwrap();
    let (ready, mut is_ready) = mpsc::unbounded_channel();
    let handler = move |Job(n), cx: Context| {
        let ready = ready.clone();
        async move {
            if n == 0 {
                ready.send(()).unwrap();
                cx.cancelled().await;
                return Ok(String::new());
            }
            let mut signals = cx.signals();
            ready.send(()).unwrap();
            let signal = signals.recv().await.unwrap();
            Ok(format!("{}: {}", signal.kind, String::from_utf8_lossy(&signal.payload)))
        }
    };
    let _worker = Running::start(worker(&server).credit(1).activity(handler)).await;
    let client = client(&server).await;
    let deaf = client.submit(Job(0)).await.unwrap();
    is_ready.recv().await.unwrap();
    let error = client.signal(deaf.id(), "nudge", "now").await.unwrap_err();
    assert_eq!(code(&error), Some(WireCode::Unsupported));
    deaf.cancel("").await.unwrap();
    let mut listens = client.submit(Job(1)).await.unwrap();
    is_ready.recv().await.unwrap();
    client.signal(listens.id(), "nudge", "now").await.unwrap();
    assert_eq!(listens.output().await.unwrap(), "nudge: now");
    let error = client.signal(listens.id(), "nudge", "now").await.unwrap_err();
    assert_eq!(code(&error), Some(WireCode::Stale));
}

#[tokio::test]
async fn the_same_key_is_the_same_task() {
    let server = TestServer::start().unwrap();
    let client = client(&server).await;
    let first = client.submit(Job(1)).key("order-42").await.unwrap();
    let mut again = client.submit(Job(1)).key("order-42").await.unwrap();
    assert_eq!(first.id(), again.id());
    assert!(!first.is_deduplicated() && again.is_deduplicated());
    let refused = client.submit(Job(2)).key("order-42").await.unwrap_err();
    let is_conflict = |kind: &SubmitErrorKind| matches!(kind, SubmitErrorKind::Refused(refusal) if refusal.code == WireCode::Conflict);
    assert!(is_conflict(&refused.kind), "{refused}");
    let handler = |Job(n), _cx: Context| async move { Ok::<_, Failure>(n.to_string()) };
    let _worker = Running::start(worker(&server).credit(1).activity(handler)).await;
    // Both handles get the one outcome.
    let mut first = first;
    assert_eq!(first.output().await.unwrap(), "1");
    assert_eq!(again.output().await.unwrap(), "1");
    let options = SubmitOptions::default().key("k");
    let keyed = client.submit_batch(vec![Job(1), Job(2)], options).await.unwrap_err();
    assert!(matches!(keyed.kind, SubmitErrorKind::KeyedBatch));
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Big(String);

impl Activity for Big {
    const TYPE: &'static str = "big";
    type Output = String;
}

#[tokio::test]
async fn a_result_over_the_limit_is_a_failure_and_the_worker_goes_on() {
    let server = TestServer::start().unwrap();
    let handler = |Job(n), _: Context| async move {
        Ok::<_, Failure>("x".repeat(if n == 0 { 1_500_000 } else { 3 }))
    };
    let mut worker = Running::start(worker(&server).credit(1).activity(handler)).await;
    let client = client(&server).await;
    let (large, small) =
        (client.submit(Job(0)).await.unwrap(), client.submit(Job(1)).await.unwrap());
    let (mut large, mut small) = (large, small);
    let outcome = large.outcome().await.unwrap();
    assert_eq!((outcome.class(), outcome.code()), ("terminal_failure", "result_refused"));
    assert_eq!(small.output().await.unwrap(), "xxx");
    // One session all the while.
    while let Ok(event) = worker.events.try_recv() {
        assert!(!matches!(event, slipswitch::WorkerEvent::Disconnected { .. }), "{event:?}");
    }
    worker.leave().await;
}

#[tokio::test]
async fn a_payload_over_the_limit_is_refused_alone() {
    let server = TestServer::start().unwrap();
    let client = client(&server).await;
    let handler = |Job(n), _: Context| async move { Ok::<_, Failure>(n.to_string()) };
    let worker = Running::start(worker(&server).credit(4).activity(handler)).await;
    let submit = |size| client.submit(Big("x".repeat(size)));
    let mut before = client.submit(Job(7)).await.unwrap();
    let refused = submit(1_500_000).await.unwrap_err();
    assert!(refused.to_string().contains("at most 1048576"), "{refused}");
    // What no server takes is not sent at all.
    let refused = submit(17 << 20).await.unwrap_err();
    assert!(refused.to_string().contains("at most 16777216"), "{refused}");
    assert_eq!(before.output().await.unwrap(), "7");
    assert_eq!(client.submit(Job(8)).await.unwrap().output().await.unwrap(), "8");
    worker.leave().await;
}

/// Offers are on their way whenever it leaves: they go back, and it abandons nothing.
#[tokio::test]
async fn a_worker_that_leaves_takes_nothing_more() {
    let server = TestServer::start().unwrap();
    let client = client(&server).await;
    let handler = |Job(n), _: Context| async move { Ok::<_, Failure>(n.to_string()) };
    let _stays = Running::start(worker(&server).credit(4).activity(handler)).await;
    for round in 0..20u64 {
        let leaves = Running::start(worker(&server).credit(4).activity(handler)).await;
        let tasks = (0..200).map(|n| {
            let client = client.clone();
            tokio::spawn(
                async move { client.submit(Job(n)).await.unwrap().output().await.unwrap() },
            )
        });
        let tasks: Vec<_> = tasks.collect();
        tokio::time::sleep(Duration::from_micros(500 * round)).await;
        let left = leaves.leave().await;
        assert_eq!(left.abandoned, 0, "{left:?}");
        for (n, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.unwrap(), n.to_string());
        }
    }
}
