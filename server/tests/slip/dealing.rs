//! End to end: one server, worker processes, and what becomes of their tasks.

use rustix::process::Signal;
use serde_json::json;

use crate::bed::{Running, Served, lines_of, pause};

/// A program that notes each run, waits until it is let go, and answers with the line it was told.
fn gated(served: &Served, name: &str) -> (String, String, String) {
    let (began, gate) =
        (served.user.path(&format!("{name}-began")), served.user.path(&format!("{name}-gate")));
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let run = format!(
        "sh -c 'echo $SLIP_TASK_ID $SLIP_EPOCH >> {began}; read line < {gate}; echo $line'"
    );
    (run, began, gate)
}

/// A program that notes its process and never ends by itself.
fn endless(served: &Served) -> (String, String) {
    let noted = served.user.path("endless");
    (format!("sh -c 'echo $$ >> {noted}; sleep 1000'"), noted)
}

/// Ends the run of a worker that was killed and could not do it.
fn end_orphan(noted: &[String]) {
    let leader = noted[0].parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process_group(leader, Signal::KILL).unwrap();
}

const GPU: [&str; 4] = ["--namespace", "remote", "--queue", "gpu"];

// E2E-1 to E2E-4.
#[test]
fn inband_dispatch_once() {
    let served = Served::start();
    let began = served.user.path("began");
    let run = format!(
        "sh -c 'echo $SLIP_TASK_ID $SLIP_EPOCH $SLIP_ATTEMPT $SLIP_DELIVERY \
         $SLIP_OWNER_KEY $SLIP_ORDINAL $SLIP_GENERATION >> {began}; tr a-z A-Z'"
    );
    // Nobody serves the pool, then somebody without the node: it is pending all the while.
    let own = ["--owner-key", "order-17", "--ordinal", "4", "--generation", "2"];
    let submit = [&["charge-card", "\"ada\"", "--require", "box-7"][..], &own, &GPU].concat();
    let id = served.submit(&submit);
    assert_eq!(served.task(&id)["reason"], "NoWorker");
    let charge = [&["--type", "charge-card", "--exec", &run][..], &GPU].concat();
    let elsewhere = served.worker(&charge);
    let other_node = served.worker(&[&charge[..], &["--node", "box-8"]].concat());
    assert_eq!(served.task(&id)["reason"], "NoWorkerOnNode");

    // Registered in band is selectable, with no other step.
    let here = served.worker(&[&charge[..], &["--node", "box-7"]].concat());
    let result = served.run(&["tasks", "result", &id, "--wait"]).ok();
    assert_eq!(result, "\"ADA\"");
    let workers = served.run(&["workers", "list", "-o", "json"]).json();
    let on_node = workers.as_array().unwrap().iter().find(|worker| worker["node"] == "box-7");
    assert_eq!(on_node.unwrap()["pools"], json!(["remote/gpu/charge-card"]));

    // Once: one run, one attempt, one delivery, and an epoch that fences.
    let runs = lines_of(&began, 1);
    assert_eq!(runs.len(), 1, "{runs:?}");
    let facts: Vec<&str> = runs[0].split(' ').collect();
    assert_eq!((facts[0], &facts[2..]), (id.as_str(), &["1", "1", "order-17", "4", "2"][..]));
    let task = served.task(&id);
    assert_eq!((&task["state"], &task["deliveries"]), (&json!("completed"), &json!(1)));
    assert_eq!(task["epoch"].to_string(), facts[1]);

    // When the worker stops it leaves selection.
    here.signal(Signal::TERM);
    assert_eq!(here.end().code, Some(0));
    let again = served.submit(&submit);
    assert_eq!(served.task(&again)["reason"], "NoWorkerOnNode");
    drop((elsewhere, other_node));
    assert_eq!(lines_of(&began, 1).len(), 1);
}

// E2E-5.
#[test]
fn foreign_pool_not_delivered() {
    let served = Served::start();
    let began = served.user.path("began");
    let run = format!("sh -c 'echo $SLIP_TYPE >> {began}; cat'");
    let charge = ["--type", "charge-card", "--exec", &run, "--slots", "8"];
    let _worker = served.worker(&[&charge[..], &GPU].concat());
    // Each differs from the worker's pool in one part.
    let foreign = [
        served.submit(&["charge-card", "1", "--namespace", "remote", "--queue", "cpu"]),
        served.submit(&["charge-card", "1", "--namespace", "local", "--queue", "gpu"]),
        served.submit(&[&["refund-card", "1"][..], &GPU].concat()),
    ];
    // Tasks for the worker's own pool go by while the others wait.
    for _ in 0..5 {
        served.run(&[&["submit", "charge-card", "2", "--wait"][..], &GPU].concat()).ok();
    }
    for id in &foreign {
        let task = served.task(id);
        assert_eq!((&task["state"], &task["reason"]), (&json!("pending"), &json!("NoWorker")));
        let counters = ["deliveries", "lost", "epoch"].map(|name| task[name].clone());
        assert_eq!((counters, &task["attempt"]), ([json!(0), json!(0), json!(0)], &json!(1)));
    }
    assert_eq!(lines_of(&began, 5), ["charge-card"; 5]);
}

// E2E-6.
#[test]
fn kill_worker_mid_task() {
    let served = Served::start();
    let (endless, orphaned) = endless(&served);
    let first = served.worker(&["--type", "t", "--exec", &endless]);
    let id = served.submit(&["t", "1"]);
    let orphan = lines_of(&orphaned, 1);
    first.signal(Signal::KILL);
    drop(first);
    end_orphan(&orphan);
    let (run, began, gate) = gated(&served, "task");
    let _survivor = served.worker(&["--type", "t", "--exec", &run]);
    let runs = lines_of(&began, 1);
    std::fs::write(&gate, "survived\n").unwrap();
    assert_eq!(served.run(&["tasks", "result", &id, "--wait"]).ok(), "survived\n");
    let task = served.task(&id);
    assert_eq!(
        (&task["attempt"], &task["lost"], &task["deliveries"]),
        (&json!(1), &json!(1), &json!(2))
    );
    assert!(runs.iter().all(|run| run.starts_with(&id)), "{runs:?}");
}

// E2E-9.
#[test]
fn duplicate_and_late_result() {
    let served = Served::start();
    let (slow_run, slow_began, slow_gate) = gated(&served, "slow");
    let mut slow = served.worker(&["--type", "t", "--exec", &slow_run, "--slots", "1"]);
    let id = served.submit(&["t", "1"]);
    lines_of(&slow_began, 1);

    // The worker stands still: its lease is lost and another one gets the task.
    slow.signal(Signal::STOP);
    let _quick = served.worker(&["--type", "t", "--exec", "echo quick"]);
    assert_eq!(served.run(&["tasks", "result", &id, "--wait"]).ok(), "quick\n");
    std::fs::write(&slow_gate, "slow\n").unwrap();

    // It comes back and reports: too late, and it is told so.
    slow.signal(Signal::CONT);
    let told = slow.err_line("came too late");
    assert!(told.contains(&id) && told.contains("stale"), "{told}");
    assert_eq!(served.run(&["tasks", "result", &id]).ok(), "quick\n");
    let task = served.task(&id);
    assert_eq!((&task["deliveries"], &task["lost"]), (&json!(2), &json!(1)));
}

#[test]
fn a_worker_of_the_same_name_changes_nothing() {
    let served = Served::start();
    // Two workers of one name: the second does not speak for the first.
    let (one_run, one_began, one_gate) = gated(&served, "one");
    let line =
        |run| ["--type", "t", "--exec", run, "--node", "box-7", "--slots", "1"].map(str::to_owned);
    let _one = served.worker(&line(&one_run).each_ref().map(String::as_str));
    let id = served.submit(&["t", "1"]);
    lines_of(&one_began, 1);
    let two = served.worker(&["--type", "t", "--exec", "echo two", "--node", "box-7"]);
    let workers = served.run(&["workers", "list", "-o", "json"]).json();
    assert_eq!(workers.as_array().unwrap().len(), 2);
    two.signal(Signal::TERM);
    assert_eq!(two.end().code, Some(0));
    // The first goes on as if nothing had been.
    std::fs::write(&one_gate, "one\n").unwrap();
    assert_eq!(served.run(&["tasks", "result", &id, "--wait"]).ok(), "one\n");
    assert_eq!(served.task(&id)["deliveries"], 1);
}

// bug: B25
#[test]
fn restart_same_name_recovers() {
    let served = Served::start();
    let (run, began, gate) = gated(&served, "task");
    let (endless, orphaned) = endless(&served);
    let line = |run| ["--type", "t", "--node", "box-7", "--slots", "1", "--exec", run];
    let first = served.worker(&line(endless.as_str()));
    let id = served.submit(&["t", "1"]);
    let orphan = lines_of(&orphaned, 1);
    first.signal(Signal::KILL);
    drop(first);
    end_orphan(&orphan);
    // Of the same name at once: what the dead one held is not hidden by it.
    let _again = served.worker(&line(run.as_str()));
    lines_of(&began, 1);
    std::fs::write(&gate, "recovered\n").unwrap();
    assert_eq!(served.run(&["tasks", "result", &id, "--wait"]).ok(), "recovered\n");
}

#[test]
fn fourteen_tasks_four_slots() {
    let served = Served::start();
    let at_work = served.user.path("at-work");
    std::fs::create_dir(&at_work).unwrap();
    let seen = served.user.path("seen");
    // Each run counts how many there are beside it.
    let run = format!(
        "sh -c 'mkdir {at_work}/$SLIP_LEASE-$SLIP_EPOCH; ls {at_work} | wc -l >> {seen}; \
         sleep 0.05; rmdir {at_work}/$SLIP_LEASE-$SLIP_EPOCH'"
    );
    let _worker = served.worker(&["--type", "t", "--exec", &run, "--slots", "4"]);
    let input: String = (0..14).map(|number| format!("{number}\n")).collect();
    served.run_with(&["submit", "t", "--lines", "--wait"], input.as_bytes()).ok();
    let seen: Vec<usize> =
        lines_of(&seen, 14).iter().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(seen.len(), 14);
    assert!(seen.iter().all(|&count| count <= 4), "{seen:?}");
}

/// Not a test of ours alone: whatever ends, nothing that ran is left running.
#[test]
fn no_run_outlives_its_worker() {
    let served = Served::start();
    let began = served.user.path("began");
    let run = format!("sh -c 'echo $$ >> {began}; sleep 1000'");
    let mut worker: Running = served.worker(&["--type", "t", "--exec", &run, "--timeout", "100s"]);
    served.submit(&["t", "1"]);
    let leader: u32 = lines_of(&began, 1)[0].parse().unwrap();
    worker.signal(Signal::TERM);
    worker.err_line("leaving");
    worker.signal(Signal::TERM);
    assert_eq!(worker.end().code, Some(130));
    while std::fs::read_to_string(format!("/proc/{leader}/stat"))
        .is_ok_and(|stat| !stat.contains(") Z"))
    {
        pause();
    }
}
