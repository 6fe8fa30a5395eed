//! Nothing in the repository depends on the location of the working copy.

use super::{Finding, lines};
use crate::tree::SourceTree;

/// Folders at the root of a file system in which people work.
const WORKPLACES: [&str; 4] = ["home", "root", "work", "Users"];
/// Where every dependency comes from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// No file, compiled ones included, contains an absolute path of a user's machine.
pub(super) fn machine_paths(house: &SourceTree) -> Vec<Finding> {
    let workplaces = WORKPLACES.map(|folder| format!("/{folder}/"));
    let mut findings = Vec::new();
    for file in house.files.iter().filter(|file| file.path != "Cargo.lock") {
        for (number, line) in lines(&file.text) {
            if let Some(folder) = workplaces.iter().find(|folder| has_absolute(line, folder)) {
                let what = format!("a path of one machine ({folder}...)");
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

/// True when `folder` stands where a path begins: `a/home/b` and
/// `example.org/home/` are none.
fn has_absolute(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-' | '~' | '}'))
    })
}

/// Dependencies come from crates.io, and no mirror of it is written down.
pub(super) fn registries(house: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &house.files {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let cargo = file.path.contains(".cargo/") || name == "Cargo.toml";
        for (number, line) in lines(&file.text) {
            let key = line.split('=').next().unwrap_or_default().trim();
            let mirror = cargo && (key == "replace-with" || key == "registry" || key == "index");
            let source = name == "Cargo.lock" && key == "source" && !line.contains(REGISTRY);
            if mirror || source {
                let what = format!("not from crates.io: {}", line.trim());
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
    fn absolute_paths_of_people_are_found() {
        for (line, found) in [
            ("file = \"/ROOT/a\"", true),
            ("/ROOT/a", true),
            ("../ROOT/a", false),
            ("https://example.org/ROOT/a", false),
            ("crates/ROOT/a", false),
        ] {
            let line = line.replace("ROOT", "root");
            let house = SourceTree::of(&[("a", &line)]);
            assert_eq!(machine_paths(&house).len(), usize::from(found), "{line}");
        }
    }

    #[test]
    fn mirrors_are_found() {
        let house = SourceTree::of(&[
            (".cargo/config.toml", "[source.crates-io]\nreplace-with = \"mirror\"\n"),
            ("Cargo.lock", "source = \"registry+https://mirror.example/index\"\n"),
        ]);
        assert_eq!(registries(&house).len(), 2);
        let source = format!("source = \"{REGISTRY}\"\n");
        assert_eq!(registries(&SourceTree::of(&[("fuzz/Cargo.lock", &source)])), []);
    }
}
