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

/// Directory for original files and the identity of the installed revision.
const KEPT: &str = "/var/lib/fwdlab";

/// Script that writes standard input to the file `$1`; keeps the original in `$2` the first time.
/// The backup is renamed when complete: an interrupted or failed copy is never taken for the
/// original.
const LAY: &str = r#"target=/$1 kept=$2/files/$1
mkdir -p "$(dirname "$target")" "$(dirname "$kept")" || exit 1
if [ ! -e "$kept" ] && [ ! -e "$kept.none" ]; then
if [ -e "$target" ]; then cp -p "$target" "$2/part" && mv "$2/part" "$kept"
else : >"$kept.none"; fi || { rm -f "$2/part"; exit 1; }
fi
if [ -e "$target" ]; then cat >"$target"; else cat >"$target.part" && mv "$target.part" "$target"; fi"#;

/// Script that restores the file `$1` from `$2`; a symbolic link stays one.
const LIFT: &str = r#"target=$(readlink -f "/$1") kept=$2/files/$1
if [ -e "$kept" ]; then
{ cp -p "$kept" "$target.part" && mv "$target.part" "$target"; } || { rm -f "$target.part"; exit 1; }
rm "$kept"
elif [ -e "$kept.none" ]; then rm -f "$target" && rm "$kept.none"; fi"#;

/// Script that lists the overlaid files.
const LAID: &str = r#"cd "$1/files" 2>/dev/null || exit 0
find . -type f | sed 's/^\.\///; s/\.none$//'"#;

/// Applies an overlay and restores files that it does not contain; returns the names of the files
/// that changed.
///
/// # Errors
/// Fails if a file cannot be read or written.
pub(super) fn lay(host: &dyn Host, overlay: Option<&Overlay>) -> Result<Vec<String>, BenchError> {
    let none = BTreeMap::new();
    let expected = overlay.map_or(&none, |overlay| &overlay.files);
    let overlaid = host.run(&["/bin/sh", "-c", LAID, "laid", KEPT], "")?;
    let mut changed = Vec::new();
    let mut failures = Vec::new();
    for name in overlaid.lines().filter(|name| !expected.contains_key(*name)) {
        match script(host, LIFT, [name, KEPT].into_iter()) {
            Ok(()) => changed.push(format!("/{name} is as it was")),
            Err(BenchError::Program { why, .. }) => failures.push(format!("/{name}: {why}")),
            Err(error) => return Err(error),
        }
    }
    if !failures.is_empty() {
        return Err(BenchError::NotPutBack {
            host: host.name().to_owned(),
            why: failures.join("; "),
            instead: "",
            journal: format!("{KEPT}/files"),
        });
    }
    for (name, text) in expected {
        if host.run(&["cat", &format!("/{name}")], "").is_ok_and(|found| found == *text) {
            continue;
        }
        host.run(&["/bin/sh", "-c", LAY, "lay", name, KEPT], text)?;
        changed.push(format!("/{name} is the experiment's"));
    }
    Ok(changed)
}

/// Installs a revision unless it is already installed; returns the actions taken.
///
/// # Errors
/// Fails if a command fails or the image cannot be read.
pub(super) fn install(
    host: &dyn Host,
    revision: &Revision,
    experiment: &Path,
) -> Result<Vec<String>, BenchError> {
    if !is_installed_by_us(revision) || is_installed(host, revision)? {
        return Ok(Vec::new());
    }
    let mut done = Vec::new();
    if let Some(image) = &revision.image {
        let (remote, local) = ("/var/tmp/fwdlab-image", experiment.join(image));
        host.send_file(&local, remote)?;
        let unpack = match image.rsplit('.').next() {
            Some("xz") => "xz -dc",
            Some("gz") => "gzip -dc",
            Some("zst") => "zstd -dc",
            _ => "cat",
        };
        let upgrade =
            quote(&words(&revision.upgrade)?.iter().map(String::as_str).collect::<Vec<_>>())
                .map_err(|why| BenchError::Refused(format!("upgrade: {why}")))?;
        let line =
            format!("{unpack} <{remote} | {upgrade}; status=$?; rm -f {remote}; exit $status");
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
fn is_installed(host: &dyn Host, revision: &Revision) -> Result<bool, BenchError> {
    if !revision.expect.is_empty() && !revision.verify.is_empty() {
        let output = verify(host, revision).ok().flatten().unwrap_or_default();
        return Ok(output.contains(&revision.expect));
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
    use fwdlab_host::{FakeHost, LocalHost};
    use std::fs;

    /// A directory of a test, with an overlaid file `file` and the backups below `kept`.
    struct Place {
        base: std::path::PathBuf,
    }

    impl Place {
        fn new(name: &str) -> Place {
            let name = format!("fwdlab-overlay-{name}-{}", std::process::id());
            let base = std::env::temp_dir().join(name);
            fs::create_dir_all(&base).expect("a directory");
            fs::write(base.join("file"), "original\n").expect("a file");
            Place { base }
        }

        /// Runs a script for `file`; the functions in `before` replace programs.
        fn run(&self, before: &str, text: &str, stdin: &str) -> Result<String, BenchError> {
            let kept = self.base.join("kept").display().to_string();
            let file = self.base.join("file").display().to_string();
            let text = format!("{before}\n{text}");
            let argv = ["/bin/sh", "-c", &text, "x", file.trim_start_matches('/'), &kept];
            LocalHost.run(&argv, stdin)
        }

        fn text(&self, name: &str) -> String {
            fs::read_to_string(self.base.join(name)).expect("text")
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.base);
        }
    }

    #[test]
    fn interrupted_backup_is_never_taken_for_the_original() {
        let place = Place::new("backup");
        // A full disk, and a connection that ends.
        for end in ["return 1", "kill -9 $$"] {
            let copy = format!("cp() {{ printf orig >\"$3\"; {end}; }}");
            place.run(&copy, LAY, "overlay\n").expect_err("not copied");
            place.run("", LIFT, "").expect("nothing to restore");
            assert_eq!(place.text("file"), "original\n");
        }
        place.run("", LAY, "overlay\n").expect("overlaid");
        place.run("", LAY, "another\n").expect("overlaid again");
        assert_eq!(place.text("file"), "another\n");
        let kept = place.base.join("kept").display().to_string();
        let listed = LocalHost.run(&["/bin/sh", "-c", LAID, "laid", &kept], "").expect("listed");
        assert_eq!(listed.lines().count(), 1, "{listed}");
        place.run("", LIFT, "").expect("restored");
        assert_eq!(place.text("file"), "original\n");
    }

    #[test]
    fn failed_restore_keeps_the_file_and_its_backup() {
        let place = Place::new("restore");
        let (file, behind) = (place.base.join("file"), place.base.join("behind"));
        fs::rename(&file, &behind).expect("renamed");
        std::os::unix::fs::symlink("behind", &file).expect("a link");
        place.run("", LAY, "overlay\n").expect("overlaid");
        let copy = "cp() { printf orig >\"$3\"; return 1; }";
        place.run(copy, LIFT, "").expect_err("not copied");
        assert_eq!(place.text("file"), "overlay\n");
        place.run("", LIFT, "").expect("restored");
        assert!(file.is_symlink());
        assert_eq!(place.text("behind"), "original\n");
    }

    #[test]
    fn running_revision_is_not_installed_again() {
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
