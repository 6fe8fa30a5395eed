//! All files that contain the version agree.
//!
//! `Cargo.toml` defines it. Crates inherit it, and with it `fwdlab --version`, manual pages,
//! archives and packages.

use super::{Finding, lines};
use crate::tree::SourceTree;

const MANIFEST: &str = "Cargo.toml";
const CHANGELOG: &str = "CHANGELOG.md";
const CITATION: &str = "CITATION.cff";
const PORT: &str = "packaging/freebsd/Makefile";

/// Checks that all files contain the workspace's version and the date of its release.
pub(super) fn versions(tree: &SourceTree) -> Vec<Finding> {
    let text = |path: &str| tree.text(path).unwrap_or_default();
    let Some(version) = workspace_version(text(MANIFEST)) else {
        return vec![Finding::new(MANIFEST, 0, "no version in [workspace.package]")];
    };
    let mut findings = manifests(tree);
    let release = newest_release(text(CHANGELOG));
    let date = release.map(|(_, date)| date);
    let expectations = [
        (CHANGELOG, "newest release", release.map(|(name, _)| name), Some(version.as_str())),
        (CITATION, "version", value(text(CITATION), "version:"), Some(version.as_str())),
        (CITATION, "date-released", value(text(CITATION), "date-released:"), date),
        (PORT, "DISTVERSION", value(text(PORT), "DISTVERSION="), Some(version.as_str())),
    ];
    for (path, what, found, expected) in expectations {
        if found != expected {
            let [found, expected] = [found, expected].map(|value| value.unwrap_or("none"));
            let what = format!("{what} is {found}, expected {expected}");
            findings.push(Finding::new(path, 0, what));
        }
    }
    findings
}

/// Checks that the crates of the workspace inherit their version.
fn manifests(tree: &SourceTree) -> Vec<Finding> {
    let is_member = |path: &str| {
        path.ends_with("/Cargo.toml") && (path.starts_with("crates/") || path.starts_with("xtask/"))
    };
    tree.files
        .iter()
        .filter(|file| is_member(&file.path))
        .filter(|file| !file.text.lines().any(|line| line == "version.workspace = true"))
        .map(|file| Finding::new(&file.path, 0, "write `version.workspace = true`"))
        .collect()
}

fn workspace_version(manifest: &str) -> Option<String> {
    let manifest: toml::Table = manifest.parse().ok()?;
    let version = manifest.get("workspace")?.get("package")?.get("version")?;
    Some(version.as_str()?.to_owned())
}

/// Returns version and date of the first heading `## [VERSION] - DATE`.
fn newest_release(changelog: &str) -> Option<(&str, &str)> {
    lines(changelog).find_map(|(_, line)| line.strip_prefix("## [")?.split_once("] - "))
}

/// Returns the value of the first line that begins with `key`.
fn value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 5] = [
        (MANIFEST, "[workspace.package]\nversion = \"0.2.0\"\n"),
        (CHANGELOG, "## [Unreleased]\n\n## [0.2.0] - 2027-01-31\n\n## [0.1.0] - 2026-11-27\n"),
        (CITATION, "version: 0.2.0\ndate-released: 2027-01-31\n"),
        (PORT, "DISTVERSION=\t0.2.0\n"),
        ("crates/netio/Cargo.toml", "[package]\nversion.workspace = true\n"),
    ];

    #[test]
    fn versions_accepts_equal_versions() {
        assert_eq!(versions(&SourceTree::of(&FILES)), []);
    }

    #[test]
    fn versions_finds_differences() {
        for (changed, text, findings) in [
            // All but the inheriting crate differ.
            (0, "[workspace.package]\nversion = \"0.3.0\"\n", 3),
            (1, "## [Unreleased]\n", 2),
            (1, "## [0.2.0] - 2027-02-01\n", 1),
            (2, "version: 0.2.0\ndate-released: 2027-01-30\n", 1),
            (3, "", 1),
            (4, "[package]\nversion = \"0.2.0\"\n", 1),
        ] {
            let mut files = FILES;
            files[changed].1 = text;
            let found = versions(&SourceTree::of(&files));
            assert_eq!(found.len(), findings, "{text}: {found:?}");
        }
    }
}
