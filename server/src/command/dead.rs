//! `slip dead`: tasks that were given up.

use std::collections::BTreeMap;

use serde::Serialize;
use slipswitch::{DeadQuery, TaskId, TaskInfo};

use super::view::TaskView;
use super::{Reach, failing, runtime};
use crate::cli::{DeadArgs, DeadBy, DeadTarget, Format};
use crate::output::{self, Row};
use crate::report::{Exit, Report};

fn query(args: &DeadArgs) -> DeadQuery {
    let mut query = DeadQuery::default();
    if let Some(namespace) = &args.namespace {
        query = query.namespace(namespace.as_str());
    }
    if let Some(queue) = &args.queue {
        query = query.task_queue(queue.as_str());
    }
    if let Some(activity_type) = &args.activity_type {
        query = query.activity_type(activity_type.as_str());
    }
    if let Some(reason) = &args.reason {
        query = query.reason(reason);
    }
    if let Some(fingerprint) = &args.alike {
        query = query.fingerprint(fingerprint);
    }
    query
}

/// A task that was given up, in a list.
#[derive(Debug, Serialize)]
struct DeadView {
    task_id: String,
    class: String,
    code: String,
    message: String,
    pool: String,
    attempt: u32,
    fingerprint: String,
}

impl DeadView {
    fn of(task: &TaskInfo) -> Self {
        Self {
            task_id: task.task_id.to_string(),
            class: task.class.clone(),
            code: task.code.clone(),
            message: task.message.clone(),
            pool: task.pool.to_string(),
            attempt: task.attempt,
            fingerprint: task.fingerprint.clone(),
        }
    }
}

/// Characters of a message in a list for people.
const MESSAGE_SHOWN: usize = 48;

fn short(message: &str) -> String {
    if message.chars().count() <= MESSAGE_SHOWN {
        return message.to_owned();
    }
    let mut short: String = message.chars().take(MESSAGE_SHOWN - 1).collect();
    short.push('…');
    short
}

impl Row for DeadView {
    const COLUMNS: &'static [&'static str] =
        &["TASK", "REASON", "CODE", "MESSAGE", "POOL", "FINGERPRINT"];

    fn cells(&self) -> Vec<String> {
        let message = short(&self.message);
        let Self { task_id, class, code, pool, fingerprint, .. } = self;
        [task_id, class, code, &message, pool, fingerprint].into_iter().cloned().collect()
    }
}

/// Dead letters that look alike.
#[derive(Debug, Serialize)]
struct Alike {
    fingerprint: String,
    tasks: u64,
    class: String,
    code: String,
    message: String,
}

impl Row for Alike {
    const COLUMNS: &'static [&'static str] =
        &["FINGERPRINT", "TASKS", "REASON", "CODE", "THE FIRST SAYS"];

    fn cells(&self) -> Vec<String> {
        let (tasks, message) = (self.tasks.to_string(), short(&self.message));
        let Self { fingerprint, class, code, .. } = self;
        [fingerprint, &tasks, class, code, &message].into_iter().cloned().collect()
    }
}

/// Lists dead letters, or counts those that look alike.
pub(super) fn list(
    reach: &Reach,
    filter: DeadArgs,
    by: Option<DeadBy>,
    limit: u32,
    format: Format,
) -> Result<Exit, Report> {
    // Counting goes over all of them; the limit is one of lines.
    let most = if by.is_some() { u32::MAX } else { limit };
    let query = query(&filter).limit(usize::try_from(most).unwrap_or(usize::MAX));
    let letters = runtime()?.block_on(async {
        let client = reach.client().await?;
        let letters = client.dead(&query).await.map_err(|error| failing::query(&error));
        client.close().await;
        letters
    })?;
    match by {
        None => {
            let rows: Vec<DeadView> = letters.iter().map(DeadView::of).collect();
            output::list(&rows, format, "dead letters")?;
        }
        Some(DeadBy::Fingerprint) => {
            let mut alike: BTreeMap<&str, Alike> = BTreeMap::new();
            for letter in &letters {
                let found = alike.entry(&letter.fingerprint).or_insert_with(|| Alike {
                    fingerprint: letter.fingerprint.clone(),
                    tasks: 0,
                    class: letter.class.clone(),
                    code: letter.code.clone(),
                    message: letter.message.clone(),
                });
                found.tasks += 1;
            }
            let mut rows: Vec<Alike> = alike.into_values().collect();
            rows.sort_by_key(|alike| std::cmp::Reverse(alike.tasks));
            rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            output::list(&rows, format, "dead letters")?;
        }
    }
    Ok(Exit::Done)
}

/// Shows one.
pub(super) fn show(reach: &Reach, id: TaskId, format: Format) -> Result<Exit, Report> {
    let letter = runtime()?.block_on(async {
        let client = reach.client().await?;
        let letter = client.dead_letter(id).await.map_err(|error| failing::query(&error));
        client.close().await;
        letter
    })?;
    let view = TaskView::of(&letter);
    match format {
        Format::Table => output::facts(&view.facts())?,
        Format::Json | Format::Jsonl => output::object(&view)?,
    }
    Ok(Exit::Done)
}

#[derive(Debug, Serialize)]
struct Affected {
    affected: u64,
}

fn say(count: u64, what: &str, format: Format) -> Result<Exit, Report> {
    match format {
        Format::Table => {
            let tasks = if count == 1 { "task" } else { "tasks" };
            output::text(&format!("{count} {tasks} {what}"))?;
        }
        Format::Json | Format::Jsonl => output::object(&Affected { affected: count })?,
    }
    Ok(Exit::Done)
}

/// Has dead tasks live again.
pub(super) fn requeue(reach: &Reach, target: DeadTarget, format: Format) -> Result<Exit, Report> {
    let count = runtime()?.block_on(async {
        let client = reach.client().await?;
        let done = match target.id {
            Some(id) => client.requeue(id).await.map(|()| 1),
            None => client.requeue_all(&query(&target.filter)).await,
        };
        client.close().await;
        done.map_err(|error| failing::query(&error))
    })?;
    say(count, "requeued", format)
}

/// Forgets dead tasks.
pub(super) fn discard(reach: &Reach, target: DeadTarget, format: Format) -> Result<Exit, Report> {
    let count = runtime()?.block_on(async {
        let client = reach.client().await?;
        let done = match target.id {
            Some(id) => client.discard(id).await.map(|()| 1),
            None => client.discard_all(&query(&target.filter)).await,
        };
        client.close().await;
        done.map_err(|error| failing::query(&error))
    })?;
    say(count, "discarded", format)
}
