//! Completions, manual pages and help.

use crate::bed::User;

#[test]
fn every_shell_has_a_completion_script() {
    let user = User::new();
    for (shell, sign) in [
        ("bash", "complete -F _slip"),
        ("zsh", "#compdef slip"),
        ("fish", "complete -c slip"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = user.run(&["completions", shell]).ok();
        assert!(script.contains(sign), "{shell}");
        assert!(script.contains("drain"), "{shell}");
        assert!(!script.contains("demo-worker"), "{shell} shows a hidden command");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let user = User::new();
    let dir = user.path("man/man1");
    user.run(&["man", &dir]).ok();
    let mut pages: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    for page in ["slip.1", "slip-demo.1", "slip-submit.1", "slip-tasks-get.1", "slip-worker.1"] {
        assert!(pages.iter().any(|found| found == page), "{page} is not in {pages:?}");
    }
    assert!(!pages.iter().any(|page| page.contains("demo-")), "{pages:?}");
    let page = std::fs::read_to_string(format!("{dir}/slip-submit.1")).unwrap();
    assert!(page.contains("Examples") && page.contains(".SH"), "{page}");
}

#[test]
fn help_and_version_are_no_failure() {
    let user = User::new();
    let help = user.run(&["--help"]).ok();
    assert!(help.contains("Exit codes:") && help.contains("slip demo"), "{help}");
    assert!(user.run(&["submit", "--help"]).ok().contains("Examples:"));
    assert!(user.run(&["--version"]).ok().starts_with("slip "));
}

#[test]
fn manual_pages_need_a_folder() {
    let user = User::new();
    let file = user.file("taken", b"");
    user.run(&["man", &file]).refused(1, "environment", &["manual pages", &file]);
}
