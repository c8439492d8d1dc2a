//! The small part of TOML that the tables of this workspace use: `[[section]]` headers and
//! `key = "text" | number | true | false` lines. Anything else is an error, never a guess.

use std::collections::BTreeMap;

/// One `[[section]]`.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) section: String,
    pub(crate) line: usize,
    values: BTreeMap<String, String>,
}

impl Row {
    /// The text of a key.
    ///
    /// # Errors
    ///
    /// Names the row that lacks it.
    pub(crate) fn text(&self, key: &str) -> Result<&str, String> {
        let found = self.values.get(key).map(String::as_str);
        found.ok_or_else(|| format!("line {}: [[{}]] lacks {key}", self.line, self.section))
    }
}

/// Reads all rows in order.
///
/// # Errors
///
/// Names the first line that is not of the forms above.
pub(crate) fn parse(text: &str) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(rest) = line.strip_prefix("[[") {
            let name = rest.split_once("]]").map(|(name, after)| (name.trim(), after.trim()));
            match name {
                Some((name, after)) if after.is_empty() || after.starts_with('#') => {
                    rows.push(Row { section: name.to_owned(), line: number, ..Row::default() });
                }
                _ => return Err(format!("line {number}: not a [[section]]: {line}")),
            }
            continue;
        }
        let pair = line.split_once('=').map(|(key, rest)| (key.trim(), value(rest.trim())));
        match (pair, rows.last_mut()) {
            (Some((key, Some(value))), Some(row)) => {
                if row.values.insert(key.to_owned(), value).is_some() {
                    return Err(format!("line {number}: {key} is given twice"));
                }
            }
            _ => return Err(format!("line {number}: not a key with a value: {line}")),
        }
    }
    Ok(rows)
}

fn value(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let word = text.split('#').next()?.trim();
        let number = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit() || b == b'_');
        return (number || word == "true" || word == "false").then(|| word.replace('_', ""));
    };
    let mut value = String::new();
    let mut chars = quoted.chars();
    loop {
        match chars.next()? {
            '"' => break,
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                c @ ('"' | '\\') => value.push(c),
                _ => return None,
            },
            c => value.push(c),
        }
    }
    let after = chars.as_str().trim();
    (after.is_empty() || after.starts_with('#')).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_carry_their_values() {
        let text = r#"# head
[[mutant]] # one
name = "L4a" # why
bug = "a \"q\" # b"
floor = 10_000

[[mutant]]
on = true
"#;
        let rows = parse(text).expect("is of the form");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].section, "mutant");
        assert_eq!(rows[0].text("name"), Ok("L4a"));
        assert_eq!(rows[0].text("bug"), Ok("a \"q\" # b"));
        assert_eq!(rows[0].text("floor"), Ok("10000"));
        assert_eq!(rows[1].text("on"), Ok("true"));
        assert_eq!(rows[1].text("name"), Err("line 7: [[mutant]] lacks name".to_owned()));
    }

    #[test]
    fn what_is_not_of_the_form_is_refused() {
        for text in [
            "name = 1",
            "[[a]]\nb",
            "[[a]]\nb = x",
            "[[a]]\nb = \"x",
            "[[a\n",
            "[[a]]\nb = 1\nb = 2",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
