//! `slip worker`: how a program's end becomes a task's.

use rustix::process::Signal;
use serde_json::json;

use crate::bed::{Served, lines_of};

#[test]
fn exit_codes_become_classes() {
    let served = Served::start();
    // The payload is the exit code; each run is noted.
    let runs = served.user.path("runs");
    let run = format!("sh -c 'read code; echo $code >> {runs}; echo no luck >&2; exit $code'");
    let _worker = served.worker(&["--type", "exit", "--exec", &run]);
    let ended = |code: &str, attempts: &str| {
        let line = ["submit", "exit", code, "--wait", "--max-attempts", attempts, "-o", "json"];
        let said = served.run(&line);
        (said.code, serde_json::from_str::<serde_json::Value>(&said.out).unwrap())
    };
    let (code, outcome) = ended("0", "3");
    assert_eq!((code, &outcome["state"]), (Some(0), &json!("completed")));
    let (code, outcome) = ended("3", "3");
    assert_eq!((code, &outcome["class"]), (Some(1), &json!("terminal_failure")));
    assert_eq!((&outcome["code"], &outcome["message"]), (&json!("exit-3"), &json!("no luck")));
    let (code, outcome) = ended("75", "2");
    assert_eq!((code, &outcome["class"]), (Some(1), &json!("attempts_exhausted")));
    assert_eq!(lines_of(&runs, 4), ["0", "3", "75", "75"]);
}

#[test]
fn a_failed_task_says_whose_fault_it_is() {
    let served = Served::start();
    let _worker =
        served.worker(&["--type", "t", "--exec", "sh -c 'echo card refused >&2; exit 9'"]);
    let said = served.run(&["submit", "t", "1", "--wait"]);
    said.refused(1, "handler", &["terminal_failure after 1 attempt", "exit-9", "card refused"]);
}

#[test]
fn facts_reach_the_program() {
    let served = Served::start();
    let show = "sh -c 'printf \"%s %s %s %s %s %s %s %s\" $SLIP_TASK_ID $SLIP_TYPE \
                $SLIP_NAMESPACE $SLIP_QUEUE $SLIP_NODE $SLIP_ATTEMPT $SLIP_DELIVERY \
                $SLIP_CONTENT_TYPE; test $SLIP_EPOCH -gt 0'";
    let place = ["--namespace", "pay", "--queue", "gpu"];
    let _worker = served
        .worker(&[&["--type", "facts", "--exec", show, "--node", "box-7"][..], &place].concat());
    let line = [&["submit", "facts", "1", "--wait", "-o", "json"][..], &place].concat();
    let ended = served.run(&line).json();
    let id = ended["task_id"].as_str().unwrap();
    let expected = format!("{id} facts pay gpu box-7 1 1 application/json");
    assert_eq!(ended["result_text"], expected.as_str());
}

#[test]
fn too_much_output_and_too_long_a_run_are_told_apart() {
    let served = Served::start();
    let limits = ["--output-limit", "1KiB", "--timeout", "200ms"];
    let run = "sh -c 'read what; if [ $what = 1 ]; then cat /dev/zero; else sleep 100; fi'";
    let _worker = served.worker(&[&["--type", "t", "--exec", run][..], &limits].concat());
    let said = served.run(&["submit", "t", "1", "--wait"]);
    said.refused(1, "handler", &["terminal_failure", "output-limit", "1024 bytes"]);
    let said = served.run(&["submit", "t", "2", "--wait", "--max-attempts", "1"]);
    said.refused(1, "handler", &["attempts_exhausted", "timeout", "200ms"]);
}

#[test]
fn the_first_interrupt_finishes_what_is_at_work() {
    let served = Served::start();
    let (began, gate) = (served.user.path("began"), served.user.path("gate"));
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let run = format!("sh -c 'echo x >> {began}; read line < {gate}; echo $line'");
    let mut worker = served.worker(&["--type", "t", "--exec", &run]);
    let id = served.submit(&["t", "1"]);
    lines_of(&began, 1);
    worker.signal(Signal::TERM);
    worker.err_line("leaving");
    std::fs::write(&gate, "finished\n").unwrap();
    let said = worker.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(served.run(&["tasks", "result", &id, "--wait"]).ok(), "finished\n");
    assert_eq!(served.run(&["workers", "list", "-o", "json"]).json(), json!([]));
}

#[test]
fn second_signal_exits_130() {
    let served = Served::start();
    let began = served.user.path("began");
    let run = format!("sh -c 'echo $$ >> {began}; sleep 1000'");
    let mut worker = served.worker(&["--type", "t", "--exec", &run]);
    served.submit(&["t", "1"]);
    lines_of(&began, 1);
    worker.signal(Signal::INT);
    worker.err_line("interrupt again");
    worker.signal(Signal::INT);
    let said = worker.end();
    assert_eq!(said.code, Some(130), "{said:?}");
}
