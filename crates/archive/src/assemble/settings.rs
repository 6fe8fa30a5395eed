//! Traffic settings from the senders' commands.

use super::runs::ReadRun;
use fwdlab_model::log::Command;
use fwdlab_model::settings::{DutKind, Family, Flows, Settings, TestbedKind};
use fwdlab_model::units::FrameSize;

/// Returns the known settings of a variant: from the first run with a sender's command.
pub(super) fn settings(runs: &[ReadRun], traffic: Option<&str>, queues: Option<f64>) -> Settings {
    let mut settings = Settings::default();
    settings.testbed.kind = TestbedKind::Archive;
    settings.dut.kind = DutKind::Freebsd;
    if let Some(queues) = queues.filter(|n| (1.0..=f64::from(u16::MAX)).contains(n)) {
        settings.dut.queues = queues as u16;
    }
    let command = runs.iter().find_map(|run| run.sender.as_ref());
    let family = command.and_then(Command::family);
    if traffic == Some("inet6") || family == Some(Family::Inet6) {
        settings.traffic.family = Family::Inet6;
    }
    if let Some(bytes) = runs.iter().find_map(|run| run.frame_bytes)
        && let Ok(bytes) = u16::try_from(bytes)
    {
        settings.traffic.frame_size = FrameSize::of(bytes);
    }
    if let Some(flows) = command.and_then(flows) {
        settings.traffic.flows = flows;
    }
    settings
}

/// Returns the number of flows that a sender's command specifies.
pub(super) fn flows(command: &Command) -> Option<Flows> {
    let sources = u32::try_from(command.source()?.combinations()).ok()?;
    let destinations = u32::try_from(command.destination()?.combinations()).ok()?;
    sources.checked_mul(destinations)?;
    Some(Flows { sources, destinations })
}
