//! The ceiling: what sender and receiver reach without a DUT between them.

use crate::BenchError;
use crate::trial::{Observed, SystemClock};
use fwdlab_model::plan::{Plan, Trial};
use fwdlab_model::record::Calibration;
use fwdlab_model::settings::Settings;

/// Times that a ceiling is measured.
const ROUNDS: u32 = 3;

/// Measures a ceiling: `without_dut` carries a trial out under a run's identity.
///
/// # Errors
/// What a trial meets.
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
        frame_size: settings.traffic.frame_size.0,
        rates_pps: rates_pps?,
        measured_at: SystemClock.wall_text(),
    })
}

/// The phases of one of its trials.
fn trial(plan: &Trial) -> Trial {
    Trial {
        warmup_ns: plan.warmup_ns.min(200_000_000),
        duration_ns: plan.duration_ns.min(400_000_000),
        ..*plan
    }
}

/// Identifies what a ceiling holds for, beside family and frame size.
pub fn key(kind: &str, engine: &str, receiver: &str, settings: &Settings) -> String {
    let arrangement = match settings.testbed.arrangement {
        fwdlab_model::settings::Arrangement::Open => "open",
        fwdlab_model::settings::Arrangement::Closed => "closed",
    };
    let stamps = if settings.traffic.timestamps { ", time stamps" } else { "" };
    format!(
        "{kind}, {arrangement}, {} x {engine} to {receiver}, {} queues{stamps}",
        settings.testbed.senders, settings.dut.queues
    )
}
