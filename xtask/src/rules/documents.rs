//! Documents must not promise what is not there.

use super::{Finding, lines};
use crate::COMMANDS;
use crate::tree::{File, SourceTree};
use std::collections::BTreeSet;

const MAP: &str = "ARCHITECTURE.md";
const INVARIANTS: &str = "docs/INVARIANTS.md";
/// Folders whose paths are checked wherever a document names them.
const ROOMS: [&str; 9] = [
    "crates/",
    "docs/",
    "experiments/",
    "fuzz/",
    "scripts/",
    "xtask/",
    "skills/",
    ".ci/",
    ".github/",
];

/// ARCHITECTURE.md has a place for every crate.
pub(super) fn crates_on_the_map(house: &SourceTree) -> Vec<Finding> {
    let map = house.text(MAP).unwrap_or_default();
    let name = |file: &'_ File| -> Option<String> {
        let folder = file.path.strip_suffix("/Cargo.toml")?;
        folder.strip_prefix("crates/").filter(|rest| !rest.contains('/'))?;
        Some(folder.to_owned())
    };
    let crates: BTreeSet<String> = house.files.iter().filter_map(name).collect();
    crates
        .into_iter()
        .filter(|folder| !map.contains(&format!("`{folder}`")))
        .map(|folder| Finding::new(MAP, 0, format!("`{folder}` is missing")))
        .collect()
}

/// Every experiment begins with a comment: what it asks, what to expect.
pub(super) fn experiments_explained(house: &SourceTree) -> Vec<Finding> {
    house
        .files
        .iter()
        .filter(|file| file.path.starts_with("experiments/") && file.path.ends_with(".toml"))
        .filter(|file| !file.text.starts_with("# "))
        .map(|file| Finding::new(&file.path, 1, "begin with a comment that says what it asks"))
        .collect()
}

/// Links between documents lead to files and headings, paths in their code to files.
pub(super) fn references(house: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in documents(house) {
        for (number, line) in lines(&file.text) {
            for (target, heading) in links(line) {
                let path = match target {
                    "" => file.path.clone(),
                    target => resolve(&file.path, target),
                };
                if !house.has(&path) {
                    let what = format!("the link to {target} leads nowhere");
                    findings.push(Finding::new(&file.path, number, what));
                } else if let (Some(heading), Some(text)) = (heading, house.text(&path))
                    && path.ends_with(".md")
                    && !anchors(text).contains(heading)
                {
                    let what = format!("{path} has no heading #{heading}");
                    findings.push(Finding::new(&file.path, number, what));
                }
            }
            for span in spans(line).filter(|span| is_path(span)) {
                if !house.has(span) {
                    let what = format!("there is no {span}");
                    findings.push(Finding::new(&file.path, number, what));
                }
            }
        }
    }
    findings
}

/// Tests that INVARIANTS.md names exist: names of four words or more.
pub(super) fn tests(house: &SourceTree) -> Vec<Finding> {
    let is_test = |span: &&str| {
        span.matches('_').count() >= 3 && span.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let exists = |name: &str| {
        let head = format!("fn {name}(");
        house.files.iter().any(|file| file.path.ends_with(".rs") && file.text.contains(&head))
    };
    lines(house.text(INVARIANTS).unwrap_or_default())
        .flat_map(|(number, line)| spans(line).filter(is_test).map(move |span| (number, span)))
        .filter(|(_, name)| !exists(name))
        .map(|(number, name)| Finding::new(INVARIANTS, number, format!("there is no test {name}")))
        .collect()
}

/// Targets of Linux's Makefile that documents name.
const OF_LINUX: &[&str] = &["bzImage", "bindeb-pkg", "binrpm-pkg", "pacman-pkg"];

/// Commands in documents are commands of `make`, `cargo xtask` or `fwdlab`.
pub(super) fn commands(house: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in documents(house) {
        for (number, snippet) in snippets(&file.text) {
            let words: Vec<&str> = snippet.trim_start_matches("$ ").split_whitespace().collect();
            let known = match words[..] {
                ["make", target, ..] => is_target(house, target) || OF_LINUX.contains(&target),
                ["cargo", "xtask", chore, ..] => {
                    COMMANDS.iter().any(|(arguments, ..)| arguments[0] == chore)
                }
                [program, command, ..] if program.rsplit('/').next() == Some("fwdlab") => {
                    let command = command.replace('-', "_");
                    !command.starts_with(|c: char| c.is_ascii_lowercase())
                        || house.has(&format!("crates/fwdlab/src/command/{command}.rs"))
                        || house.has(&format!("crates/fwdlab/src/command/{command}"))
                }
                _ => true,
            };
            if !known {
                let what = format!("there is no command `{snippet}`");
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

/// Markdown at the root, in `docs/` and in `skills/`.
fn documents(house: &SourceTree) -> impl Iterator<Item = &File> {
    house.files.iter().filter(|file| {
        let is_document = !file.path.contains('/')
            || file.path.starts_with("docs/")
            || file.path.starts_with("skills/");
        file.path.ends_with(".md") && is_document
    })
}

fn is_target(house: &SourceTree, target: &str) -> bool {
    let makefile = house.text("Makefile").unwrap_or_default();
    let rules = makefile.lines().filter(|line| !line.starts_with(['\t', '#', '.']));
    let names = rules.filter_map(|line| Some(line.split_once(':')?.0));
    names.flat_map(str::split_whitespace).any(|name| name == target)
}

fn is_path(span: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
    ROOMS.iter().any(|room| span.starts_with(room)) && span.chars().all(plain)
}

/// Targets of a line's links that lead into the repository: file (empty for the document
/// itself) and heading.
fn links(line: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?;
        let (file, heading) = match target.split_once('#') {
            Some((file, heading)) => (file, Some(heading)),
            None => (target, None),
        };
        (!target.is_empty() && !target.contains(':')).then_some((file, heading))
    })
}

/// Anchors of a document's headings, as forges and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if is_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let slug: String = heading.trim().to_lowercase().chars().filter(kept).collect();
        let slug = slug.replace(' ', "-");
        let first = slug.clone();
        let next = (1..).map(|n| format!("{first}-{n}"));
        let free = std::iter::once(slug).chain(next).find(|name| !found.contains(name));
        found.extend(free);
    }
    found
}

/// A link's target as seen from the root.
fn resolve(document: &str, target: &str) -> String {
    let mut path: Vec<&str> = document.split('/').collect();
    path.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(path.pop()),
            part => path.push(part),
        }
    }
    path.join("/")
}

/// Text between backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Code with its line's number: spans in prose, and whole lines of fenced blocks.
fn snippets(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut out = Vec::new();
    for (number, line) in lines(text) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            out.push((number, line.trim()));
        } else {
            out.extend(spans(line).map(|span| (number, span)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rule;

    fn count(rule: Rule, files: &[(&str, &str)]) -> usize {
        rule(&SourceTree::of(files)).len()
    }

    #[test]
    fn crates_missing_on_the_map_are_found() {
        let manifest = ("crates/netio/Cargo.toml", "");
        assert_eq!(count(crates_on_the_map, &[manifest, (MAP, "`crates/netio`: sockets")]), 0);
        assert_eq!(count(crates_on_the_map, &[manifest, (MAP, "netio")]), 1);
        assert_eq!(count(crates_on_the_map, &[manifest]), 1);
    }

    #[test]
    fn experiments_without_a_word_are_found() {
        assert_eq!(count(experiments_explained, &[("experiments/a.toml", "version = 1")]), 1);
        assert_eq!(count(experiments_explained, &[("experiments/a.toml", "# Why?\n")]), 0);
    }

    #[test]
    fn references_that_lead_nowhere_are_found() {
        let text =
            "[up](../README.md) [web](https://example.org)\n# Two `words`\n## Words\n## Words";
        let there = ("docs/A.md", text);
        for (text, found) in [
            ("[a](docs/A.md) ![b](docs/A.md)", 0),
            ("[a](A.md)", 1),
            ("`docs/A.md` `docs/` `docs/*.md`", 0),
            ("[a](docs/A.md#two-words) [b](docs/A.md#words-1) [c](#here)\n# Here", 0),
            ("[a](docs/A.md#three) [b](#there)\n# Here", 2),
            ("`docs/B.md`", 1),
        ] {
            assert_eq!(count(references, &[there, ("README.md", text)]), found, "{text}");
        }
        // Text of tests is no document.
        assert_eq!(count(references, &[("crates/a/tests/README.md", "[a](b)")]), 0);
    }

    #[test]
    fn tests_that_do_not_exist_are_found() {
        let code = ("crates/a/src/a.rs", "fn the_sun_goes_up() {}");
        assert_eq!(count(tests, &[code, (INVARIANTS, "`the_sun_goes_up`, `is_a_word`")]), 0);
        assert_eq!(count(tests, &[code, (INVARIANTS, "`the_sun_goes_down`")]), 1);
    }

    #[test]
    fn commands_that_do_not_exist_are_found() {
        let run = ("crates/fwdlab/src/command/run.rs", "");
        let makefile = ("Makefile", "demo test-a test-b: deps\n\tcargo build\n");
        for (text, found) in [
            (
                "`make demo`, `make test-b`, `fwdlab run FILE`, `cargo xtask bpf --check`, `fwdlab --help`",
                0,
            ),
            ("```\ntarget/release/fwdlab run a.toml\n```", 0),
            ("```\n$ make coffee\n```", 1),
            ("`make cargo`, `make bzImage modules`", 1),
            ("`fwdlab fly`", 1),
            ("`cargo xtask fly`", 1),
            ("make something of fwdlab with care", 0),
        ] {
            assert_eq!(count(commands, &[run, makefile, ("README.md", text)]), found, "{text}");
        }
    }
}
