//! Tables, for people or as one JSON object.

use std::env;
use std::fmt::Display;
use std::io::{self, StdoutLock, Write};

use serde_json::{Map, Value, json};

use crate::machine::Machine;

/// What a bench target was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// `-o json`: one JSON object at the end instead of tables.
    pub json: bool,
    /// `--quick`: short measurements, to see that everything runs.
    pub quick: bool,
    /// Only what has this in its name.
    pub only: Option<String>,
}

impl Wishes {
    /// Reads the arguments of the process.
    ///
    /// # Errors
    ///
    /// An option is unknown.
    pub fn of_process() -> io::Result<Self> {
        Self::parse(env::args().skip(1)).map_err(io::Error::other)
    }

    fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut wishes = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // Cargo says it to every bench target.
                "--bench" => {}
                "--quick" => wishes.quick = true,
                "-o" | "--output" => match arguments.next().as_deref() {
                    Some("json") => wishes.json = true,
                    Some("table") => wishes.json = false,
                    other => return Err(format!("-o takes json or table, not {other:?}")),
                },
                option if option.starts_with('-') => return Err(format!("no option {option}")),
                part => wishes.only = Some(part.to_owned()),
            }
        }
        Ok(wishes)
    }

    /// Says whether something of this name is wanted.
    #[must_use]
    pub fn want(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|part| name.contains(part))
    }
}

/// One value of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    shown: String,
    value: Value,
}

impl Cell {
    /// A value and how it is shown.
    pub fn new(shown: impl Display, value: impl Into<Value>) -> Self {
        Self { shown: shown.to_string(), value: value.into() }
    }

    /// A name.
    #[must_use]
    pub fn name(name: &str) -> Self {
        Self::new(name, name)
    }

    /// A whole number.
    #[must_use]
    pub fn count(count: u64) -> Self {
        Self::new(count, count)
    }
}

/// Writes tables as they come, or collects them.
#[derive(Debug)]
pub struct Report {
    out: StdoutLock<'static>,
    machine: Machine,
    tables: Option<Vec<Value>>,
}

impl Report {
    /// Begins with the machine.
    ///
    /// # Errors
    ///
    /// The output is closed.
    pub fn begin(json: bool) -> io::Result<Self> {
        let mut out = io::stdout().lock();
        let machine = Machine::look_up();
        if !json {
            writeln!(out, "{machine}")?;
        }
        Ok(Self { out, machine, tables: json.then(Vec::new) })
    }

    /// Adds a table. Nothing is shown of one without rows.
    ///
    /// # Errors
    ///
    /// The output is closed.
    pub fn table(&mut self, title: &str, heads: &[&str], rows: &[Vec<Cell>]) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if let Some(tables) = &mut self.tables {
            let object = |row: &Vec<Cell>| -> Map<String, Value> {
                let cells = row.iter().map(|cell| cell.value.clone());
                heads.iter().map(ToString::to_string).zip(cells).collect()
            };
            let rows: Vec<_> = rows.iter().map(object).collect();
            tables.push(json!({ "title": title, "rows": rows }));
            return Ok(());
        }
        let width = |at: usize| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            let longest = cells.map(|cell| cell.shown.chars().count()).max().unwrap_or(0);
            longest.max(heads[at].chars().count())
        };
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        writeln!(self.out, "\n{title}\n")?;
        self.line(&widths, heads)?;
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        self.line(&widths, &rules)?;
        for row in rows {
            let row: Vec<&str> = row.iter().map(|cell| cell.shown.as_str()).collect();
            self.line(&widths, &row)?;
        }
        self.out.flush()
    }

    fn line(&mut self, widths: &[usize], cells: &[&str]) -> io::Result<()> {
        for (width, cell) in widths.iter().zip(cells) {
            write!(self.out, "| {cell:<width$} ")?;
        }
        writeln!(self.out, "|")
    }

    /// Writes what was collected.
    ///
    /// # Errors
    ///
    /// The output is closed.
    pub fn end(mut self) -> io::Result<()> {
        let Some(tables) = self.tables.take() else { return Ok(()) };
        let object = json!({ "schema": 1, "machine": self.machine.to_json(), "tables": tables });
        writeln!(self.out, "{object}")
    }
}

#[cfg(test)]
mod tests;
