//! Levels: groups of tests with the same requirements and similar duration.

use anyhow::{Result, bail};

/// A set of tests that `cargo xtask test LEVEL` runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Needs only the compiler: all programs that [`PROGRAMS`] does not list.
    Unit,
    /// The `fwdlab` program on its command line.
    Cli,
    /// Network namespaces of this machine, AF_XDP, BPF.
    Netns,
    /// The router with other programs: kernel hosts, FRR, tcpdump.
    Clients,
    /// Laboratories of several hosts, each a namespace with an sshd.
    Lab,
    /// Guests of QEMU.
    Vm,
}

/// Every level with its name, in the order of a whole run.
pub(crate) const LEVELS: &[(&str, Level)] = &[
    ("unit", Level::Unit),
    ("netns", Level::Netns),
    ("clients", Level::Clients),
    ("cli", Level::Cli),
    ("lab", Level::Lab),
    ("vm", Level::Vm),
];

/// Programs of one lane run one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Measures on this machine: measurements wait for the machine's lock.
    Machine,
    /// Unit tests, and tests that mostly wait for hosts.
    Hosts,
    /// Counts of guests. They use all CPUs for minutes: together with other lanes they would distort
    /// measurements, and boot too slowly.
    Guests,
}

/// Groups of lanes, one after the other. The lanes of a group run at the same time.
pub(crate) const LANES: [&[Lane]; 2] = [&[Lane::Machine, Lane::Hosts], &[Lane::Guests]];

/// Test programs beyond [`Level::Unit`]: package, target, level, lane.
const PROGRAMS: &[(&str, &str, Level, Lane)] = &[
    ("fwdlab", "cli", Level::Cli, Lane::Machine),
    ("fwdlab", "kernel", Level::Netns, Lane::Machine),
    ("fwdlab-netio", "arrivals", Level::Netns, Lane::Machine),
    ("fwdlab-netio", "delays", Level::Netns, Lane::Machine),
    ("fwdlab-netio", "frames", Level::Netns, Lane::Machine),
    ("fwdlab-netio", "offloads", Level::Netns, Lane::Machine),
    ("fwdlab-netio", "ports", Level::Netns, Lane::Machine),
    ("fwdlab-bench", "netns", Level::Netns, Lane::Machine),
    ("fwdlab-bench", "profile", Level::Netns, Lane::Machine),
    ("fwdlab-bench", "generators", Level::Netns, Lane::Machine),
    ("fwdlab", "clients", Level::Clients, Lane::Machine),
    ("fwdlab-bench", "ssh", Level::Lab, Lane::Hosts),
    ("fwdlab", "lab", Level::Lab, Lane::Hosts),
    ("fwdlab", "rates", Level::Vm, Lane::Machine),
    ("fwdlab", "vm", Level::Vm, Lane::Guests),
];

/// Returns the level with a name.
///
/// # Errors
/// Fails if there is no such level.
pub(crate) fn level(name: &str) -> Result<Level> {
    match LEVELS.iter().find(|(known, _)| *known == name) {
        Some((_, level)) => Ok(*level),
        None => {
            let names: Vec<&str> = LEVELS.iter().map(|(name, _)| *name).collect();
            bail!("no test level `{name}`\n  next step: use one of {}", names.join(", "))
        }
    }
}

/// Returns level and lane of an integration test; `target` is `None` for unit tests.
pub(crate) fn place(package: &str, target: Option<&str>) -> (Level, Lane) {
    let matches = |row: &&(&str, &str, Level, Lane)| row.0 == package && Some(row.1) == target;
    PROGRAMS.iter().find(matches).map_or((Level::Unit, Lane::Hosts), |row| (row.2, row.3))
}

/// Returns package and target of each program of a level, except [`Level::Unit`].
pub(crate) fn programs(level: Level) -> impl Iterator<Item = (&'static str, &'static str)> {
    PROGRAMS.iter().filter(move |row| row.2 == level).map(|row| (row.0, row.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_program_exists() {
        let root = crate::root();
        for (package, target, ..) in PROGRAMS {
            let folder = root.join("crates").join(package.trim_start_matches("fwdlab-"));
            let folder = folder.join("tests");
            let files = [folder.join(format!("{target}.rs")), folder.join(target).join("main.rs")];
            assert!(files.iter().any(|file| file.is_file()), "{package} {target}");
        }
    }

    #[test]
    fn every_level_has_a_program() {
        for (name, expected) in LEVELS {
            assert_eq!(level(name).expect("a level"), *expected);
            assert!(*expected == Level::Unit || programs(*expected).next().is_some(), "{name}");
        }
        assert!(level("moon").is_err());
    }
}
