//! Everything that can be typed wrong, or found wrong, says what, whose fault, and what to do.

use crate::bed::{Served, User};

const SOME_FINGERPRINT: &str = "abababababababababababababababababababababababababababababababab";

#[test]
fn a_name_that_is_too_long_is_refused() {
    let user = User::new();
    let long = "x".repeat(129);
    let said = user.run(&["submit", &long, "1"]);
    said.refused(2, "input", &["TYPE", "129 bytes", "128"]);
    let said = user.run(&["submit", "t", "1", "--queue", &long]);
    said.refused(2, "input", &["--queue", "129 bytes"]);
    let said = user.run(&["worker", "--type", "t", "--echo", "--node", "box 7"]);
    said.refused(2, "input", &["--node", "' '"]);
}

#[test]
fn a_payload_over_the_limit_is_refused() {
    let user = User::new();
    let path = user.file("big", &vec![b'1'; (1 << 20) + 1]);
    let said = user.run(&["submit", "t", &format!("@{path}")]);
    said.refused(2, "input", &["over the limit of 1048576 bytes"]);
}

#[test]
fn what_is_not_json_is_refused_where_json_is_said() {
    let user = User::new();
    let said = user.run(&["submit", "t", "{\"a\":"]);
    said.refused(2, "input", &["not JSON", "--content-type"]);
    let path = user.file("text", b"plain");
    let said = user.run(&["submit", "t", &format!("@{path}")]);
    said.refused(2, "input", &["not JSON"]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let said = User::new().run(&["submit", "t", "@/no/such/file"]);
    said.refused(2, "input", &["/no/such/file", "cannot be read"]);
}

#[test]
fn a_server_that_does_not_answer_is_told() {
    let user = User::new();
    let said = user.run(&["submit", "t", "1"]);
    said.refused(5, "environment", &["no development server", "slip dev", "--address"]);
    let at = ["--address", "127.0.0.1:1", "--fingerprint", SOME_FINGERPRINT];
    let said = user.run(&[&["pools", "list"][..], &at].concat());
    said.refused(5, "environment", &["127.0.0.1:1", "slip serve"]);
    let said = user.run(&[&["worker", "--type", "t", "--echo"][..], &at].concat());
    assert_eq!(said.code, Some(5), "{said:?}");
}

#[test]
fn a_wrong_certificate_is_not_trusted() {
    let served = Served::start();
    let at = ["--address", &served.address, "--fingerprint", SOME_FINGERPRINT];
    let said = served.user.run(&[&["submit", "t", "1"][..], &at].concat());
    said.refused(4, "input", &[SOME_FINGERPRINT, &served.fingerprint]);
    assert_eq!(served.run(&["tasks", "list", "-o", "json"]).json(), serde_json::json!([]));
}

#[test]
fn half_an_address_is_refused() {
    let user = User::new();
    let said = user.run(&["pools", "list", "--address", "127.0.0.1:4777"]);
    said.refused(2, "input", &["--fingerprint is not"]);
    let at = ["--address", "127.0.0.1", "--fingerprint", SOME_FINGERPRINT];
    user.run(&[&["pools", "list"][..], &at].concat()).refused(2, "input", &["HOST:PORT"]);
    let at = ["--address", "127.0.0.1:1", "--fingerprint", "00"];
    user.run(&[&["pools", "list"][..], &at].concat()).refused(2, "input", &["--fingerprint"]);
}

#[test]
fn a_port_in_use_is_named() {
    let served = Served::start();
    let port = served.address.rsplit_once(':').unwrap().1;
    for command in ["serve", "dev"] {
        let said = served.user.run(&[command, "--listen", &served.address]);
        said.refused(2, "environment", &[&format!("port {port} is in use"), "--listen"]);
    }
}

#[test]
fn a_server_for_others_is_refused() {
    let said = User::new().run(&["serve", "--listen", "0.0.0.0:0"]);
    said.refused(2, "input", &["0.0.0.0", "not a loopback address", "127.0.0.1"]);
}

#[test]
fn a_worker_command_that_does_not_exist_is_refused_before_any_task() {
    let user = User::new();
    let said = user.run(&["worker", "--type", "t", "--exec", "no-such-program-here x"]);
    said.refused(2, "input", &["\"no-such-program-here\"", "PATH"]);
    let said = user.run(&["worker", "--type", "t", "--exec", "cat | sort"]);
    said.refused(2, "input", &["'|'", "sh -c"]);
}

#[test]
fn wrong_values_of_every_kind_are_usage() {
    let user = User::new();
    for line in [
        &["submit", "t", "1", "--wait=soon"][..],
        &["demo", "--payload", "7B"],
        &["demo", "--workers", "1"],
        &["tasks", "get", "task_x"],
        &["tasks", "list", "--state", "asleep"],
        &["worker", "--type", "t", "--echo", "--slots", "0"],
        &["worker", "--type", "t", "--exec", "cat", "--output-limit", "17MiB"],
        &["pools", "list", "-o", "yaml"],
    ] {
        user.run(line).refused(2, "input", &[]);
    }
    assert_eq!(user.run(&["submit"]).code, Some(2));
    assert_eq!(user.run(&["no-such-command"]).code, Some(2));
}

#[test]
fn colour_is_for_those_who_want_it() {
    let user = User::new();
    let line = ["submit", "t", "{"];
    assert!(!user.run(&line).err.contains('\u{1b}'));
    let painted = |mut command: std::process::Command| {
        let said = command.output().unwrap();
        String::from_utf8(said.stderr).unwrap().contains('\u{1b}')
    };
    let mut forced = user.command(&line);
    forced.env("CLICOLOR_FORCE", "1");
    assert!(painted(forced));
    let mut both = user.command(&line);
    both.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert!(!painted(both));
    assert!(painted(user.command(&[&line[..], &["--color", "always"]].concat())));
}
