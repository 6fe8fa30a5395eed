//! Parsers for the output of other traffic generators: logs of netmap's pkt-gen from 2015 on, logs
//! of the `equilibrium` script around it, and the notes that the netbenches scripts store with
//! them.
//!
//! Bytes in, typed results out: no files, no clock, no statistics, and no judgement of a run. A
//! line of unknown kind is kept and counted, never dropped; only input that cannot be a log is
//! refused. Long logs consist of intervals, so their path through the parser allocates nothing.

mod command;
mod cursor;
mod during;
mod equilibrium;
mod fault;
mod generator;
mod info;
mod interval;
mod known;
mod lines;
mod moment;
mod range;
mod summary;

pub use command::{Command, Function};
pub use during::DuringLog;
pub use equilibrium::{EquilibriumLog, Estimate, Load, Step, Trend};
pub use fault::LogError;
pub use generator::{GeneratorLog, LogEnd};
pub use info::{Info, InfoForm};
pub use interval::{Form, Interval, Layout};
pub use lines::{KEPT_LINES, LONGEST_LINE, NumberedLine, SHOWN_BYTES};
pub use range::AddressRange;
pub use summary::{Direction, Speed, Total};

/// A log of either family.
#[derive(Clone, Debug, PartialEq)]
pub enum Log {
    /// One sender or receiver of the pkt-gen family.
    Generator(GeneratorLog),
    /// A search for the equilibrium throughput.
    Equilibrium(EquilibriumLog),
}

/// Reads a log of the family that its first lines indicate.
///
/// # Errors
/// [`LogError`] for input that cannot be a log: empty, binary data, text of another kind.
pub fn parse(bytes: &[u8]) -> Result<Log, LogError> {
    if equilibrium::recognises(bytes) {
        EquilibriumLog::parse(bytes).map(Log::Equilibrium)
    } else {
        GeneratorLog::parse(bytes).map(Log::Generator)
    }
}
