//! Splits a command into words as a POSIX shell does, without running one.

/// A command cannot be split into words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum InvalidCommand {
    /// There is no word.
    #[error("the command is empty")]
    Empty,
    /// A quote is never closed, or the last character is a lone backslash.
    #[error("the command ends inside a quote that began with {0}")]
    Open(char),
    /// A character means something to a shell alone.
    #[error("the command has an unquoted {0:?}, which only a shell understands")]
    Shell(char),
}

/// Splits a command: blanks separate, `'…'` keeps all, `"…"` keeps all but `\"` and `\\`, a
/// backslash keeps the next character.
///
/// Operators of a shell outside quotes are refused rather than handed to the program as text.
pub(crate) fn split(command: &str) -> Result<Vec<String>, InvalidCommand> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = command.chars();
    while let Some(character) = rest.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some('\'') => break,
                        Some(inside) => word.push(inside),
                        None => return Err(InvalidCommand::Open('\'')),
                    }
                }
            }
            '"' => double_quoted(&mut rest, word.get_or_insert_default())?,
            '\\' => {
                let next = rest.next().ok_or(InvalidCommand::Open('\\'))?;
                word.get_or_insert_default().push(next);
            }
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' => {
                return Err(InvalidCommand::Shell(character));
            }
            '~' | '#' if word.is_none() => return Err(InvalidCommand::Shell(character)),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    if words.first().is_none_or(String::is_empty) { Err(InvalidCommand::Empty) } else { Ok(words) }
}

fn double_quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), InvalidCommand> {
    loop {
        match rest.next() {
            Some('"') => return Ok(()),
            Some('\\') => match rest.next() {
                Some(kept @ ('"' | '\\')) => word.push(kept),
                Some(other) => word.extend(['\\', other]),
                None => return Err(InvalidCommand::Open('"')),
            },
            Some(inside) => word.push(inside),
            None => return Err(InvalidCommand::Open('"')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let words = |text: &str| split(text).unwrap().join("|");
        assert_eq!(words("tr a-z A-Z"), "tr|a-z|A-Z");
        assert_eq!(words("  sh  -c 'a | b; c $d' "), "sh|-c|a | b; c $d");
        assert_eq!(words(r#"say "a \"b\" \n" c\ d e''"f""#), r#"say|a "b" \n|c d|ef"#);
        assert_eq!(words("x '' \"\""), "x||");
    }

    #[test]
    fn what_needs_a_shell_is_refused() {
        assert_eq!(split("a | b"), Err(InvalidCommand::Shell('|')));
        assert_eq!(split("echo $HOME"), Err(InvalidCommand::Shell('$')));
        assert_eq!(split("ls *.txt"), Err(InvalidCommand::Shell('*')));
        assert_eq!(split("~/bin/x"), Err(InvalidCommand::Shell('~')));
        assert!(split("curl http://a/b#c~d?e=f").is_ok());
    }

    #[test]
    fn unfinished_and_empty_commands_are_refused() {
        assert_eq!(split(""), Err(InvalidCommand::Empty));
        assert_eq!(split("  "), Err(InvalidCommand::Empty));
        assert_eq!(split("'' a"), Err(InvalidCommand::Empty));
        assert_eq!(split("a 'b"), Err(InvalidCommand::Open('\'')));
        assert_eq!(split("a \"b"), Err(InvalidCommand::Open('"')));
        assert_eq!(split("a \\"), Err(InvalidCommand::Open('\\')));
    }
}
