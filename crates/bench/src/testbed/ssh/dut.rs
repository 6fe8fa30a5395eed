//! The DUT of a laboratory, by its system.

use crate::dut::linux::Findings;
use crate::dut::linux_remote::LinuxRemote;
use crate::dut::remote::RemoteDut;
use crate::error::BenchError;
use crate::host::Host;
use fwdlab_model::settings::Settings;

/// A DUT.
pub(super) enum Dut {
    /// A Linux machine.
    Linux(LinuxRemote),
}

impl Dut {
    /// As every DUT of a laboratory.
    pub(super) fn remote(&mut self) -> &mut dyn RemoteDut {
        match self {
            Dut::Linux(dut) => dut,
        }
    }

    /// Switches from one variant to another while traffic flows.
    pub(super) fn switch(
        &mut self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
    ) -> Result<(), BenchError> {
        match self {
            Dut::Linux(dut) => dut.switch(host, from, to),
        }
    }

    /// Reads back what [`Dut::switch`] has just changed.
    pub(super) fn verify_live(
        &self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        match self {
            Dut::Linux(dut) => dut.verify_live(host, from, to, findings),
        }
    }
}
