//! Address translation by the DUT.

use fwdlab_packet::named;

named! {
    /// Addresses that the DUT translates.
    pub enum Nat default None {
        /// No translation: packets keep their addresses.
        None = "none",
        /// The source address becomes the egress interface's (masquerade, SNAT).
        Source = "source",
    }
}

impl Nat {
    /// True for the default, which adds nothing to a plan's hash.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
