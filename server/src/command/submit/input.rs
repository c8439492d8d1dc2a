//! Where payloads come from, and what is checked before anything is sent.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::de::IgnoredAny;

use crate::output::is_json;
use crate::report::Report;

/// The largest payload that is read. The server's own limit may be lower.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Where payloads come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Nothing was given.
    Empty,
    /// It was typed.
    Typed(String),
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl Source {
    /// Reads the argument. Lines come from standard input unless a file is named.
    pub(super) fn of(argument: Option<&str>, lines: bool) -> Result<Self, Report> {
        Ok(match argument {
            None if lines => Self::Stdin,
            None => Self::Empty,
            Some("-") => Self::Stdin,
            Some(text) => match text.strip_prefix('@') {
                Some("") => {
                    return Err(Report::input("the file after @ has no name", "write @FILE"));
                }
                Some(path) => Self::File(path.into()),
                None if lines => {
                    return Err(Report::input(
                        "--lines reads a file or standard input, not what was typed",
                        "give @FILE or -",
                    ));
                }
                None => Self::Typed(text.to_owned()),
            },
        })
    }

    /// Reads the one payload, and checks it.
    pub(super) fn read(&self, content_type: &str) -> Result<Bytes, Report> {
        let bytes = match self {
            Self::Empty => return Ok(Bytes::new()),
            Self::Typed(text) => Bytes::copy_from_slice(text.as_bytes()),
            Self::File(path) => bounded(open(path)?, &path.display().to_string())?,
            Self::Stdin => bounded(io::stdin().lock(), "standard input")?,
        };
        check(&bytes, content_type)?;
        Ok(bytes)
    }

    /// Opens the source of many payloads.
    pub(super) fn lines(&self) -> Result<Box<dyn BufRead + Send>, Report> {
        Ok(match self {
            Self::File(path) => Box::new(BufReader::new(open(path)?)),
            _ => {
                if io::stdin().is_terminal() {
                    crate::stop::note("reading lines from the terminal; Ctrl-D ends them");
                }
                Box::new(BufReader::new(io::stdin()))
            }
        })
    }
}

fn open(path: &Path) -> Result<File, Report> {
    File::open(path).map_err(|error| unreadable(&path.display().to_string(), &error))
}

fn unreadable(what: &str, error: &io::Error) -> Report {
    Report::input(format!("{what} cannot be read: {error}"), "name a file that you may read")
}

fn bounded(source: impl Read, what: &str) -> Result<Bytes, Report> {
    let mut bytes = Vec::new();
    let most = PAYLOAD_BYTES_MAX as u64 + 1;
    source.take(most).read_to_end(&mut bytes).map_err(|error| unreadable(what, &error))?;
    Ok(bytes.into())
}

/// Checks what the server would refuse, or what a handler could not read.
pub(super) fn check(bytes: &[u8], content_type: &str) -> Result<(), Report> {
    if bytes.len() > PAYLOAD_BYTES_MAX {
        return Err(Report::input(
            format!("the payload is over the limit of {PAYLOAD_BYTES_MAX} bytes"),
            "send a reference to it instead",
        ));
    }
    if is_json(content_type) {
        serde_json::from_slice::<IgnoredAny>(bytes).map_err(|error| {
            Report::input(
                format!("the payload is not JSON: {error}"),
                "put quotes around text, as in '\"text\"', or say what it is with --content-type",
            )
        })?;
    }
    Ok(())
}

/// Reads one line without its end; `None` at the end of the input.
pub(super) fn line(source: &mut dyn BufRead) -> Result<Option<Vec<u8>>, Report> {
    let mut line = Vec::new();
    let most = PAYLOAD_BYTES_MAX as u64 + 2;
    let read = source.take(most).read_until(b'\n', &mut line);
    if read.map_err(|error| unreadable("the input", &error))? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_says_where_the_payload_is() {
        let of = |text, lines| Source::of(text, lines).map_err(|report| report.exit);
        assert_eq!(of(None, false), Ok(Source::Empty));
        assert_eq!(of(None, true), Ok(Source::Stdin));
        assert_eq!(of(Some("-"), false), Ok(Source::Stdin));
        assert_eq!(of(Some("@a b"), true), Ok(Source::File("a b".into())));
        assert_eq!(of(Some("-5"), false), Ok(Source::Typed("-5".to_owned())));
        assert!(of(Some("@"), false).is_err());
        assert!(of(Some("{}"), true).is_err());
    }

    #[test]
    fn the_limit_is_the_limit() {
        let at = vec![b'x'; PAYLOAD_BYTES_MAX];
        assert!(check(&at, "text/plain").is_ok());
        let over = vec![b'x'; PAYLOAD_BYTES_MAX + 1];
        assert!(check(&over, "text/plain").is_err());
    }

    #[test]
    fn lines_end_with_either_end() {
        let mut source: &[u8] = b"1\r\n\n3";
        let mut next = || line(&mut source).unwrap();
        assert_eq!(next(), Some(b"1".to_vec()));
        assert_eq!(next(), Some(Vec::new()));
        assert_eq!(next(), Some(b"3".to_vec()));
        assert_eq!(next(), None);
    }

    #[test]
    fn an_endless_line_is_not_read_to_its_end() {
        let mut source = BufReader::new(io::repeat(b'x'));
        let line = line(&mut source).unwrap().unwrap();
        assert!(check(&line, "text/plain").is_err());
    }
}
