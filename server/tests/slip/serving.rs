//! `slip serve` and `slip dev`.

use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::json;

use crate::bed::{Running, Said, Served, User, lines_of};

#[test]
fn a_signal_drains_and_exits_zero() {
    for signal in [Signal::TERM, Signal::INT] {
        let served = Served::start();
        served.server.signal(signal);
        let said = served.server.end();
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.err.contains("draining"), "{said:?}");
    }
}

#[test]
fn a_drain_waits_for_what_is_at_work() {
    let served = Served::start();
    let (began, gate) = (served.user.path("began"), served.user.path("gate"));
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let run = format!("sh -c 'echo x >> {began}; read line < {gate}; echo $line'");
    let _worker = served.worker(&["--type", "t", "--exec", &run]);
    let submit = Running::start(served.command(&["submit", "t", "1", "--wait"]));
    lines_of(&began, 1);
    let Served { user: _user, mut server, .. } = served;
    server.signal(Signal::TERM);
    server.err_line("draining");
    std::fs::write(&gate, "in time\n").unwrap();
    assert_eq!(submit.end().ok(), "in time\n");
    let said = server.end();
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let served = Served::start();
    let began = served.user.path("began");
    let run = format!("sh -c 'echo x >> {began}; sleep 1000'");
    let worker = served.worker(&["--type", "t", "--exec", &run]);
    served.submit(&["t", "1"]);
    lines_of(&began, 1);
    let Served { user: _user, mut server, .. } = served;
    server.signal(Signal::TERM);
    server.err_line("interrupt again");
    server.signal(Signal::TERM);
    let said = server.end();
    assert_eq!(said.code, Some(130), "{said:?}");
    worker.end_at_once();
}

#[test]
fn a_drain_gives_up_in_time() {
    let served = Served::start_with(&["--drain-timeout", "50ms"]);
    let began = served.user.path("began");
    let run = format!("sh -c 'echo x >> {began}; sleep 1000'");
    let worker = served.worker(&["--type", "t", "--exec", &run]);
    served.submit(&["t", "1"]);
    lines_of(&began, 1);
    let Served { user: _user, server, .. } = served;
    server.signal(Signal::TERM);
    let said = server.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("1 task was not finished in time"), "{said:?}");
    worker.end_at_once();
}

#[test]
fn dev_is_found_without_a_flag() {
    let user = User::new();
    let mut dev = Running::start(user.command(&["dev", "--listen", "127.0.0.1:0"]));
    assert!(dev.out_line().contains("slip dev listens on 127.0.0.1:"));
    let note = user.home.path().join("slipswitch/dev.json");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&note), mode(note.parent().unwrap())), (0o600, 0o700));

    let mut worker = Running::start(user.command(&["worker", "--type", "t", "--echo"]));
    worker.err_line("is registered");
    assert_eq!(user.run(&["submit", "t", "[1]", "--wait"]).ok(), "[1]\n");
    // Somebody who asks for a fingerprint of their own choice gets no help from the note.
    let said =
        Said::of(user.command(&["pools", "list"]).env("SLIP_ADDRESS", "x:1").output().unwrap());
    said.refused(2, "input", &["--fingerprint is not"]);

    dev.signal(Signal::TERM);
    let said = dev.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!note.exists());
    user.run(&["pools", "list"]).refused(5, "environment", &["slip dev"]);
}

#[test]
fn a_server_that_comes_back_is_found_by_its_worker() {
    let user = User::new();
    let mut dev = Running::start(user.command(&["dev", "--listen", "127.0.0.1:0"]));
    dev.out_line();
    let mut worker = Running::start(user.command(&["worker", "--type", "t", "--echo"]));
    worker.err_line("is registered");
    // Without a goodbye: the worker has to notice by itself.
    drop(dev);
    let mut dev = Running::start(user.command(&["dev", "--listen", "127.0.0.1:0"]));
    dev.out_line();
    worker.err_line("is registered");
    assert_eq!(user.run(&["submit", "t", "[1]", "--wait"]).ok(), "[1]\n");
    assert_eq!(user.run(&["tasks", "list", "-o", "json"]).json()[0]["state"], json!("completed"));
}
