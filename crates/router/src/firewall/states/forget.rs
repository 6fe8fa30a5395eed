//! Removes all states together.

use super::segment::Segment;
use super::{Access, States, Work};
use fwdlab_packet::Family;

impl States {
    /// Removes the states that workers share; workers' own states stay.
    pub(in crate::firewall) fn clear_shared(&self) {
        struct Clear<'a>(&'a States);
        impl Work for Clear<'_> {
            type Result = ();
            fn run<X: Access>(self, access: &mut X) {
                let Clear(states) = self;
                for at in 0..states.segments {
                    let (old, [inet, inet6]) = {
                        let mut segment = access.segment(at);
                        let old = std::mem::replace(&mut *segment, Segment::new(&states.sources));
                        states.count_new_segments_of(1);
                        (old, [Family::Inet, Family::Inet6].map(|family| segment.place(family)))
                    };
                    access.moved(at, Family::Inet, inet);
                    access.moved(at, Family::Inet6, inet6);
                    states.discount([&old].into_iter());
                }
            }
        }
        // Workers with their own tables share none.
        let _ = self.with(None, Clear(self));
    }
}
