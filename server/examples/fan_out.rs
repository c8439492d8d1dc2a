//! Counts words by fanning out: `cargo run --example fan_out`.
//!
//! One batch of tasks, one for each part of a text, spread over two workers; the outcomes are
//! added up. A part that no worker can read is a terminal failure and is left out.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use slipswitch::{Activity, Client, Context, Failure, SubmitOptions, Worker};
use slipswitch_server::testing::TestServer;
use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Serialize, Deserialize)]
struct CountWords {
    part: String,
}

impl Activity for CountWords {
    const TYPE: &'static str = "count-words";
    type Output = BTreeMap<String, u64>;
}

async fn count(input: CountWords, _cx: Context) -> Result<BTreeMap<String, u64>, Failure> {
    if input.part.contains('\u{fffd}') {
        return Err(Failure::terminal("the part is not text").code("unreadable"));
    }
    let mut words = BTreeMap::new();
    for word in input.part.split_whitespace() {
        *words.entry(word.to_lowercase()).or_default() += 1;
    }
    Ok(words)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = TestServer::start()?;
    let (stop, stopped) = watch::channel(false);
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        let mut stopped = stopped.clone();
        let worker = Worker::connect(server.options()).credit(8).activity(count);
        workers.spawn(worker.run_until(async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        }));
    }

    let client = Client::connect(server.options()).await?;
    let lines = "the switch gives way\nthe way gives\n\u{fffd}\nway";
    let parts: Vec<_> = lines.lines().map(|part| CountWords { part: part.to_owned() }).collect();
    let tasks = client.submit_batch(parts, SubmitOptions::default()).await?;

    let (mut total, mut unreadable) = (BTreeMap::<String, u64>::new(), 0);
    for mut task in tasks {
        match task.output().await {
            Ok(words) => {
                words.into_iter().for_each(|(word, n)| *total.entry(word).or_default() += n)
            }
            Err(_) => unreadable += 1,
        }
    }
    for (word, times) in &total {
        writeln!(io::stdout(), "{times} {word}")?;
    }
    writeln!(io::stdout(), "{unreadable} part was not readable")?;
    assert_eq!(total.get("way"), Some(&3));

    stop.send(true)?;
    while let Some(left) = workers.join_next().await {
        left??;
    }
    Ok(())
}
