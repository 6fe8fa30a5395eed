//! Who remembers what a DUT's settings were before they were changed.
//!
//! Settings of a namespace vanish with it; those of a machine must be put back, also by
//! whoever comes after a process that was killed.

use crate::error::BenchError;
use crate::host::{Host, LocalHost};
use crate::journal::Journal;

/// Changes settings of a DUT so that they can be put back.
pub trait Keeper {
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
}

/// A DUT in a namespace of this machine.
impl Keeper for Journal {
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
        Ok("") // they vanish with the namespace
    }
}
