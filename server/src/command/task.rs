//! `slip tasks`: lists, one task, its result.

use std::time::Duration;

use slipswitch::{Client, QueryError, TaskId, TaskQuery};

use super::view::{Ended, TaskView};
use super::{Reach, failing, runtime};
use crate::cli::unit::Span;
use crate::cli::{Format, State, TasksListArgs};
use crate::output;
use crate::report::{Exit, Fault, Report};
use crate::stop::Interrupts;

/// Longer than this is without end.
const WITHOUT_END: Duration = Duration::from_secs(365 * 24 * 3600);

/// Lists tasks.
pub(super) fn list(reach: &Reach, args: TasksListArgs, format: Format) -> Result<Exit, Report> {
    let mut query = TaskQuery::default().limit(usize::try_from(args.limit).unwrap_or(usize::MAX));
    if let Some(namespace) = &args.namespace {
        query = query.namespace(namespace.as_str());
    }
    if let Some(queue) = &args.queue {
        query = query.task_queue(queue.as_str());
    }
    if let Some(activity_type) = &args.activity_type {
        query = query.activity_type(activity_type.as_str());
    }
    if let Some(state) = args.state {
        query = query.state(word(state));
    }
    let tasks = runtime()?.block_on(async {
        let client = reach.client().await?;
        let tasks = client.tasks(query).await.map_err(|error| failing::query(&error));
        client.close().await;
        tasks
    })?;
    let rows: Vec<TaskView> = tasks.iter().map(TaskView::of).collect();
    output::list(&rows, format, "tasks")?;
    Ok(Exit::Done)
}

const fn word(state: State) -> &'static str {
    match state {
        State::Scheduled => "scheduled",
        State::Pending => "pending",
        State::Offered => "offered",
        State::Running => "running",
        State::Completed => "completed",
        State::Dead => "dead",
        State::Cancelled => "cancelled",
        State::Cancelling => "cancelling",
    }
}

/// Shows one task.
pub(super) fn show(reach: &Reach, id: TaskId, format: Format) -> Result<Exit, Report> {
    let task = runtime()?.block_on(async {
        let client = reach.client().await?;
        let task = client.task(id).await.map_err(|error| failing::query(&error));
        client.close().await;
        task
    })?;
    let view = TaskView::of(&task);
    match format {
        Format::Table => output::facts(&view.facts())?,
        Format::Json | Format::Jsonl => output::object(&view)?,
    }
    Ok(Exit::Done)
}

/// Writes the result of a task.
pub(super) fn result(
    reach: &Reach,
    id: TaskId,
    wait: Option<Duration>,
    format: Format,
) -> Result<Exit, Report> {
    runtime()?.block_on(async {
        let mut interrupts = Interrupts::listen()?;
        let client = reach.client().await?;
        let waiting = Waiting { client: &client, id, limit: wait, format };
        let exit = tokio::select! {
            exit = waiting.result() => exit,
            () = interrupts.next() => Err(waiting.in_vain().await),
        };
        client.close().await;
        exit
    })
}

/// A wait for a task's outcome.
#[derive(Clone, Copy)]
pub(super) struct Waiting<'c> {
    pub(super) client: &'c Client,
    pub(super) id: TaskId,
    /// `None` does not wait.
    pub(super) limit: Option<Duration>,
    pub(super) format: Format,
}

impl Waiting<'_> {
    async fn result(&self) -> Result<Exit, Report> {
        let id = self.id;
        let task = self.client.task(id).await.map_err(|error| failing::query(&error))?;
        if self.limit.is_none() && task.class.is_empty() {
            return Err(self.in_vain().await);
        }
        self.answer(async { self.client.await_task(id).await }).await
    }

    /// Waits and writes how the task ended, or says why it has not.
    pub(super) async fn answer(
        &self,
        outcome: impl Future<Output = Result<slipswitch::Outcome, QueryError>>,
    ) -> Result<Exit, Report> {
        let limit = self.limit.unwrap_or(WITHOUT_END);
        let Ok(outcome) = tokio::time::timeout(limit, outcome).await else {
            return Err(self.in_vain().await);
        };
        let outcome = outcome.map_err(|error| failing::query(&error))?;
        match self.format {
            Format::Table if outcome.is_completed() => {
                output::bytes(outcome.payload().bytes(), outcome.payload().content_type())?;
            }
            Format::Table => return Err(failing::task(&outcome)),
            Format::Json | Format::Jsonl => output::object(&Ended::of(&outcome, None))?,
        }
        Ok(if outcome.is_completed() { Exit::Done } else { Exit::Failed })
    }

    /// Says why the task has no outcome yet.
    pub(super) async fn in_vain(&self) -> Report {
        let id = self.id;
        let reason = match self.client.task(id).await {
            Ok(task) => format!(" ({}, {})", task.state, task.reason),
            Err(_) => String::new(),
        };
        let after = match self.limit {
            Some(limit) if limit < WITHOUT_END => format!(" after {}", Span(limit)),
            _ => " yet".to_owned(),
        };
        Report::new(
            Exit::TimedOut,
            Fault::Environment,
            format!("{id} has no outcome{after}{reason}"),
            format!("it goes on; ask again with slip tasks result {id}"),
        )
    }
}
