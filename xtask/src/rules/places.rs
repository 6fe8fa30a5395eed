//! Checks that nothing depends on the location of the working copy or on a registry mirror.

use super::{Finding, lines};
use crate::tree::SourceTree;

/// Top-level folders in which people work.
const WORKPLACES: [&str; 4] = ["home", "root", "work", "Users"];
/// The only allowed source of dependencies.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// No file, compiled ones included, contains an absolute path of a user's machine.
pub(super) fn machine_paths(tree: &SourceTree) -> Vec<Finding> {
    let workplaces = WORKPLACES.map(|folder| format!("/{folder}/"));
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path != "Cargo.lock") {
        for (number, line) in lines(&file.text) {
            if let Some(folder) = workplaces.iter().find(|folder| has_absolute(line, folder)) {
                let what = format!("absolute path of a machine ({folder}...)");
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

/// Returns true if `folder` occurs at the start of a path, unlike in `a/home/b` and
/// `example.org/home/`.
fn has_absolute(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-' | '~' | '}'))
    })
}

/// Dependencies come from crates.io, and no file names a mirror of it.
pub(super) fn registries(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let cargo = file.path.contains(".cargo/") || name == "Cargo.toml";
        for (number, line) in lines(&file.text) {
            let key = line.split('=').next().unwrap_or_default().trim();
            let mirror = cargo && (key == "replace-with" || key == "registry" || key == "index");
            let source = name == "Cargo.lock" && key == "source" && !line.contains(REGISTRY);
            if mirror || source {
                let what = format!("source other than crates.io: {}", line.trim());
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_paths_finds_absolute_paths() {
        for (line, found) in [
            ("file = \"/ROOT/a\"", true),
            ("/ROOT/a", true),
            ("../ROOT/a", false),
            ("https://example.org/ROOT/a", false),
            ("crates/ROOT/a", false),
        ] {
            let line = line.replace("ROOT", "root");
            let tree = SourceTree::of(&[("a", &line)]);
            assert_eq!(machine_paths(&tree).len(), usize::from(found), "{line}");
        }
    }

    #[test]
    fn registries_finds_mirrors() {
        let tree = SourceTree::of(&[
            (".cargo/config.toml", "[source.crates-io]\nreplace-with = \"mirror\"\n"),
            ("Cargo.lock", "source = \"registry+https://mirror.example/index\"\n"),
        ]);
        assert_eq!(registries(&tree).len(), 2);
        let source = format!("source = \"{REGISTRY}\"\n");
        assert_eq!(registries(&SourceTree::of(&[("fuzz/Cargo.lock", &source)])), []);
    }
}
