//! Who puts back what a DUT's settings were before they were changed, and how much of the
//! machine is the test's.
//!
//! A namespace vanishes with everything in it; another machine's settings are noted there
//! before each change ([`super::undo`]), so that whoever comes after a process that was
//! killed can put them back.

use crate::error::BenchError;
use crate::host::{Host, LocalHost};
use crate::journal::Journal;

/// Changes settings of a DUT so that they can be put back.
pub trait Keeper {
    /// True when the DUT is a namespace of this machine: nothing in it is anybody else's,
    /// nothing in it has to be put back, and this machine's kernel knows its threads.
    fn is_namespace(&self) -> bool;

    /// Notes commands that undo what is done next, the last one first.
    ///
    /// # Errors
    /// When they can't be noted: nothing may be changed then.
    fn note(&self, host: &dyn Host, commands: &[String]) -> Result<(), BenchError>;

    /// Writes settings, path and value, in their order.
    ///
    /// # Errors
    /// When one does not exist or refuses its value.
    fn put(&self, host: &dyn Host, settings: &[(String, String)]) -> Result<(), BenchError>;

    /// Writes a setting that may be the whole machine's.
    ///
    /// # Errors
    /// As [`Keeper::put`].
    fn change(&self, host: &dyn Host, path: &str, value: &str) -> Result<(), BenchError>;

    /// Reads a setting that may be the whole machine's.
    ///
    /// # Errors
    /// When it does not exist.
    fn get(&self, host: &dyn Host, path: &str) -> Result<String, BenchError>;

    /// What ip(8) is told of each route, so that it is found again: asked for before
    /// routes are added.
    ///
    /// # Errors
    /// When it can't be noted.
    fn mark_routes(&self, host: &dyn Host) -> Result<&'static str, BenchError>;

    /// Puts everything back that was noted; nothing when nothing was changed.
    ///
    /// # Errors
    /// [`BenchError::NotPutBack`] when something can't be put back; the rest is.
    fn undo(&self, host: &dyn Host) -> Result<(), BenchError>;
}

/// A DUT in a namespace of this machine: what is the whole machine's goes through the
/// journal, which the testbed undoes when the namespace has gone.
impl Keeper for Journal {
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
        // Only `net` has values per namespace; all else is the machine's.
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
        Ok(())
    }
}
