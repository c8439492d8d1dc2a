use serde::{Deserialize, Serialize};

use super::*;

#[derive(Serialize, Deserialize)]
struct Greet;

impl Activity for Greet {
    const TYPE: &'static str = "greet";
    type Output = ();
}

async fn greet(_: Greet, _: Context) -> Result<(), Failure> {
    Ok(())
}

fn greeter() -> WorkerBuilder {
    Worker::builder().activity(greet)
}

#[test]
fn a_duplicate_handler_is_a_build_error() {
    let again = |_: Greet, _: Context| Ok(());
    let error = greeter().blocking(again).build().unwrap_err();
    assert_eq!(error, BuildError::DuplicateHandler { name: "greet".to_owned() });
    let raw = async |bytes: Bytes, _: Context| Ok(bytes);
    let error = greeter().raw("greet", raw).build().unwrap_err();
    assert_eq!(error, BuildError::DuplicateHandler { name: "greet".to_owned() });
    assert!(greeter().raw("greet2", raw).build().is_ok());
}

#[test]
fn a_worker_without_handlers_is_a_build_error() {
    assert_eq!(Worker::builder().build().unwrap_err(), BuildError::NoHandlers);
    assert_eq!(Worker::builder().state(7).build().unwrap_err(), BuildError::NoHandlers);
}

#[test]
fn wrong_names_and_numbers_are_build_errors() {
    for builder in [
        greeter().namespace(""),
        greeter().namespace("_internal"),
        greeter().task_queue("a b"),
        greeter().node(""),
        greeter().raw("_hidden", async |bytes: Bytes, _: Context| Ok(bytes)),
    ] {
        assert!(matches!(builder.build(), Err(BuildError::Name(_))));
    }
    for credit in [0, CREDIT_MAX + 1] {
        let error = greeter().credit(credit).build().unwrap_err();
        assert!(matches!(error, BuildError::OutOfRange { what: "the credit", .. }));
    }
    assert!(greeter().credit(CREDIT_MAX).build().is_ok());
}

#[test]
fn node_defaults_to_the_host_and_no_node_opts_out() {
    assert_eq!(greeter().build().unwrap().config.node, host::node());
    assert_eq!(greeter().no_node().build().unwrap().config.node, None);
    let named = greeter().node("box-7").build().unwrap();
    assert_eq!(named.config.node.unwrap().as_str(), "box-7");
}

#[test]
fn handlers_from_before_the_state_stay() {
    let counted = async |bytes: Bytes, cx: Context<u32>| {
        assert_eq!(*cx.state(), 7);
        Ok(bytes)
    };
    let worker = greeter().state(7_u32).raw("count", counted).build().unwrap();
    let types: Vec<&str> = worker.config.types.iter().map(ActivityType::as_str).collect();
    assert_eq!(types, ["greet", "count"]);
    assert_eq!(worker.handlers.len(), 2);
}
