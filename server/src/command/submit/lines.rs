//! `slip submit --lines`: one task a line, and one line of JSON for each.
//!
//! A thread reads the input, so that a slow pipe holds nobody up; it waits for a permit before each
//! line, so that no more than `--in-flight` lines are in memory or on their way. The first line
//! that is refused, or an interrupt, ends the input; what was accepted by then is still answered.

use std::collections::VecDeque;
use std::io::BufRead;
use std::sync::Arc;

use slipswitch::{Client, Outcome, Payload, SubmitOptions, TaskHandle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::input::{check, line};
use super::{Accepted, options};
use crate::cli::SubmitArgs;
use crate::command::view::Ended;
use crate::command::{Reach, failing};
use crate::output;
use crate::report::{Exit, Fault, Report};
use crate::stop::{Interrupts, end_at_once, note};

/// A line of the input and the right to have it in memory.
struct Line {
    number: u64,
    bytes: Vec<u8>,
    permit: OwnedSemaphorePermit,
}

const INTERRUPTED: &str =
    "reading no further; what was accepted is answered; interrupt again to end at once";

type Read = Result<Line, Report>;

/// What every line needs.
#[derive(Clone)]
struct Sender {
    client: Client,
    activity_type: String,
    content_type: String,
    options: SubmitOptions,
    give_up: Option<Instant>,
}

/// What became of a line.
enum Answer {
    /// It was accepted, and nobody waits for its outcome.
    Accepted(Accepted),
    /// It has ended.
    Ended(u64, Outcome),
    /// It was accepted and did not end in time.
    TimedOut(Accepted),
    /// It was refused, or nobody can say.
    Refused(Report),
}

/// An answer, and the permit of its line.
type Sent = (Answer, Option<OwnedSemaphorePermit>);

/// Submits each line and answers each.
pub(super) async fn run(
    reach: &Reach,
    args: &SubmitArgs,
    source: Box<dyn BufRead + Send>,
) -> Result<Exit, Report> {
    let mut interrupts = Interrupts::listen()?;
    let client = reach.client().await?;
    let sender = Sender {
        client: client.clone(),
        activity_type: args.activity_type.to_string(),
        content_type: args.content_type.clone(),
        options: options(args),
        give_up: args.wait().map(|limit| Instant::now() + limit),
    };
    let mut lines = read(source, args.in_flight as usize);
    let mut tasks = if args.wait.is_some() { Tasks::any_order() } else { Tasks::in_order() };
    let mut tally = Tally::default();
    let (mut reading, mut interrupted) = (true, false);
    while reading || !tasks.is_empty() {
        tokio::select! {
            biased;
            () = interrupts.next() => {
                if std::mem::replace(&mut interrupted, true) {
                    end_at_once();
                }
                note(INTERRUPTED);
                reading = false;
                lines.close();
            }
            (answer, _permit) = tasks.next(), if !tasks.is_empty() => {
                if !tally.take(answer)? && reading {
                    reading = false;
                    lines.close();
                }
            }
            next = lines.recv(), if reading => match next {
                Some(Ok(line)) => tasks.start(sender.clone().send(line)),
                Some(Err(report)) => {
                    tally.refused(report);
                    reading = false;
                }
                None => reading = false,
            },
        }
    }
    client.close().await;
    tally.verdict()
}

/// Reads lines on a thread of its own.
fn read(mut source: Box<dyn BufRead + Send>, in_flight: usize) -> mpsc::Receiver<Read> {
    let permits = Arc::new(Semaphore::new(in_flight));
    let (found, lines) = mpsc::channel(in_flight.min(256));
    let handle = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        for number in 1.. {
            let permit = handle.block_on(Arc::clone(&permits).acquire_owned());
            let Ok(permit) = permit else { return };
            let read = match line(&mut *source) {
                Ok(Some(bytes)) => Ok(Line { number, bytes, permit }),
                Ok(None) => return,
                Err(report) => Err(report.within(&format!("line {number}"))),
            };
            let failed = read.is_err();
            if handle.block_on(found.send(read)).is_err() || failed {
                return;
            }
        }
    });
    lines
}

impl Sender {
    /// Sends a line; its permit is kept until its answer is written.
    async fn send(self, line: Line) -> Sent {
        let Line { number, bytes, permit } = line;
        (self.answer(number, bytes).await, Some(permit))
    }

    async fn answer(self, number: u64, bytes: Vec<u8>) -> Answer {
        let place = format!("line {number}");
        if let Err(report) = check(&bytes, &self.content_type) {
            return Answer::Refused(report.within(&place));
        }
        let payload = Payload::new(bytes, self.content_type);
        let sent = self.client.submit_raw(&self.activity_type, payload, self.options).await;
        let mut handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Answer::Refused(failing::submit(&error.kind).within(&place)),
        };
        let accepted = Accepted::of(&handle, Some(number));
        let Some(give_up) = self.give_up else { return Answer::Accepted(accepted) };
        wait(&mut handle, give_up, number, accepted).await
    }
}

async fn wait(
    handle: &mut TaskHandle,
    give_up: Instant,
    number: u64,
    accepted: Accepted,
) -> Answer {
    match tokio::time::timeout_at(give_up, handle.outcome()).await {
        Ok(Ok(outcome)) => Answer::Ended(number, outcome),
        Ok(Err(error)) => {
            let place = format!("line {number}, {}", handle.id());
            Answer::Refused(failing::query(&error).within(&place))
        }
        Err(_) => Answer::TimedOut(accepted),
    }
}

/// Lines on their way: answered in the order of the input, or as they end.
enum Tasks {
    InOrder(VecDeque<JoinHandle<Sent>>),
    AnyOrder(JoinSet<Sent>),
}

impl Tasks {
    fn in_order() -> Self {
        Self::InOrder(VecDeque::new())
    }

    fn any_order() -> Self {
        Self::AnyOrder(JoinSet::new())
    }

    fn start(&mut self, line: impl Future<Output = Sent> + Send + 'static) {
        match self {
            Self::InOrder(tasks) => tasks.push_back(tokio::spawn(line)),
            Self::AnyOrder(tasks) => drop(tasks.spawn(line)),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::InOrder(tasks) => tasks.is_empty(),
            Self::AnyOrder(tasks) => tasks.is_empty(),
        }
    }

    /// Waits for the next answer.
    ///
    /// # Cancel safety
    ///
    /// No answer is lost: one is taken only when the wait for it is over.
    async fn next(&mut self) -> Sent {
        let ended = match self {
            Self::InOrder(tasks) => match tasks.front_mut() {
                Some(task) => {
                    let ended = task.await;
                    tasks.pop_front();
                    Some(ended)
                }
                None => None,
            },
            Self::AnyOrder(tasks) => tasks.join_next().await,
        };
        match ended {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => {
                let what = format!("a line was lost: {error}");
                let report = Report::new(Exit::Failed, Fault::Ours, what, "report this as a bug");
                (Answer::Refused(report), None)
            }
            None => std::future::pending().await,
        }
    }
}

/// What has become of the lines so far.
#[derive(Default)]
struct Tally {
    accepted: u64,
    failed: u64,
    timed_out: u64,
    refused: Option<Report>,
    more_refused: u64,
}

impl Tally {
    /// Writes an answer; false ends the input.
    fn take(&mut self, answer: Answer) -> Result<bool, Report> {
        match answer {
            Answer::Accepted(accepted) => {
                self.accepted += 1;
                output::object(&accepted)?;
            }
            Answer::Ended(line, outcome) => {
                self.accepted += 1;
                self.failed += u64::from(!outcome.is_completed());
                output::object(&Ended::of(&outcome, Some(line)))?;
            }
            Answer::TimedOut(accepted) => {
                self.accepted += 1;
                self.timed_out += 1;
                output::object(&accepted)?;
            }
            Answer::Refused(report) => {
                self.refused(report);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps the first refusal.
    fn refused(&mut self, report: Report) {
        match self.refused {
            None => self.refused = Some(report),
            Some(_) => self.more_refused += 1,
        }
    }

    fn verdict(self) -> Result<Exit, Report> {
        let Self { accepted, failed, timed_out, refused, more_refused } = self;
        if let Some(report) = refused {
            let lines = if accepted == 1 { "line was" } else { "lines were" };
            let more = match more_refused {
                0 => String::new(),
                more => format!(", {more} more refused"),
            };
            return Err(report.and_then(&format!("{accepted} {lines} accepted{more}")));
        }
        if failed > 0 {
            note(&format!("{failed} of {accepted} tasks failed"));
            return Ok(Exit::Failed);
        }
        if timed_out > 0 {
            note(&format!("{timed_out} of {accepted} tasks have not ended in time; they go on"));
            return Ok(Exit::TimedOut);
        }
        Ok(Exit::Done)
    }
}
