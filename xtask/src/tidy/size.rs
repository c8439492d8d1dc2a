//! Sizes: listed, never refused.

use super::Findings;
use super::mask;
use crate::tree::Tree;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 70;
const COLUMNS: usize = 100;

pub(super) fn notes(tree: &Tree, found: &mut Findings) {
    for file in tree.rust() {
        let lines = file.text.lines().count();
        if lines > FILE_LINES {
            let what = format!("{lines} lines: is it one thing?");
            found.add(&file.path, 1, "file-size", what);
        }
        for (index, line) in file.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS {
                found.add(&file.path, index + 1, "line-size", format!("{columns} columns"));
            }
        }
        let code = &file.masked.code;
        for at in mask::words(code, "fn") {
            // `fn` of a type or a declaration has no body.
            let rest = code.get(at..).unwrap_or_default();
            if !rest
                .get(3..)
                .is_some_and(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_'))
            {
                continue;
            }
            let first = mask::line_at(code, at);
            let last = mask::line_at(code, mask::item_end(code, at).saturating_sub(1));
            let lines = last.saturating_sub(first) + 1;
            if lines > FUNCTION_LINES {
                found.add(&file.path, first, "function-size", format!("{lines} lines"));
            }
        }
    }
}
