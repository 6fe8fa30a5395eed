//! Overlay files and the software revision of a Linux DUT.
//!
//! Original files and the identity of the installed revision are kept in `/var/lib/fwdlab`
//! on the DUT, which survives reboots.

use crate::revision::{is_installed_by_us, verify};
use crate::undo::script;
use fwdlab_host::error::BenchError;
use fwdlab_host::{Host, quote};
use fwdlab_model::settings::{Overlay, Revision};
use std::collections::BTreeMap;
use std::path::Path;

/// Where old files and the name of the revision are kept.
const KEPT: &str = "/var/lib/fwdlab";

/// Writes standard input over the file `$1`; keeps the old one in `$2` the first time.
const LAY: &str = r#"target=/$1 kept=$2/files/$1
mkdir -p "$(dirname "$target")" "$(dirname "$kept")" || exit 1
if [ ! -e "$kept" ] && [ ! -e "$kept.none" ]; then
if [ -e "$target" ]; then cp -p "$target" "$kept"; else : >"$kept.none"; fi || exit 1
fi
if [ -e "$target" ]; then cat >"$target"; else cat >"$target.part" && mv "$target.part" "$target"; fi"#;

/// Puts the file `$1` back from `$2`.
const LIFT: &str = r#"target=/$1 kept=$2/files/$1
if [ -e "$kept" ]; then cp -p "$kept" "$target" && rm "$kept"
elif [ -e "$kept.none" ]; then rm -f "$target" && rm "$kept.none"; fi"#;

/// Lists the files that are laid over others.
const LAID: &str = r#"cd "$1/files" 2>/dev/null || exit 0
find . -type f | sed 's/^\.\///; s/\.none$//'"#;

/// Applies an overlay and restores files that it does not contain; returns the names of the
/// files that changed.
///
/// # Errors
/// When one can't be read or written.
pub(super) fn lay(host: &dyn Host, overlay: Option<&Overlay>) -> Result<Vec<String>, BenchError> {
    let none = BTreeMap::new();
    let wanted = overlay.map_or(&none, |overlay| &overlay.files);
    let laid = host.run(&["/bin/sh", "-c", LAID, "laid", KEPT], "")?;
    let mut changed = Vec::new();
    let mut refusals = Vec::new();
    for name in laid.lines().filter(|name| !wanted.contains_key(*name)) {
        match script(host, LIFT, [name, KEPT].into_iter()) {
            Ok(()) => changed.push(format!("/{name} is as it was")),
            Err(BenchError::Program { why, .. }) => refusals.push(format!("/{name}: {why}")),
            Err(error) => return Err(error),
        }
    }
    if !refusals.is_empty() {
        return Err(BenchError::NotPutBack {
            host: host.name().to_owned(),
            why: refusals.join("; "),
            instead: "",
            journal: format!("{KEPT}/files"),
        });
    }
    for (name, text) in wanted {
        if host.run(&["cat", &format!("/{name}")], "").is_ok_and(|found| found == *text) {
            continue;
        }
        host.run(&["/bin/sh", "-c", LAY, "lay", name, KEPT], text)?;
        changed.push(format!("/{name} is the experiment's"));
    }
    Ok(changed)
}

/// Installs a revision unless it is already installed; returns what was done.
///
/// # Errors
/// When a command fails, or the image can't be read.
pub(super) fn install(
    host: &dyn Host,
    revision: &Revision,
    experiment: &Path,
) -> Result<Vec<String>, BenchError> {
    if !is_installed_by_us(revision) || is_there(host, revision)? {
        return Ok(Vec::new());
    }
    let mut done = Vec::new();
    if let Some(image) = &revision.image {
        let (there, local) = ("/var/tmp/fwdlab-image", experiment.join(image));
        host.send_file(&local, there)?;
        let unpack = match image.rsplit('.').next() {
            Some("xz") => "xz -dc",
            Some("gz") => "gzip -dc",
            Some("zst") => "zstd -dc",
            _ => "cat",
        };
        let upgrade =
            quote(&words(&revision.upgrade)?.iter().map(String::as_str).collect::<Vec<_>>())
                .map_err(|why| BenchError::Refused(format!("upgrade: {why}")))?;
        let line = format!("{unpack} <{there} | {upgrade}; status=$?; rm -f {there}; exit $status");
        host.run(&["/bin/sh", "-c", &line], "")?;
        done.push(format!("{image} is installed"));
    }
    for command in &revision.install {
        let words = words(command)?;
        host.run(&words.iter().map(String::as_str).collect::<Vec<_>>(), "")?;
        done.push(format!("`{command}` has run"));
    }
    let mark = format!(r#"mkdir -p {KEPT} && printf '%s\n' "$1" >{KEPT}/revision"#);
    script(host, &mark, [identity(revision).as_str()].into_iter())?;
    Ok(done)
}

/// True if the DUT reports this revision; without an expected report, if it was installed last.
fn is_there(host: &dyn Host, revision: &Revision) -> Result<bool, BenchError> {
    if !revision.expect.is_empty() && !revision.verify.is_empty() {
        let said = verify(host, revision).ok().flatten().unwrap_or_default();
        return Ok(said.contains(&revision.expect));
    }
    Ok(host.get(&format!("{KEPT}/revision")).is_ok_and(|found| found == identity(revision)))
}

/// Identity of a revision: everything that installs it, on one line.
fn identity(revision: &Revision) -> String {
    serde_json::to_string(revision).unwrap_or_default()
}

fn words(command: &str) -> Result<Vec<String>, BenchError> {
    fwdlab_model::words::split(command)
        .map_err(|why| BenchError::Refused(format!("`{command}`: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_host::FakeHost;

    #[test]
    fn a_revision_that_runs_is_not_installed_again() {
        let mut host = FakeHost::default();
        host.outputs.insert("uname -v".into(), "#1 SMP abc123\n".into());
        let mut revision = Revision {
            install: vec!["dpkg -i x.deb".into()],
            verify: "uname -v".into(),
            expect: "abc123".into(),
            ..Revision::default()
        };
        assert_eq!(install(&host, &revision, Path::new(".")).expect("there"), Vec::<String>::new());
        revision.expect = "def456".into();
        let done = install(&host, &revision, Path::new(".")).expect("installed");
        assert_eq!(done, ["`dpkg -i x.deb` has run"]);
    }
}
