//! The health of a laboratory's hosts: one that is marked sick is not taken.
//!
//! A mark lies on the host itself, where every laboratory sees it that the host belongs to; of
//! a host that can't be reached on the laboratory's other hosts, by its name.

use super::Shared;
use super::owner::person;
use super::reach::{is_host, reach};
use super::script::{Ledger, Mark};
use crate::error::BenchError;
use crate::host::SshSettings;
use crate::host::connected::ConnectedHost;
use fwdlab_model::Lab;
use fwdlab_model::lab::LabHost;

/// Name of a host's mark of its own.
const OWN: &str = "sick";

/// Name of the mark that a laboratory's other hosts keep of one.
pub(super) fn of_other(lab: &str, host: &str) -> String {
    format!("{OWN}-{lab}.{host}")
}

/// The mark of a host of a laboratory, among those that a host keeps; `is_its_own` when that
/// is the host itself.
pub(super) fn find<'a>(
    marks: &'a [Mark],
    lab: &str,
    host: &str,
    is_its_own: bool,
) -> Option<&'a Mark> {
    let name = of_other(lab, host);
    marks.iter().find(|mark| (is_its_own && mark.name == OWN) || mark.name == name)
}

/// None of the hosts is sick.
///
/// # Errors
/// Names the first that is, and why.
pub(super) fn judge(shared: &Shared, lab: &str) -> Result<(), BenchError> {
    let seen = shared.hosts.iter().map(|held| held.ledger.show(held.host.as_ref()));
    let seen = seen.collect::<Result<Vec<_>, _>>()?;
    for (index, held) in shared.hosts.iter().enumerate() {
        let marks = seen.iter().enumerate();
        let mut marks =
            marks.filter_map(|(keeper, seen)| find(&seen.marks, lab, &held.name, keeper == index));
        if let Some(Mark { by, why, .. }) = marks.next() {
            return Err(BenchError::environment(
                format!("{} is marked sick, by {by}: {why}", held.name),
                format!("mend it, then `fwdlab lab mark LAB {} well`", held.name),
            ));
        }
    }
    Ok(())
}

/// Marks a host of a laboratory, of which these can be reached, as sick. Returns the names of
/// those that keep the mark.
///
/// # Errors
/// When none can.
pub(crate) fn mark_sick(
    hosts: &[&ConnectedHost],
    lab: &str,
    name: &str,
    why: &str,
) -> Result<Vec<String>, BenchError> {
    let by = person();
    let mark = |reached: &ConnectedHost, mark: &str| {
        let marked = Ledger::of(reached.system).mark(reached.host(), mark, &by, Some(why));
        marked.map(|()| reached.described.name.clone())
    };
    let (own, others): (Vec<&ConnectedHost>, Vec<&ConnectedHost>) =
        hosts.iter().partition(|reached| reached.described.name == name);
    let mut tried: Vec<_> = own.into_iter().map(|reached| mark(reached, OWN)).collect();
    if !tried.iter().any(Result::is_ok) {
        let of_other = of_other(lab, name);
        tried.extend(others.into_iter().map(|reached| mark(reached, &of_other)));
    }
    let mut kept = Vec::new();
    let mut failed = None;
    for tried in tried {
        match tried {
            Ok(name) => kept.push(name),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if kept.is_empty() => Err(error),
        _ => Ok(kept),
    }
}

/// Marks a host as sick, with the reason, or without one as well. Returns the hosts that keep
/// the mark: where it can't be reached the laboratory's others, and none for one that is well.
///
/// # Errors
/// When there is no such host, the reason is blank, no host can keep the mark, or one can't be
/// asked to forget it.
pub fn mark(
    lab: &Lab,
    settings: &SshSettings,
    name: &str,
    why: Option<&str>,
) -> Result<Vec<String>, BenchError> {
    let marked = is_host(lab, name)?;
    let Some(why) = why else {
        let (by, of_other) = (person(), of_other(&lab.name, name));
        let forgot = reach(lab.hosts.iter(), settings, |host, reached| {
            let reached = reached?;
            let ledger = Ledger::of(reached.system);
            ledger.mark(reached.host(), &of_other, &by, None)?;
            if host.name == name {
                ledger.mark(reached.host(), OWN, &by, None)?;
            }
            Ok(())
        });
        return forgot.into_iter().collect::<Result<Vec<()>, _>>().map(|_| Vec::new());
    };
    if why.trim().is_empty() {
        return Err(BenchError::Refused(format!(
            "nothing says why {name} is sick\n  next step: give a reason, which others read"
        )));
    }
    let write = |_: &LabHost, reached: Result<&ConnectedHost, BenchError>| {
        reached.and_then(|reached| mark_sick(&[reached], &lab.name, name, why))
    };
    let mut tried = reach(std::iter::once(marked), settings, write);
    if tried.iter().all(Result::is_err) {
        let others = lab.hosts.iter().filter(|host| host.name != name);
        tried.extend(reach(others, settings, write));
    }
    let (mut kept, mut failed) = (Vec::new(), None);
    for tried in tried {
        match tried {
            Ok(names) => kept.extend(names),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match failed {
        Some(error) if kept.is_empty() => Err(error),
        _ => Ok(kept),
    }
}
