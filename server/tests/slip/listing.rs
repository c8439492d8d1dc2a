//! Lists, single tasks, and why a task waits.

use serde_json::{Value, json};

use crate::bed::{Served, lines_of};

#[test]
fn an_empty_list_is_an_empty_list() {
    let served = Served::start();
    for command in [["tasks", "list"], ["workers", "list"], ["pools", "list"]] {
        let as_format = |format| served.run(&[&command[..], &["-o", format]].concat());
        assert_eq!(as_format("json").json(), json!([]), "{command:?}");
        assert_eq!(as_format("jsonl").ok(), "");
        let said = as_format("table");
        assert_eq!((said.code, said.out.as_str()), (Some(0), ""));
        assert_eq!(said.err, format!("no {}\n", command[0]));
    }
}

#[test]
fn lists_show_what_there_is() {
    let served = Served::start();
    let _worker = served
        .worker(&["--type", "t", "--echo", "--slots", "3", "--node", "box-7", "--queue", "fast"]);
    let id = served.submit(&["t", "1", "--queue", "fast"]);
    served.run(&["tasks", "result", &id, "--wait"]).ok();

    let workers = served.run(&["workers", "list", "-o", "json"]).json();
    let worker = &workers[0];
    assert_eq!(worker["schema"], 1);
    assert_eq!(worker["node"], "box-7");
    assert_eq!(worker["credit"], 3);
    assert_eq!(worker["pools"], json!(["default/fast/t"]));

    let pools = served.run(&["pools", "list", "-o", "jsonl"]).ok();
    let pool: Value = serde_json::from_str(pools.trim_end()).unwrap();
    assert_eq!((&pool["pool"], &pool["workers"]), (&json!("default/fast/t"), &json!(1)));

    let tasks = served.run(&["tasks", "list", "-o", "json", "--state", "completed"]).json();
    assert_eq!(tasks[0]["task_id"], id.as_str());
    assert_eq!(tasks[0]["state"], "completed");
    let others = ["tasks", "list", "-o", "json", "--type", "other"];
    assert_eq!(served.run(&others).json(), json!([]));
    let table = served.run(&["tasks", "list"]).ok();
    assert!(table.starts_with("TASK") && table.contains(&id), "{table}");
}

#[test]
fn a_list_is_as_long_as_asked_and_in_order() {
    let served = Served::start();
    let input: String = (0..25).map(|number| format!("{number}\n")).collect();
    let said = served.run_with(&["submit", "t", "--lines"], input.as_bytes());
    let mut ids: Vec<Value> = said
        .ok()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["task_id"].clone())
        .collect();
    assert_eq!(ids.len(), 25);
    ids.sort_by_key(|id| id.as_str().unwrap().to_owned());
    let listed = served.run(&["tasks", "list", "-o", "json", "--limit", "10"]).json();
    let listed: Vec<Value> =
        listed.as_array().unwrap().iter().map(|task| task["task_id"].clone()).collect();
    assert_eq!(listed, ids[..10]);
}

#[test]
fn an_unknown_task_is_not_found() {
    let served = Served::start();
    let id = "task_00000000000000000000000000";
    for command in ["get", "result"] {
        served.run(&["tasks", command, id]).refused(3, "input", &["NotFound"]);
    }
    served.run(&["workers", "drain", "99"]).refused(3, "input", &["NotFound"]);
}

#[test]
fn a_waiting_task_says_why() {
    let served = Served::start();
    let nobody = served.submit(&["t", "1"]);
    assert_eq!(served.task(&nobody)["reason"], "NoWorker");
    assert!(served.run(&["tasks", "get", &nobody]).ok().contains("NoWorker"));

    // The only worker has one slot, and what it runs ends when it is told to.
    let (began, gate) = (served.user.path("began"), served.user.path("gate"));
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let run = format!("sh -c 'echo x >> {began}; read line < {gate}; echo $line'");
    let worker = served.worker(&["--type", "busy", "--exec", &run, "--slots", "1"]);
    let first = served.submit(&["busy", "1"]);
    lines_of(&began, 1);
    let running = served.task(&first);
    assert_eq!((&running["state"], &running["reason"]), (&json!("running"), &json!("Running")));

    let full = served.submit(&["busy", "2"]);
    assert_eq!(served.task(&full)["reason"], "AllFull");
    let pinned = served.submit(&["busy", "3", "--require", "box-9"]);
    assert_eq!(served.task(&pinned)["reason"], "NoWorkerOnNode");

    let id = served.task(&first)["worker"].to_string();
    served.run(&["workers", "drain", &id]).ok();
    assert_eq!(served.task(&full)["reason"], "AllDraining");

    // It finishes what it has, and leaves.
    std::fs::write(&gate, "done\n").unwrap();
    assert_eq!(served.run(&["tasks", "result", &first, "--wait"]).ok(), "done\n");
    let said = worker.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("drained"), "{said:?}");
    assert_eq!(served.task(&full)["state"], "pending");
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let served = Served::start();
    served.submit(&["t", "1"]);
    for line in [&["tasks", "list", "-o", "jsonl"][..], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = served.command(line).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(output.stderr, b"");
    }
}
