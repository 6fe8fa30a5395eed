//! Restores a DUT's original settings; distinguishes a dedicated namespace from a whole machine.
//!
//! A namespace vanishes with all its settings. On another machine, each old value is recorded there
//! before it is changed ([`super::undo`]), so that the next process can restore it if this one is
//! killed.

use crate::journal::Journal;
use fwdlab_host::error::BenchError;
use fwdlab_host::{Host, LocalHost};

/// Changes settings of a DUT so that they can be restored.
pub trait SettingRestorer {
    /// True if the DUT is a network namespace of this machine: it is dedicated to the test,
    /// nothing in it has to be restored, and its threads are visible in this machine's `/proc`.
    fn is_namespace(&self) -> bool;

    /// Records commands that undo the next change; they run in reverse order.
    ///
    /// # Errors
    /// Fails if they cannot be recorded; the caller must then change nothing.
    fn note(&self, host: &dyn Host, commands: &[String]) -> Result<(), BenchError>;

    /// Writes settings (path, value) in the order given.
    ///
    /// # Errors
    /// Fails if a setting does not exist or rejects its value.
    fn put(&self, host: &dyn Host, settings: &[(String, String)]) -> Result<(), BenchError>;

    /// Writes a setting that may be machine-wide.
    ///
    /// # Errors
    /// The errors of [`SettingRestorer::put`].
    fn change(&self, host: &dyn Host, path: &str, value: &str) -> Result<(), BenchError>;

    /// Reads a setting that may be machine-wide.
    ///
    /// # Errors
    /// Fails if the setting does not exist.
    fn get(&self, host: &dyn Host, path: &str) -> Result<String, BenchError>;

    /// Arguments for ip(8) that mark fwdlab's routes, so that they can be removed later. Must be
    /// called before adding routes.
    ///
    /// # Errors
    /// Fails if the mark cannot be recorded.
    fn mark_routes(&self, host: &dyn Host) -> Result<&'static str, BenchError>;

    /// Restores all recorded settings.
    ///
    /// # Errors
    /// [`BenchError::NotPutBack`] if a setting cannot be restored; the others are.
    fn undo(&self, host: &dyn Host) -> Result<(), BenchError>;
}

/// A DUT in a namespace of this machine. Machine-wide settings go through the journal, which
/// the testbed rolls back after the namespace is deleted, and [`SettingRestorer::undo`] before the
/// next variant.
impl SettingRestorer for Journal {
    fn is_namespace(&self) -> bool {
        true
    }

    fn note(&self, _: &dyn Host, _: &[String]) -> Result<(), BenchError> {
        Ok(())
    }

    fn put(&self, host: &dyn Host, settings: &[(String, String)]) -> Result<(), BenchError> {
        settings.iter().try_for_each(|(path, value)| host.put(path, value))
    }

    fn change(&self, host: &dyn Host, path: &str, value: &str) -> Result<(), BenchError> {
        // Only `net` has values per namespace; all other sysctls belong to the machine.
        let is_of_namespace = path.starts_with("/proc/sys/net/") && host.put(path, value).is_ok();
        if is_of_namespace { Ok(()) } else { Journal::change(self, path, value) }
    }

    fn get(&self, host: &dyn Host, path: &str) -> Result<String, BenchError> {
        host.get(path).or_else(|_| LocalHost.get(path))
    }

    fn mark_routes(&self, _: &dyn Host) -> Result<&'static str, BenchError> {
        Ok("")
    }

    fn undo(&self, _: &dyn Host) -> Result<(), BenchError> {
        Journal::undo(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_wide_setting_is_restored_before_the_next_variant() {
        let directory = std::env::temp_dir().join(format!("fwdlab-undone-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let setting = directory.join("setting");
        std::fs::write(&setting, "old").expect("written");
        let journal = Journal::open(&directory).expect("a journal");
        let keeper: &dyn SettingRestorer = &journal;
        keeper.change(&LocalHost, &setting.display().to_string(), "new").expect("changed");
        keeper.undo(&LocalHost).expect("restored");
        assert_eq!(std::fs::read_to_string(&setting).expect("text"), "old");
        drop(journal);
        let _ = std::fs::remove_dir_all(&directory);
    }
}
