//! Who may know whom.

use super::Finding;
use crate::tree::SourceTree;
use toml::Table;

/// Each crate and what it may depend on, without the prefix `fwdlab-`. Tests
/// (dev-dependencies) may look further.
const GRAPH: &[(&str, &[&str])] = &[
    ("packet", &[]),
    ("model", &["packet", "search"]),
    ("netio", &["packet"]),
    ("router", &["packet", "netio"]),
    ("vm", &["packet", "netio"]),
    ("host", &["model", "netio"]),
    ("dut", &["host", "model", "packet", "netio"]),
    ("generator", &["host", "model", "packet", "netio"]),
    ("bench", &["host", "dut", "generator", "model", "packet", "netio", "search", "stats", "vm"]),
    ("routerd", &["model", "packet", "netio", "router"]),
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
            "export", "search", "vm",
        ],
    ),
];

/// Outside crates that only some of the house may use.
const KEEPERS: &[(&str, &[&str])] = &[
    // The operating system.
    ("aya", &["netio"]),
    ("libc", &["netio"]),
    ("rustix", &["netio", "routerd", "fwdlab"]),
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

/// The crates depend on each other as [`GRAPH`] says, and in no other way.
pub(super) fn dependencies(house: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, path, manifest) in manifests(house, &mut findings) {
        let Some((_, allowed)) = GRAPH.iter().find(|(known, _)| *known == name) else {
            let what = "a crate that the graph does not know: see xtask/src/rules/graph.rs";
            findings.push(Finding::new(path, 0, what));
            continue;
        };
        for dependency in names(&manifest) {
            let own = dependency.strip_prefix("fwdlab-");
            let own = own.or((dependency == "fwdlab").then_some("fwdlab"));
            if let Some(other) = own
                && !allowed.contains(&other)
            {
                let what = format!("{name} must not depend on {other}");
                findings.push(Finding::new(path, 0, what));
            }
        }
    }
    findings
}

/// Outside crates are used where [`KEEPERS`] says.
pub(super) fn outside(house: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, path, manifest) in manifests(house, &mut Vec::new()) {
        for dependency in names(&manifest) {
            if let Some((_, keepers)) = KEEPERS.iter().find(|(outside, _)| *outside == dependency)
                && !keepers.contains(&name)
            {
                let what = format!("{name} must not use {dependency} ({keepers:?} may)");
                findings.push(Finding::new(path, 0, what));
            }
        }
    }
    findings
}

/// Name, path and manifest of every crate under `crates/`.
fn manifests<'a>(
    house: &'a SourceTree,
    findings: &mut Vec<Finding>,
) -> Vec<(&'a str, &'a str, Table)> {
    let mut manifests = Vec::new();
    for file in &house.files {
        let name = file.path.strip_prefix("crates/").and_then(|p| p.strip_suffix("/Cargo.toml"));
        match name.map(|name| (name, file.text.parse::<Table>())) {
            None => {}
            Some((name, Ok(manifest))) => manifests.push((name, file.path.as_str(), manifest)),
            Some((_, Err(error))) => findings.push(Finding::new(&file.path, 0, error.to_string())),
        }
    }
    manifests
}

/// Names of what a crate is built from: dependencies of the program and of its
/// build script, also those of single platforms.
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
        let house = SourceTree::of(&[(&format!("crates/{name}/Cargo.toml"), manifest)]);
        rule(&house).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn edges_against_the_graph_are_found_in_every_form() {
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
    fn new_crates_must_be_entered_and_manifests_be_readable() {
        assert_eq!(findings(dependencies, "kitchen", "").len(), 1);
        assert_eq!(findings(dependencies, "model", "[dependencies").len(), 1);
    }

    #[test]
    fn outside_crates_have_their_keepers() {
        assert_eq!(findings(outside, "bench", "[dependencies]\nrusqlite = \"1\"").len(), 1);
        assert_eq!(findings(outside, "store", "[dependencies]\nrusqlite = \"1\""), [""; 0]);
        assert_eq!(findings(outside, "fwdlab", "[dependencies]\ntokio = \"1\"").len(), 1);
    }
}
