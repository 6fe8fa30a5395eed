//! The ceiling: what sender and receiver reach without a DUT between them.

use fwdlab_model::plan::Trial;
use fwdlab_model::settings::Settings;

/// Times that a ceiling is measured.
pub const ROUNDS: u32 = 3;

/// The phases of one of them.
pub fn trial(plan: &Trial) -> Trial {
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
