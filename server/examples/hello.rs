//! A worker and a client in one program: `cargo run --example hello`.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use slipswitch::{Activity, Client, Context, Failure, Worker};
use slipswitch_server::testing::TestServer;
use tokio::sync::oneshot;

#[derive(Debug, Serialize, Deserialize)]
struct Greet {
    name: String,
}

impl Activity for Greet {
    const TYPE: &'static str = "greet";
    type Output = String;
}

async fn greet(input: Greet, _cx: Context) -> Result<String, Failure> {
    Ok(format!("hello {}", input.name))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server in this process. With `slip dev` running, use `ConnectOptions::from_env()?`.
    let server = TestServer::start()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::connect(server.options()).activity(greet);
    let worker = tokio::spawn(worker.run_until(async { stopped.await.unwrap_or_default() }));

    let client = Client::connect(server.options()).await?;
    let greeting = client.call(Greet { name: "Ada".to_owned() }).await?;
    writeln!(io::stdout(), "{greeting}")?;

    let _ = stop.send(());
    worker.await??;
    Ok(())
}
