//! Links that lose their carrier: their neighbours may be others when it returns.

use super::{Running, vlans};
use fwdlab_netio::NetioError;
use fwdlab_netio::netlink::{Event, Groups, LinkState, Netlink};
use std::collections::HashMap;

/// Carriers of this thread's network namespace, as the kernel reports them.
pub(super) struct Carriers {
    events: Netlink,
    /// Number of losses by the name of the link. The kernel combines a loss and a return in quick
    /// succession into one notification.
    losses: HashMap<String, u32>,
}

impl Carriers {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn open() -> Result<Carriers, NetioError> {
        let events = Netlink::open(Groups::Links)?;
        let present = Netlink::open(Groups::None)?.links()?;
        let losses = present.into_iter().filter_map(|event| match event {
            Event::Link(LinkState { name, carrier_losses, .. }) => Some((name, carrier_losses)),
            _ => None,
        });
        Ok(Carriers { events, losses: losses.collect() })
    }

    /// Names of the links that have lost their carrier; `None` if all may have.
    fn lost(&mut self) -> Option<Vec<String>> {
        let pending = self.events.pending().ok().filter(|pending| !pending.is_lost)?;
        let mut lost = Vec::new();
        for event in pending.events {
            let Event::Link(LinkState { name, is_up, has_carrier, carrier_losses, .. }) = event
            else {
                continue;
            };
            let before = self.losses.insert(name.clone(), carrier_losses);
            if !is_up || !has_carrier || before != Some(carrier_losses) {
                lost.push(name);
            }
        }
        Some(lost)
    }
}

impl Running {
    /// Forgets the hosts of links that have lost their carrier.
    pub(super) fn follow_carriers(&mut self) {
        let Some(carriers) = &mut self.carriers else { return };
        let lost = carriers.lost();
        for (number, name) in self.interfaces.iter().enumerate() {
            let is_lost = lost.as_ref().is_none_or(|lost| lost.contains(name));
            if let Some(number) = u8::try_from(number).ok().filter(|_| is_lost) {
                self.forget_hosts(number);
            }
        }
    }

    /// Forgets the hosts of an interface and of its VLANs; returns their numbers.
    pub(super) fn forget_hosts(&self, number: u8) -> Vec<u8> {
        let parent = &self.setup.interfaces[usize::from(number)];
        let tagged = vlans::of(&self.setup, parent).into_iter().map(|(_, number)| number);
        let ports: Vec<u8> = tagged.chain([number]).collect();
        let routing = self.locked();
        ports.iter().for_each(|&port| routing.neighbours.forget(port));
        ports
    }
}
