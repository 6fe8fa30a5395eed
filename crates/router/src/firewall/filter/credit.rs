//! Credits packets that passed without the firewall to their states.

use super::{Access, Filter, Key, States, Work};
use crate::firewall::states::Credit;
use crate::path::FlowUse;

impl Filter {
    /// Packets of the last batch whose flows need no further decision. Without states, these are
    /// all packets if there are no rules: counters of rules contain every packet.
    pub(super) fn steady_packets(&self) -> u64 {
        let shared = &self.shared;
        match shared.keeps {
            true => self.scratch.steady,
            false if shared.rules_in.is_empty() && shared.rules_out.is_empty() => u64::MAX,
            false => 0,
        }
    }

    pub(super) fn credit_flows(&mut self, uses: &[FlowUse], now_ns: u64) -> u64 {
        let Filter { shared, own, .. } = self;
        if !shared.keeps {
            return self.steady_packets();
        }
        let work = CreditAll { states: &shared.states, uses, now_ns };
        shared.states.with(own.as_mut(), work).unwrap_or_default()
    }
}

struct CreditAll<'a> {
    states: &'a States,
    uses: &'a [FlowUse],
    now_ns: u64,
}

impl Work for CreditAll<'_> {
    type Result = u64;

    fn run<X: Access>(self, access: &mut X) -> u64 {
        let CreditAll { states, uses, now_ns } = self;
        let mut steady = 0;
        for (place, FlowUse { key, count }) in uses.iter().enumerate() {
            // Without packets, the state's time does not change.
            let last_ns = if count.packets > 0 { now_ns } else { 0 };
            let credit = Credit { packets: count.packets, bytes: count.bytes, last_ns };
            let (addresses, protocol, ports) = (key.addresses(), key.protocol(), key.ports());
            let stays = if let Some(key) = Key::<2>::with_ports(addresses, protocol, ports) {
                states.credit(access, &key, credit, now_ns)
            } else if let Some(key) = Key::<5>::with_ports(addresses, protocol, ports) {
                states.credit(access, &key, credit, now_ns)
            } else {
                false
            };
            steady |= u64::from(stays) << place;
        }
        steady
    }
}
