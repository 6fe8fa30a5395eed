//! Checks dependencies against `deny.toml`: licences, bans, sources.
//!
//! cargo-deny reads the same file and also checks advisories. It is a program of many crates that
//! must be built first, and advisories need a database from the network. This module checks what
//! needs neither, from the output of `cargo metadata`. It leaves out advisories, clarified licences
//! and private registries.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use toml::Table;

/// The only allowed registry.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Prints all violations.
pub(crate) fn check(root: &Path) -> Result<()> {
    let text = std::fs::read_to_string(root.join("deny.toml")).context("deny.toml")?;
    let rules = Rules::of(&text.parse().context("deny.toml")?);
    let mut packages = BTreeMap::new();
    for target in &rules.targets {
        for package in packages_for(root, target)? {
            packages.insert(package.name_and_version.clone(), package);
        }
    }
    let packages: Vec<Package> = packages.into_values().collect();
    ensure!(packages.len() > 10, "cargo metadata lists only {} packages", packages.len());
    let findings = findings(&rules, &packages);
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} violations of deny.toml", findings.len());
    }
    println!("{} packages conform to deny.toml: licences, bans, sources", packages.len());
    Ok(())
}

/// The rules of `deny.toml` that this module checks.
#[derive(Debug, Default)]
struct Rules {
    targets: Vec<String>,
    allowed: BTreeSet<String>,
    banned: Vec<(String, String)>,
}

impl Rules {
    fn of(file: &Table) -> Rules {
        let list = |section: &str, key: &str| -> Vec<toml::Value> {
            let value = file.get(section).and_then(|section| section.get(key));
            value.and_then(|value| value.as_array()).cloned().unwrap_or_default()
        };
        let text = |value: &toml::Value| value.as_str().unwrap_or_default().to_owned();
        let key = |value: &toml::Value, key: &str| value.get(key).map(text).unwrap_or_default();
        Rules {
            targets: list("graph", "targets").iter().map(text).collect(),
            allowed: list("licenses", "allow").iter().map(text).collect(),
            banned: list("bans", "deny")
                .iter()
                .map(|ban| (key(ban, "name"), key(ban, "reason")))
                .collect(),
        }
    }
}

/// A package that a build on one of the targets uses.
#[derive(Clone, Debug, Default)]
struct Package {
    name: String,
    name_and_version: String,
    licence: Option<String>,
    /// `None` for a path dependency.
    source: Option<String>,
    /// Dependencies on any version of a package that is not a path.
    wildcards: Vec<String>,
}

fn packages_for(root: &Path, target: &str) -> Result<Vec<Package>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .args(["--filter-platform", target])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata: {}", message.trim_end());
    let all: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let ids: BTreeSet<&str> =
        entries(&all["resolve"]["nodes"]).filter_map(|node| node["id"].as_str()).collect();
    let in_use = entries(&all["packages"])
        .filter(|package| package["id"].as_str().is_some_and(|id| ids.contains(id)));
    Ok(in_use.map(package).collect())
}

fn entries(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn package(value: &Value) -> Package {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let name = text("name").unwrap_or_default();
    let wildcards = entries(&value["dependencies"])
        .filter(|dependency| dependency["req"] == "*" && dependency["path"].is_null())
        .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned));
    Package {
        name_and_version: format!("{name} {}", text("version").unwrap_or_default()),
        name,
        licence: text("license"),
        source: text("source"),
        wildcards: wildcards.collect(),
    }
}

fn findings(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut needed = BTreeSet::new();
    for package in packages {
        let package_id = &package.name_and_version;
        match package.licence.as_deref() {
            None => findings.push(format!("{package_id} has no licence")),
            Some(licence) => {
                needed.extend(identifiers(licence).map(str::to_owned));
                if !is_allowed(licence, &rules.allowed) {
                    findings.push(format!("{package_id}: licence {licence} is not allowed"));
                }
            }
        }
        if let Some((_, reason)) = rules.banned.iter().find(|(name, _)| *name == package.name) {
            findings.push(format!("{package_id} is banned: {reason}"));
        }
        if let Some(source) = package.source.as_deref().filter(|source| *source != REGISTRY) {
            findings.push(format!("{package_id} comes from {source}"));
        }
        // Published packages may have such dependencies.
        if package.source.is_none() {
            let any = |name: &String| format!("{package_id} accepts any version of {name}");
            findings.extend(package.wildcards.iter().map(any));
        }
    }
    let unused = rules.allowed.difference(&needed);
    findings.extend(unused.map(|licence| format!("licence {licence} is allowed but unused")));
    findings
}

/// Splits an SPDX expression into tokens; old manifests use `/` for OR.
fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut tokens: Vec<String> = Vec::new();
    let mut words = spaced.split_whitespace();
    while let Some(word) = words.next() {
        match (word, tokens.last_mut()) {
            ("WITH", Some(licence)) => {
                *licence = format!("{licence} WITH {}", words.next().unwrap_or_default());
            }
            _ => tokens.push(word.to_owned()),
        }
    }
    tokens
}

fn identifiers(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| c.is_whitespace() || "()/".contains(c));
    words.filter(|word| !["", "AND", "OR", "WITH"].contains(word))
}

/// Returns true if the allowed licences satisfy an SPDX expression; false if it is invalid.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let tokens = tokens(expression);
    let mut rest = tokens.as_slice();
    any_of(&mut rest, allowed).is_some_and(|allowed| allowed && rest.is_empty())
}

fn any_of(rest: &mut &[String], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut any = all_of(rest, allowed)?;
    while rest.first().is_some_and(|word| word == "OR") {
        *rest = &rest[1..];
        any |= all_of(rest, allowed)?;
    }
    Some(any)
}

fn all_of(rest: &mut &[String], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut all = one(rest, allowed)?;
    while rest.first().is_some_and(|word| word == "AND") {
        *rest = &rest[1..];
        all &= one(rest, allowed)?;
    }
    Some(all)
}

fn one(rest: &mut &[String], allowed: &BTreeSet<String>) -> Option<bool> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    match first.as_str() {
        "(" => {
            let inner = any_of(rest, allowed)?;
            let (last, after) = rest.split_first()?;
            *rest = after;
            (last == ")").then_some(inner)
        }
        ")" | "AND" | "OR" => None,
        licence => Some(allowed.contains(licence)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let text = r#"
            [graph]
            targets = ["x86_64-unknown-linux-gnu"]
            [licenses]
            allow = ["MIT", "Zlib"]
            [bans]
            deny = [{ name = "tokio", reason = "nothing is asynchronous" }]
        "#;
        Rules::of(&text.parse().expect("TOML"))
    }

    fn package(name: &str, licence: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            name_and_version: format!("{name} 1.0.0"),
            licence: licence.map(str::to_owned),
            source: Some(REGISTRY.to_owned()),
            wildcards: Vec::new(),
        }
    }

    #[test]
    fn is_allowed_evaluates_spdx_expressions() {
        let allowed = rules().allowed;
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("Apache-2.0 OR MIT", true),
            ("Apache-2.0/MIT", true),
            ("MIT AND Apache-2.0", false),
            ("MIT OR Apache-2.0 AND GPL-2.0-only", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", false),
            ("(MIT OR Apache-2.0) AND Zlib", true),
            ("MIT WITH LLVM-exception", false),
            ("MIT OR Apache-2.0 WITH LLVM-exception", true),
            ("", false),
            ("MIT MIT", false),
            ("(MIT", false),
            ("OR MIT", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }

    #[test]
    fn findings_name_every_violation() {
        let mut git_package = package("odd", Some("Zlib"));
        git_package.source = Some("git+https://example.org/odd".to_owned());
        git_package.wildcards = vec!["log".to_owned()];
        let mut path_package = Package { source: None, ..package("own", Some("MIT")) };
        path_package.wildcards = vec!["log".to_owned()];
        let packages = [
            package("a", Some("MIT OR Apache-2.0")),
            package("b", Some("GPL-3.0-only")),
            package("c", None),
            package("tokio", Some("MIT")),
            git_package,
            path_package,
        ];
        assert_eq!(
            findings(&rules(), &packages),
            [
                "b 1.0.0: licence GPL-3.0-only is not allowed",
                "c 1.0.0 has no licence",
                "tokio 1.0.0 is banned: nothing is asynchronous",
                "odd 1.0.0 comes from git+https://example.org/odd",
                "own 1.0.0 accepts any version of log",
            ]
        );
        let unused = findings(&rules(), &[package("a", Some("MIT"))]);
        assert_eq!(unused, ["licence Zlib is allowed but unused"]);
    }
}
