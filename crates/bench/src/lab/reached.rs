//! The hosts of a laboratory, reached.

use crate::error::BenchError;
use crate::host::{Host, LocalHost, SshHost, SshSettings, facts};
use fwdlab_model::lab::{LabHost, System};

/// One of them.
pub(crate) struct Reached {
    /// What the file says of it.
    pub(crate) described: LabHost,
    /// What it is.
    pub(crate) system: System,
    /// Its release, e.g. `6.12.0`.
    pub(crate) release: String,
    /// CPUs that it has.
    pub(crate) cpus: u32,
    /// fwdlab's path there; empty where it is not needed.
    pub(crate) program: String,
    /// None: this machine.
    ssh: Option<SshHost>,
}

impl Reached {
    /// Connects to a host and asks what it is.
    ///
    /// # Errors
    /// When it can't be reached, or runs another system than the file says.
    pub(crate) fn connect(
        described: &LabHost,
        settings: &SshSettings,
    ) -> Result<Reached, BenchError> {
        let ssh = match &described.ssh {
            Some(destination) => Some(SshHost::connect(destination, settings.clone())?),
            None => None,
        };
        let host: &dyn Host = match &ssh {
            Some(ssh) => ssh,
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
        if described.system.is_some_and(|wanted| wanted != system) {
            return Err(BenchError::environment(
                format!("{} runs {}, the lab's file says otherwise", described.name, found.system),
                format!("write system = \"{}\", or boot the other one", system.name()),
            ));
        }
        Ok(Reached {
            described: described.clone(),
            system,
            release: found.release,
            cpus: found.cpus,
            program: String::new(),
            ssh,
        })
    }

    /// The host itself.
    pub(crate) fn host(&self) -> &dyn Host {
        match &self.ssh {
            Some(ssh) => ssh,
            None => &LocalHost,
        }
    }

    /// True when everything succeeds that the file wants before the host counts as up.
    ///
    /// # Errors
    /// The first command that fails.
    pub(crate) fn is_online(&self) -> Result<(), BenchError> {
        for command in &self.described.online {
            let words = fwdlab_model::words::split(command)
                .map_err(|why| BenchError::Refused(format!("online = `{command}`: {why}")))?;
            self.host().run(&words.iter().map(String::as_str).collect::<Vec<_>>(), "")?;
        }
        Ok(())
    }

    /// Forgets the connection, which may be dead without knowing it: the next command
    /// opens another.
    pub(crate) fn reconnect(&self) {
        if let Some(ssh) = &self.ssh {
            ssh.close();
        }
    }
}
