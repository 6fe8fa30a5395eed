//! The frames, and their expected results.

mod inet;
mod inet6;
mod link;

use crate::packets::udp;
use fwdlab_packet::Family;

/// A frame received at the near side.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) frame: Vec<u8>,
    pub(crate) expected: Expected,
}

/// Kinds of the sent frames, as in [`crate::seen::Seen::kind`].
#[derive(Clone, Copy)]
pub(crate) enum Expected {
    /// The same frames from both.
    Alike(&'static [&'static str]),
    /// Frames of the same kinds that differ in exactly these fields: see the table.
    But(&'static [&'static str], &'static [&'static str]),
    /// Different frames: see the table.
    Apart { kernel: &'static [&'static str], router: &'static [&'static str] },
}

/// All cases.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Cases(Vec::new());
    inet::add(&mut cases);
    inet6::add(&mut cases);
    link::add(&mut cases);
    cases.0
}

/// The cases so far; the number of each is also its flow.
struct Cases(Vec<Case>);

impl Cases {
    /// A valid IPv4 packet of its own flow.
    fn inet(&self, size: u16) -> Vec<u8> {
        udp(Family::Inet, size, self.0.len() as u32)
    }

    /// A valid IPv6 packet of its own flow.
    fn inet6(&self, size: u16) -> Vec<u8> {
        udp(Family::Inet6, size, self.0.len() as u32)
    }

    fn add(&mut self, name: impl Into<String>, frame: Vec<u8>, expected: Expected) {
        self.0.push(Case { name: name.into(), frame, expected });
    }

    fn alike(&mut self, name: impl Into<String>, frame: Vec<u8>, kinds: &'static [&'static str]) {
        self.add(name, frame, Expected::Alike(kinds));
    }

    fn but(
        &mut self,
        name: impl Into<String>,
        frame: Vec<u8>,
        kinds: &'static [&'static str],
        fields: &'static [&'static str],
    ) {
        self.add(name, frame, Expected::But(kinds, fields));
    }

    fn apart(
        &mut self,
        name: impl Into<String>,
        frame: Vec<u8>,
        kernel: &'static [&'static str],
        router: &'static [&'static str],
    ) {
        self.add(name, frame, Expected::Apart { kernel, router });
    }
}
