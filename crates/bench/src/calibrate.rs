//! Calibration: the ceiling of sender and receiver without a DUT.

use crate::BenchError;
use crate::trial::{Observed, SystemClock};
use fwdlab_model::plan::{Plan, Trial};
use fwdlab_model::record::Calibration;
use fwdlab_model::settings::{Directions, Settings};

/// Number of trials of a calibration.
const ROUNDS: u32 = 3;

/// Measures a ceiling: `without_dut` runs a trial with the given run id.
///
/// # Errors
/// Returns an error if a trial fails.
pub fn measure(
    plan: &Plan,
    settings: &Settings,
    key: String,
    without_dut: &mut dyn FnMut(&Trial, u32) -> Result<Observed, BenchError>,
) -> Result<Calibration, BenchError> {
    let trial = trial(&plan.trial);
    let rounds = (0..ROUNDS).map(|round| {
        let observed = without_dut(&trial, plan.run_id(u32::MAX - round))?;
        Ok(observed.window.forwarded as f64 * 1e9 / observed.window_ns as f64)
    });
    let rates_pps: Result<Vec<f64>, BenchError> = rounds.collect();
    Ok(Calibration {
        testbed: key,
        family: settings.traffic.family.name().into(),
        frame_size: settings.traffic.frame_size,
        rates_pps: rates_pps?,
        measured_at: SystemClock.wall_text(),
    })
}

/// Phases of a calibration trial.
fn trial(plan: &Trial) -> Trial {
    Trial {
        warmup_ns: plan.warmup_ns.min(200_000_000),
        duration_ns: plan.duration_ns.min(400_000_000),
        ..*plan
    }
}

/// Calibration key: everything a ceiling depends on, apart from address family and frame size.
pub fn key(kind: &str, engine: &str, receiver: &str, settings: &Settings) -> String {
    let arrangement = match settings.testbed.arrangement {
        fwdlab_model::settings::Arrangement::Open => "open",
        fwdlab_model::settings::Arrangement::Closed => "closed",
    };
    let stamps = if settings.traffic.timestamps { ", time stamps" } else { "" };
    let directions = match settings.traffic.directions {
        Directions::One => "",
        Directions::Both => ", both directions",
    };
    format!(
        "{kind}, {arrangement}, {} x {engine} to {receiver}, {} queues{stamps}{directions}",
        settings.testbed.senders, settings.dut.queues
    )
}
