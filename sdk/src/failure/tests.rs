use std::io;

use super::*;

#[derive(Debug, thiserror::Error)]
#[error("cannot read the order")]
struct Outer(#[source] io::Error);

#[test]
fn an_error_becomes_a_retryable_failure_with_its_causes() {
    let error = Outer(io::Error::new(io::ErrorKind::NotFound, "no such file"));
    let failure = Failure::from(error);
    assert_eq!(failure.class(), FailureClass::Retryable);
    assert_eq!(failure.message(), "cannot read the order: no such file");
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let failure = Failure::terminal("ä".repeat(MESSAGE_BYTES_MAX));
    assert!(failure.message().len() <= MESSAGE_BYTES_MAX);
    assert!(failure.message().chars().all(|c| c == 'ä'));
    let odd = Failure::terminal(format!("x{}", "ä".repeat(MESSAGE_BYTES_MAX)));
    assert_eq!(odd.message().len(), MESSAGE_BYTES_MAX - 1);
}

#[test]
fn details_over_the_limit_are_left_out() {
    let at = Failure::terminal("x").details(vec![7; DETAILS_BYTES_MAX]);
    assert_eq!(at.details_bytes().len(), DETAILS_BYTES_MAX);
    let over = Failure::terminal("x").details(vec![7; DETAILS_BYTES_MAX + 1]);
    assert!(over.details_bytes().is_empty());
}
