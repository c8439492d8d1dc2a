//! The text files of the workspace, as they lie on disk.

use std::fs;
use std::io;
use std::path::Path;

use crate::tidy::mask::Masked;

/// The text files of a workspace in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

/// A text file.
#[derive(Debug)]
pub(crate) struct File {
    /// Relative to the workspace, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
    /// Code and comments apart; empty for anything but Rust.
    pub(crate) masked: Masked,
}

impl Tree {
    /// Reads everything below `root` that is ours: no build output, no hidden folder but `.ci`,
    /// `.cargo` and `.config`.
    ///
    /// # Errors
    ///
    /// Passes on what reading a folder or a file answers.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.walk(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// Adds a file from memory.
    pub(crate) fn insert(&mut self, path: &str, text: &str) {
        let masked = if path.ends_with(".rs") { Masked::of(text) } else { Masked::default() };
        self.files.push(File { path: path.to_owned(), text: text.to_owned(), masked });
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    fn walk(&mut self, dir: &Path, under: &str) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let hidden =
                    name.starts_with('.') && !matches!(&*name, ".ci" | ".cargo" | ".config");
                let made =
                    name == "target" || name.starts_with("target-") || name == "node_modules";
                let kept = path.starts_with("fuzz/corpus") || path.starts_with("fuzz/artifacts");
                if !(hidden || made || kept) {
                    self.walk(&entry.path(), &path)?;
                }
            } else if kind.is_file() && is_text(&path) {
                match fs::read_to_string(entry.path()) {
                    Ok(text) => self.insert(&path, &text),
                    // A file that went away between listing and reading is not there.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

impl File {
    /// Says whether the file holds tests alone.
    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.split('/').any(|part| part == "tests")
    }
}

fn is_text(path: &str) -> bool {
    let known = [".rs", ".toml", ".md", ".sh", ".json", ".yml", ".yaml", ".txt"];
    path == ".ci/run" || known.iter().any(|end| path.ends_with(end))
}
