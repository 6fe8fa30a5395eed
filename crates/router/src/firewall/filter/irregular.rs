//! Packets that are filtered one by one, before the others: fragments, and packets whose headers
//! can't be read.

use super::{Evaluation, NO_RULE, WithStates};
use crate::firewall::fragments::{Admission, Fragments, Name, Piece, Verdict};
use crate::firewall::packet::{Packet, bit};
use crate::firewall::rule::Action;
use crate::firewall::states::Access;
use fwdlab_netio::frame::{BATCH, Frame};
use std::sync::{MutexGuard, PoisonError};

/// Treatment of a packet.
enum Odd {
    /// Filter it as this packet; later fragments with this name follow its verdict.
    Judge(Packet, Option<Name>),
    /// Apply the verdict of its first fragment.
    Follow(Verdict),
    /// Drop it.
    Drop,
}

impl<P: Fn(&Frame) -> u8> Evaluation<'_, P> {
    fn fragments(&self) -> MutexGuard<'_, Fragments> {
        self.shared.fragments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sort_out(&mut self, place: usize, packet: Packet) -> Odd {
        self.scratch.rules[place % BATCH] = NO_RULE;
        if packet.is(bit::UNREADABLE) {
            self.scratch.held_back.unreadable |= 1 << place;
            return Odd::Drop;
        }
        let piece = Piece::of(&self.batch[place], packet, self.direction);
        let admission = self.fragments().admit(&piece, self.now_ns);
        match admission {
            Admission::Judge => Odd::Judge(packet.unhidden(), Some(piece.name)),
            Admission::Follow(verdict) => Odd::Follow(verdict),
            Admission::Orphan if !self.rules.look_inside() => Odd::Judge(packet, None),
            Admission::Orphan | Admission::Refuse => {
                self.scratch.held_back.fragments |= 1 << place;
                Odd::Drop
            }
        }
    }

    /// Returns true if a packet passes, without states.
    #[cold]
    pub(super) fn odd_alone(&mut self, place: usize, packet: Packet) -> bool {
        match self.sort_out(place, packet) {
            Odd::Drop => false,
            Odd::Follow(verdict) => verdict.passes,
            Odd::Judge(packet, name) => {
                let frame = &self.batch[place];
                let passes = self.decide(frame, &packet, place).action == Action::Pass;
                if let Some(name) = name {
                    self.fragments().decide(name, Verdict { passes, known: false });
                }
                passes
            }
        }
    }
}

impl<P: Fn(&Frame) -> u8> WithStates<'_, P> {
    /// Returns true if a packet passes; records whether it passed by a state.
    #[cold]
    pub(super) fn odd<X: Access>(&mut self, place: usize, packet: Packet, access: &mut X) -> bool {
        match self.evaluation.sort_out(place, packet) {
            Odd::Drop => false,
            Odd::Follow(Verdict { passes, known }) => {
                self.evaluation.scratch.known |= u64::from(known) << place;
                passes
            }
            Odd::Judge(packet, name) => {
                self.totals.searches += u64::from(packet.is(bit::TRACKABLE));
                let passes = self.by_rules_any(place, packet, true, access);
                let known = self.evaluation.scratch.known >> place & 1 != 0;
                if let Some(name) = name {
                    self.evaluation.fragments().decide(name, Verdict { passes, known });
                }
                passes
            }
        }
    }
}
