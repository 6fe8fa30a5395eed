//! Holders of a laboratory's hosts, queried from outside, and leases ended by hand.

use super::health::find;
use super::owner::{is_gone, named};
use super::reach::{is_host, reach};
use super::script::{Holder, LeaseRecord, Ledger, Mark};
use crate::error::BenchError;
use crate::host::SshSettings;
use crate::host::connected::ConnectedHost;
use fwdlab_model::Lab;
use serde::Serialize;

/// State of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// No one holds it.
    Free,
    /// A controller holds it.
    Held,
    /// Its holder has ended, or has not renewed it in time: the next controller takes it.
    Dead,
    /// The host cannot be queried.
    Unknown,
}

/// The lease of one host, and its health.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostLease {
    /// Name in the lab file.
    pub host: String,
    /// State of the lease.
    pub state: State,
    /// Current holder, or the last one if it did not release the lease.
    pub holder: Option<Holder>,
    /// End of the lease unless renewed, seconds since 1970 by the host's clock.
    pub until_s: Option<i64>,
    /// Mark of a sick host.
    pub sick: Option<Mark>,
    /// Reason why the state is unknown.
    pub trouble: Option<String>,
}

/// Result of ending a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FreeResult {
    /// Name in the lab file.
    pub host: String,
    /// True if no one holds the host now.
    pub is_free: bool,
    /// Action taken, or the reason for none.
    pub said: String,
}

fn state(record: &LeaseRecord) -> State {
    match &record.holder {
        None => State::Free,
        Some(holder) if holder.left_s <= 0.0 || is_gone(&holder.owner) => State::Dead,
        Some(_) => State::Held,
    }
}

/// Queries every host; results are in the order of the file.
pub fn survey(lab: &Lab, settings: &SshSettings) -> Vec<HostLease> {
    let records: Vec<Result<LeaseRecord, BenchError>> =
        reach(lab.hosts.iter(), settings, |_, connected| {
            connected.and_then(|host| Ledger::of(host.system).show(host.host()))
        });
    let marks: Vec<(usize, &Mark)> = records
        .iter()
        .enumerate()
        .flat_map(|(keeper, record)| {
            record.iter().flat_map(move |record| &record.marks).map(move |m| (keeper, m))
        })
        .collect();
    let leases = lab.hosts.iter().zip(&records).enumerate().map(|(index, (host, record))| {
        let sick = marks.iter().find(|(keeper, mark)| {
            find(std::slice::from_ref(mark), &lab.name, &host.name, *keeper == index).is_some()
        });
        let holder = record.as_ref().ok().and_then(|record| record.holder.clone());
        let ends = record.as_ref().ok().zip(holder.as_ref());
        HostLease {
            host: host.name.clone(),
            state: record.as_ref().map_or(State::Unknown, state),
            until_s: ends.map(|(record, holder)| record.now_s + holder.left_s.ceil() as i64),
            holder,
            sick: sick.map(|(_, mark)| (*mark).clone()),
            trouble: record.as_ref().err().map(ToString::to_string),
        }
    });
    leases.collect()
}

/// Ends the leases of one host, or of all: leases of ended holders, with `force` all others too.
///
/// # Errors
/// Fails if there is no such host.
pub fn free(
    lab: &Lab,
    settings: &SshSettings,
    only: Option<&str>,
    force: bool,
) -> Result<Vec<FreeResult>, BenchError> {
    let only = only.map(|name| is_host(lab, name)).transpose()?;
    let selected = lab.hosts.iter().filter(|host| only.is_none_or(|only| only.name == host.name));
    Ok(reach(selected, settings, |host, connected| {
        let (is_free, message) = match connected.and_then(|connected| end(connected, force)) {
            Ok(done) => done,
            Err(error) => (false, error.to_string()),
        };
        FreeResult { host: host.name.clone(), is_free, said: message }
    }))
}

fn end(connected: &ConnectedHost, force: bool) -> Result<(bool, String), BenchError> {
    let ledger = Ledger::of(connected.system);
    let record = ledger.show(connected.host())?;
    let state = state(&record);
    let Some(holder) = record.holder else { return Ok((true, "it was free".into())) };
    let (owner, left) = (named(&holder.owner), holder.left_s.ceil());
    if state == State::Held && !force {
        let message = format!(
            "{owner} has it, for {left} s more at most, and may be measuring: see that it has \
             ended; --force ends its lease, and its measurement with an error"
        );
        return Ok((false, message));
    }
    if !ledger.free(connected.host(), &record.number)? {
        return Ok((false, "it was renewed or taken just now: nothing was done".into()));
    }
    let message = match state {
        State::Dead if left > 0.0 => format!("ended the lease of {owner}, which has ended"),
        State::Dead => format!("ended the lease of {owner}, which was over"),
        _ => format!("ended the lease of {owner}, which had {left} s left"),
    };
    Ok((true, message))
}
