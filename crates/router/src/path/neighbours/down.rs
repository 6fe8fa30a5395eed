//! Ports without a carrier: one of several next hops there gets no flows.

use super::Neighbours;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A bit for each port.
#[derive(Debug, Default)]
pub(super) struct DownPorts([AtomicU64; 4]);

impl Neighbours {
    /// Records the loss or return of a port's carrier, for all clones.
    pub fn set_down(&self, port: u8, is_down: bool) {
        let (word, bit) = (&self.down.0[usize::from(port / 64)], 1 << (port % 64));
        match is_down {
            true => word.fetch_or(bit, Relaxed),
            false => word.fetch_and(!bit, Relaxed),
        };
    }

    /// True if a port has no carrier.
    #[inline]
    pub fn is_down(&self, port: u8) -> bool {
        self.down.0[usize::from(port / 64)].load(Relaxed) >> (port % 64) & 1 != 0
    }

    /// True if any port has no carrier.
    #[inline]
    pub(in super::super) fn is_any_down(&self) -> bool {
        self.down.0.iter().any(|word| word.load(Relaxed) != 0)
    }
}
