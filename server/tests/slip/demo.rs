//! `slip demo`: the one command that shows that it works, and checks itself.

use rustix::process::Signal;
use serde_json::Value;

use crate::bed::{Running, User, pause};

/// The processes that a process started, hidden ones included.
fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

/// Says whether a process runs.
fn runs(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn the_demo_checks_itself_and_tells_programs() {
    let user = User::new();
    let said = user.run(&["demo", "--tasks", "2000", "--workers", "3", "-o", "json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.out.lines().count(), 1, "{said:?}");
    let line = said.out.lines().last().unwrap();
    let summary: Value = serde_json::from_str(line).unwrap();
    let number = |path: &str| summary.pointer(path).and_then(Value::as_u64).unwrap();
    assert_eq!((number("/schema"), number("/workers")), (1, 3));
    assert_eq!((number("/tasks"), number("/completed")), (2000, 2000));
    assert_eq!((number("/lost"), number("/settled_twice")), (0, 0));
    assert_eq!((number("/kill/tasks"), number("/kill/completed")), (200, 200));
    assert!(number("/kill/redelivered") > 0, "{line}");
    assert!(number("/kill/recovered_ms") > 0 && number("/throughput_per_s") > 0, "{line}");
    let latency = ["p50", "p99", "p999", "max"].map(|at| number(&format!("/latency_us/{at}")));
    assert!(latency[0] > 0 && latency.is_sorted(), "{latency:?}");
    // The order of the keys is part of the promise.
    let mut from = 0;
    for key in [
        "schema",
        "transport",
        "tasks",
        "completed",
        "lost",
        "settled_twice",
        "redelivered",
        "workers",
        "seconds",
        "throughput_per_s",
        "latency_us",
        "p50",
        "p99",
        "p999",
        "max",
        "kill",
        "tasks",
        "completed",
        "redelivered",
        "recovered_ms",
    ] {
        let at = line[from..].find(&format!("\"{key}\":"));
        from += at.unwrap_or_else(|| panic!("{key} is not in its place in {line}"));
    }
    assert!(line.starts_with("{\"schema\":1,\"transport\":\"quic\","));
    let left = std::fs::read_dir(user.home.path()).unwrap().count();
    assert_eq!(left, 0, "journals were left behind");
}

#[test]
fn the_demo_tells_people() {
    let user = User::new();
    let out = user.run(&["demo", "--tasks", "10", "--payload", "100KiB"]).ok();
    for words in ["act one: 10 tasks of 100KiB", "act two: 1 tasks", "SIGKILL", "exactly once"] {
        assert!(out.contains(words), "{words:?} is not in {out}");
    }
    assert!(!out.contains('\r') && !out.contains('\u{1b}'));
}

#[test]
fn no_process_outlives_the_demo() {
    let user = User::new();
    let demo = Running::start(user.command(&["demo", "--tasks", "100000000"]));
    let started = loop {
        let started = children(demo.id());
        if started.len() >= 3 {
            break started;
        }
        pause();
    };
    demo.signal(Signal::KILL);
    while started.iter().any(|&id| runs(id)) {
        pause();
    }
}

#[test]
fn an_interrupted_demo_says_that_nothing_was_checked() {
    let user = User::new();
    let demo = Running::start(user.command(&["demo", "--tasks", "100000000"]));
    while children(demo.id()).len() < 3 {
        pause();
    }
    demo.signal(Signal::INT);
    let said = demo.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("the demo was interrupted"), "{said:?}");
}
