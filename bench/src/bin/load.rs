//! Tasks over QUIC: a server, workers and producers, each a process, measured in two ways.
//!
//! *Open loop* (`--rate`): a task is due at its time whether or not the ones before it are back, and
//! its latency counts from when it was due. So a stall shows in every task that it held up, and not
//! in one. *Closed loop* (`--in-flight`): so many tasks are always under way; the rate is what
//! comes out. `--in-flight 1` is the round trip.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Parser;
use slipswitch::{Client, ConnectOptions, Payload, SubmitOptions, Worker};
use slipswitch_bench::clock;
use slipswitch_bench::harness::{Tail, histogram};
use slipswitch_bench::machine::Machine;
use slipswitch_server::serve::{ServeConfig, serve};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, mpsc};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Loads a server over QUIC and says how it went.
#[derive(Clone, Debug, Parser)]
struct Load {
    /// Tasks due in a second; without it the loop is closed.
    #[arg(long)]
    rate: Option<u64>,
    /// Tasks under way at once in a closed loop.
    #[arg(long, default_value_t = 1)]
    in_flight: usize,
    /// For how long, in seconds, after a warm-up of one.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Bytes of a payload.
    #[arg(long, default_value_t = 64)]
    payload: usize,
    /// Worker processes.
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// Credit of each worker.
    #[arg(long, default_value_t = 1_024)]
    credit: u32,
    /// Measures the processor time of an idle server with so many idle workers instead.
    #[arg(long)]
    idle: Option<usize>,
    /// One JSON object instead of sentences.
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "table")]
    output: Format,
    /// What this process is; for the generator's own use.
    #[arg(long, hide = true)]
    role: Option<String>,
    /// Where the server is; for the generator's own use.
    #[arg(long, hide = true, default_value = "")]
    server: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
}

fn main() -> Result<()> {
    let load = Load::parse();
    match load.role.as_deref() {
        Some("server") => serve_until_told(),
        Some("worker") => work_until_told(&load),
        _ => drive(&load),
    }
}

/// Ends when the pipe from the parent does.
fn until_told() -> impl Future<Output = ()> {
    let (told, mut heard) = mpsc::channel::<()>(1);
    std::thread::spawn(move || {
        // Whatever ends the reading, the parent is gone or wants no more.
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        drop(told);
    });
    async move {
        let _ = heard.recv().await;
    }
}

fn serve_until_told() -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = serve(ServeConfig::new("127.0.0.1:0".parse()?))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{} {}", server.local_addr(), server.fingerprint())?;
        out.flush()?;
        until_told().await;
        server.drain(Duration::from_secs(1)).await;
        Ok(())
    })
}

fn options(load: &Load) -> Result<ConnectOptions> {
    let (addr, pin) = load.server.split_once(' ').ok_or("no server was named")?;
    Ok(ConnectOptions::new(addr, pin.parse()?))
}

fn work_until_told(load: &Load) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let worker = Worker::connect(options(load)?)
        .credit(load.credit)
        .no_node()
        .raw("echo", |input: Bytes, _| async move { Ok(Payload::from(input)) });
    runtime.block_on(worker.run_until(until_told()))?;
    Ok(())
}

/// A child that ends when this process does.
struct Part {
    child: Child,
}

impl Part {
    fn start(load: &Load, role: &str, server: &str) -> Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .args(["--role", role, "--server", server, "--credit", &load.credit.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self { child })
    }

    fn first_line(&mut self) -> Result<String> {
        let out = self.child.stdout.take().ok_or("the child has no output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Processor time used so far, in seconds.
    fn cpu_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit_once(") ").ok_or("no process")?.1;
        let ticks = |at: usize| fields.split(' ').nth(at).and_then(|n| n.parse::<f64>().ok());
        // User and system time are the 14th and 15th field; the first two are cut off.
        let (user, system) = (ticks(11).ok_or("no time")?, ticks(12).ok_or("no time")?);
        Ok((user + system) / 100.0)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends by itself; one that does not is ended.
        for _ in 0..200 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn drive(load: &Load) -> Result<()> {
    let mut server = Part::start(load, "server", "")?;
    let at = server.first_line()?;
    let count = load.idle.unwrap_or(load.workers);
    let workers: Vec<Part> =
        (0..count).map(|_| Part::start(load, "worker", &at)).collect::<Result<_>>()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let load = Load { server: at, ..load.clone() };
    runtime.block_on(async {
        let client = Client::connect(options(&load)?).await?;
        while client.workers().await?.len() < workers.len() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if load.idle.is_some() {
            drop(client);
            return idle(&load, &server).await;
        }
        measure(&load, client).await
    })
}

async fn idle(load: &Load, server: &Part) -> Result<()> {
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = server.cpu_seconds()?;
    let time = Duration::from_secs(load.seconds.max(20));
    tokio::time::sleep(time).await;
    let share = (server.cpu_seconds()? - before) / time.as_secs_f64();
    let mut out = std::io::stdout().lock();
    let workers = load.idle.unwrap_or_default();
    let percent = share * 100.0;
    if load.output == Format::Json {
        let line = serde_json::json!({ "idle_workers": workers, "core_percent": percent });
        writeln!(out, "{line}")?;
    } else {
        writeln!(out, "{}", Machine::look_up())?;
        writeln!(out, "idle server, {workers} idle workers: {percent:.2} % of a core")?;
    }
    Ok(())
}

/// When a task was due, and when its outcome came.
type Done = (Instant, Instant);

async fn measure(load: &Load, client: Client) -> Result<()> {
    let (done, mut finished) = mpsc::unbounded_channel::<Done>();
    let start = clock::now();
    let begin = start + Duration::from_secs(1);
    let end = begin + Duration::from_secs(load.seconds);
    let payload = Bytes::from(vec![7; load.payload]);
    match load.rate {
        Some(rate) => open_loop(rate, &client, &payload, (start, end), &done).await,
        None => closed_loop(load.in_flight, &client, &payload, end, &done).await?,
    }
    drop(done);
    let mut times = histogram();
    let mut count = 0u64;
    let mut last = begin;
    while let Some((due, came)) = finished.recv().await {
        if due >= begin {
            times.saturating_record(came.duration_since(due).as_micros() as u64);
            count += 1;
            last = last.max(came);
        }
    }
    client.close().await;
    let seconds = last.duration_since(begin).as_secs_f64();
    let Tail { p50, p99, p999, max } = Tail::of(&times);
    let per_second = count as f64 / seconds;
    let mut out = std::io::stdout().lock();
    if load.output == Format::Json {
        let line = serde_json::json!({
            "tasks": count, "per_second": per_second, "rate": load.rate,
            "in_flight": load.in_flight, "payload": load.payload, "workers": load.workers,
            "latency_us": { "p50": p50, "p99": p99, "p999": p999, "max": max },
        });
        return Ok(writeln!(out, "{line}")?);
    }
    writeln!(out, "{}", Machine::look_up())?;
    let how = match load.rate {
        Some(rate) => format!("open loop, {rate} tasks due a second"),
        None => format!("closed loop, {} in flight", load.in_flight),
    };
    writeln!(out, "{how}, {} B, {} workers", load.payload, load.workers)?;
    writeln!(out, "{count} tasks in {seconds:.2} s: {per_second:.0} tasks/s")?;
    writeln!(out, "latency in µs: p50 {p50}, p99 {p99}, p99.9 {p999}, max {max}")?;
    Ok(())
}

/// Hands one task in and waits for its outcome.
async fn turn(client: &Client, payload: &Bytes) -> bool {
    let options = SubmitOptions::default();
    match client.submit_raw("echo", payload.clone(), options).await {
        Ok(mut task) => task.outcome().await.is_ok_and(|outcome| outcome.is_completed()),
        Err(_) => false,
    }
}

async fn closed_loop(
    in_flight: usize,
    client: &Client,
    payload: &Bytes,
    end: Instant,
    done: &mpsc::UnboundedSender<Done>,
) -> Result<()> {
    // Many in flight are handed in by batches, as a producer in a hurry would.
    let batch = (in_flight / 4).clamp(1, 250);
    let lanes = in_flight.div_ceil(batch);
    let mut tasks = Vec::with_capacity(lanes);
    for _ in 0..lanes {
        let (client, payload, done) = (client.clone(), payload.clone(), done.clone());
        tasks.push(tokio::spawn(async move {
            while clock::now() < end {
                let due = clock::now();
                if batch == 1 {
                    assert!(turn(&client, &payload).await, "a task was lost");
                    let _ = done.send((due, clock::now()));
                    continue;
                }
                let payloads = vec![Payload::from(payload.clone()); batch];
                let options = SubmitOptions::default();
                let handles = client.submit_batch_raw("echo", payloads, options).await;
                for mut handle in handles.expect("the server takes it") {
                    let outcome = handle.outcome().await.expect("the outcome comes");
                    assert!(outcome.is_completed(), "a task was lost");
                    let _ = done.send((due, clock::now()));
                }
            }
        }));
    }
    for task in tasks {
        task.await?;
    }
    Ok(())
}

async fn open_loop(
    rate: u64,
    client: &Client,
    payload: &Bytes,
    (start, end): (Instant, Instant),
    done: &mpsc::UnboundedSender<Done>,
) {
    // A bound on what is under way, far above what a server that keeps up ever sees.
    let under_way = Arc::new(Semaphore::new(50_000));
    let gap = Duration::from_secs(1).div_f64(rate as f64);
    let mut due = start;
    while due < end {
        let now = clock::now();
        if due > now {
            tokio::time::sleep_until(due.into()).await;
        }
        // Everything that has become due meanwhile, at once.
        let now = clock::now();
        while due <= now && due < end {
            let (client, payload, done) = (client.clone(), payload.clone(), done.clone());
            let permit = Arc::clone(&under_way).acquire_owned().await;
            tokio::spawn(async move {
                let _permit = permit;
                assert!(turn(&client, &payload).await, "a task was lost");
                let _ = done.send((due, clock::now()));
            });
            due += gap;
        }
    }
    // All permits back: all tasks are.
    let _ = under_way.acquire_many(50_000).await;
}
