//! The note that `slip dev` leaves for clients of the same user on the same machine.
//!
//! It stands in `$XDG_RUNTIME_DIR/slipswitch/dev.json`, or in
//! `$TMPDIR/slipswitch-<uid>/dev.json` where that variable is not set. The directory has mode
//! 0700, the file 0600. A directory of another user, or one that others may write, is not
//! believed: whoever can write the note chooses the server that tasks go to.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The largest note that is read.
const NOTE_BYTES_MAX: u64 = 64 * 1024;

/// Where a development server listens and how to know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DevProfile {
    /// Host and port.
    pub address: String,
    /// The SHA-256 fingerprint of its certificate, as hexadecimal digits.
    pub fingerprint: String,
}

/// The note cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// There is no note: no development server of this user runs here.
    #[error("no development server of this user was found ({} is missing)", path.display())]
    Missing {
        /// Where it was expected.
        path: PathBuf,
    },
    /// Others may write the directory, so that the note may be anyone's.
    #[error("{} belongs to another user or can be written by others", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// The note is not what `slip dev` writes.
    #[error("{} is damaged: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The file system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl DevProfile {
    /// Builds a note.
    #[must_use]
    pub fn new(address: impl Into<String>, fingerprint: impl Into<String>) -> Self {
        Self { address: address.into(), fingerprint: fingerprint.into() }
    }

    /// Returns where the note of this user stands.
    #[must_use]
    pub fn path() -> PathBuf {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
        match runtime {
            Some(dir) => PathBuf::from(dir).join("slipswitch").join("dev.json"),
            None => std::env::temp_dir().join(format!("slipswitch-{}", user())).join("dev.json"),
        }
    }

    /// Reads the note of this user.
    ///
    /// # Errors
    ///
    /// When there is none, when it may be another user's, or when it is damaged.
    pub fn read() -> Result<Self, ProfileError> {
        Self::read_from(&Self::path())
    }

    /// Reads a note from a path.
    ///
    /// # Errors
    ///
    /// As [`DevProfile::read`].
    pub fn read_from(path: &Path) -> Result<Self, ProfileError> {
        let io = |source| ProfileError::Io { action: "read", path: path.to_owned(), source };
        let meta = match fs::metadata(path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ProfileError::Missing { path: path.to_owned() });
            }
            Err(error) => return Err(io(error)),
        };
        if let Some(dir) = path.parent() {
            check_ours(dir)?;
        }
        let damaged = |message: String| ProfileError::Damaged { path: path.to_owned(), message };
        if meta.len() > NOTE_BYTES_MAX {
            return Err(damaged(format!("{} bytes are too many", meta.len())));
        }
        let text = fs::read(path).map_err(io)?;
        serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))
    }

    /// Writes the note of this user and returns its path. An older note is replaced at once.
    ///
    /// # Errors
    ///
    /// When the directory is another user's, or the file system refuses.
    pub fn write(&self) -> Result<PathBuf, ProfileError> {
        let path = Self::path();
        self.write_to(&path)?;
        Ok(path)
    }

    /// Writes a note to a path; its directory is made if it is missing.
    ///
    /// # Errors
    ///
    /// As [`DevProfile::write`].
    pub fn write_to(&self, path: &Path) -> Result<(), ProfileError> {
        let io = |action| move |source| ProfileError::Io { action, path: path.to_owned(), source };
        let dir = path.parent().unwrap_or_else(|| Path::new("."));
        make_private_dir(dir).map_err(io("make the directory of"))?;
        check_ours(dir)?;
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::other);
        let text = text.map_err(io("encode"))?;
        let fresh = path.with_extension(format!("json.{}", std::process::id()));
        let written = write_private_file(&fresh, &text).and_then(|()| fs::rename(&fresh, path));
        written.map_err(|source| {
            // The rename failed or nothing was written: a leftover is of no use to anyone.
            let _ = fs::remove_file(&fresh);
            io("write")(source)
        })
    }

    /// Removes the note at `path` if it still is this one; another server's note stays.
    pub fn remove_from(&self, path: &Path) {
        if Self::read_from(path).is_ok_and(|found| found == *self) {
            // Gone already is as good.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(unix)]
fn user() -> String {
    use std::os::unix::fs::MetadataExt;
    match fs::metadata("/proc/self") {
        Ok(meta) => meta.uid().to_string(),
        Err(_) => named_user(),
    }
}

#[cfg(not(unix))]
fn user() -> String {
    named_user()
}

fn named_user() -> String {
    let name = std::env::var("USER").or_else(|_| std::env::var("USERNAME")).unwrap_or_default();
    let safe: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    if safe.is_empty() { "user".to_owned() } else { safe }
}

#[cfg(unix)]
fn make_private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(not(unix))]
fn make_private_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

#[cfg(unix)]
fn write_private_file(path: &Path, text: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text)
}

#[cfg(not(unix))]
fn write_private_file(path: &Path, text: &[u8]) -> io::Result<()> {
    fs::File::create(path)?.write_all(text)
}

#[cfg(unix)]
fn check_ours(dir: &Path) -> Result<(), ProfileError> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::symlink_metadata(dir).map_err(|source| ProfileError::Io {
        action: "look at",
        path: dir.to_owned(),
        source,
    })?;
    let owner_is_us = fs::metadata("/proc/self").map_or(true, |us| us.uid() == meta.uid());
    if meta.is_dir() && owner_is_us && meta.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(ProfileError::NotOurs { path: dir.to_owned() })
    }
}

#[cfg(not(unix))]
fn check_ours(_dir: &Path) -> Result<(), ProfileError> {
    Ok(())
}

#[cfg(test)]
mod tests;
