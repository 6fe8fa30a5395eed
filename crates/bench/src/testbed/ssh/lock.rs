//! The right to measure with the hosts of a laboratory.
//!
//! A directory on each host, `/var/run/fwdlab-lab.lock`, that only one controller can make.
//! In it stands who made it and until when it holds, by that host's own clock; each run
//! holds it anew. It is stale, and taken over, when that time is over, when its owner was a
//! process of this machine that is gone, or when the host has booted (which empties
//! `/var/run`).

use super::rack::{Rack, Reached};
use crate::error::BenchError;
use crate::host::{Host, LocalHost};
use crate::journal;
use std::time::Duration;

/// Takes the lock `$1` for the owner `$2` for `$3` seconds, or says whose it is. `$4` is an
/// owner that is known to be gone.
const TAKE: &str = r#"lock=$1 owner=$2 now=$(date +%s)
until=$((now + $3))
if ! mkdir "$lock" 2>/dev/null; then
[ -d "$lock" ] || { mkdir "$lock"; exit 1; }
read -r held theirs 2>/dev/null <"$lock/owner" || { held=0 theirs=nobody; }
if [ "$theirs" != "$owner" ] && [ "$theirs" != "$4" ] && [ "$held" -gt "$now" ]; then
echo "$theirs $((held - now))"; exit 0
fi
fi
# By cat, which says why it can't be written; shells don't.
printf '%s %s\n' "$until" "$owner" | cat >"$lock/owner" || exit 1"#;

/// Gives the lock `$1` back if it is the owner's, `$2`.
const RELEASE: &str = r#"read -r held theirs 2>/dev/null <"$1/owner" || exit 0
[ "$theirs" = "$2" ] || exit 0
rm -f "$1/owner"; rmdir "$1""#;

const PATH: &str = "/var/run/fwdlab-lab.lock";

/// The locks of one controller.
#[derive(Debug)]
pub(super) struct Locks {
    owner: String,
}

impl Locks {
    /// Takes every host for so long.
    ///
    /// # Errors
    /// When another controller has one: its name and the time that it may have still.
    pub(super) fn take(rack: &Rack, time: Duration) -> Result<Locks, BenchError> {
        let name = LocalHost.run(&["uname", "-n"], "")?;
        let locks = Locks { owner: format!("{}-{}", journal::identity(), name.trim()) };
        for reached in rack.all() {
            if let Err(error) = locks.hold(reached, time) {
                locks.release(rack);
                return Err(error);
            }
        }
        Ok(locks)
    }

    /// Takes a host, or holds it for longer.
    ///
    /// # Errors
    /// As [`Locks::take`].
    pub(super) fn hold(&self, reached: &Reached, time: Duration) -> Result<(), BenchError> {
        let seconds = time.as_secs().to_string();
        let take = |gone: &str| {
            let argv = ["/bin/sh", "-c", TAKE, "lock", PATH, &self.owner, &seconds, gone];
            reached.host().run(&argv, "").map(|said| said.trim().to_owned())
        };
        let mut said = take("")?;
        if self.is_gone(said.split(' ').next().unwrap_or_default()) {
            let gone = said.split(' ').next().unwrap_or_default().to_owned();
            said = take(&gone)?;
        }
        let Some((theirs, left)) = said.split_once(' ') else { return Ok(()) };
        let host = &reached.described.name;
        Err(BenchError::environment(
            format!("another fwdlab ({theirs}) measures with {host}, for {left} s at most"),
            format!(
                "wait until it has ended: two would measure each other; one that was killed \
                 leaves {PATH} on {host}"
            ),
        ))
    }

    /// Gives every host back; one that can't be reached frees itself in time.
    pub(super) fn release(&self, rack: &Rack) {
        for reached in rack.all() {
            let argv = ["/bin/sh", "-c", RELEASE, "unlock", PATH, &self.owner];
            let _ = reached.host().run(&argv, "");
        }
    }

    /// True for a process of this machine that has ended.
    fn is_gone(&self, owner: &str) -> bool {
        // PID-START-MACHINE
        let parts = |owner: &str| {
            let (pid, rest) = owner.split_once('-')?;
            let (start, machine) = rest.split_once('-')?;
            Some((format!("{pid}-{start}"), machine.to_owned()))
        };
        match (parts(owner), parts(&self.owner)) {
            (Some((process, machine)), Some((_, here))) => {
                machine == here && !journal::is_alive(&process)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_one_owners_until_it_is_over() {
        let path = std::env::temp_dir().join(format!("fwdlab-lock-{}", std::process::id()));
        let path = path.display().to_string();
        let take = |owner: &str, seconds: &str, gone: &str| {
            let argv = ["/bin/sh", "-c", TAKE, "lock", &path, owner, seconds, gone];
            LocalHost.run(&argv, "").expect("an answer").trim().to_owned()
        };
        let release = |owner: &str| {
            LocalHost.run(&["/bin/sh", "-c", RELEASE, "x", &path, owner], "").expect("released")
        };
        assert_eq!(take("a", "100", ""), "");
        assert_eq!(take("a", "100", ""), "", "held for longer");
        let said = take("b", "100", "");
        assert!(said.starts_with("a "), "{said}");
        assert_eq!(take("b", "0", "a"), "", "a is gone");
        assert_eq!(take("c", "100", ""), "", "b's time is over");
        release("b");
        assert!(take("a", "1", "").starts_with("c "));
        release("c");
        release("c");
        assert!(!std::path::Path::new(&path).exists());
        let locks = Locks { owner: format!("{}-here", journal::identity()) };
        assert!(locks.is_gone("4194305-77-here"));
        assert!(!locks.is_gone("4194305-77-there") && !locks.is_gone(&locks.owner));
    }
}
