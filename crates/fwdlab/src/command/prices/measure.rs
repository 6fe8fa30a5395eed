//! Counts features in guests: sets each up, counts, removes it, and checks the plain path.

use super::catalogue::Feature;
use super::store::{Outcome, Plain, Stored, total};
use crate::command::counted_guest::{CountedGuest, GuestOptions, Subject, TrafficArguments};
use crate::progress::Stage;
use crate::terminal::duration;
use anyhow::{Context, Result};
use fwdlab_bench::host::error::BenchError;
use fwdlab_model::record::Executed;
use fwdlab_vm::forwarding::Question;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Progress over all kernels; their guests run at the same time.
pub(super) struct Progress {
    stage: Mutex<Stage>,
    began: Instant,
    done: Mutex<usize>,
    total: usize,
}

impl Progress {
    /// Shows progress towards `total` counts.
    pub(super) fn new(total: usize) -> Progress {
        let stage = Mutex::new(Stage::new());
        Progress { stage, began: Instant::now(), done: Mutex::new(0), total }
    }

    fn begin(&self, what: &str) {
        let done = *self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let left = match done {
            0 => String::new(),
            _ => {
                let left = self.began.elapsed().mul_f64((self.total - done) as f64 / done as f64);
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

/// Counts the features of a kernel that its list lacks, and stores each. A guest that does not
/// forward as before after a feature was removed is replaced with a new one.
///
/// # Errors
/// If a guest doesn't boot or forward plainly, or a result can't be stored.
pub(super) fn measure(
    subject: &Subject,
    options: GuestOptions<'_>,
    traffic: &TrafficArguments,
    features: &[Feature],
    stored: &mut Stored,
    progress: &Progress,
) -> Result<()> {
    loop {
        let missing = stored.missing(features);
        if missing.is_empty() {
            return Ok(());
        }
        in_one_boot(subject, options, traffic, &missing, stored, progress)?;
    }
}

/// Counts features until all are counted or one leaves traces: at least one.
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
    let first = count(&guest, &question)?.0;
    stored.list.release.clone_from(&guest.release);
    stored.list.build.clone_from(&guest.build);
    stored.list.boots.push(Plain { first, checks: Vec::new() });
    let boot = stored.list.boots.len() - 1;
    for feature in features {
        progress.begin(&format!("{name}: {}", feature.name));
        let outcome = price(&guest, traffic, feature, boot)?;
        // A guest that no longer forwards as before would falsify all further counts.
        let after = total(&count(&guest, &question)?.0);
        let plain = &mut stored.list.boots[boot];
        plain.checks.push((feature.name.clone(), after));
        let is_trace = plain.is_trace(after);
        stored.list.add(feature, outcome);
        stored.save()?;
        progress.add();
        if is_trace {
            break;
        }
    }
    Ok(())
}

/// Counts once; returns the packets sent and lost with the counts.
fn count(guest: &CountedGuest, question: &Question) -> Result<(Executed, u64, u64)> {
    let boot = guest.count(question, &mut |_| ())?;
    Ok((boot.executed, boot.sent, boot.lost))
}

/// Counts with a feature, and removes it. A feature that can't be set up is absent; one that stops
/// forwarding also is.
fn price(
    guest: &CountedGuest,
    traffic: &TrafficArguments,
    feature: &Feature,
    boot: usize,
) -> Result<Outcome> {
    let (family, interfaces) = (traffic.family, guest.interfaces());
    let set_up = guest.run(&feature.set_up(family, interfaces), "");
    let question = Question { is_encrypted: feature.encrypts, ..traffic.question() };
    let counted = set_up.and_then(|_| count(guest, &question));
    let undone = guest.run(&feature.undo(family, interfaces), "");
    undone.with_context(|| format!("removing {}", feature.name))?;
    Ok(match counted {
        Ok((executed, sent, lost)) => Outcome::Counted { executed, sent, lost, boot },
        Err(error) => Outcome::Absent { why: why(&error) },
    })
}

/// The reason in one line: the last words of a failed command.
fn why(error: &anyhow::Error) -> String {
    let text = match error.downcast_ref::<BenchError>() {
        Some(BenchError::Program { why, .. }) => why.clone(),
        _ => format!("{error:#}"),
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut lines = lines.filter(|line| !line.starts_with("next step"));
    lines.next_back().unwrap_or("no reason").to_owned()
}
