//! Flows that an XDP program forwards (`path = "xdp"`).

use super::{FORGETTING, Running};
use crate::error::RouterdError;
use fwdlab_model::router::{RouterSetup, RouterStats};
use fwdlab_netio::xsk::FlowTable;
use fwdlab_packet::forwarding::ForwardingPath;
use fwdlab_router::path::Reason;
use std::sync::Arc;

/// Maximum number of flows: 18 MB of memory. Packets of further ones go through the process.
const FLOWS: u32 = 1 << 18;

/// Loads the program of a set-up; `None` if its path is another one, or its packets are in memory.
///
/// # Errors
/// If the kernel refuses the program.
pub(super) fn load(setup: &RouterSetup) -> anyhow::Result<Option<Arc<FlowTable>>> {
    if setup.path != ForwardingPath::Xdp || !setup.circuits.is_empty() {
        return Ok(None);
    }
    let ports = u8::try_from(setup.interfaces.len()).unwrap_or(u8::MAX);
    let table = FlowTable::load(ports, setup.workers.into(), FLOWS).map_err(|error| {
        let next = "set path = \"fast\", or run `fwdlab doctor`, which lists what this machine has";
        RouterdError::Environment(format!("path = \"xdp\": {error}\n  next step: {next}"))
    })?;
    Ok(Some(table))
}

/// Adds the packets that the program forwarded to the counters of a router.
pub(super) fn counted(mut stats: RouterStats, table: &FlowTable) -> RouterStats {
    let (mut received, mut lost) = (0, 0);
    for (number, interface) in (0..).zip(&mut stats.interfaces) {
        let count = table.port(number);
        interface.received += count.received;
        interface.sent += count.sent.saturating_sub(count.lost);
        interface.lost += count.lost;
        (received, lost) = (received + count.received, lost + count.lost);
        if table.refuses(number) {
            let why =
                format!("{}: its other end takes none (ethtool -K NAME gro on)", interface.name);
            stats.facts.push(("no XDP frames to".into(), why));
        }
    }
    let forwarded = received.saturating_sub(lost);
    stats.received += received;
    stats.forwarded += forwarded;
    stats.dropped += lost;
    for (reason, more) in [(Reason::Forwarded, forwarded), (Reason::NoRoom, lost)] {
        match stats.counters.iter_mut().find(|(name, ..)| name == reason.name()) {
            Some((_, packets, _)) => *packets += more,
            None if more == 0 => {}
            None => stats.counters.push((reason.name().into(), more, reason.class())),
        }
    }
    stats.facts.push(("packets forwarded in XDP".into(), forwarded.to_string()));
    stats
}

impl Running {
    /// Removes all states of the firewall.
    ///
    /// # Errors
    /// Fails if a worker does not follow.
    pub fn forget_states(&self) -> anyhow::Result<()> {
        let forgotten = self.wall.as_ref().is_none_or(|wall| wall.forget(FORGETTING));
        // Decisions by the removed states end now.
        self.invalidate_flows();
        if forgotten {
            return Ok(());
        }
        Err(anyhow::anyhow!("a worker has not removed its states within {FORGETTING:?}"))
    }

    /// Packets of all flows go to the process until it has decided again.
    pub(super) fn invalidate_flows(&self) {
        self.flows.iter().for_each(|flows| flows.invalidate());
    }
}
