//! The revision that runs on a DUT, from the user's own command (`verify`), on any system.

use super::findings::Findings;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::settings::Revision;
use fwdlab_model::words;

/// True if the experiment specifies how to install the revision on the DUT.
pub(super) fn is_installed_by_us(revision: &Revision) -> bool {
    revision.image.is_some() || !revision.install.is_empty()
}

/// Output of `verify`, on one line; `None` if there is no such command.
///
/// # Errors
/// Fails if the command fails.
pub(super) fn verify(host: &dyn Host, revision: &Revision) -> Result<Option<String>, BenchError> {
    if revision.verify.trim().is_empty() {
        return Ok(None);
    }
    let words = words::split(&revision.verify)
        .map_err(|why| BenchError::Refused(format!("revision.verify: {why}")))?;
    let output = host.run(&words.iter().map(String::as_str).collect::<Vec<_>>(), "")?;
    Ok(Some(output.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Records the running revision.
///
/// # Errors
/// Fails if it is not the expected one, or the DUT does not report it.
pub(super) fn read_back(
    host: &dyn Host,
    revision: &Revision,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let Some(output) = verify(host, revision)? else { return Ok(()) };
    if output.contains(&revision.expect) {
        findings.facts.insert("revision".into(), output);
        return Ok(());
    }
    let (when, next) = match is_installed_by_us(revision) {
        true => (
            " after the revision was installed",
            "run the commands of `install` and `upgrade` by hand, or correct `expect`",
        ),
        false => (
            "",
            "correct `setup` or `expect`, or name the commands that install the revision \
             (`install`, a line of `loader`)",
        ),
    };
    let (name, verify, expect) = (host.name(), &revision.verify, &revision.expect);
    Err(BenchError::environment(
        format!("{name}: `{verify}` prints `{output}`{when}, not `{expect}`"),
        next,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_host::FakeHost;

    #[test]
    fn unexpected_revision_is_an_error_with_or_without_an_installer() {
        let mut host = FakeHost::default();
        host.outputs.insert("uname -v".into(), "#1  SMP abc123\n".into());
        let (mut findings, verify) = (Findings::default(), "uname -v".to_owned());
        let mut revision = Revision { verify, ..Revision::default() };
        let mut read_back_revision = |expect: &str, install: &str| {
            revision.expect = expect.into();
            revision.install = install.split_terminator('\n').map(str::to_owned).collect();
            read_back(&host, &revision, &mut findings).map_err(|error| error.to_string())
        };
        for expect in ["", "abc"] {
            read_back_revision(expect, "").expect("it runs");
        }
        let error = read_back_revision("def456", "dpkg -i x.deb").expect_err("another runs");
        assert!(
            error.contains("prints `#1 SMP abc123` after the revision was installed"),
            "{error}"
        );
        let error = read_back_revision("def456", "").expect_err("another runs");
        assert!(error.contains("prints `#1 SMP abc123`, not `def456`"), "{error}");
        assert!(error.contains("`install`"), "{error}");
        assert_eq!(findings.facts["revision"], "#1 SMP abc123");
        revision.verify.clear();
        read_back(&host, &revision, &mut findings).expect("nothing to verify");
    }
}
