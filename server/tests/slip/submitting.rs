//! `slip submit`.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bed::{Running, Served};

fn values(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_result_comes_back() {
    let served = Served::start();
    let _worker = served.worker(&["--type", "shout", "--exec", "tr a-z A-Z"]);
    let result = served.run(&["submit", "shout", "\"ada\"", "--wait"]).ok();
    assert_eq!(result, "\"ADA\"");
    let file = served.user.file("text", b"from a file\n");
    let line = ["submit", "shout", &format!("@{file}"), "--content-type", "text/plain", "--wait"];
    assert_eq!(served.run(&line).ok(), "FROM A FILE\n");
    let line = ["submit", "shout", "-", "--content-type", "text/plain", "--wait"];
    assert_eq!(served.run_with(&line, b"from stdin").ok(), "FROM STDIN");
    let line = ["submit", "shout", "[1, 2]", "--wait", "-o", "json"];
    let ended = served.run(&line).json();
    assert_eq!((&ended["schema"], &ended["state"]), (&json!(1), &json!("completed")));
    assert_eq!(ended["result_text"], "[1, 2]");
}

#[test]
fn bytes_survive_both_ways() {
    let served = Served::start();
    let _worker = served.worker(&["--type", "echo", "--echo"]);
    let bytes: Vec<u8> = (0..=255).collect();
    let big = bytes.repeat(1024);
    let file = served.user.file("bytes", &big);
    let line = ["submit", "echo", &format!("@{file}"), "--content-type", "image/png", "--wait"];
    let output = served.command(&line).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout == big, "{} bytes of {}", output.stdout.len(), big.len());
}

#[test]
fn a_task_that_is_not_done_in_time_goes_on() {
    let served = Served::start();
    let said = served.run(&["submit", "t", "1", "--wait=100ms"]);
    said.refused(6, "environment", &["100ms", "NoWorker", "slip tasks result task_"]);
    let id = said.err.split("slip tasks result ").nth(1).unwrap().trim_end().to_owned();
    assert_eq!(served.task(&id)["state"], "pending");
    let said = served.run(&["tasks", "result", &id]);
    assert_eq!(said.code, Some(6), "{said:?}");
    let _worker = served.worker(&["--type", "t", "--echo"]);
    assert_eq!(served.run(&["tasks", "result", &id, "--wait"]).ok(), "1\n");
}

#[test]
fn now_or_not_at_all_is_refused_for_now() {
    let served = Served::start();
    let said = served.run(&["submit", "t", "1", "--schedule-to-start", "0s"]);
    said.refused(9, "environment", &["NoWorker", "start a worker"]);
    assert_eq!(served.run(&["tasks", "list", "-o", "json"]).json(), json!([]));
}

#[test]
fn lines_are_answered_in_their_order() {
    let served = Served::start();
    let input: String = (1..=300).map(|number| format!("{number}\n")).collect();
    let said = served.run_with(&["submit", "t", "-", "--lines"], input.as_bytes());
    let answers = values(&said.ok());
    let lines: Vec<u64> = answers.iter().map(|answer| answer["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, (1..=300).collect::<Vec<u64>>());
    assert_eq!(answers[0]["schema"], 1);
    let some = answers[211]["task_id"].as_str().unwrap();
    assert_eq!(served.task(some)["state"], "pending");
}

#[test]
fn outcomes_of_lines_name_their_line() {
    let served = Served::start();
    let _worker = served.worker(&["--type", "echo", "--echo", "--slots", "16"]);
    let input: String = (1..=300).map(|number| format!("{{\"n\":{number}}}\n")).collect();
    let line = ["submit", "echo", "--lines", "--wait", "--in-flight", "32"];
    let answers = values(&served.run_with(&line, input.as_bytes()).ok());
    assert_eq!(answers.len(), 300);
    let mut seen: Vec<u64> = Vec::new();
    for answer in answers {
        assert_eq!(answer["state"], "completed");
        assert_eq!(answer["result"]["n"], answer["line"]);
        seen.push(answer["line"].as_u64().unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=300).collect::<Vec<u64>>());
}

#[test]
fn a_refused_line_ends_the_input_and_loses_nothing() {
    let served = Served::start();
    let line = ["submit", "t", "--lines", "--in-flight", "1"];
    let said = served.run_with(&line, b"1\n2\nnot json\n4\n");
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(values(&said.out).len(), 2);
    assert!(said.err.contains("line 3: the payload is not JSON"), "{said:?}");
    assert!(said.err.contains("2 lines were accepted"), "{said:?}");
    let kept = served.run(&["tasks", "list", "-o", "json"]).json();
    assert_eq!(kept.as_array().unwrap().len(), 2);
}

#[test]
fn failed_lines_are_told_and_exit_one() {
    let served = Served::start();
    let _worker = served.worker(&["--type", "t", "--exec", "sh -c 'grep -v 2'"]);
    let said = served.run_with(&["submit", "t", "--lines", "--wait"], b"1\n2\n3\n");
    assert_eq!(said.code, Some(1), "{said:?}");
    let answers = values(&said.out);
    let dead: Vec<&Value> = answers.iter().filter(|answer| answer["state"] == "dead").collect();
    assert_eq!((answers.len(), dead.len()), (3, 1), "{answers:?}");
    assert_eq!(dead[0]["line"], 2);
    assert_eq!(
        (&dead[0]["class"], &dead[0]["code"]),
        (&json!("terminal_failure"), &json!("exit-1"))
    );
}

#[test]
fn no_more_lines_are_taken_than_may_be_on_their_way() {
    let served = Served::start();
    let line = ["submit", "t", "--lines", "--wait", "--in-flight", "4"];
    let mut submit = Running::start(served.command(&line));
    submit.write("1\n2\n3\n4\n5\n6\n7\n");
    let list = ["tasks", "list", "-o", "json"];
    served.until(&list, |tasks| tasks.as_array().unwrap().len() >= 4);
    submit.signal(Signal::INT);
    submit.err_line("reading no further");
    let tasks = served.run(&list).json();
    assert_eq!(tasks.as_array().unwrap().len(), 4);
    // What was accepted is waited for until somebody insists.
    submit.signal(Signal::INT);
    let said = submit.end();
    assert_eq!(said.code, Some(130), "{said:?}");
}

#[test]
fn an_interrupt_while_waiting_names_the_task() {
    let served = Served::start();
    let submit = Running::start(served.command(&["submit", "t", "1", "--wait"]));
    let tasks = served.until(&["tasks", "list", "-o", "json"], |tasks| *tasks != json!([]));
    submit.signal(Signal::INT);
    let said = submit.end();
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.err.contains(tasks[0]["task_id"].as_str().unwrap()), "{said:?}");
}
