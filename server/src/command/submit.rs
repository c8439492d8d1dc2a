//! `slip submit`: one task, or one for each line of the input.

mod input;
mod lines;

use serde::Serialize;
use slipswitch::{Payload, SubmitOptions, TaskHandle, TaskId};

use super::task::Waiting;
use super::{Reach, failing, runtime};
use crate::cli::{Format, ServerArgs, SubmitArgs};
use crate::output;
use crate::report::{Exit, Report};
use crate::stop::Interrupts;
use input::Source;

/// A task that was accepted.
#[derive(Debug, Serialize)]
struct Accepted {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    task_id: TaskIdText,
    durable: bool,
}

/// An id as text.
#[derive(Debug)]
struct TaskIdText(TaskId);

impl Serialize for TaskIdText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl Accepted {
    const fn of<T>(handle: &TaskHandle<T>, line: Option<u64>) -> Self {
        Self { line, task_id: TaskIdText(handle.id()), durable: handle.is_durable() }
    }
}

/// Submits what was typed.
pub(super) fn run(server: ServerArgs, args: SubmitArgs, format: Format) -> Result<Exit, Report> {
    let source = Source::of(args.payload.as_deref(), args.lines)?;
    if args.lines {
        let (lines, reach) = (source.lines()?, Reach::new(server)?);
        return runtime()?.block_on(lines::run(&reach, &args, lines));
    }
    let payload = Payload::new(source.read(&args.content_type)?, args.content_type.clone());
    let reach = Reach::new(server)?;
    runtime()?.block_on(one(&reach, &args, payload, format))
}

async fn one(
    reach: &Reach,
    args: &SubmitArgs,
    payload: Payload,
    format: Format,
) -> Result<Exit, Report> {
    let mut interrupts = Interrupts::listen()?;
    let client = reach.client().await?;
    let submitted = client.submit_raw(args.activity_type.as_str(), payload, options(args)).await;
    let mut handle = submitted.map_err(|error| failing::submit(&error.kind))?;
    let Some(limit) = args.wait() else {
        match format {
            Format::Table => output::text(&handle.id().to_string())?,
            Format::Json | Format::Jsonl => output::object(&Accepted::of(&handle, None))?,
        }
        client.close().await;
        return Ok(Exit::Done);
    };
    let waiting = Waiting { client: &client, id: handle.id(), limit: Some(limit), format };
    let exit = tokio::select! {
        exit = waiting.answer(handle.outcome()) => exit,
        () = interrupts.next() => Err(waiting.in_vain().await),
    };
    client.close().await;
    exit
}

/// Says what the arguments say about the task.
fn options(args: &SubmitArgs) -> SubmitOptions {
    let mut options = SubmitOptions::default()
        .namespace(args.place.namespace.as_str())
        .task_queue(args.place.queue.as_str())
        .content_type(args.content_type.as_str());
    if let Some(node) = &args.require {
        options = options.require(node.as_str());
    }
    for node in &args.prefer {
        options = options.prefer(node.as_str());
    }
    if let Some(key) = &args.affinity {
        options = options.affinity(key.clone());
    }
    if let Some(limit) = args.schedule_to_start {
        options = options.schedule_to_start(limit.0);
    }
    if let Some(limit) = args.deadline {
        options = options.deadline(limit.0);
    }
    if let Some(attempts) = args.max_attempts {
        let mut policy = slipswitch::RetryPolicy::default();
        policy.max_attempts = attempts;
        options = options.retry(policy);
    }
    if let Some(key) = &args.key {
        options = options.key(key.clone());
    }
    if let Some(delay) = args.delay {
        options = options.delay(delay.0);
    }
    if let Some(limit) = args.start_to_close {
        options = options.start_to_close(limit.0);
    }
    if let Some(limit) = args.heartbeat_timeout {
        options = options.heartbeat_timeout(limit.0);
    }
    if let Some(retention) = args.retention {
        options = options.retention(retention.0);
    }
    if let Some(priority) = args.priority {
        options = options.priority(priority);
    }
    if let Some(key) = &args.owner_key {
        options = options.owner_key(key.clone());
    }
    options = options.ordinal(args.ordinal).generation(args.generation);
    if args.wait.is_none() {
        options = options.detached();
    }
    options
}
