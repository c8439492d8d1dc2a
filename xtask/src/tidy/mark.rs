//! Marks in the text: tags of bugs, ignored tests, work left open, paths of one machine.

use std::collections::BTreeMap;

use super::Findings;
use super::mask;
use crate::tree::{File, Tree};

/// Places that exist on one machine only.
const MACHINE_PATHS: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/tmp/", "brief"),
    concat!("/ro", "ot/"),
    concat!("arti", "factory"),
];

/// A test that carries the number of a known bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) line: usize,
    /// The test below it, if there is one.
    pub(crate) test: Option<String>,
}

pub(super) fn check(tree: &Tree, found: &mut Findings) {
    for file in &tree.files {
        paths(file, found);
    }
    for file in tree.rust() {
        ignored(file, found);
        open(file, found);
    }
    bugs(tree, found);
}

fn paths(file: &File, found: &mut Findings) {
    for (index, line) in file.text.lines().enumerate() {
        for place in MACHINE_PATHS {
            if line.contains(place) {
                let what = format!(
                    "names {place}, which is on one machine only: say it relative to the workspace"
                );
                found.add(&file.path, index + 1, "machine-path", what);
            }
        }
    }
}

fn ignored(file: &File, found: &mut Findings) {
    let code = &file.masked.code;
    for (at, _) in code.match_indices("#[ignore]") {
        let what = "a test that is left out without a reason: #[ignore = \"why\"]".to_owned();
        found.add(&file.path, mask::line_at(code, at), "ignore-reason", what);
    }
}

fn open(file: &File, found: &mut Findings) {
    let code = &file.masked.code;
    for name in ["todo", "unimplemented"] {
        for at in mask::words(code, name) {
            if code.get(at + name.len()..).is_some_and(|rest| rest.starts_with('!')) {
                let what =
                    format!("{name}! is work left open: write it, or refuse with a typed error");
                found.add(&file.path, mask::line_at(code, at), "open-work", what);
            }
        }
    }
}

fn bugs(tree: &Tree, found: &mut Findings) {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for tag in tags(tree) {
        let number = tag.id.get(1..).unwrap_or_default();
        let letter = tag.id.starts_with(['B', 'S']);
        let formed = letter && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        if !formed {
            let what = format!("{} is no number of a bug: write B<n> or S<n>", tag.id);
            found.add(&tag.path, tag.line, "bug-tag", what);
        }
        if tag.test.is_none() {
            let what = format!("{} stands above no test: put it on the line above #[test]", tag.id);
            found.add(&tag.path, tag.line, "bug-tag", what);
        }
        let place = format!("{}:{}", tag.path, tag.line);
        if let Some(first) = seen.get(&tag.id) {
            let what =
                format!("{} is tagged at {first} too: one test a bug carries its number", tag.id);
            found.add(&tag.path, tag.line, "bug-tag", what);
        } else {
            seen.insert(tag.id, place);
        }
    }
}

/// Every `// bug: B<n>` of the tree, with the test below it.
pub(crate) fn tags(tree: &Tree) -> Vec<Tag> {
    let mut tags = Vec::new();
    for file in tree.rust() {
        let notes: Vec<&str> = file.masked.notes.lines().collect();
        let code: Vec<&str> = file.masked.code.lines().collect();
        for (index, note) in notes.iter().enumerate() {
            let Some(rest) = note.trim_start().strip_prefix("// bug:") else { continue };
            // `// bug: B14` and `// bug: B14 (tokio-rs/tokio#4618)` and `// bug: B14, S1`.
            let ids = rest.split('(').next().unwrap_or_default();
            for id in ids.split([',', ' ']).filter(|id| !id.is_empty()) {
                tags.push(Tag {
                    id: id.trim_end_matches([':', '.']).to_owned(),
                    path: file.path.clone(),
                    line: index + 1,
                    test: test_below(code.get(index + 1..).unwrap_or_default()),
                });
            }
        }
    }
    tags
}

/// The name of the test that begins in these lines, with nothing but attributes before it.
fn test_below(code: &[&str]) -> Option<String> {
    let mut head = String::new();
    for line in code.iter().take(12) {
        head.push_str(line.trim());
        head.push(' ');
        if let Some(at) = mask::words(&head, "fn").next() {
            let before = head.get(..at)?.trim();
            let only_attributes = before.starts_with("#[");
            let marked = before.contains("test]") || before.contains("::test(");
            let name = head.get(at + 2..)?.trim_start();
            let end = name.bytes().position(|b| !mask::is_word(b)).unwrap_or(name.len());
            return (only_attributes && marked && end > 0)
                .then(|| name.get(..end).map(str::to_owned))?;
        }
    }
    None
}
