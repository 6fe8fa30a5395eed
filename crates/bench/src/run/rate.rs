//! Intended loads in packets per second.

use crate::{BenchError, Task};
use fwdlab_model::settings::{Rate, Settings};

/// Intended load of a variant's traffic; `None` for the maximum.
///
/// # Errors
/// Returns an error if a rate in percent has no ceiling to refer to.
pub(super) fn of(task: &Task<'_>, settings: &Settings) -> Result<Option<f64>, BenchError> {
    pps(settings.traffic.rate, task, settings)
}

/// Load of a variant's frames, of all directions together; `None` for the maximum.
///
/// # Errors
/// Returns an error if a rate in percent has no ceiling to refer to.
pub(super) fn pps(
    rate: Rate,
    task: &Task<'_>,
    settings: &Settings,
) -> Result<Option<f64>, BenchError> {
    let directions = f64::from(settings.traffic.directions.count());
    Ok(match rate {
        Rate::Max => None,
        Rate::Pps(pps) => Some(pps * directions),
        Rate::Bps(bps) => {
            Some(bps / settings.traffic.frame_size.l2_bits_per_second(1.0) * directions)
        }
        // The ceiling applies to all directions together.
        Rate::Ceiling(share) => {
            let ceiling = task.ceiling_pps.ok_or_else(|| {
                BenchError::Refused(
                    "a rate in percent needs the ceiling: run without --no-calibration".into(),
                )
            })?;
            Some(ceiling * share)
        }
    })
}
