//! Doors: which file may name what.

use super::Findings;
use super::mask::{self, words};
use crate::tree::{File, Tree};

/// The files of core that may name std's or loom's synchronization, each with its reason.
const SYNC_DOORS: [(&str, &str); 3] = [
    ("core/src/sync.rs", "the door: std, loom or shuttle"),
    ("core/src/lane.rs", "numbers for threads, handed on when one ends, which no model has"),
    ("core/src/mutant.rs", "reads the planted fault once, outside what a model may see"),
];

/// Crates whose insides no model sees: the files of core that may name them.
const CRATE_DOORS: [(&str, &[&str]); 4] = [
    ("crossbeam_epoch", &["core/src/cell.rs"]),
    ("arc_swap", &["core/src/cell.rs"]),
    ("papaya", &["core/src/index.rs"]),
    ("crossbeam_queue", &["core/src/inbox.rs", "core/src/line.rs"]),
];

/// The files of core that may be unsafe, each with its reason.
const UNSAFE_FILES: [(&str, &str); 3] = [
    ("core/src/cell.rs", "a pin protects the pointer that it loaded"),
    ("core/src/inbox.rs", "nodes are owned through the head word"),
    ("core/src/pool.rs", "the running pumper owns what waits"),
];

pub(super) fn check(tree: &Tree, found: &mut Findings) {
    for file in tree.rust() {
        if file.path.starts_with("core/src/") {
            sync(file, found);
            crates(file, found);
            unsafety(file, found);
            seq_cst(file, found);
        }
        if is_root(&file.path) && !file.path.starts_with("core/") {
            forbids(file, found);
        }
    }
    protocol(tree, found);
}

fn listed(doors: &[(&str, &str)], path: &str) -> bool {
    doors.iter().any(|(door, _)| *door == path)
}

fn is_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs")
}

fn sync(file: &File, found: &mut Findings) {
    if file.is_test() || listed(&SYNC_DOORS, &file.path) {
        return;
    }
    let code = file.masked.shipped();
    for word in ["sync", "loom", "shuttle", "parking_lot"] {
        for at in words(&code, word) {
            if word != "sync" || is_std(&code, at) {
                let what = format!(
                    "names {word} of its own: take it from crate::sync, so that the models see it"
                );
                found.add(&file.path, mask::line_at(&code, at), "sync-door", what);
            }
        }
    }
}

/// Says whether the `sync` at this place is std's: `std::sync`, or inside `use std::{..}`.
fn is_std(code: &str, at: usize) -> bool {
    let before = code.get(..at).unwrap_or_default();
    let statement = before.rfind([';', '}']).map_or(before, |end| before.get(end..).unwrap_or(""));
    let path: String = statement.split_whitespace().collect();
    ["std", "core", "alloc"].iter().any(|root| {
        path.ends_with(&format!("{root}::"))
            || (path.contains("use") && path.contains(&format!("{root}::{{")))
    })
}

fn crates(file: &File, found: &mut Findings) {
    if file.is_test() {
        return;
    }
    let code = file.masked.shipped();
    for (name, doors) in CRATE_DOORS {
        if doors.contains(&file.path.as_str()) {
            continue;
        }
        for at in words(&code, name) {
            let what = format!(
                "names {name}: go through {}, which has a stand-in or a model",
                doors.join(" or ")
            );
            found.add(&file.path, mask::line_at(&code, at), "crate-door", what);
        }
    }
}

fn unsafety(file: &File, found: &mut Findings) {
    let code = &file.masked.code;
    let is_listed = listed(&UNSAFE_FILES, &file.path);
    if is_listed && words(code, "unsafe").next().is_none() {
        let what = "listed as unsafe and is not any more: drop it from the list".to_owned();
        found.add(&file.path, 1, "unsafe-file", what);
    }
    for at in words(code, "unsafe") {
        let line = mask::line_at(code, at);
        if !is_listed && !file.is_test() {
            let names: Vec<&str> = UNSAFE_FILES.iter().map(|(path, _)| *path).collect();
            let what = format!(
                "unsafe outside the listed files: make a safe type in {}, or list this file and say why",
                names.join(", ")
            );
            found.add(&file.path, line, "unsafe-file", what);
        }
        let after = code.get(at + "unsafe".len()..).unwrap_or_default().trim_start();
        if (after.starts_with('{') || after.starts_with("impl")) && !has_safety(file, line) {
            let what = "unsafe without a note: say `// SAFETY:`, which invariant, who upholds it"
                .to_owned();
            found.add(&file.path, line, "safety-note", what);
        }
    }
}

/// Looks upward from the line, over the statement it is in, for the note.
fn has_safety(file: &File, line: usize) -> bool {
    let notes: Vec<&str> = file.masked.notes.lines().take(line).collect();
    let texts: Vec<&str> = file.text.lines().take(line).collect();
    for (note, text) in notes.iter().rev().zip(texts.iter().rev()).take(12) {
        if note.contains("SAFETY:") {
            return true;
        }
        if text.trim().is_empty() {
            return false;
        }
    }
    false
}

fn seq_cst(file: &File, found: &mut Findings) {
    if file.is_test() {
        return;
    }
    let code = file.masked.shipped();
    for at in words(&code, "SeqCst") {
        let before: String = code.get(..at).unwrap_or_default().split_whitespace().collect();
        let before = before.strip_suffix("Ordering::").unwrap_or(&before);
        if !before.ends_with("fence(") {
            let what =
                "SeqCst on an access, which loom takes for AcqRel: use a pair of fence(SeqCst)"
                    .to_owned();
            found.add(&file.path, mask::line_at(&code, at), "seq-cst", what);
        }
    }
}

fn forbids(file: &File, found: &mut Findings) {
    let code: String = file.masked.code.split_whitespace().collect();
    if !code.contains("#![forbid(unsafe_code)]") {
        let what = "a library root that may turn unsafe: add #![forbid(unsafe_code)]".to_owned();
        found.add(&file.path, 1, "forbid-unsafe", what);
    }
}

/// The lints that keep a peer from ending the process.
const PROTOCOL_LINTS: [&str; 6] = [
    "clippy::unwrap_used",
    "clippy::expect_used",
    "clippy::panic",
    "clippy::indexing_slicing",
    "clippy::string_slice",
    "clippy::arithmetic_side_effects",
];

fn protocol(tree: &Tree, found: &mut Findings) {
    let roots = ["net/src/proto/mod.rs", "net/src/proto.rs"];
    let Some(file) = roots.iter().find_map(|path| tree.file(path)) else { return };
    let code: String = file.masked.code.split_whitespace().collect();
    let mut denied = String::new();
    for opening in ["#![deny(", "#![forbid(", ",deny(", ",forbid("] {
        for (at, _) in code.match_indices(opening) {
            let rest = code.get(at + opening.len()..).unwrap_or_default();
            denied.push_str(rest.split(')').next().unwrap_or_default());
            denied.push(',');
        }
    }
    for lint in PROTOCOL_LINTS {
        if !denied.split(',').any(|name| name == lint) {
            let what = format!(
                "the protocol does not deny {lint}: a peer causes typed errors, never panics"
            );
            found.add(&file.path, 1, "proto-lints", what);
        }
    }
}
