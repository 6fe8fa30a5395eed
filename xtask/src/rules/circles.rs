//! Sibling modules must depend on each other in one direction only.
//!
//! A module may use its submodules and its parents. If two siblings use each other, neither can be
//! read, moved or tested alone, and a reader has no place to start. So in every folder, the uses
//! among the modules must not form a cycle. Tests may use any module.

use super::{Finding, program};
use crate::tree::{File, SourceTree};
use std::collections::{BTreeMap, BTreeSet};

/// Path of a module from the root of its crate.
type Module<'a> = Vec<&'a str>;
/// Uses among the modules of one folder, each with a file that contains it.
type Uses<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a File>>;

/// Finds cycles among the modules of each folder.
pub(super) fn circles(tree: &SourceTree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<(Module<'_>, &File)>> = BTreeMap::new();
    for file in &tree.files {
        if let Some((name, module)) = module(&file.path) {
            crates.entry(name).or_default().push((module, file));
        }
    }
    let mut findings = Vec::new();
    for modules in crates.values() {
        for (folder, uses) in folders(modules) {
            for cycle in cycles(&uses) {
                findings.push(finding(&folder, &cycle, &uses));
            }
        }
    }
    findings
}

fn finding(folder: &[&str], cycle: &[&str], uses: &Uses<'_>) -> Finding {
    let (last, first) = (cycle[cycle.len() - 1], cycle[0]);
    let inside =
        if folder.is_empty() { String::new() } else { format!(" in {}", folder.join("/")) };
    let what = format!("module cycle{inside}: {} -> {first}", cycle.join(" -> "));
    Finding::new(&uses[last][first].path, 0, what)
}

/// Returns crate and module of a source file; `None` for tests.
fn module(path: &str) -> Option<(&str, Module<'_>)> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let mut module: Module<'_> = rest.strip_suffix(".rs")?.split('/').collect();
    let test = |part: &&str| *part == "tests" || part.ends_with("_tests");
    if module.iter().any(test) {
        return None;
    }
    module.pop_if(|last| ["mod", "lib", "main"].contains(last));
    Some((name, module))
}

/// Returns the uses among the modules of each folder.
fn folders<'a>(modules: &'a [(Module<'a>, &'a File)]) -> BTreeMap<Module<'a>, Uses<'a>> {
    let known: BTreeSet<&[&str]> =
        modules.iter().flat_map(|(module, _)| (0..=module.len()).map(|n| &module[..n])).collect();
    let mut folders: BTreeMap<Module<'a>, Uses<'a>> = BTreeMap::new();
    for (module, file) in modules {
        for path in paths(program(&file.text)) {
            let Some(target) = resolve(module, &path, &known) else { continue };
            let shared = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (module.get(shared), target.get(shared)) {
                let uses = folders.entry(module[..shared].to_vec()).or_default();
                uses.entry(from).or_default().entry(to).or_insert(file);
            }
        }
    }
    folders
}

/// Returns the module that `path` refers to in `module`.
fn resolve<'a>(
    module: &[&'a str],
    path: &[&'a str],
    known: &BTreeSet<&[&'a str]>,
) -> Option<Module<'a>> {
    let ups = path.iter().take_while(|word| **word == "super").count();
    let mut target = match path[0] {
        "crate" => Vec::new(),
        _ => module[..module.len().checked_sub(ups)?].to_vec(),
    };
    for word in &path[ups.max(1)..] {
        target.push(*word);
        if !known.contains(target.as_slice()) {
            target.pop();
            break;
        }
    }
    Some(target)
}

/// Returns every path in `text` that begins with `crate` or `super`, as words; a `use` tree gives
/// one path per leaf.
fn paths(text: &str) -> Vec<Vec<&str>> {
    let mut paths = Vec::new();
    for line_start in code_starts(text) {
        let rest = &text[line_start..];
        read_tree(rest, &mut Vec::new(), &mut paths);
    }
    paths
}

/// Returns the positions of `crate::` and of the first `super::` of each path, outside comments.
fn code_starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let code = line.find("//").map_or(line, |end| &line[..end]);
        for word in ["crate::", "super::"] {
            for (column, _) in code.match_indices(word) {
                let before = code[..column].chars().next_back();
                if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                    starts.push(at + column);
                }
            }
        }
        at += line.len();
    }
    starts
}

/// Reads `a::b::{c, d::e}`; returns the text after it.
fn read_tree<'a>(
    mut text: &'a str,
    path: &mut Vec<&'a str>,
    paths: &mut Vec<Vec<&'a str>>,
) -> &'a str {
    let depth = path.len();
    loop {
        text = text.trim_start();
        if let Some(mut inside) = text.strip_prefix('{') {
            while !inside.trim_start().starts_with('}') && !inside.trim_start().is_empty() {
                let before = inside.len();
                inside = read_tree(inside, path, paths).trim_start();
                inside = inside.strip_prefix(',').unwrap_or(inside);
                if inside.len() == before {
                    break;
                }
            }
            path.truncate(depth);
            return inside.trim_start().strip_prefix('}').unwrap_or(inside);
        }
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        path.push(&text[..end]);
        match text[end..].strip_prefix("::") {
            Some(rest) => text = rest,
            None => {
                paths.push(path.clone());
                path.truncate(depth);
                return text[end..].strip_prefix(" as ").map_or(&text[end..], skip_word);
            }
        }
    }
}

fn skip_word(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
}

/// Returns a shortest cycle of every strongly connected set of modules.
fn cycles<'a>(uses: &Uses<'a>) -> Vec<Vec<&'a str>> {
    let mut circles = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for &start in uses.keys() {
        if seen.contains(start) {
            continue;
        }
        if let Some(cycle) = shortest(start, uses) {
            seen.extend(strongly_connected(start, uses));
            circles.push(cycle);
        }
    }
    circles
}

/// Returns a shortest path from `start` back to itself.
fn shortest<'a>(start: &'a str, uses: &Uses<'a>) -> Option<Vec<&'a str>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(here) = queue.pop_front() {
        for &next in uses.get(here).into_iter().flatten().map(|(next, _)| next) {
            if next == start {
                let mut cycle = vec![here];
                while let Some(before) = from.get(cycle[0]) {
                    cycle.insert(0, before);
                }
                return Some(cycle);
            }
            if next != start && !from.contains_key(next) {
                from.insert(next, here);
                queue.push_back(next);
            }
        }
    }
    None
}

/// Returns the modules that `start` reaches and that reach it.
fn strongly_connected<'a>(start: &'a str, uses: &Uses<'a>) -> BTreeSet<&'a str> {
    let reached = reach(start, uses);
    reached.into_iter().filter(|other| reach(other, uses).contains(start)).collect()
}

fn reach<'a>(start: &str, uses: &Uses<'a>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&'a str> = uses.get(start).into_iter().flatten().map(|(to, _)| *to).collect();
    while let Some(here) = left.pop() {
        if reached.insert(here) {
            left.extend(uses.get(here).into_iter().flatten().map(|(to, _)| *to));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        circles(&SourceTree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn circles_finds_mutual_use_in_every_syntax() {
        for back in [
            "use crate::a::X;",
            "use super::a;",
            "use crate::{z, a::{X, Y}};",
            "fn f() -> crate::a::X {}",
            "use crate::{z::{Q, R as S}, a};",
        ] {
            let files = [("crates/c/src/a.rs", "use crate::b;"), ("crates/c/src/b/mod.rs", back)];
            assert_eq!(
                found(&files),
                ["crates/c/src/b/mod.rs: module cycle: a -> b -> a"],
                "{back}"
            );
        }
    }

    #[test]
    fn circles_finds_long_cycles_and_inner_folders() {
        let files = [
            ("crates/c/src/d/a.rs", "use super::b::B;"),
            ("crates/c/src/d/b.rs", "use crate::d::e::inner::E;"),
            ("crates/c/src/d/e/inner.rs", "use super::super::a::A;"),
            ("crates/c/src/d/e/mod.rs", ""),
        ];
        let found = found(&files);
        assert_eq!(found, ["crates/c/src/d/e/inner.rs: module cycle in d: a -> b -> e -> a"]);
    }

    #[test]
    fn circles_ignores_parents_tests_and_comments() {
        let files = [
            ("crates/c/src/lib.rs", "use crate::a::X; use crate::b::Y;"),
            (
                "crates/c/src/a.rs",
                "use crate::Z;\n// crate::b\n\n#[cfg(test)]\nmod tests {\n use crate::b;\n}\n",
            ),
            ("crates/c/src/b.rs", "use crate::a::X;"),
            ("crates/c/src/a/tests.rs", "use crate::b;"),
            ("crates/d/src/a.rs", "use crate::b;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
