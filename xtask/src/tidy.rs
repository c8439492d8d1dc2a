//! The rules of the house that a machine can check, each with what to do instead.
//!
//! What protects soundness or the public API fails; sizes are listed and pass.

pub(crate) mod mask;

mod door;
mod edge;
pub(crate) mod mark;
mod size;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

use crate::out::say;
use crate::tally::Tally;
use crate::tree::Tree;

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    /// What is there, and what to do instead.
    pub(crate) what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: [{}] {}", self.path, self.line, self.rule, self.what)
    }
}

/// Where findings are collected.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(crate) fn add(&mut self, path: &str, line: usize, rule: &'static str, what: String) {
        self.0.push(Finding { path: path.to_owned(), line, rule, what });
    }
}

/// Every rule that fails, over the whole tree.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Findings::default();
    door::check(tree, &mut found);
    edge::check(tree, &mut found);
    mark::check(tree, &mut found);
    found.0.sort();
    found.0
}

/// What is worth a second look and passes.
pub(crate) fn notes(tree: &Tree) -> Vec<Finding> {
    let mut found = Findings::default();
    edge::notes(tree, &mut found);
    size::notes(tree, &mut found);
    found.0.sort();
    found.0
}

/// Checks the workspace and prints what was found.
pub(crate) fn report(root: &Path) -> Tally {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            say(&format!("the workspace cannot be read: {error}"));
            return Tally::check(false);
        }
    };
    for note in notes(&tree) {
        say(&format!("note: {note}"));
    }
    let found = check(&tree);
    for finding in &found {
        say(&format!("error: {finding}"));
    }
    say(&format!("tidy: {} files, {} findings", tree.files.len(), found.len()));
    Tally::check(found.is_empty())
}
