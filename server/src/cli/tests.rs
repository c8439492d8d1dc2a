use super::*;
use clap::CommandFactory;

fn leaves(command: &clap::Command, found: &mut Vec<clap::Command>) {
    for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
        if child.has_subcommands() {
            leaves(child, found);
        } else {
            found.push(child.clone());
        }
    }
}

#[test]
fn the_tree_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_says_what_it_changes_and_shows_an_example() {
    let mut found = Vec::new();
    leaves(&Cli::command(), &mut found);
    assert!(found.len() >= 12, "{}", found.len());
    for command in found {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let marks = ["[read]", "[write]", "[read, write]", "[destructive]"];
        assert!(marks.iter().any(|mark| about.ends_with(mark)), "{about}");
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Examples:\n  "), "{}", command.get_name());
    }
}

#[test]
fn wait_takes_an_optional_duration() {
    let wait = |line: &[&str]| match Cli::try_parse_from(line).map(|cli| cli.command) {
        Ok(Command::Submit(args)) => args.wait(),
        other => panic!("{other:?}"),
    };
    assert_eq!(wait(&["slip", "submit", "t", "1"]), None);
    assert_eq!(wait(&["slip", "submit", "t", "1", "--wait=30s"]), Some(Duration::from_secs(30)));
    assert!(wait(&["slip", "submit", "t", "--wait", "1"]).is_some_and(|wait| wait.as_secs() > 60));
}

#[test]
fn a_negative_number_is_a_payload() {
    let line = ["slip", "submit", "t", "-5", "--queue", "fast"];
    let Ok(Command::Submit(args)) = Cli::try_parse_from(line).map(|cli| cli.command) else {
        panic!("refused");
    };
    assert_eq!(args.payload.as_deref(), Some("-5"));
}

#[test]
fn a_worker_needs_exactly_one_handler() {
    let parse = |line: &[&str]| Cli::try_parse_from(line).is_ok();
    assert!(!parse(&["slip", "worker", "--type", "t"]));
    assert!(!parse(&["slip", "worker", "--type", "t", "--echo", "--exec", "cat"]));
    assert!(parse(&["slip", "worker", "--type", "t", "--echo"]));
    assert!(parse(&["slip", "worker", "--type", "t", "--exec", "cat -n"]));
}
