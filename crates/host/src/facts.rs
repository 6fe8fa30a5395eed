//! Operating system, architecture and number of CPUs of a host.

use super::Host;
use crate::error::BenchError;

/// A host's system and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Operating system, e.g. `Linux` or `FreeBSD`.
    pub system: String,
    /// Its release.
    pub release: String,
    /// Machine, e.g. `x86_64` or `amd64`.
    pub machine: String,
    /// CPUs that are online.
    pub cpus: u32,
}

/// Reads them by uname(1) and getconf(1), which Linux and the BSDs have.
///
/// # Errors
/// When the host doesn't answer, or not as expected.
pub fn facts(host: &dyn Host) -> Result<Facts, BenchError> {
    // One call an answer: releases may hold spaces.
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
    fn a_host_says_what_it_is_or_is_not_believed() {
        let here = facts(&LocalHost).expect("facts");
        assert_eq!(
            (here.system.as_str(), here.machine.as_str()),
            ("Linux", std::env::consts::ARCH)
        );
        assert!(here.cpus >= 1 && here.release.contains('.'), "{here:?}");
        let mut odd = FakeHost::default();
        odd.outputs.insert("getconf _NPROCESSORS_ONLN".into(), "undefined\n".into());
        let error = facts(&odd).expect_err("no number").to_string();
        assert!(error.contains("`undefined` is no number of CPUs"), "{error}");
    }
}
