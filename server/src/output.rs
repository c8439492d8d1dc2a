//! Data on standard output: aligned columns for people, JSON for programs.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use bytes::Bytes;
use clap::ColorChoice;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::Format;
use crate::report::{Plain, Report};

/// Says whether to colour what is written to a terminal, or to something else.
pub(crate) fn paints(choice: ColorChoice, is_terminal: bool) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR") => false,
        ColorChoice::Auto if std::env::var_os("CLICOLOR_FORCE").is_some_and(|v| v != "0") => true,
        ColorChoice::Auto => is_terminal && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
    }
}

/// Something that a list shows.
pub(crate) trait Row: Serialize {
    /// The names of the columns.
    const COLUMNS: &'static [&'static str];

    /// The cells, one for each column.
    fn cells(&self) -> Vec<String>;
}

/// One JSON object with the version of its shape.
#[derive(Debug, Serialize)]
struct Versioned<'a, T> {
    schema: u8,
    #[serde(flatten)]
    value: &'a T,
}

const fn versioned<T>(value: &T) -> Versioned<'_, T> {
    Versioned { schema: 1, value }
}

/// Writes a list. An empty one is `[]` as JSON, and for people a word on standard error.
pub(crate) fn list<T: Row>(rows: &[T], format: Format, what: &str) -> Result<(), Report> {
    let written = match format {
        Format::Json => {
            let rows: Vec<_> = rows.iter().map(versioned).collect();
            line(&rows)
        }
        Format::Jsonl => rows.iter().try_for_each(|row| line(&versioned(row))),
        Format::Table if rows.is_empty() => {
            let _ = writeln!(io::stderr().lock(), "no {what}");
            Ok(())
        }
        Format::Table => table(rows),
    };
    written.map_err(|error| Report::output(&error))
}

/// Writes one object as a line of JSON with its `schema`.
pub(crate) fn object<T: Serialize>(value: &T) -> Result<(), Report> {
    line(&versioned(value)).map_err(|error| Report::output(&error))
}

/// Writes one value that names its schema itself as a line of JSON.
pub(crate) fn plain<T: Serialize>(value: &T) -> Result<(), Report> {
    line(value).map_err(|error| Report::output(&error))
}

fn line<T: Serialize + ?Sized>(value: &T) -> io::Result<()> {
    let mut text = serde_json::to_vec(value).map_err(io::Error::other)?;
    text.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&text)?;
    stdout.flush()
}

/// Writes lines of text for people.
pub(crate) fn text(text: &str) -> Result<(), Report> {
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    written.map_err(|error| Report::output(&error))
}

/// Writes a result as it is. Text of which the type is known gets its last line ended.
pub(crate) fn bytes(bytes: &[u8], content_type: &str) -> Result<(), Report> {
    let mut stdout = io::stdout().lock();
    let is_text = is_json(content_type) || content_type.starts_with("text/");
    let ends = bytes.is_empty() || bytes.ends_with(b"\n");
    let end: &[u8] = if !ends && (is_text || stdout.is_terminal()) { b"\n" } else { b"" };
    let written =
        stdout.write_all(bytes).and_then(|()| stdout.write_all(end)).and_then(|()| stdout.flush());
    written.map_err(|error| Report::output(&error))
}

/// Writes names and values, one pair a line.
pub(crate) fn facts(facts: &[(&str, String)]) -> Result<(), Report> {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut stdout = io::stdout().lock();
    let mut written = Ok(());
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        written = written.and_then(|()| writeln!(stdout, "{name:width$}  {}", Plain(value)));
    }
    written.and_then(|()| stdout.flush()).map_err(|error| Report::output(&error))
}

fn table<T: Row>(rows: &[T]) -> io::Result<()> {
    let mut lines: Vec<Vec<String>> = vec![T::COLUMNS.iter().map(|&c| c.to_owned()).collect()];
    lines.extend(
        rows.iter()
            .map(|row| row.cells().iter().map(|cell| Plain(cell).to_string()).collect::<Vec<_>>()),
    );
    let widths: Vec<usize> = (0..T::COLUMNS.len())
        .map(|column| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut stdout = io::stdout().lock();
    for line in &lines {
        let mut text = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            text.push_str(cell);
            let pad = width + 2 - cell.chars().count();
            text.extend(std::iter::repeat_n(' ', pad));
        }
        writeln!(stdout, "{}", text.trim_end())?;
    }
    stdout.flush()
}

/// True if a media type says JSON.
pub(crate) fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json") || essence.ends_with("+json")
}

/// A result within JSON: as JSON if it is that, else as text, else in base64.
#[derive(Debug, Serialize)]
pub(crate) struct Embedded {
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_base64: Option<String>,
}

impl Embedded {
    /// Embeds bytes.
    pub(crate) fn of(bytes: &Bytes, content_type: &str) -> Self {
        let mut embedded = Self { result: None, result_text: None, result_base64: None };
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                let json = is_json(content_type).then(|| compact(text)).flatten();
                match json {
                    Some(json) => embedded.result = Some(json),
                    None => embedded.result_text = Some(text.to_owned()),
                }
            }
            Err(_) => embedded.result_base64 = Some(base64(bytes)),
        }
        embedded
    }

    /// Embeds nothing.
    pub(crate) const fn none() -> Self {
        Self { result: None, result_text: None, result_base64: None }
    }
}

/// Takes JSON as it is, on one line: numbers keep their digits, strings have no line breaks.
fn compact(text: &str) -> Option<Box<RawValue>> {
    let one_line: Cow<'_, str> = if text.contains(['\n', '\r']) {
        text.replace(['\n', '\r'], " ").into()
    } else {
        text.into()
    };
    serde_json::from_str(&one_line).ok()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = DIGITS.get((word >> (18 - 6 * place)) as usize & 63);
            let is_padding = place > chunk.len();
            text.push(if is_padding { '=' } else { digit.map_or('=', |&digit| digit.into()) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedded(bytes: &'static [u8], content_type: &str) -> String {
        let embedded = Embedded::of(&Bytes::from_static(bytes), content_type);
        serde_json::to_string(&embedded).unwrap()
    }

    #[test]
    fn results_are_embedded_as_what_they_are() {
        assert_eq!(
            embedded(b"{\"a\":\n 1.10000000000000000001}", "application/json"),
            "{\"result\":{\"a\":  1.10000000000000000001}}"
        );
        assert_eq!(embedded(b"not json", "application/json"), "{\"result_text\":\"not json\"}");
        assert_eq!(embedded(b"1", "text/plain"), "{\"result_text\":\"1\"}");
        assert_eq!(embedded(b"\xff\x00", ""), "{\"result_base64\":\"/wA=\"}");
    }

    #[test]
    fn base64_pads() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
    }

    #[test]
    fn media_types_that_say_json() {
        for json in ["application/json", "Application/JSON; charset=utf-8", "image/x+json"] {
            assert!(is_json(json), "{json}");
        }
        assert!(!is_json("text/plain") && !is_json(""));
    }
}
