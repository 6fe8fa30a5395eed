//! Backup store on the DUT itself, a directory of plain files, so that a later process can
//! restore the DUT.
//!
//! | name | contents |
//! |---|---|
//! | `files` | a line for each file that fwdlab currently owns: `saved PATH` or `absent PATH` |
//! | `originals/PATH` | original content, with owner and mode |
//! | `written/PATH` | content that fwdlab wrote last |
//! | `written-next/PATH` | content that fwdlab is writing over it |
//! | `boot/PATH` | settings in effect since the running system booted |
//! | `sysctls` | `name=value` as found before the first change |
//! | others | notes, by their names |
//!
//! A file is copied here before it is changed and listed before it is written, so changes can be
//! undone even if the process dies in between.

use super::system::System;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use std::collections::BTreeMap;

/// Suffix of a file's name while it is written.
const PART: &str = ".fwdlab";

/// The backup directory on one host.
pub struct Backup<'a> {
    host: &'a dyn Host,
    home: &'static str,
    nanobsd: bool,
}

impl<'a> Backup<'a> {
    /// The directory of `host`. It is created on first use.
    pub fn new(host: &'a dyn Host, system: &System) -> Backup<'a> {
        Backup { host, home: system.home, nanobsd: system.nanobsd }
    }

    /// Host that contains the directory.
    pub fn host(&self) -> &'a dyn Host {
        self.host
    }

    /// Path of an entry; also used in messages.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{}", self.home, name.trim_start_matches('/'))
    }

    /// Reads a file byte for byte; `None` if there is no such file.
    ///
    /// # Errors
    /// Fails if the file exists and cannot be read.
    pub fn read(&self, path: &str) -> Result<Option<String>, BenchError> {
        match self.host.run(&["cat", path], "") {
            Ok(text) => Ok(Some(text)),
            Err(BenchError::Program { why, .. }) if why.contains("No such file") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file atomically; an existing file keeps its owner and mode.
    ///
    /// # Errors
    /// Fails if the file cannot be written; the error names host and command and quotes the
    /// system's message.
    pub fn write(&self, path: &str, text: &str) -> Result<(), BenchError> {
        let part = format!("{path}{PART}");
        if let Some((directory, _)) = path.rsplit_once('/').filter(|(d, _)| !d.is_empty()) {
            self.host.run(&["mkdir", "-p", directory], "")?;
        }
        let exists = self.host.run(&["test", "-e", path], "").is_ok();
        let copied =
            if exists { self.host.run(&["cp", "-p", path, &part], "") } else { Ok(String::new()) };
        let written = copied
            .and_then(|_| self.host.run(&["tee", &part], text))
            .and_then(|_| self.host.run(&["mv", "-f", &part, path], ""));
        if written.is_err() {
            let _ = self.host.run(&["rm", "-f", &part], "");
        }
        written.map(drop)
    }

    /// Reads a note; `None` if there is none.
    ///
    /// # Errors
    /// Fails if the note cannot be read.
    pub fn note(&self, name: &str) -> Result<Option<String>, BenchError> {
        self.read(&self.path(name))
    }

    /// Writes a note unless it is unchanged.
    ///
    /// # Errors
    /// Fails if the note cannot be written.
    pub fn set_note(&self, name: &str, text: &str) -> Result<(), BenchError> {
        if self.note(name)?.as_deref() == Some(text) {
            return Ok(());
        }
        self.write(&self.path(name), text)
    }

    /// Removes a note, or all notes below it.
    ///
    /// # Errors
    /// Fails if the note cannot be removed.
    pub fn forget(&self, name: &str) -> Result<(), BenchError> {
        self.host.run(&["rm", "-rf", &self.path(name)], "").map(drop)
    }

    /// Files that fwdlab currently owns; true if the file existed before.
    ///
    /// # Errors
    /// Fails if the list cannot be read.
    pub fn files(&self) -> Result<BTreeMap<String, bool>, BenchError> {
        let list = self.note("files")?.unwrap_or_default();
        let lines = list.lines().filter_map(|line| line.split_once(' '));
        Ok(lines.map(|(kind, path)| (path.to_owned(), kind == "saved")).collect())
    }

    fn set_files(&self, files: &BTreeMap<String, bool>) -> Result<(), BenchError> {
        let line = |(path, existed): (&String, &bool)| {
            format!("{} {path}\n", if *existed { "saved" } else { "absent" })
        };
        self.set_note("files", &files.iter().map(line).collect::<String>())
    }

    /// Original content of `path`. A file that was changed after fwdlab wrote it (by an image or an
    /// administrator) becomes the new original.
    ///
    /// # Errors
    /// Fails if something cannot be read.
    pub fn original(&self, path: &str, now: Option<&str>) -> Result<Option<String>, BenchError> {
        let Some(existed) = self.files()?.get(path).copied() else {
            return Ok(now.map(str::to_owned));
        };
        if !self.is_written(path, now)? {
            return Ok(now.map(str::to_owned));
        }
        if existed { self.note(&format!("originals{path}")) } else { Ok(None) }
    }

    /// True if fwdlab wrote `now`, also if it was interrupted while it replaced it.
    fn is_written(&self, path: &str, now: Option<&str>) -> Result<bool, BenchError> {
        Ok(self.note(&format!("written{path}"))?.as_deref() == now
            || self
                .note(&format!("written-next{path}"))?
                .as_deref()
                .is_some_and(|n| Some(n) == now))
    }

    /// Writes a file of the DUT and keeps its original. `now` is the current content, `original`
    /// the result of [`Backup::original`].
    ///
    /// # Errors
    /// Fails if the original cannot be kept or the file cannot be written.
    pub fn take(
        &self,
        path: &str,
        now: Option<&str>,
        original: Option<&str>,
        text: &str,
    ) -> Result<(), BenchError> {
        let mut files = self.files()?;
        // If equal, fwdlab does not own the current content: this is the first time, or it was
        // changed since.
        if now == original {
            if now.is_some() {
                let kept = self.path(&format!("originals{path}"));
                let directory = kept.rsplit_once('/').map_or(self.home, |(d, _)| d);
                self.host.run(&["mkdir", "-p", directory], "")?;
                self.host.run(&["cp", "-p", path, &kept], "")?;
            }
            files.insert(path.to_owned(), now.is_some());
            self.set_files(&files)?;
        }
        // Until the file is replaced, both contents are fwdlab's.
        let (written, next) = (format!("written{path}"), format!("written-next{path}"));
        if let Some(now) = now.filter(|_| now != original) {
            self.set_note(&written, now)?;
        }
        self.set_note(&next, text)?;
        self.writable(path, || self.write(path, text))?;
        self.set_note(&written, text)?;
        self.forget(&next)
    }

    /// Restores the original of `path`, unless the file was changed after fwdlab wrote it.
    ///
    /// # Errors
    /// Fails if the original cannot be restored.
    pub fn give_back(&self, path: &str) -> Result<(), BenchError> {
        let mut files = self.files()?;
        let Some(existed) = files.get(path).copied() else { return Ok(()) };
        let now = self.read(path)?;
        if self.is_written(path, now.as_deref())? {
            let kept = self.path(&format!("originals{path}"));
            self.writable(path, || {
                if !existed {
                    return self.host.run(&["rm", "-f", path], "").map(drop);
                }
                let part = format!("{path}{PART}");
                self.host.run(&["cp", "-p", &kept, &part], "")?;
                self.host.run(&["mv", "-f", &part, path], "").map(drop)
            })?;
        }
        files.remove(path);
        self.set_files(&files)?;
        ["written", "written-next", "originals"]
            .iter()
            .try_for_each(|kind| self.forget(&format!("{kind}{path}")))
    }

    /// Runs `change` with `/` mounted writable; on nanobsd it is normally read-only.
    fn writable(
        &self,
        path: &str,
        change: impl FnOnce() -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        if !self.nanobsd || path.starts_with("/etc/") {
            return change();
        }
        self.host.run(&["mount", "-uw", "/"], "")?;
        let changed = change();
        // A busy file system is no error: a reboot follows.
        let _ = self.host.run(&["mount", "-ur", "/"], "");
        changed
    }

    /// Makes files in `/etc` survive a reboot on systems that need a command for it: BSDRP's
    /// `config save`, or the script of nanobsd(8).
    ///
    /// # Errors
    /// Fails if neither works.
    pub fn persist(&self) -> Result<(), BenchError> {
        if !self.nanobsd {
            return Ok(());
        }
        let saved = self.host.run(&["config", "save"], "");
        let user_script = ["/bin/sh", "-c", "exec \"$HOME/save_cfg\""];
        saved.or_else(|_| self.host.run(&user_script, "")).map(drop)
    }

    /// Records a sysctl's value unless an older one is recorded.
    ///
    /// # Errors
    /// Fails if the value cannot be written.
    pub fn remember_sysctl(&self, name: &str, value: &str) -> Result<(), BenchError> {
        let mut sysctls = self.sysctls()?;
        if sysctls.contains_key(name) {
            return Ok(());
        }
        sysctls.insert(name.to_owned(), value.to_owned());
        self.set_sysctls(&sysctls)
    }

    /// Removes a recorded sysctl.
    ///
    /// # Errors
    /// Fails if the record cannot be written.
    pub fn forget_sysctl(&self, name: &str) -> Result<(), BenchError> {
        let mut sysctls = self.sysctls()?;
        if sysctls.remove(name).is_some() { self.set_sysctls(&sysctls) } else { Ok(()) }
    }

    /// Values of sysctls before fwdlab changed them.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub fn sysctls(&self) -> Result<BTreeMap<String, String>, BenchError> {
        let text = self.note("sysctls")?.unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once('='));
        Ok(lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn set_sysctls(&self, sysctls: &BTreeMap<String, String>) -> Result<(), BenchError> {
        let lines = sysctls.iter().map(|(name, value)| format!("{name}={value}\n"));
        self.set_note("sysctls", &lines.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::super::system::Boot;
    use super::*;
    use fwdlab_host::{LocalHost, Running};
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt;

    /// Uses this machine's own programs, which take the same arguments as FreeBSD's.
    #[test]
    fn files_are_written_and_restored_with_their_modes() {
        let root = std::env::temp_dir().join(format!("fwdlab-memory-{}", std::process::id()));
        let home: &'static str = root.join("home").display().to_string().leak();
        let directory = root.join("etc");
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = |name: &str| directory.join(name).display().to_string();
        let (kept, new) = (path("it's kept"), path("sub/new"));
        let text = "a=1\n\u{e9} \\ $x 'q'\n\n";
        std::fs::write(&kept, text).expect("written");
        let mode = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(&kept, mode).expect("a mode");
        let boot = Boot("1".into());
        let system = System { release: 1_400_097, boot, nanobsd: false, home };
        let backup = Backup::new(&LocalHost, &system);
        let read = |path: &str| backup.read(path).expect("read");
        let take = |path: &str, text: &str| {
            let now = read(path);
            let original = backup.original(path, now.as_deref()).expect("original");
            backup.take(path, now.as_deref(), original.as_deref(), text).expect("taken");
        };
        for round in ["one\n", "two"] {
            take(&kept, round);
            take(&new, round);
            assert_eq!((read(&kept).as_deref(), read(&new).as_deref()), (Some(round), Some(round)));
            let original = backup.original(&kept, Some(round)).expect("original");
            assert_eq!(original.as_deref(), Some(text));
            assert_eq!(backup.original(&new, Some(round)).expect("original"), None);
        }
        assert_eq!(backup.files().expect("files").len(), 2);
        for path in [&kept, &new, &kept] {
            backup.give_back(path).expect("given back");
        }
        assert_eq!((read(&kept).as_deref(), read(&new)), (Some(text), None));
        let mode = std::fs::metadata(&kept).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(backup.files().expect("files").len(), 0);
        let error = backup.write("/proc/nothing", "x").expect_err("no such place").to_string();
        assert!(error.contains("/proc/nothing.fwdlab") && error.contains("tee"), "{error}");
        let _ = std::fs::remove_dir_all(&root);
    }

    /// This machine over a connection that is lost after some commands.
    struct Unreliable(Cell<usize>);

    impl Host for Unreliable {
        fn name(&self) -> &str {
            "unreliable"
        }
        fn run(&self, argv: &[&str], stdin: &str) -> Result<String, BenchError> {
            match self.0.get().checked_sub(1) {
                Some(left) => self.0.set(left),
                None => return Err(BenchError::environment("it is gone", "look for it")),
            }
            LocalHost.run(argv, stdin)
        }
        fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError> {
            LocalHost.spawn(argv)
        }
        fn put(&self, path: &str, text: &str) -> Result<(), BenchError> {
            LocalHost.put(path, text)
        }
        fn get(&self, path: &str) -> Result<String, BenchError> {
            LocalHost.get(path)
        }
        fn send_file(&self, from: &std::path::Path, to: &str) -> Result<(), BenchError> {
            LocalHost.send_file(from, to)
        }
    }

    #[test]
    fn take_interrupted_anywhere_keeps_the_original() {
        let root = std::env::temp_dir().join(format!("fwdlab-interrupted-{}", std::process::id()));
        std::fs::create_dir_all(&root).expect("a directory");
        let path = root.join("file").display().to_string();
        let home: &'static str = root.join("home").display().to_string().leak();
        let boot = Boot("1".into());
        let system = System { release: 1_400_097, boot, nanobsd: false, home };
        let take = |host: &dyn Host, text: &str| {
            let backup = Backup::new(host, &system);
            let now = backup.read(&path)?;
            let original = backup.original(&path, now.as_deref())?;
            backup.take(&path, now.as_deref(), original.as_deref(), text)
        };
        let mut commands = 0;
        loop {
            std::fs::write(&path, "original\n").expect("written");
            take(&LocalHost, "one\n").expect("taken");
            let taken = take(&Unreliable(Cell::new(commands)), "two\n");
            // A third content may be interrupted as well.
            let _ = take(&Unreliable(Cell::new(commands)), "three\n");
            let backup = Backup::new(&LocalHost, &system);
            let now = backup.read(&path).expect("read");
            let original = backup.original(&path, now.as_deref()).expect("original");
            assert_eq!(original.as_deref(), Some("original\n"), "after {commands} commands");
            backup.give_back(&path).expect("given back");
            let now = backup.read(&path).expect("read");
            assert_eq!(now.as_deref(), Some("original\n"), "after {commands} commands");
            if taken.is_ok() {
                break;
            }
            commands += 1;
        }
        assert!(commands > 5);
        let _ = std::fs::remove_dir_all(&root);
    }
}
