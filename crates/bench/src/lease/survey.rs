//! Who holds a laboratory's hosts, asked from outside, and leases ended by hand.

use super::health::find;
use super::owner::{is_gone, named};
use super::reach::{is_host, reach};
use super::script::{Holder, Ledger, Mark, Seen};
use crate::error::BenchError;
use crate::host::SshSettings;
use crate::host::connected::ConnectedHost;
use fwdlab_model::Lab;
use serde::Serialize;

/// How a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nobody's.
    Free,
    /// Somebody's.
    Held,
    /// Of somebody who is gone, or has not renewed it in time: the next one takes it.
    Dead,
    /// Not to be learned: the host can't be asked.
    Unknown,
}

/// The lease of one host, and its health.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostLease {
    /// Name in the lab's file.
    pub host: String,
    /// How it stands.
    pub state: State,
    /// Who has it, or had it last without giving it back.
    pub holder: Option<Holder>,
    /// When it ends unless it is renewed, seconds since 1970 by the host's clock.
    pub until_s: Option<i64>,
    /// The mark that says that the host is sick.
    pub sick: Option<Mark>,
    /// Why it can't be learned.
    pub trouble: Option<String>,
}

/// What came of ending a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Freed {
    /// Name in the lab's file.
    pub host: String,
    /// Whether the host is nobody's now.
    pub is_free: bool,
    /// What was done, or why nothing was.
    pub said: String,
}

fn state(seen: &Seen) -> State {
    match &seen.holder {
        None => State::Free,
        Some(holder) if holder.left_s <= 0.0 || is_gone(&holder.owner) => State::Dead,
        Some(_) => State::Held,
    }
}

/// Asks every host; in the order of the file.
pub fn survey(lab: &Lab, settings: &SshSettings) -> Vec<HostLease> {
    let seen: Vec<Result<Seen, BenchError>> = reach(lab.hosts.iter(), settings, |_, reached| {
        reached.and_then(|host| Ledger::of(host.system).show(host.host()))
    });
    let marks: Vec<(usize, &Mark)> = seen
        .iter()
        .enumerate()
        .flat_map(|(keeper, seen)| {
            seen.iter().flat_map(move |seen| &seen.marks).map(move |m| (keeper, m))
        })
        .collect();
    let leases = lab.hosts.iter().zip(&seen).enumerate().map(|(index, (host, seen))| {
        let sick = marks.iter().find(|(keeper, mark)| {
            find(std::slice::from_ref(mark), &lab.name, &host.name, *keeper == index).is_some()
        });
        let holder = seen.as_ref().ok().and_then(|seen| seen.holder.clone());
        let ends = seen.as_ref().ok().zip(holder.as_ref());
        HostLease {
            host: host.name.clone(),
            state: seen.as_ref().map_or(State::Unknown, state),
            until_s: ends.map(|(seen, holder)| seen.now_s + holder.left_s.ceil() as i64),
            holder,
            sick: sick.map(|(_, mark)| (*mark).clone()),
            trouble: seen.as_ref().err().map(ToString::to_string),
        }
    });
    leases.collect()
}

/// Ends the leases of one host, or of all: those of the dead, with `force` others too.
///
/// # Errors
/// When there is no such host.
pub fn free(
    lab: &Lab,
    settings: &SshSettings,
    only: Option<&str>,
    force: bool,
) -> Result<Vec<Freed>, BenchError> {
    let only = only.map(|name| is_host(lab, name)).transpose()?;
    let wanted = lab.hosts.iter().filter(|host| only.is_none_or(|only| only.name == host.name));
    Ok(reach(wanted, settings, |host, reached| {
        let (is_free, said) = match reached.and_then(|reached| end(reached, force)) {
            Ok(done) => done,
            Err(error) => (false, error.to_string()),
        };
        Freed { host: host.name.clone(), is_free, said }
    }))
}

fn end(reached: &ConnectedHost, force: bool) -> Result<(bool, String), BenchError> {
    let ledger = Ledger::of(reached.system);
    let seen = ledger.show(reached.host())?;
    let stands = state(&seen);
    let Some(holder) = seen.holder else { return Ok((true, "it was free".into())) };
    let (owner, left) = (named(&holder.owner), holder.left_s.ceil());
    if stands == State::Held && !force {
        let said = format!(
            "{owner} has it, for {left} s more at most, and may be measuring: see that it has \
             ended; --force ends its lease, and its measurement with an error"
        );
        return Ok((false, said));
    }
    if !ledger.free(reached.host(), &seen.number)? {
        return Ok((false, "it was renewed or taken just now: nothing was done".into()));
    }
    let said = match stands {
        State::Dead if left > 0.0 => format!("ended the lease of {owner}, which has ended"),
        State::Dead => format!("ended the lease of {owner}, which was over"),
        _ => format!("ended the lease of {owner}, which had {left} s left"),
    };
    Ok((true, said))
}
