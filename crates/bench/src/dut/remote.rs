//! DUTs of a laboratory, whatever their system: what a testbed asks of them.
//!
//! A DUT may go away and come back (a reboot), so none holds its host: each step is given
//! the one that is reached now.

use super::counters::Reading;
use super::linux::Findings;
use crate::error::BenchError;
use crate::host::Host;
use fwdlab_model::record::{Counter, Counts, DropPlace};
use fwdlab_model::settings::Settings;

/// What must happen before a variant is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// Nothing more.
    Ready,
    /// A reboot, for these reasons.
    Reboot(Vec<String>),
}

/// A DUT of a laboratory. In the order of their use:
pub trait RemoteDut {
    /// Writes what is read at boot: files, images, packages. What is there already is not
    /// written again.
    ///
    /// # Errors
    /// When a setting does not exist there or is refused.
    fn prepare(&mut self, host: &dyn Host, settings: &Settings) -> Result<Prepared, BenchError>;

    /// Tells it to reboot. It may take the connection with it.
    ///
    /// # Errors
    /// When it refuses; a lost connection is none.
    fn reboot(&mut self, host: &dyn Host) -> Result<(), BenchError>;

    /// Sets what holds without a reboot (interfaces, routes, neighbours, firewall,
    /// sysctls), and reads everything back, also which revision runs.
    ///
    /// # Errors
    /// When a setting does not exist there or is refused.
    fn configure(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError>;

    /// Its counters as they are now.
    ///
    /// # Errors
    /// When they can't be read.
    fn read(&mut self, host: &dyn Host) -> Result<Reading, BenchError>;

    /// What was counted between two readings, with what it must be by our own count.
    fn compare(&self, before: &Reading, after: &Reading, total: Counts) -> Vec<Counter>;

    /// Where packets were lost between two readings; `receiver` were lost by the receiver.
    fn drops(
        &self,
        before: &Reading,
        after: &Reading,
        total: Counts,
        receiver: u64,
        settings: &Settings,
    ) -> Vec<DropPlace>;

    /// Puts back what [`RemoteDut::configure`] and [`RemoteDut::prepare`] have changed,
    /// as far as files and sysctls go; images and packages stay. Safe to repeat, and
    /// safe when nothing was changed.
    ///
    /// # Errors
    /// [`BenchError::NotPutBack`] when something can't be put back: the rest is, and what it
    /// was stays remembered. Others when the DUT can't be asked.
    fn undo(&mut self, host: &dyn Host) -> Result<(), BenchError>;
}
