//! Lock on the hosts of a laboratory: one controller measures at a time.
//!
//! A directory on each host, `/var/run/fwdlab-lab.lock`, with numbered files. The highest
//! number is the current lock: it names the owner and the expiry time by that host's clock.
//! Files are never modified: to take, extend or release the lock, a process creates the file
//! with the next number by a hard link to a complete file, which only one process can do.
//! So there is no race between reading and taking: a process whose number is no longer the
//! highest fails, and reads again. Only the owner removes the highest number, with the
//! directory.
//!
//! The lock is stale, and can be taken over, if it has expired, if its owner was a process of
//! this machine that has ended, or after a reboot of the host (which clears `/var/run`). Each
//! run extends it.

use super::rack::Rack;
use crate::error::BenchError;
use crate::host::{Host, LocalHost};
use crate::journal;
use crate::lab::reached::Reached;
use std::time::Duration;

/// `highest` sets `at` to the highest number, 0 where there is none; `next` makes the file
/// after it, with `$1` (a time) and `$2` (an owner), and fails when another was quicker. By
/// cat, which says why it can't be written; shells don't.
const FUNCTIONS: &str = r#"highest() { at=0; for file in "$lock"/[0-9]*; do number=${file##*/}
case $number in *[!0-9]*) continue;; esac
[ "$number" -le "$at" ] || at=$number; done; }
next() { mine=$lock/new-$$ number_made=$((at + 1))
mkdir -p "$lock" || exit 1
printf '%s %s\n' "$1" "$2" | cat >"$mine" || { [ ! -d "$lock" ] || exit 1; return 1; }
said=$(ln "$mine" "$lock/$number_made" 2>&1) || { tries=$((tries + 1))
[ -e "$lock/$number_made" ] || [ "$tries" -lt 20 ] || { echo "$said" >&2; exit 1; }
rm -f "$mine"; return 1; }
rm -f "$mine"; highest
[ "$at" -eq "$number_made" ] || { rm -f "$lock/$number_made"; return 1; }
for file in "$lock"/[0-9]*; do number=${file##*/}
[ "$number" -gt $((at - 16)) ] || rm -f "$file"; done; }
lock=$1 owner=$2 tries=0
"#;

/// Takes the lock `$1` for the owner `$2` for `$3` seconds, or prints its owner. `$4` is an
/// owner that is known to have ended.
const TAKE: &str = r#"while highest; do now=$(date +%s)
read -r held theirs 2>/dev/null <"$lock/$at" || held=0 theirs=nobody
if [ "$theirs" != "$owner" ] && [ "$theirs" != "$4" ] && [ "$held" -gt "$now" ]; then
echo "$theirs $((held - now))"; exit 0
fi
if next $((now + $3)) "$owner"; then exit 0; fi
done"#;

/// Releases the lock `$1` if `$2` owns it. Before it expires no other process creates a
/// number, so one rename removes the directory atomically. After it has expired another
/// process may be taking it: then a new number releases it.
const RELEASE: &str = r#"while highest; do
read -r held theirs 2>/dev/null <"$lock/$at" || exit 0
[ "$theirs" = "$owner" ] || exit 0
if [ "$held" -gt $(($(date +%s) + 5)) ]; then
mv "$lock" "$lock.$$" && rm -rf "$lock.$$"; exit
fi
if next 0 nobody; then exit 0; fi
done"#;

const PATH: &str = "/var/run/fwdlab-lab.lock";

/// The locks that one controller holds.
#[derive(Debug)]
pub(super) struct Locks {
    owner: String,
}

impl Locks {
    /// Locks every host for `time`.
    ///
    /// # Errors
    /// When another controller holds a lock: names it and the remaining time.
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

    /// Locks a host, or extends its lock.
    ///
    /// # Errors
    /// As [`Locks::take`].
    pub(super) fn hold(&self, reached: &Reached, time: Duration) -> Result<(), BenchError> {
        let seconds = time.as_secs().to_string();
        let take = |gone: &str| {
            let text = [FUNCTIONS, TAKE].concat();
            let argv = ["/bin/sh", "-c", &text, "lock", PATH, &self.owner, &seconds, gone];
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
                "wait until it has ended: two would measure each other; if it was killed, `rm \
                 -r {PATH}` on {host}"
            ),
        ))
    }

    /// Releases every host; the lock of an unreachable host expires.
    pub(super) fn release(&self, rack: &Rack) {
        let text = [FUNCTIONS, RELEASE].concat();
        for reached in rack.all() {
            let argv = ["/bin/sh", "-c", &text, "unlock", PATH, &self.owner];
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

    fn take_with(environment: &[&str], path: &str, owner: &str, seconds: &str) -> String {
        let text = [FUNCTIONS, TAKE].concat();
        let gone = if owner == "heir" { "a" } else { "" };
        let shell = ["/bin/sh", "-c", &text, "lock", path, owner, seconds, gone];
        let argv = [&["env"], environment, &shell].concat();
        LocalHost.run(&argv, "").expect("an answer").trim().to_owned()
    }

    fn take(path: &str, owner: &str, seconds: &str) -> String {
        take_with(&[], path, owner, seconds)
    }

    fn release(path: &str, owner: &str) {
        let text = [FUNCTIONS, RELEASE].concat();
        LocalHost.run(&["/bin/sh", "-c", &text, "x", path, owner], "").expect("released");
    }

    fn directory(purpose: &str) -> String {
        let path = std::env::temp_dir().join(format!("fwdlab-{purpose}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path.display().to_string()
    }

    #[test]
    fn a_lock_is_one_owners_until_it_is_over() {
        let path = directory("lock");
        assert_eq!(take(&path, "a", "100"), "");
        assert_eq!(take(&path, "a", "100"), "", "held for longer");
        let said = take(&path, "b", "100");
        assert!(said.starts_with("a "), "{said}");
        assert_eq!(take(&path, "heir", "0"), "", "a is gone");
        assert_eq!(take(&path, "c", "100"), "", "the heir's time is over");
        release(&path, "b");
        assert!(take(&path, "a", "1").starts_with("c "));
        release(&path, "c");
        release(&path, "c");
        assert_eq!(take(&path, "d", "1"), "", "it was given back");
        for _ in 0..40 {
            assert_eq!(take(&path, "d", "100"), "");
        }
        let left = std::fs::read_dir(&path).expect("there").count();
        assert!(left <= 16, "{left} files");
        let locks = Locks { owner: format!("{}-here", journal::identity()) };
        assert!(locks.is_gone("4194305-77-here"));
        assert!(!locks.is_gone("4194305-77-there") && !locks.is_gone(&locks.owner));
        std::fs::remove_dir_all(&path).expect("clean");
    }

    /// Of many that come at once for a lock that is new, stale or was given back, one has it.
    #[test]
    fn of_many_at_once_one_takes_it() {
        let path = directory("locks");
        let mut winner = String::new();
        for round in 0..8 {
            match round % 4 {
                0 => drop(std::fs::remove_dir_all(&path)),
                1 => release(&path, &winner),
                // Stale: its time is over.
                2 => assert_eq!(take(&path, &winner, "0"), ""),
                _ => drop((take(&path, &winner, "0"), take(&path, "other", "0"))),
            }
            let taken: Vec<(String, String)> = std::thread::scope(|scope| {
                let takers = (0..24).map(|taker| {
                    let (path, owner) = (&path, format!("taker-{round}-{taker}"));
                    scope.spawn(move || (take(path, &owner, "100"), owner))
                });
                let takers: Vec<_> = takers.collect();
                takers.into_iter().map(|taker| taker.join().expect("no panic")).collect()
            });
            let had: Vec<&String> =
                taken.iter().filter(|(said, _)| said.is_empty()).map(|(_, owner)| owner).collect();
            let [one] = had[..] else { panic!("round {round}: {taken:?}") };
            winner.clone_from(one);
            let others = taken.iter().filter(|(said, _)| !said.is_empty());
            for (said, _) in others {
                assert!(said.starts_with(&format!("{winner} ")), "{said}, not {winner}");
            }
        }
        std::fs::remove_dir_all(&path).expect("clean");
    }

    /// One that has looked and is held up before it takes, however much happens meanwhile.
    #[test]
    fn who_is_held_up_between_looking_and_taking_looks_again() {
        let (path, tools) = (directory("held-up"), directory("held-up-tools"));
        std::fs::create_dir_all(&tools).expect("a directory");
        let ln = "#!/bin/sh\nif mkdir \"$TOOLS/waits\" 2>/dev/null; then\n\
                  until [ -e \"$TOOLS/go\" ]; do sleep 0.02; done; fi\n\
                  PATH=/usr/bin:/bin exec ln \"$@\"\n";
        std::fs::write(format!("{tools}/ln"), ln).expect("written");
        LocalHost.run(&["chmod", "+x", &format!("{tools}/ln")], "").expect("executable");
        for more in [1, 40] {
            let _ = std::fs::remove_file(format!("{tools}/go"));
            let _ = std::fs::remove_dir(format!("{tools}/waits"));
            assert_eq!(take(&path, "old", "0"), "", "stale from the beginning");
            let (search, variable) =
                (format!("PATH={tools}:/usr/bin:/bin"), format!("TOOLS={tools}"));
            std::thread::scope(|scope| {
                let late = scope.spawn(|| take_with(&[&search, &variable], &path, "late", "100"));
                while !std::path::Path::new(&format!("{tools}/waits")).exists() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                for _ in 0..more {
                    assert_eq!(take(&path, "quick", "100"), "");
                    release(&path, "quick");
                }
                assert_eq!(take(&path, "quick", "100"), "");
                std::fs::write(format!("{tools}/go"), "").expect("written");
                let said = late.join().expect("no panic");
                assert!(said.starts_with("quick "), "{said}");
            });
            release(&path, "quick");
        }
        for directory in [path, tools] {
            std::fs::remove_dir_all(directory).ok();
        }
    }
}
