//! Where rules are asked: after the checks, before the lookup.

use super::frame::Frame;

/// Decides which of the packets that may be forwarded are.
///
/// Packets to the router itself are not shown to it.
pub trait Firewall {
    /// True when the packet in `frame` may pass. Its header has been checked.
    fn passes(&mut self, frame: &Frame, now_ns: u64) -> bool;
}

/// Everything passes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFirewall;

impl Firewall for NoFirewall {
    #[inline(always)]
    fn passes(&mut self, _: &Frame, _: u64) -> bool {
        true
    }
}
