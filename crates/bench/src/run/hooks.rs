//! Commands of the user's around a run: `setup`, `teardown`, and `verify`, which reads back what
//! they did.

use crate::dut::findings::Findings;
use crate::error::BenchError;
use crate::host::Host;
use crate::testbed::Reach;
use fwdlab_model::settings::{Hooks, Settings};
use fwdlab_model::words;

/// What has been set up. Its end, or being dropped, takes it down.
pub(super) struct Around<'a> {
    host: &'a dyn Host,
    hooks: &'a Hooks,
    is_due: bool,
}

impl<'a> Around<'a> {
    /// Takes down what an earlier run may have left, sets up, and reads back.
    ///
    /// # Errors
    /// When a command of `setup` fails, or `verify` doesn't print what is expected. What was set
    /// up until then is taken down.
    pub(super) fn begin(
        host: &'a dyn Host,
        settings: &'a Settings,
        reach: Reach,
        findings: &mut Findings,
    ) -> Result<Around<'a>, BenchError> {
        let hooks = &settings.dut.hooks;
        let is_due = !hooks.is_default() && reach != Reach::Here { simulated: true };
        let around = Around { host, hooks, is_due };
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
            let found = run(host, &revision.verify)?;
            let found = found.split_whitespace().collect::<Vec<_>>().join(" ");
            if !found.contains(&revision.expect) {
                return Err(BenchError::environment(
                    format!(
                        "{}: `{}` says `{found}` after `setup`, and not `{}`",
                        host.name(),
                        revision.verify,
                        revision.expect
                    ),
                    "try the commands of `setup` by hand, or correct `expect`",
                ));
            }
            findings.facts.insert(format!("`{}`", revision.verify), found);
        }
        Ok(around)
    }

    /// Takes it down.
    ///
    /// # Errors
    /// When a command fails; those after it have run.
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

impl Drop for Around<'_> {
    fn drop(&mut self) {
        // Whatever ended the run is what is told.
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

    const HERE: Reach = Reach::Here { simulated: false };

    fn host(says: &str) -> FakeHost {
        let outputs = [("look".to_owned(), says.to_owned())].into();
        FakeHost { outputs, ..FakeHost::default() }
    }

    fn ran(host: &FakeHost) -> Vec<String> {
        host.commands.lock().unwrap().iter().map(|(words, _)| words.join(" ")).collect()
    }

    #[test]
    fn what_was_set_up_is_read_back_and_taken_down() {
        let (host, settings) = (host("it is\nthere"), settings("is there"));
        let mut findings = Findings::default();
        let around = Around::begin(&host, &settings, HERE, &mut findings).unwrap();
        assert_eq!(findings.facts["`look`"], "it is there");
        around.end().unwrap();
        assert_eq!(ran(&host), ["down", "up one", "up two", "look", "down"]);
    }

    #[test]
    fn what_is_not_as_expected_is_taken_down_and_named() {
        let (host, settings) = (host("nothing"), settings("is there"));
        let refused = Around::begin(&host, &settings, HERE, &mut Findings::default());
        let refused = refused.err().unwrap().to_string();
        assert!(refused.contains("`look` says `nothing`"), "{refused}");
        assert_eq!(ran(&host).last().unwrap(), "down");
    }

    #[test]
    fn what_cannot_be_set_up_is_taken_down() {
        let failures = [("up two".to_owned(), "no".to_owned())].into();
        let host = FakeHost { failures, ..host("") };
        let settings = settings("");
        assert!(Around::begin(&host, &settings, HERE, &mut Findings::default()).is_err());
        assert_eq!(ran(&host), ["down", "up one", "up two", "down"]);
    }

    #[test]
    fn nothing_is_run_for_what_is_simulated() {
        let (host, settings) = (host(""), settings(""));
        let simulated = Reach::Here { simulated: true };
        let around = Around::begin(&host, &settings, simulated, &mut Findings::default()).unwrap();
        around.end().unwrap();
        assert!(ran(&host).is_empty());
    }
}
