//! Counts features in guests: sets each up, counts, removes it, and checks the plain path.

use super::catalogue::Feature;
use super::store::{Outcome, Plain, Stored};
use crate::command::counted_guest::{CountedGuest, GuestOptions, Subject, TrafficArguments};
use crate::progress::Stage;
use crate::terminal::duration;
use anyhow::{Error, Result};
use fwdlab_bench::host::error::BenchError;
use fwdlab_model::record::Executed;
use fwdlab_vm::VmError;
use fwdlab_vm::forwarding::Question;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Progress over all kernels; their guests run at the same time.
pub(in crate::command) struct Progress {
    stage: Mutex<Stage>,
    began: Instant,
    done: Mutex<usize>,
    total: usize,
}

impl Progress {
    /// Shows progress towards `total` counts.
    pub(in crate::command) fn new(total: usize) -> Progress {
        let stage = Mutex::new(Stage::new());
        Progress { stage, began: Instant::now(), done: Mutex::new(0), total }
    }

    fn begin(&self, what: &str) {
        let done = *self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let left = match done {
            0 => String::new(),
            _ => {
                let left = self.total.saturating_sub(done) as f64 / done as f64;
                let left = self.began.elapsed().mul_f64(left);
                format!(", {} left", duration(left.as_nanos() as u64))
            }
        };
        let text = format!("{what} ({done} of {}{left})", self.total);
        self.stage.lock().unwrap_or_else(PoisonError::into_inner).begin(&text);
    }

    fn add(&self) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }
}

/// Counts plain forwarding of a kernel and the features that its list lacks, and stores each. A guest
/// that died, or does not forward as before after a feature was removed, is replaced with a new one.
/// A feature that could not be counted is tried a second time.
///
/// # Errors
/// If a guest doesn't boot or forward plainly, a result can't be stored, or another process counts
/// this kernel.
pub(in crate::command) fn measure(
    subject: &Subject,
    options: GuestOptions<'_>,
    traffic: &TrafficArguments,
    features: &[Feature],
    stored: &mut Stored,
    progress: &Progress,
) -> Result<()> {
    if stored.missing(features).is_empty() && !stored.list.boots.is_empty() {
        return Ok(());
    }
    let _lock = stored.lock()?;
    let mut has_failed = false;
    loop {
        let missing = stored.missing(features);
        if missing.is_empty() && !stored.list.boots.is_empty() {
            return Ok(());
        }
        match in_one_boot(subject, options, traffic, &missing, stored, progress) {
            Ok(()) => has_failed = false,
            // As of a port that another program took, or a busy machine.
            Err(_) if !has_failed => has_failed = true,
            Err(error) => return Err(error),
        }
    }
}

/// Counts plain forwarding, and features until all are counted or the guest is no longer as before:
/// at least one.
fn in_one_boot(
    subject: &Subject,
    options: GuestOptions<'_>,
    traffic: &TrafficArguments,
    features: &[&Feature],
    stored: &mut Stored,
    progress: &Progress,
) -> Result<()> {
    let name = &subject.name;
    progress.begin(&format!("{name}: booting"));
    let guest = CountedGuest::boot(subject, options, traffic.family)?;
    let question = traffic.question();
    progress.begin(&format!("{name}: plain"));
    // The first count contains rare events after a boot.
    count(&guest, &question)?;
    let Counted { executed: first, sent, lost } = count(&guest, &question)?;
    stored.list.release.clone_from(&guest.release);
    stored.list.build.clone_from(&guest.build);
    stored.list.boots.push(Plain::new(&first, (sent, lost)));
    stored.save()?;
    let (boot, mut plain) = (stored.list.boots.len() - 1, first);
    for (number, feature) in features.iter().enumerate() {
        progress.begin(&format!("{name}: {}", feature.name));
        let (family, interfaces) = (traffic.family, guest.interfaces());
        let question = Question {
            is_encrypted: feature.encrypts,
            has_answers: feature.answers,
            port_offset: if feature.answers { number as u16 + 1 } else { 0 },
            ..question
        };
        let set_up = guest.run(&feature.set_up(family, interfaces), "");
        let is_refused = set_up.as_ref().is_err_and(is_refusal);
        let counted = set_up.and_then(|_| count(&guest, &question));
        // A failure to undo shows in the next count.
        let _ = guest.run(&feature.undo(family, interfaces), "");
        match counted {
            Ok(found) => {
                let Counted { executed, sent, lost } = found;
                let (plain, executed) = (Box::new(plain.clone()), Box::new(executed));
                stored.add(feature, Outcome::Counted { plain, executed, sent, lost });
                progress.add();
            }
            Err(error) if is_refused => {
                stored.add(feature, Outcome::Absent { why: why(&error) });
                progress.add();
            }
            Err(error) => {
                let is_last = stored.add_failure(feature, why(&error));
                let is_stopped = matches!(
                    error.downcast_ref::<VmError>(),
                    Some(VmError::ForwardsNothing | VmError::Unanswered { .. })
                );
                if is_last && is_stopped {
                    stored.add(feature, Outcome::Absent { why: why(&error) });
                }
                if is_last {
                    progress.add();
                }
            }
        }
        let after = count(&guest, &traffic.question());
        let is_as_before = after.is_ok_and(|after| {
            plain = after.executed;
            stored.list.boots[boot].check(feature, &plain)
        });
        stored.save()?;
        if !is_as_before {
            break;
        }
    }
    Ok(())
}

/// Counts of one measurement.
struct Counted {
    executed: Executed,
    /// Packets sent while counting, and the number lost of them.
    sent: u64,
    lost: u64,
}

fn count(guest: &CountedGuest, question: &Question) -> Result<Counted> {
    let boot = guest.count(question, &mut |_| ())?;
    Ok(Counted { executed: boot.executed, sent: boot.sent, lost: boot.lost })
}

/// True if a command that sets a feature up failed by itself. A program that is missing (126, 127)
/// or was killed (from 128 on) is no property of the kernel.
fn is_refusal(error: &Error) -> bool {
    let Some(BenchError::Program { why, .. }) = error.downcast_ref() else { return false };
    let status = why.strip_prefix("exit status ").map(|rest| rest.split([':', ' ']).next());
    status.flatten().and_then(|status| status.parse::<u32>().ok()).is_some_and(|it| it < 126)
}

/// The reason in one line.
fn why(error: &Error) -> String {
    match error.downcast_ref::<BenchError>() {
        Some(BenchError::Program { why, .. }) => why.replace('\n', "; "),
        _ => format!("{error:#}").lines().next().unwrap_or("no reason").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failed_command_is_a_refusal() {
        let error = |why: &str| {
            let (command, host, why) = ("sh".to_owned(), "dut".to_owned(), why.to_owned());
            Error::new(BenchError::Program { command, host, why })
        };
        assert!(is_refusal(&error("exit status 2: RTNETLINK answers: Operation not supported")));
        assert!(is_refusal(&error("exit status 1")));
        for why in ["exit status 127: tc: not found", "exit status 137", "killed after 120 s"] {
            assert!(!is_refusal(&error(why)), "{why}");
        }
        assert!(!is_refusal(&Error::new(VmError::ForwardsNothing)));
    }
}
