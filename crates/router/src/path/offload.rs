//! Flows that the XDP program forwards for a worker ([`FlowTable`]).
//!
//! A worker inserts a flow when it has forwarded one of its packets and further ones can change
//! nothing but counters. It visits its flows once per [`PERIOD_NS`], credits their packets to the
//! firewall's states, and removes flows that no longer have one, were stopped, belong to an earlier
//! generation, or had no packets for two visits.

use super::Router;
use super::firewall::{Firewall, FlowUse};
use super::interface::Interface;
use fwdlab_netio::frame::{BATCH, Frame};
use fwdlab_netio::xsk::{FlowCount, FlowKey, FlowLink, FlowTable};
use std::sync::Arc;

/// Time between two visits of a flow: far below the default timeouts of steady flows (30 s and
/// more). A full table may shrink timeouts below it; the router then decides about the flow again.
const PERIOD_NS: u64 = 500_000_000;
/// Time between two checks for links that refuse frames.
const CHECK_NS: u64 = 1_000_000;
/// Flows that are visited together.
const TOGETHER: usize = 64;

/// The flows of one worker.
pub(super) struct Offload {
    table: Arc<FlowTable>,
    /// MTU of each port.
    mtus: Vec<u16>,
    /// Generation of the current batch's decisions.
    generation: u32,
    listed: Vec<Listed>,
    /// Number of flows that the current round still has to visit, from the last to the first.
    left: usize,
    /// Start time of the next round.
    due_ns: u64,
    /// Time of the next check of the links.
    check_ns: u64,
}

struct Listed {
    key: FlowKey,
    slot: u32,
    was_idle: bool,
    /// Count at the last visit.
    seen: u64,
}

impl Offload {
    pub(super) fn new(table: &Arc<FlowTable>, interfaces: &[Interface]) -> Offload {
        Offload {
            table: Arc::clone(table),
            mtus: interfaces.iter().map(|interface| interface.mtu).collect(),
            generation: table.generation(),
            listed: Vec::new(),
            left: 0,
            due_ns: 0,
            check_ns: 0,
        }
    }

    /// Call this before decisions about a batch, and from time to time without one. Returns true if
    /// there is more to do.
    #[inline]
    pub(super) fn begin(&mut self, firewall: &mut impl Firewall, now_ns: u64) -> bool {
        let generation = self.table.generation();
        if now_ns >= self.check_ns {
            self.check_ns = now_ns.saturating_add(CHECK_NS);
            self.table.check_links();
        }
        if generation != self.generation {
            self.generation = generation;
            // All of them are over.
            self.left = self.listed.len();
            self.visit(usize::MAX, firewall, now_ns);
        }
        if self.left > 0 {
            self.visit(TOGETHER, firewall, now_ns);
        } else if now_ns >= self.due_ns {
            self.due_ns = now_ns.saturating_add(PERIOD_NS);
            self.left = self.listed.len();
        }
        self.left > 0
    }

    /// Inserts the flows of the forwarded packets at `places`, and stops flows that the packets
    /// `among` the batch may end. `mtus` are of links whose MTU may not be the interface's.
    pub(super) fn learn(
        &mut self,
        batch: &[Frame],
        among: u64,
        places: u64,
        mtus: &[(usize, u16)],
        now_ns: u64,
    ) {
        for (place, frame) in batch.iter().enumerate() {
            let Some(egress) = frame.egress().filter(|_| among >> place & 1 != 0) else { continue };
            let ingress = frame.ingress();
            if !self.table.connects(ingress, egress) {
                continue;
            }
            let Some((key, changes_phase)) = FlowKey::read(frame.bytes(), ingress) else {
                continue;
            };
            if changes_phase {
                self.table.stop(&key);
                self.table.stop(&key.reversed(egress));
            } else if places >> place & 1 != 0 {
                let found = mtus.iter().find(|(at, _)| *at == place).map(|&(_, mtu)| mtu);
                self.insert(key, frame, (egress, found), now_ns);
            }
        }
    }

    fn insert(
        &mut self,
        key: FlowKey,
        frame: &Frame,
        (egress, mtu): (u8, Option<u16>),
        now_ns: u64,
    ) {
        let Some(&macs) = frame.bytes().first_chunk::<12>() else { return };
        let of_interface = || self.mtus.get(usize::from(egress)).copied();
        let Some(mtu) = mtu.or_else(of_interface) else { return };
        let link = FlowLink { macs, mtu, egress };
        if let Some(slot) = self.table.insert(&key, &link, self.generation, now_ns) {
            self.listed.push(Listed { key, slot, was_idle: false, seen: 0 });
        }
    }

    /// Removes all flows.
    pub(super) fn end(&mut self, firewall: &mut impl Firewall, now_ns: u64) {
        self.generation = 0;
        self.left = self.listed.len();
        self.visit(usize::MAX, firewall, now_ns);
    }

    /// Visits the next flows, at most `most`.
    #[cold]
    fn visit(&mut self, most: usize, firewall: &mut impl Firewall, now_ns: u64) {
        // Flows inserted during a round come last, and may have been removed from the middle.
        self.left = self.left.min(self.listed.len());
        let last = self.left.saturating_sub(most);
        while self.left > last {
            let first = self.left.saturating_sub(TOGETHER).max(last);
            let mut uses = [FlowUse::default(); TOGETHER];
            for (listed, flow_use) in self.listed[first..self.left].iter_mut().zip(&mut uses) {
                let count = self.table.count(listed.slot, &mut listed.seen);
                *flow_use = FlowUse { key: listed.key, count };
            }
            let kept = firewall.credit(&uses[..self.left - first], now_ns);
            for place in (0..self.left - first).rev() {
                let listed = &mut self.listed[first + place];
                let is_idle = uses[place].count == FlowCount::default();
                let stays = kept >> place & 1 != 0
                    && !(is_idle && listed.was_idle)
                    && self.generation != 0
                    && self.table.is_live(listed.slot);
                listed.was_idle = is_idle;
                if !stays {
                    self.table.release(listed.slot, now_ns);
                    self.listed.swap_remove(first + place);
                }
            }
            self.left = first;
        }
    }
}

impl<W: Firewall> Router<W> {
    /// Background work for flows that the XDP program forwards, while no packet comes: what packets
    /// of the flows would have caused. Returns true if there is more to do.
    #[cold]
    pub(super) fn keep_flows(&mut self, now_ns: u64) -> bool {
        self.check_waiting(now_ns);
        let Router { offload, firewall, .. } = self;
        offload.as_mut().is_some_and(|offload| offload.begin(firewall, now_ns))
    }

    /// Credits and removes all flows.
    pub(super) fn end_flows(&mut self, now_ns: u64) {
        if let Some(offload) = &mut self.offload {
            offload.end(&mut self.firewall, now_ns);
        }
    }

    /// Packets of all flows go to the router until it has decided again.
    pub(super) fn invalidate_flows(&self) {
        if let Some(offload) = &self.offload {
            offload.table.invalidate();
        }
    }
}

impl Drop for Offload {
    fn drop(&mut self) {
        for listed in &self.listed {
            self.table.release(listed.slot, 0);
        }
    }
}

const _: () = assert!(BATCH <= 64 && TOGETHER <= 64);
