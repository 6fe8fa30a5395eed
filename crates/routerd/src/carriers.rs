//! Links that lose their carrier: their neighbours may be others when it returns.

use super::{Running, vlans};
use fwdlab_netio::NetioError;
use fwdlab_netio::netlink::{Event, Groups, LinkState, Netlink};
use std::collections::HashMap;

/// Carriers of this thread's network namespace, as the kernel reports them.
pub(super) struct Carriers {
    events: Netlink,
    questions: Netlink,
    names: HashMap<u32, String>,
    states: HashMap<String, State>,
}

/// Carrier of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    /// Number of losses. The kernel combines a loss and a return in quick succession into one
    /// notification.
    losses: u32,
    is_down: bool,
    /// True if the carrier was lost since the last query of this state.
    is_lost: bool,
}

impl Carriers {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn open() -> Result<Carriers, NetioError> {
        let (events, questions) = (Netlink::open(Groups::Links)?, Netlink::open(Groups::None)?);
        let (names, states) = (HashMap::new(), HashMap::new());
        let mut carriers = Carriers { events, questions, names, states };
        carriers.query()?;
        carriers.states.values_mut().for_each(|state| state.is_lost = false);
        Ok(carriers)
    }

    fn query(&mut self) -> Result<(), NetioError> {
        let present = self.questions.links()?;
        present.into_iter().for_each(|event| self.apply(event));
        Ok(())
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Link(LinkState { index, name, is_up, has_carrier, carrier_losses }) => {
                let state = self.states.entry(name.clone()).or_default();
                state.is_down = !is_up || !has_carrier;
                state.is_lost |= state.is_down || state.losses != carrier_losses;
                state.losses = carrier_losses;
                self.names.insert(index, name);
            }
            Event::LinkGone(index) => {
                if let Some(name) = self.names.remove(&index) {
                    let gone = State { losses: 0, is_down: true, is_lost: true };
                    self.states.insert(name, gone);
                }
            }
            _ => {}
        }
    }

    /// Reads notifications.
    fn follow(&mut self) {
        let pending = self.events.pending().unwrap_or_default();
        let is_lost = pending.is_lost;
        pending.events.into_iter().for_each(|event| self.apply(event));
        if is_lost {
            // The next notification corrects what a failed query leaves.
            let _ = self.query();
        }
    }

    /// The state of each link since the last call.
    fn take(&mut self, name: &str) -> Option<State> {
        let state = self.states.get_mut(name)?;
        let taken = *state;
        state.is_lost = false;
        Some(taken)
    }
}

impl Running {
    /// Forgets the hosts of links that have lost their carrier, and notes which have none.
    pub(super) fn follow_carriers(&mut self) {
        let Some(mut carriers) = self.carriers.take() else { return };
        carriers.follow();
        for (number, name) in self.interfaces.iter().enumerate() {
            let Ok(number) = u8::try_from(number) else { continue };
            // VLANs follow their parent, files have no carrier.
            let setup = &self.setup.interfaces[usize::from(number)];
            if setup.parent.is_some() {
                continue;
            }
            let Some(State { is_down, is_lost, .. }) = carriers.take(name) else { continue };
            let ports = match is_lost {
                true => self.forget_hosts(number),
                false => self.ports_of(number),
            };
            let routing = self.locked();
            ports.iter().for_each(|&port| routing.neighbours.set_down(port, is_down));
        }
        self.carriers = Some(carriers);
    }

    /// Numbers of an interface and of its VLANs.
    fn ports_of(&self, number: u8) -> Vec<u8> {
        let parent = &self.setup.interfaces[usize::from(number)];
        let tagged = vlans::of(&self.setup, parent).into_iter().map(|(_, number)| number);
        tagged.chain([number]).collect()
    }

    /// Forgets the hosts of an interface and of its VLANs; returns their numbers.
    pub(super) fn forget_hosts(&self, number: u8) -> Vec<u8> {
        let ports = self.ports_of(number);
        let routing = self.locked();
        ports.iter().for_each(|&port| routing.neighbours.forget(port));
        ports
    }
}
