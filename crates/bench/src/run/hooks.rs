//! User commands around a run: `setup`, `teardown`, and `verify`, which reads back the result of
//! the setup.

use crate::dut::findings::Findings;
use crate::error::BenchError;
use crate::host::Host;
use crate::testbed::RigLocation;
use fwdlab_model::settings::{Hooks, Settings};
use fwdlab_model::words;

/// Guard of a user's setup. Ending or dropping it runs `teardown`.
pub(super) struct SetupGuard<'a> {
    host: &'a dyn Host,
    hooks: &'a Hooks,
    is_due: bool,
}

impl<'a> SetupGuard<'a> {
    /// Runs `teardown` for remains of an earlier run, then `setup`, and verifies the result.
    ///
    /// # Errors
    /// Returns an error if a command of `setup` fails, or `verify` does not print the expected
    /// text. The parts that were set up until then are taken down.
    pub(super) fn begin(
        host: &'a dyn Host,
        settings: &'a Settings,
        reach: RigLocation,
        findings: &mut Findings,
    ) -> Result<SetupGuard<'a>, BenchError> {
        let hooks = &settings.dut.hooks;
        let is_due = !hooks.is_default() && reach != RigLocation::Here { simulated: true };
        let around = SetupGuard { host, hooks, is_due };
        if !is_due {
            return Ok(around);
        }
        for command in &hooks.teardown {
            // There may be nothing to take down.
            let _ = run(host, command);
        }
        for command in &hooks.setup {
            run(host, command)?;
        }
        let revision = settings.dut.remote.revision.as_ref();
        let Some(revision) = revision.filter(|_| !hooks.setup.is_empty()) else {
            return Ok(around);
        };
        if !revision.verify.is_empty() {
            let output = run(host, &revision.verify)?;
            let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
            if !output.contains(&revision.expect) {
                return Err(BenchError::environment(
                    format!(
                        "{}: `{}` prints `{output}` after `setup`, not `{}`",
                        host.name(),
                        revision.verify,
                        revision.expect
                    ),
                    "try the commands of `setup` by hand, or correct `expect`",
                ));
            }
            findings.facts.insert(format!("`{}`", revision.verify), output);
        }
        Ok(around)
    }

    /// Takes the setup down.
    ///
    /// # Errors
    /// Returns the error of the first command that fails; the commands after it still run.
    pub(super) fn end(mut self) -> Result<(), BenchError> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<(), BenchError> {
        let mut result = Ok(());
        if std::mem::take(&mut self.is_due) {
            for command in &self.hooks.teardown {
                let ended = run(self.host, command).map(drop);
                result = result.and(ended);
            }
        }
        result
    }
}

impl Drop for SetupGuard<'_> {
    fn drop(&mut self) {
        // The error that ended the run is the one to report.
        let _ = self.take_down();
    }
}

fn run(host: &dyn Host, command: &str) -> Result<String, BenchError> {
    let words =
        words::split(command).map_err(|why| BenchError::Refused(format!("`{command}`: {why}")))?;
    host.run(&words.iter().map(String::as_str).collect::<Vec<_>>(), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FakeHost;
    use fwdlab_model::settings::Revision;

    fn settings(expect: &str) -> Settings {
        let mut settings = Settings::default();
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        settings.dut.hooks =
            Hooks { setup: list(&["up one", "up two"]), teardown: list(&["down"]) };
        settings.dut.remote.revision =
            Some(Revision { verify: "look".into(), expect: expect.into(), ..Revision::default() });
        settings
    }

    const HERE: RigLocation = RigLocation::Here { simulated: false };

    fn host(output: &str) -> FakeHost {
        let outputs = [("look".to_owned(), output.to_owned())].into();
        FakeHost { outputs, ..FakeHost::default() }
    }

    fn commands_of(host: &FakeHost) -> Vec<String> {
        host.commands.lock().unwrap().iter().map(|(words, _)| words.join(" ")).collect()
    }

    #[test]
    fn setup_is_verified_and_taken_down() {
        let (host, settings) = (host("it is\nthere"), settings("is there"));
        let mut findings = Findings::default();
        let around = SetupGuard::begin(&host, &settings, HERE, &mut findings).unwrap();
        assert_eq!(findings.facts["`look`"], "it is there");
        around.end().unwrap();
        assert_eq!(commands_of(&host), ["down", "up one", "up two", "look", "down"]);
    }

    #[test]
    fn failed_verification_is_reported_and_taken_down() {
        let (host, settings) = (host("nothing"), settings("is there"));
        let error = SetupGuard::begin(&host, &settings, HERE, &mut Findings::default());
        let error = error.err().unwrap().to_string();
        assert!(error.contains("`look` prints `nothing`"), "{error}");
        assert_eq!(commands_of(&host).last().unwrap(), "down");
    }

    #[test]
    fn failed_setup_is_taken_down() {
        let failures = [("up two".to_owned(), "no".to_owned())].into();
        let host = FakeHost { failures, ..host("") };
        let settings = settings("");
        assert!(SetupGuard::begin(&host, &settings, HERE, &mut Findings::default()).is_err());
        assert_eq!(commands_of(&host), ["down", "up one", "up two", "down"]);
    }

    #[test]
    fn simulated_testbed_runs_no_commands() {
        let (host, settings) = (host(""), settings(""));
        let simulated = RigLocation::Here { simulated: true };
        let around =
            SetupGuard::begin(&host, &settings, simulated, &mut Findings::default()).unwrap();
        around.end().unwrap();
        assert!(commands_of(&host).is_empty());
    }
}
