//! Rules about source text.

use super::{Finding, lines};
use crate::tree::{File, SourceTree};

/// Maximum number of lines; longer files contain more than one kind of thing.
const LINES_MAX: usize = 500;
/// Extensions of hand-written sources.
const SOURCES: [&str; 6] = [".rs", ".c", ".h", ".sh", ".css", ".jinja"];

/// Modules that access the operating system.
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

/// Only crates/netio contains `unsafe` code.
pub(super) fn unsafe_code(tree: &SourceTree) -> Vec<Finding> {
    let files = rust(tree).filter(|file| !file.path.starts_with("crates/netio/"));
    let word = |code: &str| {
        // A value of the Content-Security-Policy header.
        let code = code.replace("'unsafe-inline'", "");
        code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
    };
    grep(files, "`unsafe` belongs in crates/netio", word)
}

/// The crates `model`, `packet` and `search` do no I/O, start nothing and read no clock.
pub(super) fn purity(tree: &SourceTree) -> Vec<Finding> {
    let pure = ["crates/model/src/", "crates/packet/src/", "crates/search/src/"];
    let files = rust(tree).filter(|file| pure.iter().any(|folder| file.path.starts_with(folder)));
    grep(files, "model, packet and search must not use the operating system", |code| {
        IMPURE.iter().any(|module| code.contains(module))
    })
}

/// Tests report skips through `fwdlab_testdata`, whose records the test runner counts. Benchmarks
/// and xtask are exempt.
pub(super) fn skips(tree: &SourceTree) -> Vec<Finding> {
    let is_test = |file: &&File| {
        file.path.starts_with("crates/")
            && !file.path.starts_with("crates/testdata/")
            && !file.path.contains("/benches/")
    };
    let what = "report a skip through fwdlab_testdata::skip";
    let texts = ["SKIPPED: ", "FWDLAB_CI"];
    rust(tree)
        .filter(is_test)
        .flat_map(|file| lines(&file.text).map(move |(number, line)| (file, number, line)))
        .filter(|(_, _, line)| texts.iter().any(|text| line.contains(text)))
        .map(|(file, number, _)| Finding::new(&file.path, number, what))
        .collect()
}

/// Code blocks of doc comments name a language that rustdoc does not compile. The test runner runs
/// no doctests, because rustdoc would run once per crate.
pub(super) fn documentation_tests(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in rust(tree).filter(|file| file.path.contains("/src/")) {
        let mut is_open = false;
        for (number, line) in lines(&file.text) {
            let line = line.trim_start();
            let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let Some(language) = text.and_then(|text| text.trim_start().strip_prefix("```")) else {
                continue;
            };
            is_open = !is_open;
            if is_open && !["text", "sh", "toml", "json"].contains(&language.trim()) {
                let what = "doctests do not run: write ```text or a unit test";
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

/// Source files have at most [`LINES_MAX`] lines.
pub(super) fn length(tree: &SourceTree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter(|file| SOURCES.iter().any(|ending| file.path.ends_with(ending)))
        .filter_map(|file| {
            let count = file.text.lines().count();
            let what = format!("{count} lines: split the file (at most {LINES_MAX})");
            (count > LINES_MAX).then(|| Finding::new(&file.path, 0, what))
        })
        .collect()
}

fn rust(tree: &SourceTree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| file.path.ends_with(".rs"))
}

/// Returns the lines whose code violates a rule, ignoring comments and strings.
fn grep<'a>(
    files: impl Iterator<Item = &'a File>,
    what: &str,
    violates: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    files
        .flat_map(|file| lines(&file.text).map(move |(number, line)| (file, number, line)))
        .filter(|(_, _, line)| violates(&code(line)))
        .map(|(file, number, _)| Finding::new(&file.path, number, what))
        .collect()
}

/// Returns a line without comments and strings. Approximate: multi-line strings count as code.
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
    fn code_removes_comments_and_strings() {
        assert_eq!(code(r#"let a = "b \" // c" + d; // e"#), "let a =  + d; ");
        assert_eq!(code("a / b"), "a / b");
    }

    #[test]
    fn unsafe_code_is_found_outside_netio_only() {
        let text = "// unsafe\nfn a() { unsafe { b() } }\n#![forbid(unsafe_code)]\n";
        let tree =
            SourceTree::of(&[("crates/bench/src/a.rs", text), ("crates/netio/src/a.rs", text)]);
        let found = unsafe_code(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/bench/src/a.rs", 2));
    }

    #[test]
    fn documentation_tests_finds_compiled_code_blocks() {
        let source_with =
            |fence: &str| format!("/// A thing:\n/// {fence}\n/// a\n/// ```\nfn a() {{}}\n");
        for (fence, found) in [("```text", 0), ("```", 1), ("```rust", 1), ("```no_run", 1)] {
            let tree = SourceTree::of(&[("crates/a/src/a.rs", &source_with(fence))]);
            assert_eq!(documentation_tests(&tree).len(), found, "{fence}");
        }
    }

    #[test]
    fn skips_are_found_in_tests_only() {
        let text = "fn a() {\n eprintln!(\"SKIPPED: no moon\");\n env::var(\"FWDLAB_CI\")\n}\n";
        let places = ["crates/a/src/a.rs", "crates/testdata/src/a.rs", "crates/a/benches/a.rs"];
        let tree = SourceTree::of(&places.map(|place| (place, text)));
        let found: Vec<_> = skips(&tree).into_iter().map(|f| (f.path, f.line)).collect();
        assert_eq!(found, [(places[0].to_owned(), 2), (places[0].to_owned(), 3)]);
    }

    #[test]
    fn purity_finds_clocks_and_files() {
        let text = "use std::time::Instant;\nuse std::net::IpAddr;\nstd::fs::read(p)\n";
        let tree =
            SourceTree::of(&[("crates/model/src/a.rs", text), ("crates/model/tests/a.rs", text)]);
        assert_eq!(purity(&tree).iter().map(|f| f.line).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn length_finds_long_sources_but_not_data() {
        let (long, short) = ("x\n".repeat(501), "x\n".repeat(500));
        let tree = SourceTree::of(&[("a.rs", &long), ("b.rs", &short), ("c.json", &long)]);
        assert_eq!(length(&tree).len(), 1);
    }
}
