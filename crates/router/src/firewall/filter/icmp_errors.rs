//! ICMP errors, which belong to the connection whose packet they quote.

use super::{Evaluation, WithStates};
use crate::firewall::packet::{Packet, bit};
use crate::firewall::quoted::Quoted;
use crate::firewall::states::{Access, Key, Of, OfFamily, Query, Segment};
use fwdlab_netio::frame::Frame;

impl<P: Fn(&Frame) -> u8> WithStates<'_, P> {
    /// True for an error about a packet of a connection that has a state. The state does not
    /// change, not even its time.
    #[inline(always)]
    pub(super) fn is_related<const N: usize, X: Access>(
        &mut self,
        frame: &Frame,
        packet: Packet,
        access: &mut X,
    ) -> bool
    where
        Key<N>: Of,
        Segment: OfFamily<N>,
    {
        // Packets that open connections skip the call.
        if packet.is(bit::TRACKABLE) {
            return false;
        }
        let quoted = Quoted::of(frame, packet);
        let Some(Quoted { frame, packet, sequence }) = quoted else { return false };
        let Evaluation { shared, now_ns, .. } = self.evaluation;
        let query = Query::<N>::of(&frame, packet, &shared.states.seed);
        let holds = shared.states.holds(access, &query, sequence, now_ns);
        self.totals.searches += 1;
        self.totals.matches += u64::from(holds);
        holds
    }
}
