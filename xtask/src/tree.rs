//! The files of the repository, read once for all rules.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// All files that git tracks or would add.
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
    /// Content; invalid UTF-8 is replaced.
    pub(crate) text: String,
}

impl SourceTree {
    /// Reads the tracked files and the untracked ones that git does not ignore.
    ///
    /// # Errors
    /// Fails if git is missing, `root` is not a working tree, or a file cannot be read.
    pub(crate) fn read(root: &Path) -> Result<SourceTree> {
        // A build container may run as another user than the owner of the tree.
        let output = Command::new("git")
            .args(["-c", "safe.directory=*", "ls-files", "-z"])
            .args(["--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("cannot run git")?;
        ensure!(
            output.status.success(),
            "git ls-files failed: {}",
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
                // Deleted but not yet committed.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
            }
        }
        Ok(SourceTree { files })
    }

    /// Creates a tree from paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> SourceTree {
        let file =
            |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
        SourceTree { files: files.iter().map(file).collect() }
    }

    /// Returns true if `path` (from the root) is a file or a folder with files.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files.iter().any(|file| {
            file.path
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Returns the text of the file at `path`.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_finds_files_and_folders() {
        let tree = SourceTree::of(&[("crates/netio/Cargo.toml", "")]);
        assert!(tree.has("crates/netio") && tree.has("crates/netio/"));
        assert!(tree.has("crates/netio/Cargo.toml"));
        assert!(!tree.has("crates/po") && !tree.has("crates/netio/Cargo"));
    }
}
