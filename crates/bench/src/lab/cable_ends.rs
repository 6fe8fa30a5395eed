//! Both ends of a cable under test.

use crate::agent::End;
use crate::host::Host;
use fwdlab_model::lab::System;

/// Sending end of a cable.
pub(super) struct FarEnd<'a> {
    /// `host:interface`.
    pub(super) name: String,
    pub(super) end: End<'a>,
}

/// End of a cable at the DUT.
pub(super) struct DutEnd<'a> {
    /// `host:interface`.
    pub(super) name: String,
    pub(super) interface: String,
    pub(super) mac: [u8; 6],
    pub(super) host: &'a dyn Host,
    pub(super) system: System,
    /// All interfaces of the DUT with cables.
    pub(super) interfaces: &'a [String],
}
