//! Cancelling, holding, draining, dead letters, from the command line.

use serde_json::json;

use crate::bed::{Served, lines_of};

/// A task that nobody serves.
fn lonely(served: &Served, more: &[&str]) -> String {
    served.submit(&[&["lonely", "1"][..], more].concat())
}

#[test]
fn a_task_is_cancelled_wherever_it_is() {
    let served = Served::start();
    let waits = lonely(&served, &[]);
    let said = served.run(&["tasks", "cancel", &waits, "--reason", "withdrawn"]).ok();
    assert_eq!(said, format!("{waits} is cancelled\n"));
    let again = served.run(&["tasks", "cancel", &waits, "-o", "json"]).json();
    assert_eq!(again, json!({"schema":1,"task_id":waits,"changed":false,"state":"cancelled"}));
    served.run(&["tasks", "result", &waits]).refused(1, "input", &["withdrawn"]);

    let began = served.user.path("began");
    let run = format!("sh -c 'echo x >> {began}; sleep 1000'");
    let worker = served.worker(&["--type", "t", "--exec", &run, "--slots", "1"]);
    let runs = served.submit(&["t", "1"]);
    lines_of(&began, 1);
    let next = served.submit(&["t", "2"]);
    let said = served.run(&["tasks", "cancel", &runs, "--grace", "20s"]).ok();
    assert_eq!(said, format!("{runs} is told to stop\n"));
    // The program is ended and its slot goes to the next task, long before the grace is over.
    lines_of(&began, 2);
    assert_eq!(served.task(&runs)["state"], "cancelled");
    assert_eq!(served.task(&next)["state"], "running");
    worker.end_at_once();
    let unknown = "task_00000000000000000000000000";
    served.run(&["tasks", "cancel", unknown]).refused(3, "input", &["NotFound"]);
}

#[test]
fn owners_are_superseded_and_held() {
    let served = Served::start();
    let owned = |generation: &'static str| {
        lonely(&served, &["--owner-key", "run-7", "--generation", generation])
    };
    let (old, new) = (owned("1"), owned("2"));
    let newer = ["tasks", "cancel", "--owner", "run-7", "--below-generation", "2", "--supersede"];
    assert_eq!(served.run(&newer).ok(), "1 task cancelled or told to stop\n");
    assert_eq!(served.task(&old)["state"], "cancelled");
    let late = served.run(&["submit", "lonely", "1", "--owner-key", "run-7"]);
    late.refused(8, "input", &["StaleGeneration", "generation 2"]);

    served.run(&["hold", "owner", "run-7"]).ok();
    let _worker = served.worker(&["--type", "lonely", "--echo"]);
    let task = served.task(&new);
    assert_eq!(
        (&task["state"], &task["reason"], &task["held"]),
        (&json!("pending"), &json!("Held"), &json!(true))
    );
    let held = served.run(&["release", "-o", "json"]).json();
    assert_eq!((&held[0]["name"], &held[0]["tasks"]), (&json!("default/run-7"), &json!(1)));
    served.run(&["release", "owner", "run-7"]).ok();
    served.run(&["tasks", "result", &new, "--wait"]).ok();
    assert_eq!(served.run(&["release", "-o", "json"]).json(), json!([]));
    served.run(&["release", "owner", "run-7"]).refused(3, "input", &["NotFound"]);
    served.run(&["hold", "pool", "no-key"]).refused(2, "input", &["no-key"]);
}

#[test]
fn scopes_are_drained_and_opened_again() {
    let served = Served::start();
    let worker = served.worker(&["--type", "t", "--echo", "--node", "box-7"]);
    let pool = "default/default/t";
    for (on, off) in [
        (vec!["workers", "cordon", "1"], vec!["workers", "uncordon", "1"]),
        (vec!["drain", "--pool", pool], vec!["drain", "--pool", pool, "--undo"]),
        (
            vec!["drain", "--namespace", "default"],
            vec!["drain", "--namespace", "default", "--undo"],
        ),
        (vec!["hold", "pool", pool], vec!["release", "pool", pool]),
        (vec!["hold", "namespace", "default"], vec!["release", "namespace", "default"]),
    ] {
        served.run(&on).ok();
        let id = served.submit(&["t", "[1]"]);
        let task = served.task(&id);
        assert_eq!(task["state"], "pending", "{on:?}");
        let held = on[0] == "hold";
        assert_eq!(task["reason"], if held { "Held" } else { "AllDraining" }, "{on:?}");
        served.run(&off).ok();
        assert_eq!(served.run(&["tasks", "result", &id, "--wait"]).ok(), "[1]\n", "{off:?}");
    }
    served.run(&["drain", "--node", "box-9", "--undo"]).refused(3, "input", &["NotFound"]);
    assert_eq!(served.run(&["drain"]).code, Some(2));
    // Draining the node has the worker leave by itself.
    let said = served.run(&["drain", "--node", "box-7", "-o", "json"]).json();
    assert_eq!(said, json!({"schema":1,"scope":"node:box-7","draining":true,"workers":1}));
    assert_eq!(worker.end().code, Some(0));
}

#[test]
fn dead_letters_are_counted_requeued_and_discarded() {
    let served = Served::start();
    let gate = served.user.path("gate");
    let run = format!("sh -c 'test -e {gate} || {{ echo line $$ is wrong >&2; exit 1; }}; cat'");
    let _worker = served.worker(&["--type", "t", "--exec", &run]);
    let ids: Vec<String> = (0..3)
        .map(|n| {
            let said = served.run(&["submit", "t", &n.to_string(), "--wait", "-o", "json"]);
            assert_eq!(said.code, Some(1));
            let ended: serde_json::Value = serde_json::from_str(&said.out).unwrap();
            ended["task_id"].as_str().unwrap().to_owned()
        })
        .collect();
    let alike = served.run(&["dead", "list", "--by", "fingerprint", "-o", "json"]).json();
    assert_eq!((alike.as_array().unwrap().len(), &alike[0]["tasks"]), (1, &json!(3)), "{alike}");
    let fingerprint = alike[0]["fingerprint"].as_str().unwrap().to_owned();
    let shown = served.run(&["dead", "show", &ids[0], "-o", "json"]).json();
    assert_eq!(shown["fingerprint"], fingerprint.as_str());
    assert_eq!(shown["class"], "terminal_failure");

    std::fs::write(&gate, "").unwrap();
    assert_eq!(served.run(&["dead", "requeue", &ids[0]]).ok(), "1 task requeued\n");
    assert_eq!(served.run(&["tasks", "result", &ids[0], "--wait"]).ok(), "0");
    served.run(&["dead", "requeue", &ids[0]]).refused(3, "input", &["NotFound"]);
    let all = ["dead", "discard", "--alike", &fingerprint, "-o", "json"];
    assert_eq!(served.run(&all).json(), json!({"schema":1,"affected":2}));
    assert_eq!(served.run(&["dead", "list", "-o", "json"]).json(), json!([]));
    let bored = served.run(&["dead", "list", "--reason", "bored"]);
    bored.refused(2, "input", &["bored"]);
    assert_eq!(served.run(&["dead", "discard"]).code, Some(2));
}

#[test]
fn delays_and_keys_of_a_submission() {
    let served = Served::start();
    let _worker = served.worker(&["--type", "t", "--echo"]);
    let keyed = ["submit", "t", "[1]", "--key", "order-42", "--delay", "1h"];
    let id = served.run(&keyed).ok();
    assert_eq!(served.run(&keyed).ok(), id);
    let other = served.run(&["submit", "t", "[2]", "--key", "order-42"]);
    other.refused(8, "input", &["Conflict"]);
    let id = id.trim();
    assert_eq!(served.task(id)["reason"], "NotDue");
    assert_eq!(
        served.run(&["tasks", "run-now", id]).ok(),
        format!("{id} waits for a worker now\n")
    );
    assert_eq!(served.run(&["tasks", "result", id, "--wait"]).ok(), "[1]\n");
    served.run(&["tasks", "run-now", id]).refused(8, "input", &["InvalidState"]);
    let long = served.run(&["submit", "t", "[1]", "--delay", "367d"]);
    long.refused(2, "input", &["delay"]);
}

#[test]
fn workers_are_described_and_put_out() {
    let served = Served::start();
    let mut worker = served.worker(&["--type", "t", "--echo", "--node", "box-7"]);
    let shown = served.run(&["workers", "describe", "1", "-o", "json"]).json();
    assert_eq!((&shown["node"], &shown["credit"]), (&json!("box-7"), &json!(4)));
    served.run(&["workers", "describe", "9"]).refused(3, "input", &["no worker 9"]);
    served.run(&["workers", "evict", "9"]).refused(3, "input", &["NotFound"]);
    assert_eq!(served.run(&["workers", "evict", "1"]).ok(), "worker 1 is put out\n");
    worker.err_line("an operator put this worker out");
    // It comes back as another worker.
    worker.err_line("is registered");
    let workers = served.run(&["workers", "list", "-o", "json"]).json();
    assert_ne!(workers[0]["worker"], 1);
}

#[test]
fn a_pool_is_given_a_policy() {
    let served = Served::start();
    let pool = "default/default/t";
    let set = |policy: &str| served.run(&["pools", "set", pool, "--policy", policy]);
    assert_eq!(set("sticky").ok(), format!("{pool} goes by sticky\n"));
    let _workers: Vec<_> = (1..=3)
        .map(|weight: u32| {
            let weight = weight.to_string();
            served.worker(&[
                "--type",
                "t",
                "--echo",
                "--weight",
                &weight,
                "--node",
                &format!("n{weight}"),
            ])
        })
        .collect();
    let policy = || {
        let pools: serde_json::Value =
            serde_json::from_str(&served.run(&["pools", "list", "-o", "json"]).ok()).expect("JSON");
        // The server has a pool of its own for the first steps.
        let pools = pools.as_array().expect("a list");
        let pool = pools.iter().find(|pool| pool["pool"] == "default/default/t");
        pool.expect("the pool is listed")["policy"].clone()
    };
    let run = |more: &[&str]| {
        let args = ["submit", "t", "[1]", "--wait"];
        assert_eq!(served.run(&[&args, more].concat()).ok(), "[1]\n");
    };
    run(&["--affinity", "one key"]);
    assert_eq!(policy(), "sticky");
    for word in ["least_loaded", "strict", "round_robin"] {
        set(word).ok();
        run(&["--prefer", "n1", "--prefer", "n2"]);
        assert_eq!(policy(), word);
    }
    set("sticky").ok();
    set("default").ok();
    assert_eq!(policy(), "round_robin");
    assert_eq!(set("fastest").code, Some(2));
    assert_eq!(served.run(&["pools", "set", "main/t", "--policy", "strict"]).code, Some(2));
    let mut nine = vec!["submit", "t", "[1]"];
    nine.extend(["--prefer", "n"].repeat(9));
    served.run(&nine).refused(2, "input", &["prefer", "8"]);
}
