//! The connected hosts of a laboratory.

use super::places::Places;
use crate::agent::{self, Own};
use crate::error::BenchError;
use crate::host::connected::ConnectedHost;
use crate::host::{Host, LocalHost};
use crate::lab::ssh_settings;
use crate::testbed::Paths;
use fwdlab_model::Lab;
use fwdlab_model::lab::Role;
use fwdlab_model::settings::GeneratorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Default time limit for booting, in multiples of a command's deadline.
const BOOT: u32 = 5;

/// All hosts of a laboratory.
pub(super) struct Rack {
    /// The lab file.
    pub(super) lab: Lab,
    /// Time limit for a reboot.
    pub(super) patience: Duration,
    hosts: Vec<ConnectedHost>,
    /// What labgrid lends: given back when the hosts are not connected any more.
    places: Option<Places>,
    stop: Arc<AtomicBool>,
}

impl Rack {
    /// Reads the lab's file, acquires the places of labgrid that it names, and connects to every
    /// host.
    ///
    /// # Errors
    /// When the file is invalid, a place is another's, or a host can't be reached.
    pub(super) fn open(file: &Path, paths: &Paths) -> Result<Rack, BenchError> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|error| BenchError::Refused(format!("can't read the lab {name}: {error}")))?;
        let lab = Lab::parse(&name, &text)
            .map_err(|faults| BenchError::Refused(faults.to_string().trim_end().to_owned()))?;
        let settings = ssh_settings(&lab, file.parent().unwrap_or(Path::new("")));
        let dut = lab.hosts.iter().find(|host| host.is(Role::Dut));
        let written = dut.and_then(|dut| dut.reboot_timeout_ns).map(Duration::from_nanos);
        let patience = written.unwrap_or(settings.deadline * BOOT);
        let places = Places::take(&lab, &paths.lasting, &paths.stop)?;
        let hosts = lab.hosts.iter().map(|described| ConnectedHost::connect(described, &settings));
        let hosts = hosts.collect::<Result<Vec<ConnectedHost>, BenchError>>()?;
        Ok(Rack { lab, patience, hosts, places, stop: paths.stop.clone() })
    }

    /// Installs fwdlab (`program`) where it is needed.
    ///
    /// # Errors
    /// When it can't be installed where it sends or, with `on_dut`, on the DUT.
    pub(super) fn bring_agents(
        &mut self,
        program: &Path,
        generator: GeneratorKind,
        on_dut: bool,
    ) -> Result<(), BenchError> {
        let sends = generator == GeneratorKind::Fwdlab;
        if !sends && !on_dut {
            return Ok(());
        }
        let version = LocalHost.run(&[&program.to_string_lossy(), "--version"], "")?;
        let version = version.trim().trim_start_matches("fwdlab ").to_owned();
        for reached in self.hosts.iter_mut().filter(|host| match host.described.is(Role::Dut) {
            true => on_dut,
            false => sends,
        }) {
            let own = Own { program, version: &version };
            reached.program = agent::program(reached.host(), own, None)?;
        }
        Ok(())
    }

    /// Raised when the user asks to stop.
    pub(super) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// The DUT's host.
    ///
    /// # Errors
    /// None for a lab that was judged.
    pub(super) fn dut(&self) -> Result<&ConnectedHost, BenchError> {
        let found = self.hosts.iter().find(|host| host.described.is(Role::Dut));
        found.ok_or_else(|| BenchError::Refused("the laboratory has no DUT".into()))
    }

    /// The command of this machine that switches a host off and on: the file's, or that of its
    /// place.
    pub(super) fn power_cycle(&self, host: &ConnectedHost) -> Option<Vec<String>> {
        let own = host.described.power_cycle.clone();
        own.or_else(|| self.places.as_ref()?.power_cycle(&host.described.name))
    }

    /// The host of a name.
    ///
    /// # Errors
    /// None for a lab that was judged.
    pub(super) fn named(&self, name: &str) -> Result<&ConnectedHost, BenchError> {
        let found = self.hosts.iter().find(|host| host.described.name == name);
        found.ok_or_else(|| BenchError::Refused(format!("the laboratory has no host {name}")))
    }

    /// All hosts, in the order of the file.
    pub(super) fn all(&self) -> &[ConnectedHost] {
        &self.hosts
    }
}
