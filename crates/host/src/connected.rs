//! Connected hosts of a laboratory.

use super::{Host, LocalHost, SshHost, SshSettings, facts};
use crate::error::BenchError;
use fwdlab_model::lab::{LabHost, System};
use std::sync::Arc;

/// A connected host.
pub struct ConnectedHost {
    /// Entry in the lab file.
    pub described: LabHost,
    /// Operating system.
    pub system: System,
    /// Release, e.g. `6.12.0`.
    pub release: String,
    /// Number of CPUs.
    pub cpus: u32,
    /// Path of fwdlab there; empty if it is not needed.
    pub program: String,
    /// `None` for this machine.
    ssh: Option<Arc<SshHost>>,
}

impl ConnectedHost {
    /// Connects to a host and detects its system.
    ///
    /// # Errors
    /// Fails if the host cannot be reached, or runs a system other than the one in the lab file.
    pub fn connect(
        described: &LabHost,
        settings: &SshSettings,
    ) -> Result<ConnectedHost, BenchError> {
        let ssh = match &described.ssh {
            Some(destination) => Some(Arc::new(SshHost::connect(destination, settings.clone())?)),
            None => None,
        };
        let host: &dyn Host = match &ssh {
            Some(ssh) => ssh.as_ref(),
            None => &LocalHost,
        };
        let found = facts(host)?;
        let system = System::ALL.into_iter().find(|system| system.uname() == found.system);
        let system = system.ok_or_else(|| {
            BenchError::environment(
                format!("{}: {} is not known here", described.name, found.system),
                "use Linux or FreeBSD there",
            )
        })?;
        if described.system.is_some_and(|expected| expected != system) {
            return Err(BenchError::environment(
                format!("{} runs {}, contrary to the lab's file", described.name, found.system),
                format!("write system = \"{}\", or boot the other one", system.name()),
            ));
        }
        Ok(ConnectedHost {
            described: described.clone(),
            system,
            release: found.release,
            cpus: found.cpus,
            program: String::new(),
            ssh,
        })
    }

    /// The host for running commands.
    pub fn host(&self) -> &dyn Host {
        match &self.ssh {
            Some(ssh) => ssh.as_ref(),
            None => &LocalHost,
        }
    }

    /// The same host for another thread, over the same connection.
    pub fn shared(&self) -> Arc<dyn Host + Send + Sync> {
        match &self.ssh {
            Some(ssh) => ssh.clone(),
            None => Arc::new(LocalHost),
        }
    }

    /// Runs the commands that the lab file defines as the test that the host is up.
    ///
    /// # Errors
    /// The first command that fails.
    pub fn is_online(&self) -> Result<(), BenchError> {
        for command in &self.described.online {
            let words = fwdlab_model::words::split(command)
                .map_err(|why| BenchError::Refused(format!("online = `{command}`: {why}")))?;
            self.host().run(&words.iter().map(String::as_str).collect::<Vec<_>>(), "")?;
        }
        Ok(())
    }

    /// Drops the connection, which may be dead without an error so far; the next command opens
    /// another.
    pub fn reconnect(&self) {
        if let Some(ssh) = &self.ssh {
            ssh.close();
        }
    }
}
