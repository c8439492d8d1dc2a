//! Planted faults: each rule finds its own, and a clean tree passes.

use std::fs;
use std::path::PathBuf;

use super::mark::tags;
use super::{check, notes};
use crate::tree::Tree;

const CELL: &str = "\
#![expect(unsafe_code, reason = \"a pin protects the pointer\")]
use crossbeam_epoch as epoch;
use crate::sync::Ordering;
impl Cell {
    /// Loads.
    pub fn load(&self) -> &T {
        // Acquire [E1]: pairs with the swap in `Cell::publish`.
        let shared = self.current.load(Ordering::Acquire, &pin);
        // SAFETY: the pin protects it.
        unsafe { &*shared }
    }

    /// Publishes.
    pub fn publish(&self) {
        let order = if mutant(\"L1a\") { Ordering::Relaxed } else { Ordering::AcqRel };
        // Release [E1]: AcqRel; pairs with the load in `Cell::load`.
        let old = self.current.swap(new, order, &pin);
        // fence SeqCst [E2]: pairs with the fence in `Cell::drain`.
        fence(Ordering::SeqCst);
    }

    /// Drains.
    pub fn drain(&self) {
        // Relaxed: the fence orders it.
        self.state.store(DRAINING, Ordering::Relaxed);
        // fence SeqCst [E2]: pairs with the fence in `Cell::publish`.
        fence(Ordering::SeqCst);
        // AcqRel [E3]: pairs with itself; every count sees the ones before it.
        self.count.fetch_add(1, Ordering::AcqRel);
    }
}
";

const TABLE: &str = "\
# Architecture

| edge | releasing op | acquiring op | protects | proof |
|---|---|---|---|---|
| E1 | `Cell::publish` swap, Release | `Cell::load`, Acquire | value | loom `publish::whole_value` |
| E2 | `Cell::publish` fence | `Cell::drain` fence | no late push | loom `publish::whole_value` |
| E3 | `Cell::drain` count | the same | the counts | `counts_rise` |
";

const PROTO: &str = "\
#![deny(
    clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing,
    clippy::string_slice, clippy::arithmetic_side_effects
)]
";

/// A tree that breaks no rule.
fn clean() -> Vec<(&'static str, String)> {
    let files = [
        ("ARCHITECTURE.md", TABLE),
        ("core/src/lib.rs", "//! Heart.\n#[cfg(test)]\nmod tests;\n"),
        (
            "core/src/sync.rs",
            "pub(crate) use std::sync::Arc;\npub(crate) use std::sync::atomic::fence;\n",
        ),
        ("core/src/cell.rs", CELL),
        ("core/src/tests.rs", "use std::sync::Barrier;\n#[test]\nfn counts_rise() {}\n"),
        ("loom-tests/tests/publish.rs", "#[test]\nfn whole_value() {}\n"),
        ("net/src/lib.rs", "//! Wire.\n#![forbid(unsafe_code)]\npub mod proto;\n"),
        ("net/src/proto/mod.rs", PROTO),
        (
            "net/tests/pair.rs",
            "// bug: B14\n#[test]\nfn cancelled_waiter_hands_on() {}\n#[ignore = \"long\"]\n",
        ),
    ];
    files.into_iter().map(|(path, text)| (path, text.to_owned())).collect()
}

fn tree(files: &[(&str, String)]) -> Tree {
    let mut tree = Tree::default();
    for (path, text) in files {
        tree.insert(path, text);
    }
    tree
}

/// The rules that a clean tree breaks once `old` became `new` in `path`.
fn broken(path: &str, old: &str, new: &str) -> Vec<String> {
    let mut files = clean();
    let (_, text) = files.iter_mut().find(|(p, _)| *p == path).expect("a file of the clean tree");
    assert!(text.contains(old), "{path} lacks {old:?}");
    *text = text.replacen(old, new, 1);
    rules(&files)
}

/// The rules that a clean tree breaks with one more file.
fn added(path: &'static str, text: &str) -> Vec<String> {
    let mut files = clean();
    files.push((path, text.to_owned()));
    rules(&files)
}

fn rules(files: &[(&str, String)]) -> Vec<String> {
    check(&tree(files)).iter().map(|f| format!("{}:{} {}", f.path, f.line, f.rule)).collect()
}

#[test]
fn a_clean_tree_passes() {
    assert_eq!(rules(&clean()), [""; 0]);
    assert_eq!(notes(&tree(&clean())), []);
}

#[test]
fn std_synchronization_outside_the_door_is_found() {
    for text in [
        "\nuse std::sync::Mutex;\n",
        "\nuse std::{fmt, sync::Arc};\n",
        "\nuse core::sync::atomic::AtomicU64;\n",
        "\nuse loom::sync::Arc;\n",
        "\nfn f() { std::sync::Arc::new(1); }\n",
    ] {
        assert_eq!(added("core/src/gate.rs", text), ["core/src/gate.rs:2 sync-door"], "{text}");
    }
    for text in [
        "use crate::sync::Arc;\n",
        "// use std::sync::Arc;\nfn sync() {}\n",
        "#[cfg(test)]\nmod tests { use std::sync::Arc; }\n",
    ] {
        assert_eq!(added("core/src/gate.rs", text), [""; 0], "{text}");
    }
}

#[test]
fn a_crate_outside_its_door_is_found() {
    let text = "use papaya::HashMap;\n";
    assert_eq!(added("core/src/registry.rs", text), ["core/src/registry.rs:1 crate-door"]);
    assert_eq!(added("core/src/index.rs", text), [""; 0]);
    let text = "fn f(p: &crossbeam_epoch::Guard) {}\n";
    assert_eq!(added("core/src/registry.rs", text), ["core/src/registry.rs:1 crate-door"]);
}

#[test]
fn a_library_root_that_may_turn_unsafe_is_found() {
    let found = broken("net/src/lib.rs", "#![forbid(unsafe_code)]", "// #![forbid(unsafe_code)]");
    assert_eq!(found, ["net/src/lib.rs:1 forbid-unsafe"]);
}

#[test]
fn unsafe_in_another_file_of_core_is_found() {
    let text = "// SAFETY: none.\nfn f() { unsafe { g() } }\n";
    assert_eq!(added("core/src/select.rs", text), ["core/src/select.rs:2 unsafe-file"]);
    assert_eq!(added("core/src/select.rs", "#![deny(unsafe_code)]\n// unsafe\n"), [""; 0]);
    assert_eq!(added("core/src/pool.rs", "fn f() {}\n"), ["core/src/pool.rs:1 unsafe-file"]);
}

#[test]
fn unsafe_without_its_note_is_found() {
    let found = broken("core/src/cell.rs", "// SAFETY: the pin protects it.", "// It is fine.");
    assert_eq!(found, ["core/src/cell.rs:10 safety-note"]);
    let text = "\nunsafe impl Send for A {}\n";
    assert_eq!(added("core/src/pool.rs", text), ["core/src/pool.rs:2 safety-note"]);
}

#[test]
fn a_seq_cst_access_is_found() {
    let found = broken(
        "core/src/cell.rs",
        "self.state.store(DRAINING, Ordering::Relaxed)",
        "self.state.store(DRAINING, Ordering::SeqCst)",
    );
    assert_eq!(found, ["core/src/cell.rs:24 edge-label", "core/src/cell.rs:25 seq-cst"]);
}

#[test]
fn a_label_that_disagrees_with_the_code_is_found() {
    let found = broken("core/src/cell.rs", "load(Ordering::Acquire", "load(Ordering::Relaxed");
    assert_eq!(found, ["core/src/cell.rs:7 edge-label"]);
    // Through the variable that carries the planted fault: the other branch counts.
    let found =
        broken("core/src/cell.rs", "else { Ordering::AcqRel }", "else { Ordering::Relaxed }");
    assert_eq!(found, ["core/src/cell.rs:16 edge-label"]);
}

#[test]
fn a_label_without_its_operation_is_found() {
    let text = "fn f() {\n    // Relaxed: a cursor.\n    g();\n}\n";
    assert_eq!(added("core/src/cursor.rs", text), ["core/src/cursor.rs:2 edge-label"]);
    let found = broken("core/src/cell.rs", "// Acquire [E1]", "// Aquire [E1]");
    assert_eq!(found, ["core/src/cell.rs:7 edge-label", "core/src/cell.rs:16 edge-side"]);
}

#[test]
fn a_planted_fault_is_not_held_to_its_label() {
    let planted = "\
fn f() {
    // Relaxed: a look.
    if mutant(\"L7b\") && a.load(Ordering::Acquire) == 1 {
        // Relaxed: planted.
        a.store(1, Ordering::Release);
        return;
    }
    a.load(Ordering::Relaxed);
}
";
    assert_eq!(added("core/src/credit.rs", planted), [""; 0]);
    let shipped = planted.replace("mutant(\"L7b\")", "is_seven()");
    let found = ["core/src/credit.rs:2 edge-label", "core/src/credit.rs:4 edge-label"];
    assert_eq!(added("core/src/credit.rs", &shipped), found);
}

#[test]
fn an_edge_with_one_side_is_found() {
    let found = broken("core/src/cell.rs", "// Acquire [E1]: pairs", "// Acquire: pairs");
    assert_eq!(found, ["core/src/cell.rs:16 edge-side"]);
    let found = broken("core/src/cell.rs", "pairs with itself;", "pairs with another;");
    assert_eq!(found, ["core/src/cell.rs:28 edge-side"]);
    let found = broken(
        "core/src/cell.rs",
        "// fence SeqCst [E2]: pairs with the fence in `Cell::drain`.",
        "//",
    );
    assert_eq!(found, ["core/src/cell.rs:26 edge-side"]);
}

#[test]
fn an_edge_without_its_row_is_found() {
    let found = broken("ARCHITECTURE.md", "| E3 |", "| E4 |");
    assert_eq!(found, ["ARCHITECTURE.md:7 edge-row", "core/src/cell.rs:28 edge-row"]);
    let found = broken("ARCHITECTURE.md", "| edge |", "| other |");
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn a_row_of_another_form_is_found() {
    let found = broken("ARCHITECTURE.md", "| the counts | `counts_rise` |", "| `counts_rise` |");
    assert_eq!(found, ["ARCHITECTURE.md:7 edge-table", "core/src/cell.rs:28 edge-row"]);
    let found = broken("ARCHITECTURE.md", "`Cell::load`", "`Cell::fetch`");
    assert_eq!(found, ["ARCHITECTURE.md:5 edge-table"]);
    let found = broken("ARCHITECTURE.md", "| E3 |", "| E2 |");
    assert_eq!(found, ["ARCHITECTURE.md:7 edge-table", "core/src/cell.rs:28 edge-row"]);
}

#[test]
fn a_proof_that_is_no_test_is_found() {
    let found = broken("loom-tests/tests/publish.rs", "#[test]", "");
    assert_eq!(found, ["ARCHITECTURE.md:5 edge-proof", "ARCHITECTURE.md:6 edge-proof"]);
    let found = broken("ARCHITECTURE.md", "`counts_rise`", "`counts_fall`");
    assert_eq!(found, ["ARCHITECTURE.md:7 edge-proof"]);
    let found = broken("ARCHITECTURE.md", "`counts_rise`", "by reading");
    assert_eq!(found, ["ARCHITECTURE.md:7 edge-proof"]);
    let found = broken("ARCHITECTURE.md", "`publish::whole_value`", "`retire::whole_value`");
    assert_eq!(found, ["ARCHITECTURE.md:5 edge-proof"]);
}

#[test]
fn an_operation_without_a_label_is_noted_and_passes() {
    let mut files = clean();
    files.push((
        "core/src/cursor.rs",
        "fn f() {\n    a.fetch_add(1, Ordering::Relaxed);\n}\n".to_owned(),
    ));
    assert_eq!(rules(&files), [""; 0]);
    let notes = notes(&tree(&files));
    assert_eq!(notes.iter().map(|n| (n.line, n.rule)).collect::<Vec<_>>(), [(2, "edge-label")]);
}

#[test]
fn a_protocol_lint_that_is_missing_is_found() {
    let found = broken("net/src/proto/mod.rs", "clippy::panic, ", "");
    assert_eq!(found, ["net/src/proto/mod.rs:1 proto-lints"]);
    let found = broken("net/src/proto/mod.rs", "#![deny(", "#![warn(");
    assert_eq!(found.len(), 6, "{found:?}");
    let found = broken("net/src/proto/mod.rs", "#![deny(", "#![cfg_attr(not(test), deny(");
    assert_eq!(found, [""; 0]);
}

#[test]
fn an_ignored_test_without_a_reason_is_found() {
    let found = broken("net/tests/pair.rs", "#[ignore = \"long\"]", "#[ignore]");
    assert_eq!(found, ["net/tests/pair.rs:4 ignore-reason"]);
}

#[test]
fn paths_of_one_machine_are_found() {
    let text = format!("# Notes\nsee {}main\n", concat!("/wo", "rk/"));
    assert_eq!(added("NOTES.md", &text), ["NOTES.md:2 machine-path"]);
}

#[test]
fn work_left_open_is_found() {
    let text = "fn f() {\n    todo!()\n}\nfn g() {\n    unimplemented!(\"later\")\n}\n";
    assert_eq!(
        added("sdk/src/a.rs", text),
        ["sdk/src/a.rs:2 open-work", "sdk/src/a.rs:5 open-work"]
    );
    assert_eq!(added("sdk/src/a.rs", "// todo!()\nfn f() { g(\"todo!\") }\n"), [""; 0]);
}

#[test]
fn a_tag_above_no_test_or_twice_is_found() {
    let found = broken("net/tests/pair.rs", "#[test]", "");
    assert_eq!(found, ["net/tests/pair.rs:1 bug-tag"]);
    let text = "// bug: B14 (a/b#1)\n#[tokio::test]\nasync fn again() {}\n";
    assert_eq!(added("net/tests/other.rs", text), ["net/tests/other.rs:1 bug-tag"]);
    let text = "// bug: 14\n#[test]\nfn again() {}\n";
    assert_eq!(added("net/tests/other.rs", text), ["net/tests/other.rs:1 bug-tag"]);
}

#[test]
fn tags_know_their_tests() {
    let text = "\
// bug: B14 (tokio-rs/tokio#4618)
#[tokio::test(flavor = \"current_thread\")]
async fn one() {}
// bug: S1
#[test]
#[should_panic]
fn two() {}
";
    let found = tags(&tree(&[("net/tests/a.rs", text.to_owned())]));
    let found: Vec<_> = found.iter().map(|tag| (tag.id.as_str(), tag.test.as_deref())).collect();
    assert_eq!(found, [("B14", Some("one")), ("S1", Some("two"))]);
}

#[test]
fn sizes_are_noted_and_pass() {
    let body = "    g();\n".repeat(520);
    let text = format!("fn f() {{\n{body}}}\n// {}\n", "x".repeat(98));
    let files = [("sdk/src/a.rs", text)];
    assert_eq!(rules(&files), [""; 0]);
    let notes = notes(&tree(&files));
    let found: Vec<_> = notes.iter().map(|n| (n.line, n.rule)).collect();
    assert_eq!(found, [(1, "file-size"), (1, "function-size"), (523, "line-size")]);
}

#[test]
fn a_tree_on_disk_is_read_without_what_was_built() {
    let root = std::env::temp_dir().join(format!("slipswitch-tidy-{}", std::process::id()));
    let put = |path: &str, text: &str| {
        let path: PathBuf = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    };
    put("core/src/a.rs", "fn f() { todo!() }\n");
    put(".ci/run", "#!/bin/sh\n");
    put("target/debug/build/b.rs", "fn f() { todo!() }\n");
    put("target-loom/c.rs", "fn f() { todo!() }\n");
    put(".git/d.rs", "fn f() { todo!() }\n");
    put("e.bin", "\u{0}");
    let tree = Tree::read(&root);
    fs::remove_dir_all(&root).expect("removed");
    let tree = tree.expect("read");
    let paths: Vec<_> = tree.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, [".ci/run", "core/src/a.rs"]);
    assert_eq!(check(&tree).iter().map(|f| f.rule).collect::<Vec<_>>(), ["open-work"]);
}
