//! `slip worker`: any program, or an echo, as a worker.

use std::sync::Arc;

use bytes::Bytes;
use slipswitch::{Context, Failure, LeftReason, Payload, Worker, WorkerEvent};

use super::{Reach, failing, runtime};
use crate::cli::{ServerArgs, WorkerArgs};
use crate::exec::{InvalidProgram, Program, RunError};
use crate::report::{Exit, Report};
use crate::stop::{Interrupts, note};

/// The largest result that a frame carries.
const OUTPUT_MAX: u64 = 16 << 20;

/// Serves tasks until the first interrupt or until the server drains the worker.
pub(super) fn run(server: ServerArgs, args: WorkerArgs) -> Result<Exit, Report> {
    let program = args.exec.as_deref().map(|command| find(command, &args)).transpose()?;
    let reach = Reach::new(server)?;
    runtime()?.block_on(serve(&reach, args, program))
}

async fn serve(reach: &Reach, args: WorkerArgs, program: Option<Program>) -> Result<Exit, Report> {
    let interrupts = Interrupts::listen()?;
    let mut worker = Worker::connect(reach.options())
        .namespace(args.place.namespace.as_str())
        .task_queue(args.place.queue.as_str())
        .credit(args.slots.into())
        .weight(args.weight)
        .fail_fast()
        .on_event(tell);
    worker = match &args.node {
        Some(node) => worker.node(node.as_str()),
        None => worker.no_node(),
    };
    let name = args.activity_type.as_str();
    let worker = match program {
        Some(program) => {
            let node = args.node.as_ref().map(ToString::to_string).unwrap_or_default();
            let content_type = args.content_type.clone();
            let runner = Arc::new(Runner { program, content_type, node });
            worker.raw(name, move |input, cx| {
                let runner = Arc::clone(&runner);
                async move { runner.run(input, &cx).await }
            })
        }
        None => worker.raw(name, |input: Bytes, cx: Context| async move {
            Ok::<_, Failure>(Payload::new(input, cx.content_type()))
        }),
    };
    let stop = interrupts.first("leaving: tasks at work are finished first");
    let left = worker.run_until(stop).await.map_err(|error| failing::worker(&error))?;
    if left.reason == LeftReason::Drained {
        note("the server drained this worker");
    }
    if left.abandoned > 0 {
        note(&format!("{} tasks were handed back unfinished", left.abandoned));
    }
    Ok(Exit::Done)
}

fn find(command: &str, args: &WorkerArgs) -> Result<Program, Report> {
    let mut program = Program::find(command).map_err(|error| {
        let advice = match &error {
            InvalidProgram::NotRunnable { .. } => {
                "check the name and PATH, or make the file executable"
            }
            InvalidProgram::Command(_) => "quote the argument, or run `sh -c '...'`",
        };
        Report::input(error.to_string(), advice)
    })?;
    if args.output_limit.0 > OUTPUT_MAX || args.output_limit.0 == 0 {
        return Err(Report::input(
            format!("--output-limit {} is out of range", args.output_limit),
            "give 1B to 16MiB",
        ));
    }
    program.timeout = args.timeout.map(|span| span.0);
    program.output_limit = usize::try_from(args.output_limit.0).unwrap_or(usize::MAX);
    Ok(program)
}

/// Tells people what happens to the worker.
fn tell(event: WorkerEvent) {
    match event {
        WorkerEvent::Registered { worker_id, address } => {
            note(&format!("worker {worker_id} is registered at {address}"));
        }
        WorkerEvent::Disconnected { reason } => note(&format!("disconnected: {reason}")),
        WorkerEvent::DialFailed { error, retry_in: Some(wait) } => {
            note(&format!("{error}; trying again in {wait:.1?}"));
        }
        WorkerEvent::PoolRefused { pool, refusal } => note(&format!("{pool} refused: {refusal}")),
        WorkerEvent::ResultRefused { task_id, verdict, .. } => {
            note(&format!("the result of {task_id} came too late ({verdict})"));
        }
        WorkerEvent::NoCredit { since } => note(&format!("no credit granted for {since:.0?}")),
        WorkerEvent::Draining => note("the server asks this worker to finish and leave"),
        _ => {}
    }
}

/// A program and what its results are.
struct Runner {
    program: Program,
    content_type: String,
    /// Empty if the worker is on none.
    node: String,
}

impl Runner {
    /// Runs the program for one delivery. When the task is taken away its process group ends.
    async fn run(&self, input: Bytes, cx: &Context) -> Result<Payload, Failure> {
        let run = self.program.run(facts(cx, &self.node), input);
        tokio::select! {
            biased;
            ended = run => match ended {
                Ok(output) => Ok(Payload::new(output, self.content_type.clone())),
                Err(error) => Err(failure(&error)),
            },
            reason = cx.cancelled() => Err(Failure::cancelled(reason)),
        }
    }
}

fn failure(error: &RunError) -> Failure {
    let failure =
        if error.is_retryable() { Failure::retryable(error) } else { Failure::terminal(error) };
    failure.code(error.code())
}

/// The facts of a delivery for the environment of a program.
fn facts(cx: &Context, node: &str) -> Vec<(&'static str, String)> {
    let (pool, lease) = (cx.pool(), cx.lease());
    vec![
        ("SLIP_TASK_ID", cx.task_id().to_string()),
        ("SLIP_TYPE", pool.activity_type.to_string()),
        ("SLIP_NAMESPACE", pool.namespace.to_string()),
        ("SLIP_QUEUE", pool.task_queue.to_string()),
        ("SLIP_ATTEMPT", cx.attempt().to_string()),
        ("SLIP_DELIVERY", (cx.deliveries() + 1).to_string()),
        ("SLIP_LEASE", lease.id.to_string()),
        ("SLIP_EPOCH", lease.epoch.to_string()),
        ("SLIP_NODE", node.to_owned()),
        ("SLIP_CONTENT_TYPE", fact(cx.content_type().as_bytes())),
        ("SLIP_OWNER_KEY", fact(cx.owner_key())),
        ("SLIP_ORDINAL", cx.ordinal().to_string()),
        ("SLIP_GENERATION", cx.generation().to_string()),
    ]
}

/// What a producer wrote, as the environment can hold it: without the one byte that it cannot.
fn fact(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}
