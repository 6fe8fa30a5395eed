//! Rules about source text.

use super::{Finding, lines};
use crate::tree::{File, SourceTree};

/// Longer files hold more than one kind of thing.
const LINES_MAX: usize = 500;
/// Endings of what is written by hand.
const SOURCES: [&str; 6] = [".rs", ".c", ".h", ".sh", ".css", ".jinja"];

/// Modules through which a program touches its surroundings.
const IMPURE: [&str; 8] = [
    "std::env",
    "std::fs",
    "std::io",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::process",
    "std::thread",
    "std::time",
];

/// Only crates/netio is `unsafe`.
pub(super) fn unsafe_code(house: &SourceTree) -> Vec<Finding> {
    let files = rust(house).filter(|file| !file.path.starts_with("crates/netio/"));
    let word = |code: &str| {
        // Pages have a policy whose words begin so.
        let code = code.replace("'unsafe-inline'", "");
        code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
    };
    grep(files, "`unsafe` belongs in crates/netio", word)
}

/// The crates `model`, `packet` and `search` do no I/O, start nothing and read no clock.
pub(super) fn purity(house: &SourceTree) -> Vec<Finding> {
    let pure = ["crates/model/src/", "crates/packet/src/", "crates/search/src/"];
    let files = rust(house).filter(|file| pure.iter().any(|folder| file.path.starts_with(folder)));
    grep(files, "model, packet and search know no operating system", |code| {
        IMPURE.iter().any(|module| code.contains(module))
    })
}

/// Tests report skips through `fwdlab_testdata`, whose reports the test runner counts.
/// Benchmarks and chores are no tests.
pub(super) fn skips(house: &SourceTree) -> Vec<Finding> {
    let is_test = |file: &&File| {
        file.path.starts_with("crates/")
            && !file.path.starts_with("crates/testdata/")
            && !file.path.contains("/benches/")
    };
    let what = "report a skip through fwdlab_testdata::skip";
    let texts = ["SKIPPED: ", "FWDLAB_CI"];
    rust(house)
        .filter(is_test)
        .flat_map(|file| lines(&file.text).map(move |(number, line)| (file, number, line)))
        .filter(|(_, _, line)| texts.iter().any(|text| line.contains(text)))
        .map(|(file, number, _)| Finding::new(&file.path, number, what))
        .collect()
}

/// Code blocks of documentation comments name a language that rustdoc does not compile: the
/// test runner runs no documentation tests, which would take rustdoc once per crate.
pub(super) fn documentation_tests(house: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in rust(house).filter(|file| file.path.contains("/src/")) {
        let mut is_open = false;
        for (number, line) in lines(&file.text) {
            let line = line.trim_start();
            let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let Some(language) = text.and_then(|text| text.trim_start().strip_prefix("```")) else {
                continue;
            };
            is_open = !is_open;
            if is_open && !["text", "sh", "toml", "json"].contains(&language.trim()) {
                let what = "documentation tests are not run: write ```text, or a unit test";
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

/// Source files have at most [`LINES_MAX`] lines.
pub(super) fn length(house: &SourceTree) -> Vec<Finding> {
    house
        .files
        .iter()
        .filter(|file| SOURCES.iter().any(|ending| file.path.ends_with(ending)))
        .filter_map(|file| {
            let count = file.text.lines().count();
            let what = format!("{count} lines: divide it (at most {LINES_MAX})");
            (count > LINES_MAX).then(|| Finding::new(&file.path, 0, what))
        })
        .collect()
}

fn rust(house: &SourceTree) -> impl Iterator<Item = &File> {
    house.files.iter().filter(|file| file.path.ends_with(".rs"))
}

/// Lines whose code offends, comments and quoted text left aside.
fn grep<'a>(
    files: impl Iterator<Item = &'a File>,
    what: &str,
    offends: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    files
        .flat_map(|file| lines(&file.text).map(move |(number, line)| (file, number, line)))
        .filter(|(_, _, line)| offends(&code(line)))
        .map(|(file, number, _)| Finding::new(&file.path, number, what))
        .collect()
}

/// The line without its comment and without quoted text. Good enough for a
/// rule: text that spans lines is taken for code.
fn code(line: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' if quoted => drop(rest.next()),
            '"' => quoted = !quoted,
            '/' if !quoted && rest.peek() == Some(&'/') => break,
            _ if !quoted => out.push(c),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_what_is_neither_comment_nor_text() {
        assert_eq!(code(r#"let a = "b \" // c" + d; // e"#), "let a =  + d; ");
        assert_eq!(code("a / b"), "a / b");
    }

    #[test]
    fn unsafe_is_found_outside_its_crate_only() {
        let text = "// unsafe\nfn a() { unsafe { b() } }\n#![forbid(unsafe_code)]\n";
        let house =
            SourceTree::of(&[("crates/bench/src/a.rs", text), ("crates/netio/src/a.rs", text)]);
        let found = unsafe_code(&house);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/bench/src/a.rs", 2));
    }

    #[test]
    fn documentation_tests_are_found() {
        let of = |fence: &str| format!("/// A thing:\n/// {fence}\n/// a\n/// ```\nfn a() {{}}\n");
        for (fence, found) in [("```text", 0), ("```", 1), ("```rust", 1), ("```no_run", 1)] {
            let house = SourceTree::of(&[("crates/a/src/a.rs", &of(fence))]);
            assert_eq!(documentation_tests(&house).len(), found, "{fence}");
        }
    }

    #[test]
    fn skips_past_the_helper_are_found_in_tests_only() {
        let text = "fn a() {\n eprintln!(\"SKIPPED: no moon\");\n env::var(\"FWDLAB_CI\")\n}\n";
        let places = ["crates/a/src/a.rs", "crates/testdata/src/a.rs", "crates/a/benches/a.rs"];
        let house = SourceTree::of(&places.map(|place| (place, text)));
        let found: Vec<_> = skips(&house).into_iter().map(|f| (f.path, f.line)).collect();
        assert_eq!(found, [(places[0].to_owned(), 2), (places[0].to_owned(), 3)]);
    }

    #[test]
    fn clocks_and_files_are_found_in_pure_crates() {
        let text = "use std::time::Instant;\nuse std::net::IpAddr;\nstd::fs::read(p)\n";
        let house =
            SourceTree::of(&[("crates/model/src/a.rs", text), ("crates/model/tests/a.rs", text)]);
        assert_eq!(purity(&house).iter().map(|f| f.line).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn long_sources_are_found_and_long_data_is_not() {
        let (long, short) = ("x\n".repeat(501), "x\n".repeat(500));
        let house = SourceTree::of(&[("a.rs", &long), ("b.rs", &short), ("c.json", &long)]);
        assert_eq!(length(&house).len(), 1);
    }
}
