//! Links that lose their carrier: their neighbours may be others when it returns.

use super::{Running, vlans};
use fwdlab_netio::NetioError;
use fwdlab_netio::netlink::{Event, Groups, LinkState, Netlink};

/// Notifications of the kernel about links.
pub(super) struct Carriers(Netlink);

impl Carriers {
    /// Listens in this thread's network namespace.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn open() -> Result<Carriers, NetioError> {
        Netlink::open(Groups::Links).map(Carriers)
    }

    /// Names of the links that have lost their carrier; `None` if all may have.
    fn lost(&mut self) -> Option<Vec<String>> {
        let pending = self.0.pending().ok().filter(|pending| !pending.is_lost)?;
        let lost = pending.events.into_iter().filter_map(|event| match event {
            Event::Link(LinkState { name, is_up, has_carrier, .. }) => {
                (!is_up || !has_carrier).then_some(name)
            }
            _ => None,
        });
        Some(lost.collect())
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
