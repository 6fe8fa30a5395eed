//! All exit codes, their causes, and how errors are printed.

use crate::error::CliError;
use crate::terminal;
#[cfg(target_os = "linux")]
use fwdlab_bench::BenchError;
use fwdlab_export::ExportError;
use fwdlab_model::Diagnostics;
#[cfg(target_os = "linux")]
use fwdlab_netio::NetioError;
use fwdlab_results::compare::CompareError;
use fwdlab_results::report::ReportError;
use fwdlab_results::store::{MergeError, StoreError};
#[cfg(target_os = "linux")]
use fwdlab_routerd::RouterdError;
#[cfg(target_os = "linux")]
use fwdlab_vm::VmError;
use std::cell::Cell;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit codes of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// A difference on which the user wants the program to fail.
    Difference = 1,
    /// The user's mistake (clap uses the same number for wrong arguments).
    Mistake = 2,
    /// The environment is missing something.
    Environment = 3,
    /// The measurement can't be trusted.
    Untrustworthy = 4,
    /// A bug of fwdlab (`EX_SOFTWARE` of sysexits(3)).
    Bug = 70,
    /// With `--bisect`: this commit is neither good nor bad; git skips it.
    CannotTell = 125,
    /// With `--bisect`: a failure that is not the commit's fault; git stops.
    Stop = 128,
    /// Stopped by the user: 128 + SIGINT, as shells report it.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// The table of exit codes for the help text.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    done
  1    a difference that you asked to fail on
  2    a mistake in arguments or in a file
  3    the environment lacks something
  4    the measurement can't be trusted
  70   a bug of fwdlab
  125  with --bisect: this commit can't be told good or bad (git skips it)
  128  with --bisect: anything that says nothing of the commit (git stops)
  130  interrupted";

/// Set by a panic of any thread.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Runs a command and returns the exit code. A panic, of any thread, first
/// unwinds, so that testbeds are torn down, and then exits with the code for
/// bugs.
pub(crate) fn guarded(command: impl FnOnce() -> anyhow::Result<Exit>) -> Exit {
    panic::set_hook(Box::new(|panic| {
        PANICKED.store(true, Ordering::SeqCst);
        terminal::error(&format!(
            "this is a bug of fwdlab: {panic}\n  next step: please report it with the command \
             line and `fwdlab --version`"
        ));
    }));
    let result = panic::catch_unwind(AssertUnwindSafe(command));
    let exit = match result {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => {
            let exit = of(&error);
            print(&error, exit);
            exit
        }
        Err(_) => Exit::Bug,
    };
    if PANICKED.load(Ordering::SeqCst) { Exit::Bug } else { exit }
}

/// As [`guarded`], with the exit codes that `git bisect run` understands (git-bisect(1)). To git, 1
/// to 127 except 125 mean "bad", so 2, 3, 4 and 70 would blame a commit for a testbed failure. Only
/// an answer exits with 0 or 1; any other failure stops the search.
pub(crate) fn guarded_for_git(command: impl FnOnce() -> anyhow::Result<Exit>) -> Exit {
    let answer = Cell::new(None);
    let exit = guarded(|| {
        let exit = command()?;
        answer.set(Some(exit));
        Ok(exit)
    });
    let exit = for_git(exit, answer.get() == Some(exit));
    if exit == Exit::Stop {
        terminal::note(
            "--bisect: this says nothing of the commit, so `git bisect run` is to stop here; go on \
             with the same command when the cause is mended",
        );
    }
    exit
}

/// `is_answer`: the code comes from a completed measurement, not from an error.
fn for_git(exit: Exit, is_answer: bool) -> Exit {
    match exit {
        Exit::Done | Exit::Difference if is_answer => exit,
        Exit::Untrustworthy | Exit::CannotTell => Exit::CannotTell,
        Exit::Interrupted => exit,
        _ => Exit::Stop,
    }
}

/// Exit code of an error: the first known cause in its chain.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    error.chain().find_map(of_cause).unwrap_or(Exit::Bug)
}

fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if let Some(error) = cause.downcast_ref::<CliError>() {
        return Some(match error {
            CliError::Mistake(_) => Exit::Mistake,
            CliError::Environment(_) => Exit::Environment,
            CliError::Interrupted(_) => Exit::Interrupted,
        });
    }
    if cause.is::<Diagnostics>() {
        return Some(Exit::Mistake);
    }
    #[cfg(target_os = "linux")]
    if let Some(exit) = of_testbed(cause) {
        return Some(exit);
    }
    if let Some(error) = cause.downcast_ref::<StoreError>() {
        return Some(of_store(error));
    }
    if let Some(error) = cause.downcast_ref::<MergeError>() {
        return Some(match error {
            MergeError::Store(error) => of_store(error),
            _ => Exit::Mistake,
        });
    }
    if let Some(error) = cause.downcast_ref::<ExportError>() {
        return Some(match error {
            ExportError::Store(error) => of_store(error),
            _ => Exit::Environment,
        });
    }
    if let Some(error) = cause.downcast_ref::<ReportError>() {
        return Some(match error {
            ReportError::Store(error) => of_store(error),
            ReportError::Write { .. } => Exit::Environment,
            _ => Exit::Bug,
        });
    }
    if let Some(error) = cause.downcast_ref::<CompareError>() {
        return Some(match error {
            CompareError::Question { .. } | CompareError::Input { .. } => Exit::Mistake,
            CompareError::Read { .. } => Exit::Environment,
            CompareError::Store(error) => of_store(error),
            _ => Exit::Bug,
        });
    }
    let error = cause.downcast_ref::<io::Error>()?;
    Some(match error.kind() {
        // The reader has closed the pipe: `fwdlab show ... | head -1`.
        io::ErrorKind::BrokenPipe => Exit::Done,
        _ => Exit::Environment,
    })
}

#[cfg(target_os = "linux")]
fn of_testbed(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if let Some(error) = cause.downcast_ref::<BenchError>() {
        return Some(of_bench(error));
    }
    if let Some(error) = cause.downcast_ref::<RouterdError>() {
        return Some(match error {
            RouterdError::Mistake(_) => Exit::Mistake,
            RouterdError::Environment(_) => Exit::Environment,
        });
    }
    if let Some(error) = cause.downcast_ref::<NetioError>() {
        return match error {
            NetioError::Capture { .. } => Some(Exit::Mistake),
            NetioError::Bpf { .. } => Some(Exit::Environment),
            // Its cause decides.
            NetioError::System { .. } => None,
        };
    }
    Some(match cause.downcast_ref::<VmError>()? {
        VmError::Kernel { .. } | VmError::File { .. } => Exit::Mistake,
        VmError::Counts(_) | VmError::ForwardsNothing | VmError::Unanswered { .. } => {
            Exit::Untrustworthy
        }
        _ => Exit::Environment,
    })
}

#[cfg(target_os = "linux")]
fn of_bench(error: &BenchError) -> Exit {
    match error {
        BenchError::Refused(_) => Exit::Mistake,
        BenchError::Interrupted => Exit::Interrupted,
        BenchError::Environment { .. }
        | BenchError::Held { .. }
        | BenchError::GivenUp { .. }
        | BenchError::Program { .. }
        | BenchError::File { .. }
        | BenchError::NotPutBack { .. }
        | BenchError::Port(_) => Exit::Environment,
    }
}

fn of_store(error: &StoreError) -> Exit {
    match error {
        StoreError::OtherPlan { .. }
        | StoreError::OtherTestbed { .. }
        | StoreError::Missing { .. }
        | StoreError::NotAStore { .. }
        | StoreError::NoPlan { .. } => Exit::Mistake,
        StoreError::DuplicateRun { .. }
        | StoreError::NotPlanned { .. }
        | StoreError::NoInvocation { .. } => Exit::Bug,
        _ => Exit::Environment,
    }
}

/// Prints an error on standard error, in the style of its exit code.
fn print(error: &anyhow::Error, exit: Exit) {
    if exit == Exit::Done {
        return;
    }
    if let Some(faults) = error.downcast_ref::<Diagnostics>() {
        terminal::note(faults.render(true).trim_end());
        return;
    }
    if exit == Exit::Interrupted {
        terminal::note(&text(error));
        return;
    }
    terminal::error(&text(error));
}

/// The error with its causes, without those that it already quotes.
fn text(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |mut text, cause| {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&cause);
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn exit_table_contains_every_code() {
        let codes = [
            Exit::Done,
            Exit::Difference,
            Exit::Mistake,
            Exit::Environment,
            Exit::Untrustworthy,
            Exit::Bug,
            Exit::CannotTell,
            Exit::Stop,
            Exit::Interrupted,
        ];
        let lines: Vec<u8> = TABLE
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect();
        assert_eq!(lines, codes.map(|code| code as u8));
    }

    #[test]
    fn exit_of_error_is_its_first_known_cause() {
        let context = |error: BenchError| of(&anyhow::Error::from(error).context("run 3"));
        assert_eq!(context(BenchError::environment("no ip", "install")), Exit::Environment);
        assert_eq!(context(BenchError::Refused("no".into())), Exit::Mistake);
        assert_eq!(context(BenchError::Interrupted), Exit::Interrupted);
        let broken = Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)).context("stdout");
        assert_eq!(of(&broken.unwrap_err()), Exit::Done);
        let store = StoreError::NoInvocation { path: "x".into() };
        assert_eq!(of(&ReportError::Store(store).into()), Exit::Bug);
        assert_eq!(of(&anyhow::anyhow!("never seen")), Exit::Bug);
        let why = "cut".to_owned();
        let cut = NetioError::Capture { path: "x.pcap".into(), offset: 9, why };
        assert_eq!(of(&cut.into()), Exit::Mistake);
    }

    #[test]
    fn git_exit_is_good_or_bad_for_answers_only() {
        let all = [
            Exit::Done,
            Exit::Difference,
            Exit::Mistake,
            Exit::Environment,
            Exit::Untrustworthy,
            Exit::Bug,
            Exit::CannotTell,
            Exit::Stop,
            Exit::Interrupted,
        ];
        let codes = |is_answer| all.map(|exit| for_git(exit, is_answer) as u8);
        assert_eq!(codes(true), [0, 1, 128, 128, 125, 128, 125, 128, 130]);
        // A broken pipe counts as done in normal use; here there was no answer.
        assert_eq!(codes(false), [128, 128, 128, 128, 125, 128, 125, 128, 130]);
        let broken = || Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        assert_eq!(guarded_for_git(broken), Exit::Stop);
        let _ = panic::take_hook();
    }

    #[test]
    fn panic_exits_with_the_bug_code() {
        assert_eq!(guarded(|| Ok(Exit::Done)), Exit::Done);
        assert_eq!(guarded(|| panic!("on purpose, by a test")), Exit::Bug);
        let _ = panic::take_hook();
    }

    #[test]
    fn error_text_contains_each_cause_once() {
        let inner = || io::Error::other("disk on fire");
        let outer = CliError::Mistake("can't write x: disk on fire".into());
        assert_eq!(
            text(&anyhow::Error::from(inner()).context(outer)),
            "can't write x: disk on fire"
        );
        assert_eq!(text(&anyhow::Error::from(inner()).context("run 3")), "run 3: disk on fire");
    }
}
