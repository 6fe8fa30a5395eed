//! The files of the repository, read once for all rules.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Everything that is or would be committed.
#[derive(Debug, Default)]
pub(crate) struct SourceTree {
    /// The files, sorted by path.
    pub(crate) files: Vec<File>,
}

/// A file of the repository.
#[derive(Debug)]
pub(crate) struct File {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    /// Content; what is not UTF-8 is replaced.
    pub(crate) text: String,
}

impl SourceTree {
    /// Reads the files that git tracks, and those that it would not ignore.
    ///
    /// # Errors
    /// When git is missing, `root` is no working tree, or a file can't be read.
    pub(crate) fn read(root: &Path) -> Result<SourceTree> {
        // A build container may run as another user than the owner of the tree.
        let output = Command::new("git")
            .args(["-c", "safe.directory=*", "ls-files", "-z"])
            .args(["--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("git can't be run")?;
        ensure!(
            output.status.success(),
            "git lists no files: {}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
        let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
        let names: BTreeSet<&str> = names.split_terminator('\0').collect();
        let mut files = Vec::new();
        for path in names {
            match fs::read(root.join(path)) {
                Ok(bytes) => files.push(File {
                    path: path.to_owned(),
                    text: String::from_utf8_lossy(&bytes).into_owned(),
                }),
                // Deleted, and not committed yet.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("{path} can't be read")),
            }
        }
        Ok(SourceTree { files })
    }

    /// A house made up by a test.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> SourceTree {
        let file =
            |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
        SourceTree { files: files.iter().map(file).collect() }
    }

    /// True when `path` (from the root) is a file or a folder with files.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files.iter().any(|file| {
            file.path
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Text of the file at `path`.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_exist_by_their_files() {
        let house = SourceTree::of(&[("crates/netio/Cargo.toml", "")]);
        assert!(house.has("crates/netio") && house.has("crates/netio/"));
        assert!(house.has("crates/netio/Cargo.toml"));
        assert!(!house.has("crates/po") && !house.has("crates/netio/Cargo"));
    }
}
