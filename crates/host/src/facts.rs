//! Operating system, architecture and number of CPUs of a host.

use super::Host;
use crate::error::BenchError;

/// A host's system and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Operating system, e.g. `Linux` or `FreeBSD`.
    pub system: String,
    /// Release of the operating system.
    pub release: String,
    /// Machine, e.g. `x86_64` or `amd64`.
    pub machine: String,
    /// Number of CPUs online.
    pub cpus: u32,
}

/// Reads the facts with uname(1) and getconf(1), which Linux and the BSDs have.
///
/// # Errors
/// Fails if the host does not answer, or answers in another format.
pub fn facts(host: &dyn Host) -> Result<Facts, BenchError> {
    // One call per value: releases may contain spaces.
    let uname = |what: &str| host.run(&["uname", what], "").map(|text| text.trim().to_owned());
    let cpus = host.run(&["getconf", "_NPROCESSORS_ONLN"], "")?;
    let cpus = cpus.trim().parse().map_err(|_| BenchError::Program {
        command: "getconf _NPROCESSORS_ONLN".into(),
        host: host.name().into(),
        why: format!("`{}` is no number of CPUs", cpus.trim()),
    })?;
    Ok(Facts { system: uname("-s")?, release: uname("-r")?, machine: uname("-m")?, cpus })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FakeHost, LocalHost};

    #[test]
    fn facts_are_read_and_invalid_ones_rejected() {
        let here = facts(&LocalHost).expect("facts");
        assert_eq!(
            (here.system.as_str(), here.machine.as_str()),
            ("Linux", std::env::consts::ARCH)
        );
        assert!(here.cpus >= 1 && here.release.contains('.'), "{here:?}");
        let mut invalid = FakeHost::default();
        invalid.outputs.insert("getconf _NPROCESSORS_ONLN".into(), "undefined\n".into());
        let error = facts(&invalid).expect_err("no number").to_string();
        assert!(error.contains("`undefined` is no number of CPUs"), "{error}");
    }
}
