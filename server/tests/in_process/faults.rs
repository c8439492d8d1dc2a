//! Every fault at once: whatever workers do, each task ends once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use slipswitch::{Context, Failure, Payload, RetryPolicy, SubmitOptions, TaskHandle, TaskId};
use slipswitch_core::Config;
use slipswitch_server::testing::TestServer;

use crate::bed::{Running, client, until, worker};

/// Epochs of the deliveries of each task that reached a handler.
type Runs = Arc<Mutex<BTreeMap<TaskId, Vec<u64>>>>;

/// A worker of many moods. What it answers names its delivery.
fn moody(server: &TestServer, runs: &Runs, seed: u64) -> slipswitch::WorkerBuilder {
    let runs = Arc::clone(runs);
    let random = Arc::new(Mutex::new(StdRng::seed_from_u64(seed)));
    worker(server).credit(8).raw("t", move |_input: Bytes, cx: Context| {
        runs.lock().unwrap().entry(cx.task_id()).or_default().push(cx.lease().epoch);
        let mood = random.lock().unwrap().random_range(0..16);
        async move {
            match mood {
                0 => return Err(Failure::retryable("not now").after(Duration::ZERO)),
                1 => return Err(Failure::infrastructure("a disk is gone")),
                2 => panic!("on purpose"),
                3 => tokio::time::sleep(Duration::from_millis(20)).await,
                _ => {}
            }
            Ok(Bytes::copy_from_slice(&cx.lease().epoch.to_be_bytes()))
        }
    })
}

/// Lets workers come, leave and die while tasks are handed in.
async fn play(seed: u64) {
    let engine = Config {
        resume_grace: Duration::from_millis(20),
        accept_timeout: Duration::from_millis(100),
        lease_ttl: Duration::from_millis(500),
        ..Config::default()
    };
    let server = TestServer::with(TestServer::config().engine(engine)).unwrap();
    let mut random = StdRng::seed_from_u64(seed);
    let (runs, client, observer) = (Runs::default(), client(&server).await, client(&server).await);
    let mut policy = RetryPolicy::default();
    policy.initial = Duration::from_millis(1);
    policy.max_attempts = 50;
    let options = SubmitOptions::default().retry(policy);
    let (mut staff, mut tasks) = (Vec::new(), Vec::<TaskHandle>::new());
    for round in 0..12u64 {
        staff.push(Running::start(moody(&server, &runs, seed ^ round << 8)).await);
        if round % 3 == 0 {
            staff.push(Running::start(moody(&server, &runs, seed ^ round << 16)).await);
        }
        let batch = vec![Payload::from("x"); 40];
        tasks.extend(client.submit_batch_raw("t", batch, options.clone()).await.unwrap());
        let at = random.random_range(0..staff.len());
        match random.random_range(0..3) {
            0 => staff.swap_remove(at).die(),
            1 => {
                staff.swap_remove(at).leave().await;
            }
            _ => {}
        }
    }
    // One is left that lives, whatever the dice said.
    staff.push(Running::start(moody(&server, &runs, seed)).await);
    for mut task in tasks {
        let outcome = task.outcome().await.unwrap();
        // A poisoned task is given up: it was lost with five workers. It has one end all the same.
        let epochs = runs.lock().unwrap().get(&task.id()).cloned().unwrap_or_default();
        if outcome.is_completed() {
            let epoch = outcome.payload().bytes().as_ref().try_into().map(u64::from_be_bytes);
            let epoch = epoch.unwrap();
            let times = epochs.iter().filter(|run| **run == epoch).count();
            assert_eq!(times, 1, "seed {seed}: {} in {epochs:?}", outcome.class());
        } else {
            assert_eq!(outcome.class(), "lost_deliveries", "seed {seed}: {outcome:?}");
        }
        // Whoever asks later is told the same.
        let again = observer.await_task(task.id()).await.unwrap();
        assert_eq!(again.class(), outcome.class(), "seed {seed}");
        assert_eq!(again.payload().bytes(), outcome.payload().bytes(), "seed {seed}");
        let distinct: std::collections::BTreeSet<u64> = epochs.iter().copied().collect();
        assert_eq!(distinct.len(), epochs.len(), "seed {seed}: a delivery ran twice");
    }
    until(|| server.engine().in_flight() == 0).await;
    for worker in staff {
        worker.leave().await;
    }
}

// bug: S9
#[tokio::test]
async fn settle_once_under_every_fault() {
    for seed in 1..=3 {
        play(seed).await;
    }
}
