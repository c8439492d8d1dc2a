use super::*;
use crate::demo::labour::Head;
use crate::demo::producer::Settled;
use slipswitch_core::Instant;

fn task(number: u64) -> TaskId {
    TaskId::from_bytes(u128::from(number + 1).to_be_bytes())
}

fn settled(number: u64, epoch: u64, deliveries: u32) -> Settled {
    let head = Some(Head { epoch, deliveries });
    Settled { task: task(number), head, at: Instant::from_micros(0), latency_us: 1 }
}

fn record(note: Note, number: u64, epoch: u64) -> Record {
    Record { note, task: task(number), epoch }
}

/// Two tasks, each executed and settled once.
fn clean() -> (Notes, Journals) {
    let notes = Notes {
        submitted: vec![task(0), task(1)],
        settled: vec![settled(1, 11, 0), settled(0, 10, 0)],
    };
    let left = vec![record(Note::Executed, 0, 10), record(Note::Executed, 1, 11)];
    (notes, Journals { left, killed: Vec::new() })
}

fn found((notes, journals): (Notes, Journals)) -> Findings {
    check(&notes, &journals)
}

#[test]
fn each_once_is_clean() {
    let found = found(clean());
    assert_eq!(found, Findings { completed: 2, ..Findings::default() });
    assert!(found.is_clean());
}

#[test]
fn a_task_without_an_outcome_is_lost() {
    let mut act = clean();
    act.0.settled.pop();
    let found = found(act);
    assert_eq!((found.lost, found.is_clean()), (1, false));
}

#[test]
fn two_outcomes_are_settled_twice() {
    let mut act = clean();
    act.0.settled.push(settled(0, 10, 0));
    assert_eq!(found(act).settled_twice, 1);
}

#[test]
fn a_second_execution_that_nobody_refused_is_settled_twice() {
    let mut act = clean();
    act.1.left.push(record(Note::Executed, 0, 12));
    assert_eq!(found(act).settled_twice, 1);
}

#[test]
fn a_refused_second_execution_is_explained() {
    let mut act = clean();
    act.1.left.push(record(Note::Executed, 0, 9));
    act.1.left.push(record(Note::Refused, 0, 9));
    assert!(found(act).is_clean());
}

#[test]
fn an_execution_by_the_killed_worker_is_explained_and_counted() {
    let mut act = clean();
    act.0.settled[1] = settled(0, 10, 1);
    act.1.killed.push(record(Note::Executed, 0, 9));
    let found = found(act);
    assert!(found.is_clean());
    assert_eq!(found.redelivered, 1);
}

#[test]
fn a_settlement_that_no_journal_knows_is_unexplained() {
    let mut act = clean();
    act.1.left.pop();
    assert_eq!(found(act).unexplained, 1);
}

#[test]
fn a_delivery_that_ran_twice_is_unexplained() {
    let mut act = clean();
    act.1.left.push(record(Note::Executed, 0, 10));
    assert_eq!(found(act).unexplained, 1);
}

#[test]
fn a_settlement_that_was_refused_is_unexplained() {
    let mut act = clean();
    act.1.left.push(record(Note::Refused, 0, 10));
    assert_eq!(found(act).unexplained, 1);
}

#[test]
fn a_wrong_result_is_told() {
    let mut act = clean();
    act.0.settled[0].head = None;
    let found = found(act);
    assert_eq!((found.wrong, found.completed, found.is_clean()), (1, 1, false));
}
