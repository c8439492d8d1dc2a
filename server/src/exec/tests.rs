use super::*;
use std::time::Duration;

fn program(command: &str) -> Program {
    Program::find(command).unwrap()
}

async fn run(command: &str, input: &'static [u8]) -> Result<Bytes, RunError> {
    program(command).run([], Bytes::from_static(input)).await
}

/// The state letter of a process, `None` if there is none.
fn state(pid: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
}

/// Waits until a process runs no more. The kernel delivers signals on its own time.
async fn gone(pid: &str) {
    while state(pid).is_some_and(|state| state != 'Z') {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn payload_goes_in_and_the_result_comes_out() {
    assert_eq!(run("tr a-z A-Z", b"hello").await, Ok(Bytes::from_static(b"HELLO")));
    assert_eq!(run("cat", b"\x00\xff\n").await, Ok(Bytes::from_static(b"\x00\xff\n")));
    assert_eq!(run("true", b"").await, Ok(Bytes::new()));
}

#[tokio::test]
async fn facts_are_in_the_environment() {
    let facts = [("SLIP_TASK_ID", "task_1".to_owned()), ("SLIP_ATTEMPT", "2".to_owned())];
    let told = program("sh -c 'printf %s,%s $SLIP_TASK_ID $SLIP_ATTEMPT'");
    assert_eq!(told.run(facts, Bytes::new()).await, Ok(Bytes::from_static(b"task_1,2")));
}

#[tokio::test]
async fn exit_codes_decide() {
    let error = run("sh -c 'echo out; echo no luck >&2; exit 75'", b"").await.unwrap_err();
    assert_eq!(error, RunError::Retryable { message: "no luck".to_owned() });
    assert!(error.is_retryable());
    let error = run("sh -c 'echo broken >&2; exit 3'", b"").await.unwrap_err();
    assert_eq!(error, RunError::Terminal { code: 3, message: "broken".to_owned() });
    assert!(!error.is_retryable());
    assert_eq!(error.code(), "exit-3");
    assert_eq!(error.to_string(), "broken");
    let silent = run("sh -c 'exit 4'", b"").await.unwrap_err();
    assert_eq!(silent.to_string(), "the command exited with 4");
}

#[tokio::test]
async fn ended_by_a_signal_is_retryable_and_says_so() {
    let error = run("sh -c 'kill -9 $$'", b"").await.unwrap_err();
    assert_eq!(error, RunError::Signalled { signal: 9, message: String::new() });
    assert!(error.is_retryable());
    assert!(error.to_string().contains("signal 9 (SIGKILL); the task may be tried again"));
}

#[tokio::test]
async fn closing_the_input_early_is_no_failure() {
    let big = Bytes::from(vec![b'x'; 4 << 20]);
    let result = program("sh -c 'exec <&-; echo done'").run([], big.clone()).await;
    assert_eq!(result, Ok(Bytes::from_static(b"done\n")));
    let result = program("head -c 3").run([], big).await;
    assert_eq!(result, Ok(Bytes::from_static(b"xxx")));
}

#[tokio::test]
async fn large_input_and_output_do_not_block_each_other() {
    let big = Bytes::from(vec![b'y'; 1 << 20]);
    let result = program("cat").run([], big.clone()).await.unwrap();
    assert!(result == big);
}

#[tokio::test]
async fn output_over_the_limit_ends_the_group() {
    let mut flood = program("sh -c 'sleep 1000 & echo $! >&2; cat /dev/zero'");
    flood.output_limit = 1000;
    let error = flood.run([], Bytes::new()).await.unwrap_err();
    assert_eq!(error, RunError::OutputLimit { limit: 1000 });
    assert!(!error.is_retryable());
    assert!(error.to_string().contains("1000 bytes"));
    let mut exact = program("head -c 1000 /dev/zero");
    exact.output_limit = 1000;
    assert_eq!(exact.run([], Bytes::new()).await.map(|output| output.len()), Ok(1000));
    exact.output_limit = 999;
    assert!(exact.run([], Bytes::new()).await.is_err());
}

#[tokio::test]
async fn time_out_ends_the_whole_group() {
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("pid");
    // Both ignore SIGTERM, so that only SIGKILL to the group helps.
    let script = format!(
        "sh -c 'trap \"\" TERM; echo started >&2; sleep 1000 & echo $! > {}; wait; sleep 1000'",
        note.display()
    );
    let mut slow = program(&script);
    slow.timeout = Some(Duration::from_millis(300));
    let error = slow.run([], Bytes::new()).await.unwrap_err();
    let RunError::TimedOut { message, .. } = &error else { panic!("{error:?}") };
    assert_eq!(message, "started");
    assert!(error.is_retryable());
    gone(std::fs::read_to_string(note).unwrap().trim()).await;
}

#[tokio::test]
async fn background_processes_end_with_the_program() {
    // The sleeper holds the pipe of standard output open: without the end of its group, reading
    // the result would wait for it.
    let result = run("sh -c 'sleep 1000 & echo $!'", b"").await.unwrap();
    gone(std::str::from_utf8(&result).unwrap().trim()).await;
}

#[tokio::test]
async fn dropping_a_run_ends_its_group_and_leaves_no_zombie() {
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("pids");
    let endless = program(&format!(
        "sh -c 'sleep 1000 & echo $$ $! > {0}.new; mv {0}.new {0}; wait'",
        note.display()
    ));
    let handle = tokio::spawn(async move { endless.run([], Bytes::new()).await });
    while !note.exists() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    handle.abort();
    assert!(handle.await.unwrap_err().is_cancelled());
    let pids = std::fs::read_to_string(note).unwrap();
    let (leader, sleeper) = pids.trim().split_once(' ').unwrap();
    gone(sleeper).await;
    // The leader is our child: it must be reaped, not merely dead.
    while state(leader).is_some() {
        // Any later child's end makes the runtime look after what was left behind.
        let _ = run("true", b"").await;
    }
}

#[tokio::test]
async fn the_end_of_a_long_standard_error_is_kept() {
    let error = run("sh -c 'seq 100000 >&2; echo the end >&2; exit 1'", b"").await.unwrap_err();
    let RunError::Terminal { message, .. } = error else { panic!("{error:?}") };
    assert!(message.starts_with('…') && message.ends_with("the end"), "{message}");
    assert!(message.len() <= STDERR_TAIL_BYTES + 3);
}

#[test]
fn missing_programs_are_refused_before_any_task() {
    let refused = |command: &str| Program::find(command).unwrap_err().to_string();
    assert!(refused("no-such-program-here x").contains("is not in PATH"));
    assert!(refused("/no/such/program").contains("does not exist"));
    assert!(refused("/tmp").contains("is a directory"));
    assert!(refused("/etc/passwd").contains("may not be executed"));
    assert!(refused("cat | sort").contains("only a shell"));
    assert!(Program::find("cat").is_ok());
}
