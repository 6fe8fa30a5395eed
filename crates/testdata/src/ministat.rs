//! Cases of ministat: arguments, input, and the output of each generation.
//!
//! Lines of files and of output are escaped (`\\`, `\t`, `\xNN`). If a generation's output differs
//! from FreeBSD 14's, it is stored line by line; `=N` stands for the next `N` lines of FreeBSD
//! 14's.

use crate::archive::put;
use crate::lines::{Entry, entries};
use std::path::Path;

pub(crate) fn render(root: &Path) {
    let (mut case, mut arguments, mut newest) = (String::new(), String::new(), Vec::new());
    for entry in entries(include_str!("../fixtures/ministat.txt")) {
        let mut words = entry.rest.split(' ');
        let first = words.next().unwrap_or_default();
        let is_unended = entry.rest.split(' ').any(|word| word == "unended");
        match entry.keyword {
            "case" => (case, arguments) = (first.to_owned(), String::new()),
            "arg" => arguments += &format!("{}\n", entry.rest),
            "file" => {
                put(root, &format!("{case}/{first}"), &joined(&lines(&entry), is_unended));
            }
            "prints" => {
                put(root, &format!("{case}/cmd"), &unescaped(&arguments));
                let generation = words.find(|word| word.starts_with("fbsd"));
                let (name, output) = match generation {
                    Some(generation) => (format!("expected.{generation}"), like(&newest, &entry)),
                    None => ("expected".to_owned(), lines(&entry)),
                };
                put(root, &format!("{case}/{name}.exit"), format!("{first}\n").as_bytes());
                put(root, &format!("{case}/{name}"), &joined(&output, is_unended));
                if generation.is_none() {
                    newest = output;
                }
            }
            other => panic!("no line of a case begins with {other}"),
        }
    }
}

fn lines(entry: &Entry<'_>) -> Vec<Vec<u8>> {
    entry.body.iter().map(|line| unescaped(line)).collect()
}

/// Returns the lines of an entry that refers to the lines of another generation.
fn like(newest: &[Vec<u8>], entry: &Entry<'_>) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for line in &entry.body {
        match line.strip_prefix('=') {
            Some(count) => {
                let (from, count) = (all.len(), count.parse::<usize>().expect("a number"));
                all.extend_from_slice(&newest[from..from + count]);
            }
            None => all.push(unescaped(line)),
        }
    }
    all
}

fn joined(lines: &[Vec<u8>], is_unended: bool) -> Vec<u8> {
    let mut all = lines.join(&b'\n');
    if !lines.is_empty() && !is_unended {
        all.push(b'\n');
    }
    all
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b't') => bytes.push(b'\t'),
            Some(b'x') => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                let byte = high.zip(low).map(|(high, low)| 16 * high + low);
                bytes.push(byte.expect("two digits") as u8);
            }
            other => bytes.push(other.expect("what is escaped")),
        }
    }
    bytes
}
