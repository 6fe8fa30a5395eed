//! Journal: original values of machine-wide settings, recorded before they are changed.
//!
//! Settings within a namespace vanish with it. Machine-wide settings (sysctls that are not per
//! namespace) do not: their old values are written to a journal file first. The next process
//! restores the journals and removes the namespaces of processes that have ended or were killed. A
//! value that cannot be restored stays in its journal while the others are restored; each start
//! reports it as a remark, not as an error.

use fwdlab_host::error::BenchError;
use fwdlab_host::{Host, LocalHost};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of every namespace's name: `fwdlab-PID-START-ROLE`.
pub const PREFIX: &str = "fwdlab-";
/// Prefix of temporary files that can be deleted after their process has ended:
/// `temporary-PID-START-PURPOSE`.
const TEMPORARY: &str = "temporary-";

/// Lock on this machine for measuring, and the journal.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    identity: String,
    left: Vec<String>,
    _lock: File,
}

impl Journal {
    /// Waits up to 30 s for another fwdlab on this machine to end, then cleans up after processes
    /// that have ended.
    ///
    /// # Errors
    /// Fails if another fwdlab is still measuring, or if the directory cannot be written.
    pub fn open(directory: &Path) -> Result<Journal, BenchError> {
        let at = |e: std::io::Error| {
            BenchError::environment(
                format!("{}: {e}", directory.display()),
                "make it writable, or run as another user",
            )
        };
        fs::create_dir_all(directory).map_err(at)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(directory.join("lock"))
            .map_err(at)?;
        let mut waited = 0;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if waited < 300 => {
                    waited += 1;
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(TryLockError::WouldBlock) => {
                    let pid = fs::read_to_string(directory.join("lock")).unwrap_or_default();
                    return Err(BenchError::environment(
                        format!("another fwdlab (process {}) measures on this machine", pid.trim()),
                        "wait until it has ended: two would measure each other",
                    ));
                }
                Err(TryLockError::Error(e)) => return Err(at(e)),
            }
        }
        fs::write(directory.join("lock"), format!("{}\n", std::process::id())).map_err(at)?;
        let (directory, left) = (directory.to_owned(), Vec::new());
        let mut journal = Journal { directory, identity: identity(), left, _lock: lock };
        journal.clean_up_after_ended_processes();
        Ok(journal)
    }

    /// Settings of earlier processes that could not be restored, each with its journal file and the
    /// next step.
    pub fn left(&self) -> &[String] {
        &self.left
    }

    /// Name of this process's namespace for a role; unique on this machine.
    pub fn namespace(&self, role: &str) -> String {
        format!("{PREFIX}{}-{role}", self.identity)
    }

    /// Writes a machine-wide setting after recording its old value on disk.
    ///
    /// # Errors
    /// Fails if the setting does not exist or rejects the value.
    pub fn change(&self, path: &str, value: &str) -> Result<(), BenchError> {
        let old = LocalHost.get(path)?;
        let file = self.file();
        let written = OpenOptions::new().create(true).append(true).open(&file).and_then(|mut f| {
            writeln!(f, "{path}\t{old}")?;
            f.sync_data()
        });
        written.map_err(|source| BenchError::File {
            path: file.display().to_string(),
            host: LocalHost.name().into(),
            source,
        })?;
        LocalHost.put(path, value)
    }

    /// Restores everything that [`Journal::change`] changed, newest first.
    ///
    /// # Errors
    /// Fails if a value cannot be restored: the others are, and the journal keeps it.
    pub fn undo(&self) -> Result<(), BenchError> {
        undo_file(&self.file())
    }

    /// A temporary file of this process; if this process is killed, the next one deletes it.
    pub fn temporary(&self, purpose: &str) -> PathBuf {
        self.directory.join(format!("{TEMPORARY}{}-{purpose}", self.identity))
    }

    fn file(&self) -> PathBuf {
        self.directory.join(format!("journal-{}", self.identity))
    }

    fn clean_up_after_ended_processes(&mut self) {
        let mut left = Vec::new();
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(owner) = name.strip_prefix("journal-")
                && (owner == self.identity || !is_alive(owner))
            {
                left.extend(undo_file(&entry.path()).err());
            }
            if let Some(owner) = name.strip_prefix(TEMPORARY).and_then(owner_before_last_dash)
                && (owner == self.identity || !is_alive(owner))
            {
                let _ = fs::remove_file(entry.path());
            }
        }
        for entry in fs::read_dir(fwdlab_netio::netns::NAMED).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(owner) = owner_of(&name)
                && (owner == self.identity || !is_alive(owner))
            {
                kill_within(&name);
                left.extend(LocalHost.run(&["ip", "netns", "delete", &name], "").err());
            }
        }
        self.left = left.iter().map(ToString::to_string).collect();
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A journal that cannot be undone now stays for the next process.
        let _ = self.undo();
    }
}

/// Restores every line in reverse order; failed lines stay in the file, in order. A setting that no
/// longer exists is skipped.
fn undo_file(file: &Path) -> Result<(), BenchError> {
    let Ok(text) = fs::read_to_string(file) else { return Ok(()) };
    let (mut kept, mut failures) = (Vec::new(), Vec::new());
    for line in text.lines().rev() {
        let Some((path, old)) = line.split_once('\t') else { continue };
        if !Path::new(path).exists() {
            continue;
        }
        if let Err(error) = LocalHost.put(path, old) {
            kept.push(line);
            failures.push(format!("{path} is not `{old}` again: {error}"));
        }
    }
    if kept.is_empty() {
        let _ = fs::remove_file(file);
        return Ok(());
    }
    kept.reverse();
    // Written atomically: these values are stored nowhere else.
    let part = file.with_extension("part");
    let written = fs::write(&part, kept.join("\n") + "\n").and_then(|()| fs::rename(&part, file));
    let _ = written.inspect_err(|_| drop(fs::remove_file(&part)));
    Err(BenchError::NotPutBack {
        host: LocalHost.name().to_owned(),
        why: failures.join("; "),
        instead: ", or boot the machine, and remove the file",
        journal: file.display().to_string(),
    })
}

/// Kills the processes in one of fwdlab's namespaces. Background processes of a DUT's commands
/// belong to the testbed: no other process knows the namespace.
pub fn kill_within(namespace: &str) {
    let left = LocalHost.run(&["ip", "netns", "pids", namespace], "").unwrap_or_default();
    let this_process = std::process::id().to_string();
    for pid in left.split_whitespace().filter(|pid| *pid != this_process) {
        let _ = LocalHost.run(&["kill", "-9", pid], "");
    }
}

/// `PID-START` from a namespace's name.
fn owner_of(namespace: &str) -> Option<&str> {
    owner_before_last_dash(namespace.strip_prefix(PREFIX)?)
}

fn owner_before_last_dash(text: &str) -> Option<&str> {
    let (owner, _role) = text.rsplit_once('-')?;
    owner.contains('-').then_some(owner)
}

/// This process as `PID-START`; the start time (in clock ticks since boot) distinguishes it from a
/// later process with the same process id.
pub fn identity() -> String {
    let pid = std::process::id();
    format!("{pid}-{}", start_time(pid).unwrap_or(0))
}

/// True while the process `PID-START` is alive.
pub fn is_alive(owner: &str) -> bool {
    owner
        .split_once('-')
        .and_then(|(pid, start)| Some((pid.parse().ok()?, start.parse::<u64>().ok()?)))
        .is_some_and(|(pid, start)| start_time(pid) == Some(start))
}

/// Field 22 of `/proc/PID/stat` (proc(5)); `None` if there is no such process, or only its zombie.
fn start_time(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text[text.rfind(')')? + 2..].split(' ');
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_impossible_ones_are_not() {
        assert!(is_alive(&identity()));
        assert!(!is_alive(&format!("{}-1", std::process::id())));
        assert!(!is_alive("4194305-77"));
        assert!(!is_alive("nonsense"));
    }

    #[test]
    fn owners_are_parsed_from_namespace_names() {
        assert_eq!(owner_of("fwdlab-12-345-dut"), Some("12-345"));
        assert_eq!(owner_of("fwdlab-dut"), None);
        assert_eq!(owner_of("other-12-345-dut"), None);
    }

    #[test]
    fn journal_of_an_ended_process_is_undone_and_removed() {
        let directory = std::env::temp_dir().join(format!("fwdlab-journal-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("directory");
        let setting = directory.join("setting");
        fs::write(&setting, "changed twice").expect("write");
        let lines = format!("{0}\told\n{0}\tnew\n", setting.display());
        fs::write(directory.join("journal-4194305-77"), lines).expect("write");
        let stale = directory.join("temporary-4194305-77-perf");
        fs::write(&stale, "samples").expect("write");
        let journal = Journal::open(&directory).expect("open");
        assert!(!stale.exists());
        // Each line overwrites the one before: the oldest value comes last.
        assert!(fs::read_to_string(&setting).expect("read").starts_with("old"));
        assert!(!directory.join("journal-4194305-77").exists());
        drop(journal);
        fs::remove_dir_all(&directory).expect("clean");
    }

    #[test]
    fn failed_restore_does_not_block_other_settings_or_later_starts() {
        let directory = std::env::temp_dir().join(format!("fwdlab-stuck-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("directory");
        let path = |name: &str| directory.join(name);
        for name in ["first", "last"] {
            fs::write(path(name), "?").expect("write");
        }
        // A directory exists and cannot be written, not even by root.
        fs::create_dir_all(path("stuck")).expect("directory");
        let line = |name: &str, old: &str| format!("{}\t{old}\n", path(name).display());
        let stuck = line("stuck", "1") + &line("stuck", "2");
        let lines = line("first", "a") + &stuck + &line("gone", "x") + &line("last", "b");
        let stale = path("journal-4194305-78");
        fs::write(&stale, lines).expect("write");
        for _ in 0..2 {
            let journal = Journal::open(&directory).expect("a start");
            for (name, old) in [("first", "a"), ("last", "b")] {
                // Overwritten in place, like files of the kernel.
                assert!(fs::read_to_string(path(name)).expect("read").starts_with(old));
            }
            assert_eq!(fs::read_to_string(&stale).expect("kept"), stuck);
            let [notice] = journal.left() else { panic!("{:?}", journal.left()) };
            let (setting, file) = (path("stuck"), stale.display().to_string());
            for word in [&*setting.to_string_lossy(), &*file, "next step", "`1`", "`2`"] {
                assert!(notice.contains(word), "{notice}");
            }
        }
        // Now the setting can be written again.
        fs::remove_dir(path("stuck")).expect("removed");
        fs::write(path("stuck"), "3").expect("write");
        let journal = Journal::open(&directory).expect("a start");
        assert!(journal.left().is_empty() && !stale.exists());
        assert!(fs::read_to_string(path("stuck")).expect("read").starts_with('1'), "the oldest");
        drop(journal);
        fs::remove_dir_all(&directory).expect("clean");
    }
}
