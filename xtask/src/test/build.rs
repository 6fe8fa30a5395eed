//! Builds test programs: one `cargo test --no-run`, whose messages name the programs.

use super::levels::{self, Lane, Level};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A built test program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// `package` for unit tests, `package::target` for an integration test.
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    /// Directory of the package, where cargo runs its tests.
    pub(crate) directory: PathBuf,
    pub(crate) level: Level,
    pub(crate) lane: Lane,
}

/// Builds the programs of `level`, or of all levels, and returns them in the order of levels.
///
/// All builds cover the whole workspace, so that features, and with them the dependencies' objects,
/// are the same for each level.
///
/// # Errors
/// Fails if cargo cannot run or the build fails.
pub(crate) fn build(root: &Path, level: Option<Level>) -> Result<Vec<Program>> {
    let mut cargo = cargo(root);
    cargo.args(["test", "--no-run", "--workspace", "--locked"]);
    cargo.args(["--message-format", "json-render-diagnostics"]).args(targets(level));
    let output = cargo.stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let output = output.wait_with_output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the tests do not compile");
    }
    let mut programs: Vec<Program> =
        String::from_utf8_lossy(&output.stdout).lines().filter_map(program).collect();
    programs.retain(|program| level.is_none_or(|level| program.level == level));
    let rank = |level| levels::LEVELS.iter().position(|(_, other)| *other == level);
    programs.sort_by_key(|program| (rank(program.level), program.name.clone()));
    Ok(programs)
}

/// Returns a command for the cargo that runs this program.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).stdin(Stdio::null());
    cargo
}

/// Returns arguments that select targets. `--test '*'` also selects targets with `test = false`.
fn targets(level: Option<Level>) -> Vec<&'static str> {
    match level {
        None | Some(Level::Unit) => vec!["--lib", "--bins", "--test", "*"],
        Some(level) => levels::programs(level).flat_map(|(_, target)| ["--test", target]).collect(),
    }
}

/// Returns the test program that a message of cargo announces.
fn program(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    let target = &message["target"];
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let file = message["executable"].as_str().filter(|_| is_test)?;
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = package(message["package_id"].as_str()?)?;
    let kind = target["kind"][0].as_str()?;
    let name = target["name"].as_str()?;
    let integration = (kind == "test").then_some(name);
    let (level, lane) = levels::place(&package, integration);
    Some(Program {
        name: match (integration, kind) {
            (Some(name), _) => format!("{package}::{name}"),
            (None, "bin") if name == package => format!("{package} (program)"),
            (None, "bin") => format!("{package} ({name})"),
            (None, _) => package,
        },
        file: file.into(),
        directory: directory.to_owned(),
        level,
        lane,
    })
}

/// Returns the name in a package ID: `path+file:///folder/NAME#VERSION`, or `...#NAME@VERSION` if
/// the folder has another name (<https://doc.rust-lang.org/cargo/reference/pkgid-spec.html>).
fn package(id: &str) -> Option<String> {
    let (url, fragment) = id.split_once('#')?;
    let name = match fragment.split_once('@') {
        Some((name, _)) => name,
        None => url.rsplit('/').next()?,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, kind: &str, name: &str, test: bool) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"{id}",
            "manifest_path":"/r/crates/netio/Cargo.toml","target":{{"kind":["{kind}"],
            "name":"{name}"}},"profile":{{"test":{test}}},"executable":"/r/target/x-1"}}"#
        )
        .replace('\n', " ")
    }

    #[test]
    fn program_reads_test_artifacts() {
        let id = "path+file:///r/crates/netio#fwdlab-netio@0.1.0";
        let found = program(&message(id, "test", "frames", true)).expect("a program");
        assert_eq!((found.name.as_str(), found.level), ("fwdlab-netio::frames", Level::Netns));
        assert_eq!(found.directory, Path::new("/r/crates/netio"));
        let found = program(&message(id, "lib", "fwdlab_netio", true)).expect("a program");
        assert_eq!((found.name.as_str(), found.level), ("fwdlab-netio", Level::Unit));
        let found = program(&message("path+file:///r/xtask#0.1.0", "bin", "xtask", true));
        assert_eq!(found.expect("a program").name, "xtask (program)");
    }

    #[test]
    fn program_ignores_other_messages() {
        let id = "path+file:///r/crates/netio#fwdlab-netio@0.1.0";
        assert!(program(&message(id, "bin", "fwdlab", false)).is_none());
        assert!(program(r#"{"reason":"build-finished","success":true}"#).is_none());
        assert!(program("warning: not JSON").is_none());
    }
}
