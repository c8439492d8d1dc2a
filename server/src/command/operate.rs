//! Commands that change something: cancelling, holding, draining.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use slipswitch::{
    Client, DrainScope, Hold, HoldInfo, Policy, PoolKey, QueryError, TaskId, WorkerId,
};

use super::{Reach, failing, runtime};
use crate::cli::{CancelArgs, Format, HoldArgs, HoldKind, ScopeArgs};
use crate::output::{self, Row};
use crate::report::{Exit, Report};

/// Carries a command out on a client of its own.
fn carry_out<T>(
    reach: &Reach,
    command: impl AsyncFnOnce(&Client) -> Result<T, QueryError>,
) -> Result<T, Report> {
    runtime()?.block_on(async {
        let client = reach.client().await?;
        let done = command(&client).await;
        client.close().await;
        done.map_err(|error| failing::query(&error))
    })
}

/// Says what was done.
fn say<T: Serialize>(format: Format, text: &str, value: &T) -> Result<Exit, Report> {
    match format {
        Format::Table => output::text(text)?,
        Format::Json | Format::Jsonl => output::object(value)?,
    }
    Ok(Exit::Done)
}

#[derive(Debug, Serialize)]
struct CancelledTask {
    task_id: String,
    changed: bool,
    state: String,
}

#[derive(Debug, Serialize)]
struct Affected {
    affected: u64,
}

fn tasks(count: u64) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}

/// Cancels a task, or those of an owner.
pub(super) fn cancel(reach: &Reach, args: &CancelArgs, format: Format) -> Result<Exit, Report> {
    let grace = args.grace.map(|span| span.0);
    if let Some(id) = args.id {
        let cancelled =
            carry_out(reach, async |client| client.cancel(id, &args.reason, grace).await)?;
        let text = match (cancelled.changed, cancelled.state.as_str()) {
            (true, "cancelling") => format!("{id} is told to stop"),
            (true, _) => format!("{id} is cancelled"),
            (false, state) => format!("{id} is {state} already"),
        };
        let state = cancelled.state;
        let value = CancelledTask { task_id: id.to_string(), changed: cancelled.changed, state };
        return say(format, &text, &value);
    }
    let owner = args.owner.clone().unwrap_or_default();
    let affected = carry_out(reach, async |client| {
        let namespace = args.namespace.as_str();
        let client = client
            .in_namespace(namespace)
            .map_err(|_| QueryError::Malformed { what: "a namespace" })?;
        match args.below_generation {
            Some(generation) if args.supersede => client.supersede(&owner, generation).await,
            below => client.cancel_owner(owner.clone(), below, &args.reason).await,
        }
    })?;
    let text = format!("{} cancelled or told to stop", tasks(affected));
    say(format, &text, &Affected { affected })
}

#[derive(Debug, Serialize)]
struct Signalled {
    task_id: String,
    applied: bool,
}

/// Sends a signal and waits until the handler has it.
pub(super) fn signal(
    reach: &Reach,
    id: TaskId,
    kind: &str,
    payload: &str,
    format: Format,
) -> Result<Exit, Report> {
    carry_out(reach, async |client| client.signal(id, kind, payload).await)?;
    let value = Signalled { task_id: id.to_string(), applied: true };
    say(format, &format!("the handler of {id} has it"), &value)
}

#[derive(Debug, Serialize)]
struct RanNow {
    task_id: String,
    changed: bool,
}

/// Has a task not wait for its time.
pub(super) fn run_now(reach: &Reach, id: TaskId, format: Format) -> Result<Exit, Report> {
    let changed = carry_out(reach, async |client| client.run_now(id).await)?;
    let text = match changed {
        true => format!("{id} waits for a worker now"),
        false => format!("{id} waits for a worker already"),
    };
    say(format, &text, &RanNow { task_id: id.to_string(), changed })
}

#[derive(Debug, Serialize)]
struct PolicySet {
    pool: String,
    policy: &'static str,
}

/// Sets how the workers of a pool are chosen.
pub(super) fn set_policy(
    reach: &Reach,
    pool: &PoolKey,
    policy: Option<Policy>,
    format: Format,
) -> Result<Exit, Report> {
    carry_out(reach, async |client| client.set_policy(pool, policy).await)?;
    let policy = policy.map_or("default", Policy::as_str);
    let text = format!("{pool} goes by {policy}");
    say(format, &text, &PolicySet { pool: pool.to_string(), policy })
}

/// The scope of one worker.
pub(super) fn worker(number: u64) -> DrainScope {
    DrainScope::Worker(WorkerId::new(number))
}

#[derive(Debug, Serialize)]
struct Scoped {
    scope: String,
    draining: bool,
    workers: u64,
}

fn workers(count: u64) -> String {
    if count == 1 { "1 worker".to_owned() } else { format!("{count} workers") }
}

fn say_scope(
    scope: &DrainScope,
    draining: bool,
    word: &str,
    count: u64,
    format: Format,
) -> Result<Exit, Report> {
    let name = scope.to_string().replacen(':', " ", 1);
    let text = match scope {
        DrainScope::Worker(_) => format!("{name} is {word}"),
        _ => format!("{name} is {word}, {}", workers(count)),
    };
    say(format, &text, &Scoped { scope: scope.to_string(), draining, workers: count })
}

/// Drains a scope: when this returns nothing more of it is sent to a worker.
pub(super) fn drain(
    reach: &Reach,
    scope: &DrainScope,
    deadline: Option<Duration>,
    format: Format,
) -> Result<Exit, Report> {
    let count = carry_out(reach, async |client| client.drain(scope, deadline).await)?;
    say_scope(scope, true, "draining", count, format)
}

/// Drains the scope that was typed, or lifts that.
pub(super) fn drain_scope(reach: &Reach, args: ScopeArgs, format: Format) -> Result<Exit, Report> {
    let ScopeArgs { worker: number, node, pool, namespace, build, deadline, undo } = args;
    let scope = number
        .map(worker)
        .or_else(|| node.map(DrainScope::Node))
        .or_else(|| pool.map(DrainScope::Pool))
        .or_else(|| namespace.map(DrainScope::Namespace))
        .or_else(|| build.map(DrainScope::Build))
        .ok_or_else(|| Report::input("no scope is given", "slip drain --help has examples"))?;
    if undo {
        return uncordon(reach, &scope, format);
    }
    drain(reach, &scope, deadline.map(|span| span.0), format)
}

/// Cordons a scope.
pub(super) fn cordon(reach: &Reach, scope: &DrainScope, format: Format) -> Result<Exit, Report> {
    let count = carry_out(reach, async |client| client.cordon(scope).await)?;
    say_scope(scope, true, "cordoned", count, format)
}

/// Lifts a drain or cordon.
pub(super) fn uncordon(reach: &Reach, scope: &DrainScope, format: Format) -> Result<Exit, Report> {
    let count = carry_out(reach, async |client| client.uncordon(scope).await)?;
    say_scope(scope, false, "open again", count, format)
}

#[derive(Debug, Serialize)]
struct Evicted {
    worker: u64,
    evicted: bool,
}

/// Puts a worker out.
pub(super) fn evict(reach: &Reach, number: u64, format: Format) -> Result<Exit, Report> {
    carry_out(reach, async |client| client.evict(WorkerId::new(number)).await)?;
    let value = Evicted { worker: number, evicted: true };
    say(format, &format!("worker {number} is put out"), &value)
}

#[derive(Debug, Serialize)]
struct Held {
    scope: String,
    held: bool,
}

fn to_hold(kind: HoldKind, name: &str, args: &HoldArgs) -> Result<Hold, Report> {
    let wrong = |error: slipswitch::InvalidName| {
        Report::input(format!("{name}: {error}"), "slip hold --help has examples")
    };
    match kind {
        HoldKind::Owner => {
            let key = Bytes::copy_from_slice(name.as_bytes());
            Ok(Hold::Owner(args.namespace.clone(), key))
        }
        HoldKind::Pool => name.parse().map(Hold::Pool).map_err(wrong),
        HoldKind::Namespace => name.parse().map(Hold::Namespace).map_err(wrong),
    }
}

fn typed(args: &HoldArgs) -> Result<Option<(Hold, String)>, Report> {
    let (Some(kind), Some(name)) = (args.kind, &args.name) else { return Ok(None) };
    let word = match kind {
        HoldKind::Owner => "owner",
        HoldKind::Pool => "pool",
        HoldKind::Namespace => "namespace",
    };
    Ok(Some((to_hold(kind, name, args)?, format!("{word} {name}"))))
}

/// Holds what was typed.
pub(super) fn hold(reach: &Reach, args: HoldArgs, format: Format) -> Result<Exit, Report> {
    let Some((hold, name)) = typed(&args)? else { return list(reach, format) };
    carry_out(reach, async |client| client.hold(&hold).await)?;
    say(format, &format!("{name} is held"), &Held { scope: name.replacen(' ', ":", 1), held: true })
}

/// Releases what was typed, or lists what is held.
pub(super) fn release(reach: &Reach, args: HoldArgs, format: Format) -> Result<Exit, Report> {
    let Some((hold, name)) = typed(&args)? else { return list(reach, format) };
    carry_out(reach, async |client| client.release(&hold).await)?;
    let value = Held { scope: name.replacen(' ', ":", 1), held: false };
    say(format, &format!("{name} is released"), &value)
}

#[derive(Debug, Serialize)]
struct HoldView {
    scope: String,
    name: String,
    tasks: Option<u64>,
    held_s: u64,
}

impl Row for HoldView {
    const COLUMNS: &'static [&'static str] = &["SCOPE", "NAME", "TASKS", "HELD FOR"];

    fn cells(&self) -> Vec<String> {
        let tasks = self.tasks.map_or_else(|| "-".to_owned(), |tasks| tasks.to_string());
        vec![self.scope.clone(), self.name.clone(), tasks, format!("{} s", self.held_s)]
    }
}

fn list(reach: &Reach, format: Format) -> Result<Exit, Report> {
    let holds = carry_out(reach, async |client| client.holds().await)?;
    let view = |hold: HoldInfo| HoldView {
        scope: hold.scope,
        name: hold.name,
        tasks: hold.tasks,
        held_s: hold.age.as_secs(),
    };
    let rows: Vec<HoldView> = holds.into_iter().map(view).collect();
    output::list(&rows, format, "holds")?;
    Ok(Exit::Done)
}
