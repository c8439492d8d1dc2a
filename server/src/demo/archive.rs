//! The folder of the demo's journals, removed with its contents in the end.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::report::Report;

/// A folder that only this user can read.
#[derive(Debug)]
pub(super) struct Archive(PathBuf);

impl Archive {
    /// Makes a folder of a name that nobody else has.
    pub(super) fn make() -> Result<Self, Report> {
        let dir = std::env::temp_dir();
        let mut random = StdRng::from_os_rng();
        let made = Self::make_in(&dir, || random.random());
        made.map_err(|error| {
            Report::environment(
                format!("no folder can be made in {}: {error}", dir.display()),
                "set TMPDIR to a folder that you may write",
            )
        })
    }

    fn make_in(dir: &std::path::Path, mut name: impl FnMut() -> u64) -> io::Result<Self> {
        loop {
            let path = dir.join(format!("slip-demo-{:016x}", name()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self(path)),
            }
        }
    }

    /// Names a file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // What cannot be removed now is left to whoever empties the folder of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_is_passed_over_and_the_folder_goes_with_its_value() {
        let dir = tempfile::tempdir().unwrap();
        let one = Archive::make_in(dir.path(), || 1).unwrap();
        let mut names = [1, 2].into_iter();
        let two = Archive::make_in(dir.path(), || names.next().unwrap()).unwrap();
        fs::write(two.file("x"), "x").unwrap();
        assert_ne!(one.0, two.0);
        drop((one, two));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
