//! Checks the dependencies between crates.

use super::Finding;
use crate::tree::SourceTree;
use toml::Table;

/// Each crate with its allowed dependencies, without the prefix `fwdlab-`. Dev-dependencies are not
/// restricted.
const GRAPH: &[(&str, &[&str])] = &[
    ("packet", &[]),
    ("model", &["packet", "search"]),
    ("netio", &["packet"]),
    ("router", &["packet", "netio"]),
    ("vm", &["packet", "netio"]),
    ("codediff", &[]),
    ("host", &["model", "netio"]),
    ("dut", &["host", "model", "packet", "netio"]),
    ("generator", &["host", "model", "packet", "netio"]),
    ("bench", &["host", "dut", "generator", "model", "packet", "netio", "search", "stats", "vm"]),
    ("routerd", &["model", "packet", "netio", "router"]),
    ("otg", &["model", "packet", "netio", "bench"]),
    ("document", &["model", "stats"]),
    ("store", &["model", "stats"]),
    ("profile", &["model", "stats", "document", "store"]),
    ("results", &["model", "search", "stats", "document", "store", "profile"]),
    ("stats", &["model"]),
    ("search", &[]),
    ("testdata", &[]),
    ("archive", &["model", "results"]),
    ("export", &["model", "results"]),
    (
        "fwdlab",
        &[
            "model", "packet", "netio", "router", "routerd", "bench", "results", "archive",
            "export", "search", "vm", "otg", "codediff",
        ],
    ),
];

/// External crates with the crates that may use them.
const ALLOWED_USERS: &[(&str, &[&str])] = &[
    // The operating system.
    ("aya", &["netio"]),
    ("libc", &["netio"]),
    ("rustix", &["netio", "routerd", "fwdlab"]),
    // Machine code.
    ("object", &["codediff"]),
    ("iced-x86", &["codediff"]),
    // Captured frames.
    ("pcap-parser", &["netio"]),
    // Routes that change while packets are forwarded.
    ("arc-swap", &["router"]),
    // SQL and pictures.
    ("rusqlite", &["store"]),
    ("resvg", &["document"]),
    ("inferno", &["profile"]),
    // Tables for other programs.
    ("parquet", &["export"]),
    // Servers of other traffic generators.
    ("flate2", &["generator"]),
    // The command line.
    ("clap", &["fwdlab"]),
    ("anyhow", &["fwdlab", "routerd"]),
    // Nothing is asynchronous.
    ("tokio", &[]),
    ("async-std", &[]),
    ("smol", &[]),
];

/// Crates depend on each other as in [`GRAPH`] and not otherwise.
pub(super) fn dependencies(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, path, manifest) in manifests(tree, &mut findings) {
        let Some((_, allowed)) = GRAPH.iter().find(|(known, _)| *known == name) else {
            let what = "crate is missing in GRAPH of xtask/src/rules/graph.rs";
            findings.push(Finding::new(path, 0, what));
            continue;
        };
        for dependency in names(&manifest) {
            let internal = dependency.strip_prefix("fwdlab-");
            let internal = internal.or((dependency == "fwdlab").then_some("fwdlab"));
            if let Some(other) = internal
                && !allowed.contains(&other)
            {
                let what = format!("{name} must not depend on {other}");
                findings.push(Finding::new(path, 0, what));
            }
        }
    }
    findings
}

/// External crates are used only as in [`ALLOWED_USERS`].
pub(super) fn outside(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, path, manifest) in manifests(tree, &mut Vec::new()) {
        for dependency in names(&manifest) {
            if let Some((_, users)) =
                ALLOWED_USERS.iter().find(|(outside, _)| *outside == dependency)
                && !users.contains(&name)
            {
                let what = format!("{name} must not use {dependency} (allowed: {users:?})");
                findings.push(Finding::new(path, 0, what));
            }
        }
    }
    findings
}

/// Returns name, path and manifest of every crate in `crates/`.
fn manifests<'a>(
    tree: &'a SourceTree,
    findings: &mut Vec<Finding>,
) -> Vec<(&'a str, &'a str, Table)> {
    let mut manifests = Vec::new();
    for file in &tree.files {
        let name = file.path.strip_prefix("crates/").and_then(|p| p.strip_suffix("/Cargo.toml"));
        match name.map(|name| (name, file.text.parse::<Table>())) {
            None => {}
            Some((name, Ok(manifest))) => manifests.push((name, file.path.as_str(), manifest)),
            Some((_, Err(error))) => findings.push(Finding::new(&file.path, 0, error.to_string())),
        }
    }
    manifests
}

/// Returns the names of a crate's dependencies and build dependencies, including platform-specific
/// ones.
fn names(manifest: &Table) -> Vec<String> {
    let platforms = manifest.get("target").and_then(|target| target.as_table());
    let tables = platforms
        .into_iter()
        .flat_map(|platforms| platforms.values().filter_map(|platform| platform.as_table()))
        .chain([manifest]);
    tables
        .flat_map(|table| ["dependencies", "build-dependencies"].map(|kind| table.get(kind)))
        .flatten()
        .filter_map(|dependencies| dependencies.as_table())
        .flatten()
        .map(|(name, value)| {
            let renamed = value.get("package").and_then(|package| package.as_str());
            renamed.unwrap_or(name).to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rule;

    fn findings(rule: Rule, name: &str, manifest: &str) -> Vec<String> {
        let tree = SourceTree::of(&[(&format!("crates/{name}/Cargo.toml"), manifest)]);
        rule(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn dependencies_finds_forbidden_edges_in_every_syntax() {
        for manifest in [
            "[dependencies]\nfwdlab-bench.workspace = true",
            "[build-dependencies]\nfwdlab-bench = { path = \"../bench\" }",
            "[target.'cfg(unix)'.dependencies]\nb = { package = \"fwdlab-bench\" }",
        ] {
            let found = findings(dependencies, "results", manifest);
            assert_eq!(found, ["crates/results/Cargo.toml: results must not depend on bench"]);
        }
        let allowed = "[dependencies]\nfwdlab-model = {}\n[dev-dependencies]\nfwdlab-bench = {}";
        assert_eq!(findings(dependencies, "results", allowed), [""; 0]);
        assert_eq!(findings(dependencies, "bench", "[dependencies]\nfwdlab = {}").len(), 1);
    }

    #[test]
    fn dependencies_reports_unknown_crates_and_bad_manifests() {
        assert_eq!(findings(dependencies, "kitchen", "").len(), 1);
        assert_eq!(findings(dependencies, "model", "[dependencies").len(), 1);
    }

    #[test]
    fn outside_finds_forbidden_users() {
        assert_eq!(findings(outside, "bench", "[dependencies]\nrusqlite = \"1\"").len(), 1);
        assert_eq!(findings(outside, "store", "[dependencies]\nrusqlite = \"1\""), [""; 0]);
        assert_eq!(findings(outside, "fwdlab", "[dependencies]\ntokio = \"1\"").len(), 1);
    }
}
