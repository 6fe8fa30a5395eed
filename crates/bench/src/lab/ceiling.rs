//! Ceiling of a sender: packets per second that the DUT's interface receives.

use super::bad;
use super::cable_ends::{DutEnd, FarEnd};
use super::counter;
use super::failed;
use super::good;
use crate::agent::Burst;
use crate::error::BenchError;
use crate::probe::Probe;
use fwdlab_model::settings::Engine;
use fwdlab_model::units::format_pps;
use serde::Serialize;
use std::time::Duration;

/// Duration of sending.
const SENDING: Duration = Duration::from_secs(2);

/// Ceiling of one sender.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CeilingReport {
    /// Sending `host:interface`.
    pub from: String,
    /// Counting `host:interface` of the DUT.
    pub to: String,
    /// Bytes of a frame with FCS.
    pub frame_size: u16,
    /// Duration by the sender's clock, seconds.
    pub seconds: Option<f64>,
    /// Packets sent per second.
    pub sent_pps: Option<f64>,
    /// Packets received by the DUT per second: the ceiling.
    pub arrived_pps: Option<f64>,
    /// Verdict.
    #[serde(flatten)]
    pub probe: Probe,
}

/// Sends at the maximum rate for two seconds.
pub(super) fn measure(far: &FarEnd<'_>, dut: &DutEnd<'_>, run_id: u32) -> CeilingReport {
    let name = format!("ceiling of {}", far.name);
    let mut report = CeilingReport {
        from: far.name.clone(),
        to: dut.name.clone(),
        frame_size: Burst::FRAME,
        seconds: None,
        sent_pps: None,
        arrived_pps: None,
        probe: good(&name, ""),
    };
    match attempt(far, dut, run_id) {
        Err(error) => report.probe = failed(&name, error),
        Ok(Rates { sent, arrived, seconds, engine }) => {
            let pps = |packets: u64| packets as f64 / seconds;
            report.seconds = Some(seconds);
            report.sent_pps = Some(pps(sent));
            report.arrived_pps = Some(pps(arrived));
            let detail = format!(
                "{} sent, {} came in at {} ({}-byte IPv4 frames, {seconds:.1} s, {engine})",
                format_pps(pps(sent)),
                format_pps(pps(arrived)),
                dut.name,
                Burst::FRAME
            );
            // Packets dropped by the card are a finding; no packets at all are an error.
            report.probe = match arrived < sent / 100 {
                false => good(&name, detail),
                true => bad(&name, detail, next(arrived)),
            };
        }
    }
    report
}

/// Next step if almost none of the sent packets arrived.
fn next(arrived: u64) -> &'static str {
    match arrived {
        0 => "see above where the cable leads",
        // The cable is right: something arrived.
        _ => {
            "the interface takes no more, or the DUT is a virtual machine whose tap drops the \
             rest (`ip -s link` on its host counts them): measure at a rate that it takes \
             (traffic.rate), or give it a faster interface"
        }
    }
}

struct Rates {
    sent: u64,
    arrived: u64,
    seconds: f64,
    engine: String,
}

fn attempt(far: &FarEnd<'_>, dut: &DutEnd<'_>, run_id: u32) -> Result<Rates, BenchError> {
    let burst = Burst::ready(&far.end, dut.mac, run_id, Engine::Auto, None)?;
    let fact = |name: &str| burst.facts.get(name).cloned();
    let mut engine = fact("sender").unwrap_or_default();
    if let Some(why) = fact("sender falls back") {
        engine += &format!("; fell back: {why}");
    }
    let interfaces = std::slice::from_ref(&dut.interface);
    let before = counter::read(dut.host, dut.system, interfaces)?;
    let fired = burst.fire(None, SENDING)?;
    let count = |received: &counter::Received| received.get(&dut.interface).copied().unwrap_or(0);
    let received =
        counter::since(dut.host, dut.system, &before, |received| count(received) >= fired.packets)?;
    // Avoids a division by zero if the card has counted nothing yet.
    let seconds = fired.seconds.max(1e-9);
    Ok(Rates { sent: fired.packets, arrived: count(&received), seconds, engine })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_names_the_cable_only_without_any_arrival() {
        assert!(next(0).contains("cable"));
        assert!(next(88_200).contains("tap") && !next(88_200).contains("where the cable leads"));
    }
}
