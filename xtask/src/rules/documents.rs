//! Checks that documents refer to existing crates, files, tests and commands.

use super::{Finding, lines};
use crate::COMMANDS;
use crate::tree::{File, SourceTree};
use std::collections::BTreeSet;

const MAP: &str = "ARCHITECTURE.md";
const CONTENTS: &str = "docs/SUMMARY.md";
const INVARIANTS: &str = "docs/INVARIANTS.md";
/// Pages of the book refer to other files of the repository by this address.
const FORGE: &str = "https://github.com/fwdlab/fwdlab/blob/main/";
/// Folders whose paths are checked in documents.
const CHECKED_FOLDERS: [&str; 10] = [
    "crates/",
    "docs/",
    "experiments/",
    "fuzz/",
    "perf/",
    "scripts/",
    "xtask/",
    "skills/",
    ".ci/",
    ".github/",
];

/// ARCHITECTURE.md lists every crate.
pub(super) fn crates_on_the_map(tree: &SourceTree) -> Vec<Finding> {
    let map = tree.text(MAP).unwrap_or_default();
    let name = |file: &'_ File| -> Option<String> {
        let folder = file.path.strip_suffix("/Cargo.toml")?;
        folder.strip_prefix("crates/").filter(|rest| !rest.contains('/'))?;
        Some(folder.to_owned())
    };
    let crates: BTreeSet<String> = tree.files.iter().filter_map(name).collect();
    crates
        .into_iter()
        .filter(|folder| !map.contains(&format!("`{folder}`")))
        .map(|folder| Finding::new(MAP, 0, format!("crate `{folder}` is missing")))
        .collect()
}

/// The book's contents list every page of `docs/`.
pub(super) fn pages_in_the_book(tree: &SourceTree) -> Vec<Finding> {
    let contents = tree.text(CONTENTS).unwrap_or_default();
    let listed: BTreeSet<String> =
        contents.lines().flat_map(links).map(|(file, _)| resolve(CONTENTS, file)).collect();
    documents(tree)
        .filter(|file| is_page(file) && file.path != CONTENTS)
        .filter(|file| !listed.contains(&file.path))
        .map(|file| Finding::new(CONTENTS, 0, format!("page {} is missing", file.path)))
        .collect()
}

/// Every experiment begins with a comment: its question and the expected result.
pub(super) fn experiments_explained(tree: &SourceTree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter(|file| file.path.starts_with("experiments/") && file.path.ends_with(".toml"))
        .filter(|file| !file.text.starts_with("# "))
        .map(|file| {
            Finding::new(&file.path, 1, "write a first comment with the question of the experiment")
        })
        .collect()
}

/// Links lead to existing files and headings, paths in code spans to existing files.
pub(super) fn references(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in documents(tree) {
        for (number, line) in lines(&file.text) {
            for (target, heading) in links(line) {
                let path = match (target, target.strip_prefix(FORGE)) {
                    ("", _) => file.path.clone(),
                    (_, Some(path)) => path.to_owned(),
                    (target, None) => resolve(&file.path, target),
                };
                if is_page(file) && !target.starts_with(FORGE) && !path.starts_with("docs/") {
                    let what = format!("{path} is not in the book: link to {FORGE}{path}");
                    findings.push(Finding::new(&file.path, number, what));
                } else if !tree.has(&path) {
                    let what = format!("broken link: {target} does not exist");
                    findings.push(Finding::new(&file.path, number, what));
                } else if let (Some(heading), Some(text)) = (heading, tree.text(&path))
                    && path.ends_with(".md")
                    && !anchors(text).contains(heading)
                {
                    let what = format!("{path} has no heading #{heading}");
                    findings.push(Finding::new(&file.path, number, what));
                }
            }
            for span in spans(line).filter(|span| is_path(span)) {
                if !tree.has(span) {
                    let what = format!("{span} does not exist");
                    findings.push(Finding::new(&file.path, number, what));
                }
            }
        }
    }
    findings
}

/// Tests named in INVARIANTS.md exist. Names have at least four words.
pub(super) fn tests(tree: &SourceTree) -> Vec<Finding> {
    let is_test = |span: &&str| {
        span.matches('_').count() >= 3 && span.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let exists = |name: &str| {
        let head = format!("fn {name}(");
        tree.files.iter().any(|file| file.path.ends_with(".rs") && file.text.contains(&head))
    };
    lines(tree.text(INVARIANTS).unwrap_or_default())
        .flat_map(|(number, line)| spans(line).filter(is_test).map(move |span| (number, span)))
        .filter(|(_, name)| !exists(name))
        .map(|(number, name)| {
            Finding::new(INVARIANTS, number, format!("test {name} does not exist"))
        })
        .collect()
}

/// Targets of Linux's Makefile that documents mention.
const OF_LINUX: &[&str] = &["bzImage", "bindeb-pkg", "binrpm-pkg", "pacman-pkg"];

/// Commands in documents are commands of `make`, `cargo xtask` or `fwdlab`.
pub(super) fn commands(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in documents(tree) {
        for (number, snippet) in snippets(&file.text) {
            let words: Vec<&str> = snippet.trim_start_matches("$ ").split_whitespace().collect();
            let known = match words[..] {
                ["make", target, ..] => is_target(tree, target) || OF_LINUX.contains(&target),
                ["cargo", "xtask", chore, ..] => {
                    COMMANDS.iter().any(|(arguments, ..)| arguments[0] == chore)
                }
                [program, command, ..] if program.rsplit('/').next() == Some("fwdlab") => {
                    let command = command.replace('-', "_");
                    !command.starts_with(|c: char| c.is_ascii_lowercase())
                        || tree.has(&format!("crates/fwdlab/src/command/{command}.rs"))
                        || tree.has(&format!("crates/fwdlab/src/command/{command}"))
                }
                _ => true,
            };
            if !known {
                let what = format!("command `{snippet}` does not exist");
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

/// Returns the Markdown files at the root, in `docs/` and in `skills/`.
fn documents(tree: &SourceTree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| {
        let is_document = !file.path.contains('/')
            || file.path.starts_with("docs/")
            || file.path.starts_with("skills/");
        file.path.ends_with(".md") && is_document
    })
}

/// True for a page of the book.
fn is_page(file: &File) -> bool {
    file.path.starts_with("docs/")
}

fn is_target(tree: &SourceTree, target: &str) -> bool {
    let makefile = tree.text("Makefile").unwrap_or_default();
    let rules = makefile.lines().filter(|line| !line.starts_with(['\t', '#', '.']));
    let names = rules.filter_map(|line| Some(line.split_once(':')?.0));
    names.flat_map(str::split_whitespace).any(|name| name == target)
}

fn is_path(span: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
    CHECKED_FOLDERS.iter().any(|folder| span.starts_with(folder)) && span.chars().all(plain)
}

/// Returns targets of a line's links into the repository: file (empty for the document itself) and
/// heading.
fn links(line: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?;
        let (file, heading) = match target.split_once('#') {
            Some((file, heading)) => (file, Some(heading)),
            None => (target, None),
        };
        let is_local = !target.contains(':') || target.starts_with(FORGE);
        (!target.is_empty() && is_local).then_some((file, heading))
    })
}

/// Returns the anchors of a document's headings, in the format of forges and mdBook.
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

/// Resolves a link's target to a path from the root.
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

/// Returns the texts between backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns code with line numbers: spans in prose, and whole lines of fenced blocks.
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
    fn crates_on_the_map_finds_missing_crates() {
        let manifest = ("crates/netio/Cargo.toml", "");
        assert_eq!(count(crates_on_the_map, &[manifest, (MAP, "`crates/netio`: sockets")]), 0);
        assert_eq!(count(crates_on_the_map, &[manifest, (MAP, "netio")]), 1);
        assert_eq!(count(crates_on_the_map, &[manifest]), 1);
    }

    #[test]
    fn pages_in_the_book_finds_missing_pages() {
        let page = ("docs/method/a.md", "# A");
        assert_eq!(count(pages_in_the_book, &[page, (CONTENTS, "- [A](method/a.md)")]), 0);
        assert_eq!(count(pages_in_the_book, &[page, (CONTENTS, "- [B](a.md)")]), 1);
        assert_eq!(count(pages_in_the_book, &[("README.md", "# R"), (CONTENTS, "")]), 0);
    }

    #[test]
    fn experiments_explained_requires_a_comment() {
        assert_eq!(count(experiments_explained, &[("experiments/a.toml", "version = 1")]), 1);
        assert_eq!(count(experiments_explained, &[("experiments/a.toml", "# Why?\n")]), 0);
    }

    #[test]
    fn references_finds_broken_links_and_paths() {
        let text = "[web](https://example.org)\n# Two `words`\n## Words\n## Words";
        let target_document = ("docs/A.md", text);
        for (text, found) in [
            ("[a](docs/A.md) ![b](docs/A.md)", 0),
            ("[a](A.md)", 1),
            ("`docs/A.md` `docs/` `docs/*.md`", 0),
            ("[a](docs/A.md#two-words) [b](docs/A.md#words-1) [c](#here)\n# Here", 0),
            ("[a](docs/A.md#three) [b](#there)\n# Here", 2),
            ("`docs/B.md`", 1),
        ] {
            assert_eq!(count(references, &[target_document, ("README.md", text)]), found, "{text}");
        }
        let readme = ("README.md", "# R");
        for (text, found) in [
            (format!("[r]({FORGE}README.md#r) [p](B.md)\n# B"), 0),
            (format!("[r]({FORGE}README.md#s) [a]({FORGE}A.md)"), 2),
            // A page of the book cannot reach files outside of it.
            ("[r](../README.md)".to_owned(), 1),
        ] {
            assert_eq!(count(references, &[readme, ("docs/B.md", &text)]), found, "{text}");
        }
        // Files of tests are not documents.
        assert_eq!(count(references, &[("crates/a/tests/README.md", "[a](b)")]), 0);
    }

    #[test]
    fn tests_finds_unknown_test_names() {
        let code = ("crates/a/src/a.rs", "fn the_sun_goes_up() {}");
        assert_eq!(count(tests, &[code, (INVARIANTS, "`the_sun_goes_up`, `is_a_word`")]), 0);
        assert_eq!(count(tests, &[code, (INVARIANTS, "`the_sun_goes_down`")]), 1);
    }

    #[test]
    fn commands_finds_unknown_commands() {
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
