//! Memory edges: labels in core, the table in ARCHITECTURE.md, and the orderings in the code.
//!
//! A label is a comment line of the form `// Release [E3]: pairs with ..`: an ordering (or `fence
//! SeqCst`), the edges, a colon. It speaks of the first atomic operation of the statement below.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::Findings;
use super::mask::{self, words};
use crate::tree::{File, Tree};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];
const OPERATIONS: [&str; 17] = [
    "load",
    "store",
    "swap",
    "compare_exchange",
    "compare_exchange_weak",
    "compare_and_set",
    "fetch_add",
    "fetch_sub",
    "fetch_or",
    "fetch_and",
    "fetch_xor",
    "fetch_nand",
    "fetch_max",
    "fetch_min",
    "fetch_update",
    "fetch_ptr_add",
    "fence",
];

/// An ordering named above an operation.
#[derive(Clone, Debug)]
struct Label {
    ordering: String,
    edges: Vec<String>,
    /// The label names its own operation as the other side too.
    both: bool,
    /// Byte of the comment in the file.
    at: usize,
}

/// An atomic operation in the code.
#[derive(Clone, Debug)]
struct Operation {
    at: usize,
    end: usize,
    name: &'static str,
    orderings: BTreeSet<String>,
}

/// A row of the table.
#[derive(Clone, Debug)]
struct Row {
    line: usize,
    sides: [String; 2],
    proof: String,
}

pub(super) fn check(tree: &Tree, found: &mut Findings) {
    let mut places: BTreeMap<String, Vec<(String, usize, Label)>> = BTreeMap::new();
    for file in sources(tree) {
        let (code, planted) = shipped(file);
        let operations = operations(&code);
        for label in labels(file, found) {
            if planted.iter().any(|block| block.contains(&label.at)) {
                continue;
            }
            agree(file, &code, &operations, &label, found);
            let line = mask::line_at(&file.text, label.at);
            for edge in &label.edges {
                let list = places.entry(edge.clone()).or_default();
                list.push((file.path.clone(), line, label.clone()));
            }
        }
    }
    let rows = table(tree, found);
    for (edge, list) in &places {
        let Some((path, line, _)) = list.first() else { continue };
        if !rows.contains_key(edge) {
            let what =
                format!("{edge} is no row of the table in {ARCHITECTURE}: add it, with its proof");
            found.add(path, *line, "edge-row", what);
        }
        let has =
            |sides: &[&str]| list.iter().any(|(_, _, l)| sides.contains(&l.ordering.as_str()));
        let release = has(&["Release", "AcqRel", "SeqCst"]);
        let acquire = has(&["Acquire", "AcqRel", "SeqCst"]);
        let whole = list.len() > 1 || list.iter().all(|(_, _, l)| l.both && l.ordering == "AcqRel");
        if !(release && acquire && whole) {
            let missing = match (release, acquire) {
                (false, _) => "releasing",
                (_, false) => "acquiring",
                _ => "other",
            };
            let what = format!(
                "{edge} has no {missing} side: label the operation that pairs with this one"
            );
            found.add(path, *line, "edge-side", what);
        }
    }
    for (edge, row) in &rows {
        if !places.contains_key(edge) {
            let what =
                format!("{edge} labels no operation of core: label both sides, or drop the row");
            found.add(ARCHITECTURE, row.line, "edge-row", what);
        }
        functions(tree, edge, row, found);
        proofs(tree, edge, row, found);
    }
}

/// Operations that no label speaks of.
pub(super) fn notes(tree: &Tree, found: &mut Findings) {
    for file in sources(tree) {
        let (code, _) = shipped(file);
        let operations = operations(&code);
        let labels = labels(file, &mut Findings::default());
        let mut spoken = BTreeSet::new();
        for (index, label) in labels.iter().enumerate() {
            let next = labels.get(index + 1).map_or(usize::MAX, |next| next.at);
            let below = |op: &&Operation| op.at > label.at && op.at < next;
            let statement = mask::item_end(&code, label.at);
            // A label speaks of its statement, and of like operations up to the next blank line.
            let paragraph = file.text.get(label.at..).and_then(|rest| rest.find("\n\n"));
            let paragraph = paragraph.map_or(file.text.len(), |length| label.at + length);
            let like = |op: &Operation| op.orderings.iter().all(|name| *name == label.ordering);
            spoken.extend(operations.iter().find(|op| op.at > label.at).map(|op| op.at));
            spoken.extend(
                operations
                    .iter()
                    .filter(below)
                    .filter(|op| op.at < statement || (op.at < paragraph && like(op)))
                    .map(|op| op.at),
            );
        }
        for op in operations.iter().filter(|op| !spoken.contains(&op.at)) {
            let what =
                format!("{} has no label: say its ordering, its edge, the other side", op.name);
            found.add(&file.path, mask::line_at(&code, op.at), "edge-label", what);
        }
    }
}

fn sources(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.rust().filter(|file| file.path.starts_with("core/src/") && !file.is_test())
}

/// The code of a file without tests and without planted faults, and where those are.
fn shipped(file: &File) -> (String, Vec<Range<usize>>) {
    let mut code = file.masked.shipped();
    let planted: Vec<usize> = words(&code, "if")
        .filter(|at| {
            code.get(at + 2..).is_some_and(|rest| rest.trim_start().starts_with("mutant("))
        })
        .collect();
    let mut blocks = Vec::new();
    for at in planted {
        let open = code.get(at..).and_then(|rest| rest.find('{')).map_or(code.len(), |n| at + n);
        let end = mask::item_end(&code, open);
        mask::blank(&mut code, at, end);
        blocks.push(at..end);
    }
    (code, blocks)
}

fn labels(file: &File, found: &mut Findings) -> Vec<Label> {
    let mut labels: Vec<Label> = Vec::new();
    let mut at = 0;
    let mut in_label = false;
    for (index, note) in file.masked.notes.split_inclusive('\n').enumerate() {
        let begin = at;
        at += note.len();
        let Some(text) = note.trim().strip_prefix("// ") else {
            in_label = false;
            continue;
        };
        let head = text.split_once(':').map_or("", |(head, _)| head);
        let edges: Vec<String> = edges(head);
        let word = head.split('[').next().unwrap_or_default().trim();
        let ordering = word.strip_prefix("fence ").unwrap_or(word);
        if ORDERINGS.contains(&ordering) {
            let both = says_both(text);
            in_label = true;
            labels.push(Label { ordering: ordering.to_owned(), edges, both, at: begin });
        } else if !edges.is_empty() || text.starts_with("[E") {
            let what = format!(
                "`{word}` is no ordering: write `// Release [E3]: ..` or `// fence SeqCst [E7]: ..`"
            );
            found.add(&file.path, index + 1, "edge-label", what);
        } else if in_label
            && says_both(text)
            && let Some(label) = labels.last_mut()
        {
            label.both = true;
        }
    }
    labels
}

fn says_both(text: &str) -> bool {
    ["itself", "both sides", "both ways", "each other"].iter().any(|word| text.contains(word))
}

/// The `[E3]` of a text.
fn edges(text: &str) -> Vec<String> {
    let inside = text.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    inside.map(|(name, _)| name).filter(|name| is_edge(name)).map(str::to_owned).collect()
}

fn is_edge(name: &str) -> bool {
    let digits = name.strip_prefix('E').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Every call with an ordering among its arguments.
fn operations(code: &str) -> Vec<Operation> {
    let bytes = code.as_bytes();
    let mut operations = Vec::new();
    for name in OPERATIONS {
        for at in words(code, name) {
            let after = at + name.len();
            let called = bytes.get(after) == Some(&b'(');
            let method = at.checked_sub(1).and_then(|at| bytes.get(at)) == Some(&b'.');
            let declared = code.get(..at).is_some_and(|before| before.trim_end().ends_with("fn"));
            if !called || declared || method == (name == "fence") {
                continue;
            }
            let end = closing(bytes, after);
            let arguments = code.get(after..end).unwrap_or_default();
            let mut orderings = named(arguments);
            for word in arguments.split(|c: char| c != '_' && !c.is_alphanumeric()) {
                if word.contains("order") {
                    orderings.extend(bound(code, at, word));
                }
            }
            if !orderings.is_empty() {
                operations.push(Operation { at, end, name, orderings });
            }
        }
    }
    operations.sort_by_key(|op| op.at);
    operations
}

fn named(text: &str) -> BTreeSet<String> {
    let here = |name: &&str| words(text, name).next().is_some();
    ORDERINGS.iter().filter(|name| here(name)).map(|name| (*name).to_owned()).collect()
}

/// The orderings of the nearest `let` of this name above.
fn bound(code: &str, at: usize, name: &str) -> BTreeSet<String> {
    let before = code.get(..at).unwrap_or_default();
    let binding = format!("let {name}");
    let Some(begin) = before.rfind(&binding) else { return BTreeSet::new() };
    let rest = before.get(begin..).unwrap_or_default();
    named(rest.split(';').next().unwrap_or_default())
}

fn closing(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0_i64;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

/// The label and the first operation below it must speak of the same ordering.
fn agree(file: &File, code: &str, operations: &[Operation], label: &Label, found: &mut Findings) {
    let line = mask::line_at(&file.text, label.at);
    let next = operations.iter().find(|op| op.end > label.at);
    let near = next.filter(|op| mask::line_at(code, op.at) <= line + 25);
    let Some(op) = near else {
        let what = format!(
            "a label `{}` with no atomic operation below it: move it to the operation",
            label.ordering
        );
        found.add(&file.path, line, "edge-label", what);
        return;
    };
    let carried = |names: &[&str]| names.iter().any(|name| op.orderings.contains(*name));
    let agrees = match label.ordering.as_str() {
        "Release" => carried(&["Release", "AcqRel"]),
        "Acquire" => carried(&["Acquire", "AcqRel"]),
        "SeqCst" => carried(&["SeqCst"]) && op.name == "fence",
        other => carried(&[other]),
    };
    if !agrees {
        let there: Vec<&str> = op.orderings.iter().map(String::as_str).collect();
        let what = format!(
            "the label says {}, the {} in line {} says {}: make them one",
            label.ordering,
            op.name,
            mask::line_at(code, op.at),
            there.join(" and ")
        );
        found.add(&file.path, line, "edge-label", what);
    }
}

/// Reads the table whose first column is called `edge`.
fn table(tree: &Tree, found: &mut Findings) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    let Some(file) = tree.file(ARCHITECTURE) else { return rows };
    let mut inside = false;
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim();
        if !line.starts_with('|') {
            inside = false;
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let first = cells.first().copied().unwrap_or_default().trim_matches(['[', ']', '`']);
        if first.eq_ignore_ascii_case("edge") {
            inside = true;
            continue;
        }
        let rule = first.bytes().all(|b| matches!(b, b'-' | b':'));
        if !inside || rule {
            continue;
        }
        let [_, release, acquire, _, proof] = cells.as_slice() else {
            let what =
                "a row without its five cells: edge, releasing op, acquiring op, protects, proof"
                    .to_owned();
            found.add(ARCHITECTURE, index + 1, "edge-table", what);
            continue;
        };
        let sides = [(*release).to_owned(), (*acquire).to_owned()];
        let row = Row { line: index + 1, sides, proof: (*proof).to_owned() };
        if !is_edge(first) || rows.insert(first.to_owned(), row).is_some() {
            let what = format!("`{first}` is no edge, or has two rows: one row each, E<n>");
            found.add(ARCHITECTURE, index + 1, "edge-table", what);
        }
    }
    rows
}

/// The functions that a row names on either side must exist in core.
fn functions(tree: &Tree, edge: &str, row: &Row, found: &mut Findings) {
    for side in &row.sides {
        for name in quoted(side).filter(|name| name.contains("::")) {
            let last = name.rsplit("::").next().unwrap_or_default().trim_end_matches("()");
            let there = sources(tree).any(|file| declares(&file.masked.code, last));
            if !there {
                let what = format!(
                    "{edge} names `{name}`, and core has no fn {last}: name the function of today"
                );
                found.add(ARCHITECTURE, row.line, "edge-table", what);
            }
        }
    }
}

/// A row's proof names a test that exists.
fn proofs(tree: &Tree, edge: &str, row: &Row, found: &mut Findings) {
    let mut names = quoted(&row.proof).peekable();
    if names.peek().is_none() {
        let what = format!("{edge} has no proof: name its test, as in `publish::whole_table`");
        found.add(ARCHITECTURE, row.line, "edge-proof", what);
    }
    for name in names {
        let (place, test) = name.rsplit_once("::").unwrap_or(("", name));
        let place = place.rsplit("::").next().unwrap_or_default();
        let there = tree.rust().any(|file| {
            let stem = file.path.split('/').any(|part| part.trim_end_matches(".rs") == place);
            let here = place.is_empty() || stem || declares_module(&file.masked.code, place);
            here && is_tested(&file.masked.code, test)
        });
        if !there {
            let what = format!(
                "the proof of {edge}, `{name}`, is no test of this tree: name one that runs"
            );
            found.add(ARCHITECTURE, row.line, "edge-proof", what);
        }
    }
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn declares(code: &str, name: &str) -> bool {
    words(code, name).any(|at| code.get(..at).is_some_and(|before| before.ends_with("fn ")))
}

fn declares_module(code: &str, name: &str) -> bool {
    words(code, name).any(|at| code.get(..at).is_some_and(|before| before.ends_with("mod ")))
}

/// Says whether `fn name` stands below a test attribute.
fn is_tested(code: &str, name: &str) -> bool {
    words(code, name).any(|at| {
        let before = code.get(..at).unwrap_or_default();
        let Some(head) = before.strip_suffix("fn ") else { return false };
        let head = head.trim_end();
        let head = head.strip_suffix("async").unwrap_or(head).trim_end();
        let begin = head.rfind(['}', ';', '{']).map_or(0, |end| end + 1);
        let attributes = head.get(begin..).unwrap_or_default();
        attributes.contains("test]") || attributes.contains("::test(")
    })
}
