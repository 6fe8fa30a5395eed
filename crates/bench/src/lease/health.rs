//! Health of a laboratory's hosts: a host marked sick is not taken.
//!
//! The mark is stored on the host itself, visible to every laboratory that contains the host; for
//! an unreachable host, on the laboratory's other hosts, under the host's name.

use super::Shared;
use super::owner::person;
use super::reach::{is_host, reach};
use super::script::{Ledger, Mark};
use crate::error::BenchError;
use crate::host::SshSettings;
use crate::host::connected::ConnectedHost;
use fwdlab_model::Lab;
use fwdlab_model::lab::LabHost;

/// Name of a host's mark on the host itself.
const OWN: &str = "sick";

/// Name of the mark of one host on the laboratory's other hosts.
pub(super) fn of_other(lab: &str, host: &str) -> String {
    format!("{OWN}-{lab}.{host}")
}

/// Finds the mark of a laboratory's host among the marks on a host; `is_its_own` if both are the
/// same host.
pub(super) fn find<'a>(
    marks: &'a [Mark],
    lab: &str,
    host: &str,
    is_its_own: bool,
) -> Option<&'a Mark> {
    let name = of_other(lab, host);
    marks.iter().find(|mark| (is_its_own && mark.name == OWN) || mark.name == name)
}

/// Fails if one of the hosts is sick.
///
/// # Errors
/// Names the first sick host and the reason.
pub(super) fn judge(shared: &Shared, lab: &str) -> Result<(), BenchError> {
    let records = shared.hosts.iter().map(|held| held.ledger.show(held.host.as_ref()));
    let records = records.collect::<Result<Vec<_>, _>>()?;
    for (index, held) in shared.hosts.iter().enumerate() {
        let marks = records.iter().enumerate();
        let mut marks = marks
            .filter_map(|(keeper, record)| find(&record.marks, lab, &held.name, keeper == index));
        if let Some(Mark { by, why, .. }) = marks.next() {
            return Err(BenchError::environment(
                format!("{} is marked sick, by {by}: {why}", held.name),
                format!("mend it, then `fwdlab lab mark LAB {} well`", held.name),
            ));
        }
    }
    Ok(())
}

/// Marks a host of a laboratory as sick, using these reachable hosts. Returns the names of the
/// hosts that store the mark.
///
/// # Errors
/// Fails if no host can store it.
pub(crate) fn mark_sick(
    hosts: &[&ConnectedHost],
    lab: &str,
    name: &str,
    why: &str,
) -> Result<Vec<String>, BenchError> {
    let by = person();
    let mark = |connected: &ConnectedHost, mark: &str| {
        let marked = Ledger::of(connected.system).mark(connected.host(), mark, &by, Some(why));
        marked.map(|()| connected.described.name.clone())
    };
    let (own_host, others): (Vec<&ConnectedHost>, Vec<&ConnectedHost>) =
        hosts.iter().partition(|connected| connected.described.name == name);
    let mut results: Vec<_> = own_host.into_iter().map(|connected| mark(connected, OWN)).collect();
    if !results.iter().any(Result::is_ok) {
        let of_other = of_other(lab, name);
        results.extend(others.into_iter().map(|connected| mark(connected, &of_other)));
    }
    let mut stored = Vec::new();
    let mut failed = None;
    for results in results {
        match results {
            Ok(name) => stored.push(name),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if stored.is_empty() => Err(error),
        _ => Ok(stored),
    }
}

/// Marks a host as sick, with the reason, or as well if `why` is `None`. Returns the hosts that
/// store the mark: the laboratory's other hosts if it cannot be reached, and none for a host marked
/// well.
///
/// # Errors
/// Fails if there is no such host, the reason is blank, no host can store the mark, or a host
/// cannot be reached to remove it.
pub fn mark(
    lab: &Lab,
    settings: &SshSettings,
    name: &str,
    why: Option<&str>,
) -> Result<Vec<String>, BenchError> {
    let target = is_host(lab, name)?;
    let Some(why) = why else {
        let (by, of_other) = (person(), of_other(&lab.name, name));
        let removed = reach(lab.hosts.iter(), settings, |host, connected| {
            let connected = connected?;
            let ledger = Ledger::of(connected.system);
            ledger.mark(connected.host(), &of_other, &by, None)?;
            if host.name == name {
                ledger.mark(connected.host(), OWN, &by, None)?;
            }
            Ok(())
        });
        return removed.into_iter().collect::<Result<Vec<()>, _>>().map(|_| Vec::new());
    };
    if why.trim().is_empty() {
        return Err(BenchError::Refused(format!(
            "nothing says why {name} is sick\n  next step: give a reason, which others read"
        )));
    }
    let write = |_: &LabHost, connected: Result<&ConnectedHost, BenchError>| {
        connected.and_then(|connected| mark_sick(&[connected], &lab.name, name, why))
    };
    let mut results = reach(std::iter::once(target), settings, write);
    if results.iter().all(Result::is_err) {
        let others = lab.hosts.iter().filter(|host| host.name != name);
        results.extend(reach(others, settings, write));
    }
    let (mut stored, mut failed) = (Vec::new(), None);
    for results in results {
        match results {
            Ok(names) => stored.extend(names),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match failed {
        Some(error) if stored.is_empty() => Err(error),
        _ => Ok(stored),
    }
}
