//! Known bugs of systems of this kind, and faults of a lock-guarded registry: which have their
//! test. The table is `xtask/bugs.toml`; a test carries `// bug: B14` on the line above `#[test]`.

use std::path::Path;

use crate::out::say;
use crate::rows;
use crate::tally::Tally;
use crate::tidy::mark::{Tag, tags};
use crate::tree::Tree;

const TABLE: &str = "xtask/bugs.toml";

/// What became of the rows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Account {
    /// Rows that have their test.
    tested: Vec<String>,
    /// Rows whose part does not exist yet.
    later: Vec<String>,
    faults: Vec<String>,
}

/// Compares the table with the tags and prints the account.
pub(crate) fn report(root: &Path) -> Tally {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            say(&format!("the workspace cannot be read: {error}"));
            return Tally::check(false);
        }
    };
    let table = tree.file(TABLE).map(|file| file.text.as_str()).unwrap_or_default();
    match account(table, &tags(&tree)) {
        Ok(account) => {
            for line in &account.tested {
                say(&format!("tested  {line}"));
            }
            for line in &account.later {
                say(&format!("later   {line}"));
            }
            for line in &account.faults {
                say(&format!("error: {line}"));
            }
            let Account { tested, later, faults } = account;
            let counts = (tested.len(), later.len(), faults.len());
            say(&format!("bugs: {} tested, {} later, {} wrong", counts.0, counts.1, counts.2));
            Tally::check(faults.is_empty())
        }
        Err(error) => {
            say(&format!("error: {TABLE}: {error}"));
            Tally::check(false)
        }
    }
}

fn account(table: &str, tags: &[Tag]) -> Result<Account, String> {
    let rows = rows::parse(table)?;
    if rows.is_empty() {
        return Err("holds no row".to_owned());
    }
    let mut account = Account::default();
    let mut known = Vec::new();
    for row in &rows {
        let (id, test, part) = (row.text("id")?, row.text("test")?, row.text("part")?);
        let exists = row.text("exists")? == "true";
        let name = format!("{id:<4} {test} ({}, {part})", row.text("issue")?);
        if known.contains(&id) {
            account.faults.push(format!("{TABLE}:{}: {id} has two rows", row.line));
        }
        known.push(id);
        match tags.iter().find(|tag| tag.id == id) {
            Some(tag) if tag.test.as_deref() == Some(test) => account.tested.push(name),
            Some(tag) => account.faults.push(format!(
                "{}:{}: {id} stands above {}, its test is called {test}",
                tag.path,
                tag.line,
                tag.test.as_deref().unwrap_or("no test")
            )),
            None if exists => {
                account.faults.push(format!("{name}: no test is tagged `// bug: {id}`"));
            }
            None => account.later.push(name),
        }
    }
    for tag in tags.iter().filter(|tag| !known.contains(&tag.id.as_str())) {
        account.faults.push(format!("{}:{}: {} is no row of {TABLE}", tag.path, tag.line, tag.id));
    }
    Ok(account)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "[[bug]]\nid = \"B1\"\nissue = \"a/b#1\"\ntest = \"one\"\npart = \"core\"\nexists = true\n";

    fn tree(text: &str) -> Vec<Tag> {
        let mut tree = Tree::default();
        tree.insert("core/src/tests.rs", text);
        tags(&tree)
    }

    #[test]
    fn a_row_with_its_test_is_tested() {
        let account = account(TABLE, &tree("// bug: B1\n#[test]\nfn one() {}\n")).expect("a table");
        assert_eq!((account.tested.len(), account.faults.len()), (1, 0));
    }

    #[test]
    fn a_row_without_its_test_is_wrong_once_its_part_exists() {
        assert_eq!(account(TABLE, &[]).expect("a table").faults.len(), 1);
        let later = TABLE.replace("true", "false");
        let account = account(&later, &[]).expect("a table");
        assert_eq!((account.later.len(), account.faults.len()), (1, 0));
    }

    #[test]
    fn a_test_of_another_name_or_number_is_wrong() {
        let renamed = tree("// bug: B1\n#[test]\nfn two() {}\n");
        assert_eq!(account(TABLE, &renamed).expect("a table").faults.len(), 1);
        let unknown = tree("// bug: B1\n#[test]\nfn one() {}\n// bug: B2\n#[test]\nfn two() {}\n");
        assert_eq!(account(TABLE, &unknown).expect("a table").faults.len(), 1);
    }

    #[test]
    fn the_table_of_this_workspace_is_whole() {
        let rows = rows::parse(include_str!("../bugs.toml")).expect("of the form");
        let of = |letter| {
            rows.iter().filter(|r| r.text("id").is_ok_and(|id| id.starts_with(letter))).count()
        };
        assert_eq!((of('B'), of('S')), (60, 10));
    }
}
