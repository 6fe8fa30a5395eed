//! Skips: how a test reports that this machine cannot run it.
//!
//! libtest has no skipped tests and captures the output of those that pass. A skip is
//! therefore recorded outside of libtest: in the file that `FWDLAB_SKIPPED` names, from which
//! `cargo xtask test` counts skips, or else on standard error, past the capture.
//!
//! A record is a line of four fields, separated by tabs: program, test, kind, reason. The name
//! of the thread is the name of the test, so call these functions on the test's own thread.

use std::fs::OpenOptions;
use std::io::Write;

/// Environment variable that names the file of skip records.
const RECORDS: &str = "FWDLAB_SKIPPED";

/// Extent of a skip.
#[derive(Clone, Copy)]
enum Kind {
    /// The test asserted nothing, or not the property it is named for.
    Skipped,
    /// The test asserted everything but one part.
    Reduced,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Skipped => "skipped",
            Kind::Reduced => "reduced",
        }
    }
}

/// Returns true if a skip is a failure: `FWDLAB_CI=1`.
#[must_use]
pub fn in_ci() -> bool {
    std::env::var_os("FWDLAB_CI").is_some_and(|value| value == "1")
}

/// Records that this machine cannot run the calling test; the test then returns.
///
/// # Panics
/// In continuous integration ([`in_ci`]).
pub fn skip(reason: &str) {
    assert!(!in_ci(), "cannot run in CI: {reason}");
    record(Kind::Skipped, reason);
}

/// Records that the calling test omits one part here, such as one shell of several.
///
/// # Panics
/// In continuous integration ([`in_ci`]).
pub fn skip_part(reason: &str) {
    assert!(!in_ci(), "cannot run completely in CI: {reason}");
    record(Kind::Reduced, reason);
}

/// Like [`skip`], for data that the repository does not contain: never a failure.
pub fn skip_without_data(reason: &str) {
    record(Kind::Skipped, reason);
}

/// Like [`skip_part`], for data that the repository does not contain: never a failure.
pub fn skip_part_without_data(reason: &str) {
    record(Kind::Reduced, reason);
}

fn record(kind: Kind, reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    // One line without tabs, so that a record stays a record.
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("{}\t{test}\t{}\t{reason}\n", program(), kind.name());
    if append(&line).is_none() {
        let note = format!("{}: {test}: {reason}\n", kind.name().to_uppercase());
        // Standard error may be closed; the test has nothing else to report this to.
        let _ = std::io::stderr().write_all(note.as_bytes());
    }
}

/// Appends a record in one write, because several programs may share the file.
fn append(line: &str) -> Option<()> {
    let path = std::env::var_os(RECORDS)?;
    let mut file = OpenOptions::new().append(true).create(true).open(path).ok()?;
    file.write_all(line.as_bytes()).ok()
}

/// Returns the name of this program's file.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Set in the child process: the function to call.
    const CALL: &str = "FWDLAB_TESTDATA_CALL";

    /// Runs [`child`] in a separate process and returns its exit success, its standard error and
    /// its records.
    fn run(call: &str, ci: bool, records: bool) -> (bool, String, String) {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "skip::tests::child"]).env(CALL, call);
        command.env_remove("FWDLAB_CI").env_remove(super::RECORDS);
        if ci {
            command.env("FWDLAB_CI", "1");
        }
        if records {
            command.env(super::RECORDS, file.path());
        }
        let output = command.output().expect("this program runs");
        let written = std::fs::read_to_string(file.path()).expect("records");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), stderr, written)
    }

    #[test]
    fn child() {
        match std::env::var(CALL).as_deref() {
            Ok("skip") => super::skip("no\ttool"),
            Ok("part") => super::skip_part("no shell"),
            Ok("data") => super::skip_without_data("no image"),
            Ok("part data") => super::skip_part_without_data("no logs"),
            _ => {}
        }
    }

    #[test]
    fn skip_bypasses_the_capture_of_libtest() {
        let (success, stderr, written) = run("skip", false, false);
        assert!(success && written.is_empty());
        assert_eq!(stderr, "SKIPPED: skip::tests::child: no tool\n");
    }

    #[test]
    fn skip_appends_a_record_to_the_named_file() {
        for (call, end) in [
            ("skip", "\tskip::tests::child\tskipped\tno tool\n"),
            ("part", "\tskip::tests::child\treduced\tno shell\n"),
            ("data", "\tskip::tests::child\tskipped\tno image\n"),
            ("part data", "\tskip::tests::child\treduced\tno logs\n"),
        ] {
            let (success, stderr, written) = run(call, false, true);
            assert!(success && stderr.is_empty(), "{call}: {stderr}");
            assert!(written.starts_with("fwdlab_testdata-") && written.ends_with(end), "{written}");
        }
    }

    #[test]
    fn skip_fails_in_ci_unless_data_is_missing() {
        for (call, expected) in [("skip", false), ("part", false), ("data", true), ("", true)] {
            assert_eq!(run(call, true, true).0, expected, "{call}");
        }
    }
}
