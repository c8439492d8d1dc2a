//! Journals of the demo's workers: which delivery of which task was executed.
//!
//! A record has a fixed size and is written in one call, so that a worker that is killed leaves
//! whole records or, at worst, one torn at the end.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use slipswitch::TaskId;

const RECORD_BYTES: usize = 25;
/// What is written at once where nobody is killed.
const BUFFER_BYTES: usize = RECORD_BYTES * 2_000;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Note {
    /// The delivery reached its handler.
    Started = 1,
    /// The handler has the result.
    Executed = 2,
    /// The server refused the result: another delivery had come first.
    Refused = 3,
}

/// A line of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) note: Note,
    pub(super) task: TaskId,
    pub(super) epoch: u64,
}

/// A journal being written.
#[derive(Debug)]
pub(super) struct Journal(Mutex<Writer>);

#[derive(Debug)]
struct Writer {
    file: File,
    /// What is kept back; `None` writes every record at once.
    buffer: Option<Vec<u8>>,
}

impl Journal {
    /// Creates a journal. One that is written through survives that its worker is killed.
    pub(super) fn create(path: &Path, write_through: bool) -> io::Result<Self> {
        let file = File::options().append(true).create_new(true).open(path)?;
        let buffer = (!write_through).then(|| Vec::with_capacity(BUFFER_BYTES));
        Ok(Self(Mutex::new(Writer { file, buffer })))
    }

    /// Notes something.
    pub(super) fn note(&self, record: Record) -> io::Result<()> {
        let mut bytes = [0; RECORD_BYTES];
        let (note, rest) = bytes.split_at_mut(1);
        let (task, epoch) = rest.split_at_mut(16);
        note.copy_from_slice(&[record.note as u8]);
        task.copy_from_slice(record.task.as_bytes());
        epoch.copy_from_slice(&record.epoch.to_le_bytes());
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Writer { file, buffer } = &mut *writer;
        match buffer {
            None => file.write_all(&bytes),
            Some(buffer) => {
                buffer.extend_from_slice(&bytes);
                if buffer.len() >= BUFFER_BYTES {
                    file.write_all(buffer)?;
                    buffer.clear();
                }
                Ok(())
            }
        }
    }

    /// Writes what was kept back.
    pub(super) fn flush(&self) -> io::Result<()> {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Writer { file, buffer } = &mut *writer;
        if let Some(buffer) = buffer {
            file.write_all(buffer)?;
            buffer.clear();
        }
        Ok(())
    }
}

/// Reads a journal from a byte on; returns the records and where the next whole one will start.
pub(super) fn read(path: &Path, from: u64) -> io::Result<(Vec<Record>, u64)> {
    use std::os::unix::fs::FileExt;
    let file = File::open(path)?;
    let length = file.metadata()?.len().saturating_sub(from);
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, from)?;
    let (records, _torn) = bytes.as_chunks::<RECORD_BYTES>();
    let records: Vec<Record> = records.iter().map(parse).collect::<io::Result<_>>()?;
    let read = (records.len() * RECORD_BYTES) as u64;
    Ok((records, from + read))
}

fn parse(bytes: &[u8; RECORD_BYTES]) -> io::Result<Record> {
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a journal is damaged");
    let (note, rest) = bytes.split_first().ok_or_else(damaged)?;
    let (task, epoch) = rest.split_first_chunk::<16>().ok_or_else(damaged)?;
    let epoch = epoch.first_chunk().ok_or_else(damaged)?;
    let note = match note {
        1 => Note::Started,
        2 => Note::Executed,
        3 => Note::Refused,
        _ => return Err(damaged()),
    };
    Ok(Record { note, task: TaskId::from_bytes(*task), epoch: u64::from_le_bytes(*epoch) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u8) -> Record {
        Record { note: Note::Executed, task: TaskId::from_bytes([number; 16]), epoch: 9 }
    }

    #[test]
    fn what_was_noted_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let journal = Journal::create(&path, true).unwrap();
        journal.note(record(1)).unwrap();
        let (records, next) = read(&path, 0).unwrap();
        assert_eq!(records, [record(1)]);
        journal.note(Record { note: Note::Refused, ..record(2) }).unwrap();
        let (records, _) = read(&path, next).unwrap();
        assert_eq!(records, [Record { note: Note::Refused, ..record(2) }]);
    }

    #[test]
    fn what_is_kept_back_is_written_in_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let journal = Journal::create(&path, false).unwrap();
        journal.note(record(1)).unwrap();
        assert_eq!(read(&path, 0).unwrap().0, []);
        journal.flush().unwrap();
        assert_eq!(read(&path, 0).unwrap().0, [record(1)]);
    }

    #[test]
    fn a_torn_record_is_left_out_and_a_damaged_one_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        Journal::create(&path, true).unwrap().note(record(1)).unwrap();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&[2; 10]).unwrap();
        assert_eq!(read(&path, 0).unwrap(), (vec![record(1)], RECORD_BYTES as u64));
        std::fs::write(&path, [7; RECORD_BYTES]).unwrap();
        assert!(read(&path, 0).is_err());
    }
}
