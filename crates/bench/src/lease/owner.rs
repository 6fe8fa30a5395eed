//! Owner of a lease: one process of one controller.

use crate::host::{Host, LocalHost};
use crate::journal;
use std::fs;

/// A controller's process in the records of leases: `USER@MACHINE:PID-START:WHERE`. `WHERE`
/// distinguishes machines of the same name, and boots of a machine: process ids are meaningful only
/// within one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner(String);

impl Owner {
    /// This process.
    pub fn this() -> Owner {
        Owner(format!("{}:{}:{}", person(), journal::identity(), here()))
    }

    /// An owner with this text.
    #[cfg(test)]
    pub(super) fn named(text: String) -> Owner {
        Owner(text)
    }

    /// Text of the owner.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// User and machine, `USER@MACHINE`.
pub(super) fn person() -> String {
    let user = ["SUDO_USER", "USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let machine = LocalHost.run(&["uname", "-n"], "").unwrap_or_default();
    format!("{}@{}", word(user.as_deref().unwrap_or("root")), word(machine.trim()))
}

/// Owner in readable form: `USER@MACHINE, process PID`.
pub fn named(owner: &str) -> String {
    let mut parts = owner.splitn(3, ':');
    let (person, process) = (parts.next().unwrap_or(owner), parts.next().unwrap_or_default());
    match process.split('-').next() {
        Some(pid) if !pid.is_empty() => format!("{person}, process {pid}"),
        _ => person.to_owned(),
    }
}

/// True for a process of this machine and boot that has ended.
pub(super) fn is_gone(owner: &str) -> bool {
    let mut parts = owner.splitn(3, ':').skip(1);
    match (parts.next(), parts.next()) {
        (Some(process), Some(place)) => place == here() && !journal::is_alive(process),
        _ => false,
    }
}

/// True for a process of this machine that has ended, in this boot or an earlier one. For records
/// on this machine's own disk.
pub(crate) fn is_gone_from_here(owner: &str) -> bool {
    let machine = |owner: &str| owner.split(':').next()?.split_once('@').map(|p| p.1.to_owned());
    // A boot id contains dashes, a namespace does not.
    let boot = |owner: &str| {
        let place = owner.splitn(3, ':').nth(2)?;
        place.rsplit_once('-').map(|(boot, _)| boot.to_owned())
    };
    let this = Owner::this();
    let is_of_this_machine = machine(owner).is_some() && machine(owner) == machine(this.text());
    let is_of_another_boot = boot(owner).is_some() && boot(owner) != boot(this.text());
    is_gone(owner) || (is_of_this_machine && is_of_another_boot)
}

/// This boot of this machine, and the namespace of process ids.
fn here() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    format!("{}-{}", word(boot.trim()), digits(&space.to_string_lossy()))
}

/// Replaces the characters that separate words in records.
fn word(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let word: String = text.chars().map(plain).collect();
    if word.is_empty() { "_".into() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_is_gone_only_if_its_process_would_be_visible() {
        let this = Owner::this();
        assert!(!is_gone(this.text()), "{this:?}");
        let dead = format!("someone@here:4194305-77:{}", here());
        assert!(is_gone(&dead), "{dead}");
        // Another machine of the same name, another boot, another namespace of processes.
        assert!(!is_gone("someone@here:4194305-77:e0d1-4026531836"));
        assert!(!is_gone("nobody") && !is_gone("a:b") && !is_gone(""));
        // On this machine's own disk an owner of an earlier boot is gone, one of another machine is
        // not.
        let person = person();
        for (owner, gone) in [
            (dead.clone(), true),
            (this.text().to_owned(), false),
            (format!("{person}:4194305-77:e0d1-1-4026531836"), true),
            (format!("{person}x:4194305-77:e0d1-1-4026531836"), false),
            ("labgrid".to_owned(), false),
        ] {
            assert_eq!(is_gone_from_here(&owner), gone, "{owner}");
        }
        assert_eq!(named(&dead), "someone@here, process 4194305");
        assert_eq!(named("nobody"), "nobody");
        assert_eq!((word("a b:c/d"), word("")), ("a_b_c_d".into(), "_".into()));
    }
}
