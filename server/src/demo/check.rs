//! The demo's check: what the producer noted against what the workers noted.
//!
//! Every task submitted was settled exactly once, its result is right, and the delivery that the
//! result names is one that a worker executed. A second execution is explained only if the server
//! refused its result or if its worker was killed; otherwise the task was settled twice.

use super::journal::{Note, Record};
use super::producer::Notes;
use slipswitch::TaskId;

/// What the workers noted.
#[derive(Debug, Default)]
pub(super) struct Journals {
    /// Those of workers that left in order.
    pub(super) left: Vec<Record>,
    /// That of the worker that was killed.
    pub(super) killed: Vec<Record>,
}

/// What the check found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Tasks with a right result.
    pub(super) completed: u64,
    /// Tasks that were accepted and have no outcome.
    pub(super) lost: u64,
    /// Tasks of which two deliveries were settled.
    pub(super) settled_twice: u64,
    /// Tasks that were settled by a later delivery than the first accepted one.
    pub(super) redelivered: u64,
    /// Tasks with a wrong result, or with none though they ended.
    pub(super) wrong: u64,
    /// Settlements that no worker's journal knows, and executions that make no sense.
    pub(super) unexplained: u64,
}

impl Findings {
    /// True if everything that the demo promises held.
    pub(super) const fn is_clean(&self) -> bool {
        self.lost == 0 && self.settled_twice == 0 && self.wrong == 0 && self.unexplained == 0
    }
}

/// A delivery that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Execution {
    task: TaskId,
    epoch: u64,
    was_killed: bool,
}

/// Checks an act.
pub(super) fn check(notes: &Notes, journals: &Journals) -> Findings {
    let mut found = Findings::default();
    let mut settled: Vec<(TaskId, Option<u64>)> = Vec::with_capacity(notes.settled.len());
    for task in &notes.settled {
        match task.head {
            Some(head) => {
                found.completed += 1;
                found.redelivered += u64::from(head.deliveries > 0);
            }
            None => found.wrong += 1,
        }
        settled.push((task.task, task.head.map(|head| head.epoch)));
    }
    settled.sort_unstable();
    let mut submitted = notes.submitted.clone();
    submitted.sort_unstable();
    let ids = submitted.len();
    submitted.dedup();
    found.unexplained += (ids - submitted.len()) as u64;
    let count = |id: &TaskId| {
        let from = settled.partition_point(|(task, _)| task < id);
        let of_task = settled.iter().skip(from).take_while(|(task, _)| task == id);
        of_task.count()
    };
    for id in &submitted {
        match count(id) {
            0 => found.lost += 1,
            1 => {}
            _ => found.settled_twice += 1,
        }
    }
    let strangers = settled.iter().filter(|(task, _)| submitted.binary_search(task).is_err());
    found.unexplained += strangers.count() as u64;
    executions(journals, &submitted, &settled, &mut found);
    found
}

fn executions(
    journals: &Journals,
    submitted: &[TaskId],
    settled: &[(TaskId, Option<u64>)],
    found: &mut Findings,
) {
    let noted = |records: &[Record], note, was_killed| -> Vec<Execution> {
        let records = records.iter().filter(|record| record.note == note);
        let executions =
            records.map(|&Record { task, epoch, .. }| Execution { task, epoch, was_killed });
        executions.collect()
    };
    let mut refused = noted(&journals.left, Note::Refused, false);
    refused.sort_unstable();
    let mut executed = noted(&journals.left, Note::Executed, false);
    executed.extend(noted(&journals.killed, Note::Executed, true));
    executed.sort_unstable();
    let delivery = |execution: &Execution| (execution.task, execution.epoch);
    let mut previous = None;
    for execution in &executed {
        // One delivery is executed once, and only of a task that was submitted.
        let is_repeated = previous.replace(delivery(execution)) == Some(delivery(execution));
        let is_known = submitted.binary_search(&execution.task).is_ok();
        if is_repeated || !is_known {
            found.unexplained += 1;
            continue;
        }
        let made_it = settled.binary_search(&(execution.task, Some(execution.epoch))).is_ok();
        let was_refused = refused.binary_search(execution).is_ok();
        if made_it {
            // Refused and settled at once cannot be.
            found.unexplained += u64::from(was_refused);
        } else if !was_refused && !execution.was_killed {
            found.settled_twice += 1;
        }
    }
    for (task, epoch) in settled {
        let Some(epoch) = *epoch else { continue };
        let at = executed.binary_search_by_key(&(*task, epoch), delivery);
        found.unexplained += u64::from(at.is_err());
    }
}

#[cfg(test)]
mod tests;
