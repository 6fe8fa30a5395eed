//! The connected hosts of a laboratory.

use super::places::Places;
use crate::agent::{self, ThisProgram};
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
    /// Labgrid places: released after the hosts are disconnected.
    places: Option<Places>,
    stop: Arc<AtomicBool>,
}

impl Rack {
    /// Reads the lab file, acquires the labgrid places that it names, and connects to every host.
    ///
    /// # Errors
    /// Returns an error if the file is invalid, another user holds a place, or a host cannot be
    /// reached.
    pub(super) fn open(file: &Path, paths: &Paths) -> Result<Rack, BenchError> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|error| BenchError::Refused(format!("can't read the lab {name}: {error}")))?;
        let lab = Lab::parse(&name, &text)
            .map_err(|faults| BenchError::Refused(faults.to_string().trim_end().to_owned()))?;
        let settings = ssh_settings(&lab, file.parent().unwrap_or(Path::new("")));
        let dut = lab.hosts.iter().find(|host| host.is(Role::Dut));
        let timeout = dut.and_then(|dut| dut.reboot_timeout_ns).map(Duration::from_nanos);
        let patience = timeout.unwrap_or(settings.deadline * BOOT);
        let places = Places::take(&lab, &paths.lasting, &paths.stop)?;
        let hosts = lab.hosts.iter().map(|described| ConnectedHost::connect(described, &settings));
        let hosts = hosts.collect::<Result<Vec<ConnectedHost>, BenchError>>()?;
        Ok(Rack { lab, patience, hosts, places, stop: paths.stop.clone() })
    }

    /// Installs fwdlab (`program`) on the hosts that need it.
    ///
    /// # Errors
    /// Returns an error if the program cannot be installed on a sending host or, with `on_dut`, on
    /// the DUT.
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
            let local = ThisProgram { program, version: &version };
            reached.program = agent::program(reached.host(), local, None)?;
        }
        Ok(())
    }

    /// Flag that is set when the user asks to stop.
    pub(super) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// The DUT's host.
    ///
    /// # Errors
    /// Fails only for a lab that was not validated.
    pub(super) fn dut(&self) -> Result<&ConnectedHost, BenchError> {
        let dut = self.hosts.iter().find(|host| host.described.is(Role::Dut));
        dut.ok_or_else(|| BenchError::Refused("the laboratory has no DUT".into()))
    }

    /// Command of this machine that power-cycles a host: from the lab file, otherwise from its
    /// labgrid place.
    pub(super) fn power_cycle(&self, host: &ConnectedHost) -> Option<Vec<String>> {
        let command = host.described.power_cycle.clone();
        command.or_else(|| self.places.as_ref()?.power_cycle(&host.described.name))
    }

    /// Returns the host with a name.
    ///
    /// # Errors
    /// Fails only for a lab that was not validated.
    pub(super) fn named(&self, name: &str) -> Result<&ConnectedHost, BenchError> {
        let host = self.hosts.iter().find(|host| host.described.name == name);
        host.ok_or_else(|| BenchError::Refused(format!("the laboratory has no host {name}")))
    }

    /// All hosts, in the order of the file.
    pub(super) fn all(&self) -> &[ConnectedHost] {
        &self.hosts
    }
}
