//! Why a lease has an epoch: `cargo run --example fencing`.
//!
//! A worker takes a task and is cut off: the server gives the task to another. The first does not
//! know, and writes its result after the second has. The store compares epochs, so the late write
//! is refused, as is the late report.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use slipswitch::{Activity, Client, Context, Failure, Worker, WorkerBuilder};
use slipswitch_server::testing::TestServer;
use tokio::sync::{Notify, oneshot};

#[derive(Serialize, Deserialize)]
struct SetLimit {
    limit: u64,
}

impl Activity for SetLimit {
    const TYPE: &'static str = "set-limit";
    type Output = String;
}

/// A store that takes writes in the order of their epochs alone.
#[derive(Debug, Default)]
struct Store(Mutex<(u64, String)>);

impl Store {
    fn write(&self, epoch: u64, value: String) -> Result<(), Failure> {
        let mut stored = self.0.lock().map_err(|_| Failure::terminal("the store is broken"))?;
        if epoch < stored.0 {
            return Err(Failure::terminal("a newer delivery has written").code("fenced"));
        }
        *stored = (epoch, value);
        Ok(())
    }
}

struct Bank {
    name: &'static str,
    store: Arc<Store>,
    /// What holds the first worker up.
    stall: Option<Arc<Notify>>,
    late: Mutex<Option<oneshot::Sender<String>>>,
}

async fn set_limit(input: SetLimit, cx: Context<Bank>) -> Result<String, Failure> {
    let bank = cx.state();
    if let Some(stall) = &bank.stall {
        stall.notified().await;
    }
    let value = format!("{} by {}", input.limit, bank.name);
    let written = bank.store.write(cx.lease().epoch, value.clone());
    if let Ok(mut late) = bank.late.lock()
        && let Some(late) = late.take()
    {
        drop(late.send(written.as_ref().map_or_else(ToString::to_string, |()| value.clone())));
    }
    written.map(|()| value)
}

fn worker(server: &TestServer, bank: Bank) -> WorkerBuilder<Bank> {
    Worker::connect(server.options()).credit(1).state(bank).activity(set_limit)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = TestServer::start()?;
    let store = Arc::new(Store::default());
    let stall = Arc::new(Notify::new());
    let (late, is_late) = oneshot::channel();
    let first = Bank {
        name: "the first",
        store: Arc::clone(&store),
        stall: Some(Arc::clone(&stall)),
        late: Mutex::new(Some(late)),
    };
    let first = tokio::spawn(worker(&server, first).run_until(std::future::pending()));

    let client = Client::connect(server.options()).await?;
    let task = client.submit(SetLimit { limit: 900 }).resume_grace(Duration::ZERO);
    let mut task = task.await?;
    while client.task(task.id()).await?.state != "running" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // As a lost network would: the session ends, the handler goes on.
    let operator = client.workers().await?;
    for worker in &operator {
        client.evict(worker.worker_id).await?;
    }
    let second =
        Bank { name: "the second", store: Arc::clone(&store), stall: None, late: Mutex::new(None) };
    let second = tokio::spawn(worker(&server, second).run_until(std::future::pending()));
    let result = task.output().await?;
    writeln!(io::stdout(), "the task completed: {result}")?;

    stall.notify_one();
    let refused = is_late.await?;
    writeln!(io::stdout(), "the first writes late: {refused}")?;
    let stored = store.0.lock().map_err(|_| "the store is broken")?.1.clone();
    writeln!(io::stdout(), "the store has: {stored}")?;
    assert_eq!(stored, "900 by the second");
    assert!(refused.contains("fenced"), "{refused}");
    first.abort();
    second.abort();
    Ok(())
}
