//! Checks with a few packets that the DUT forwards: responding to management is not enough.

use super::rate;
use crate::dut::Reading;
use crate::dut::findings::Findings;
use crate::error::BenchError;
use crate::testbed::{Parts, TrafficRequest};
use crate::trial::Traffic;
use crate::{Observer, Task};
use fwdlab_model::settings::Directions;
use std::time::{Duration, Instant};

/// Rate of the test packets, packets per second.
const RATE_PPS: f64 = 1000.0;
/// Number of packets that must arrive.
const ENOUGH: u64 = 10;
/// Silence after which packets that have not arrived count as lost.
const SILENCE: Duration = Duration::from_secs(1);
/// Time limit: links come up, bridges learn addresses.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends packets at a low rate until [`ENOUGH`] of them arrive.
///
/// # Errors
/// Returns an error if too few packets arrive; it states where the counters lose them.
pub(super) fn attempt(
    parts: &mut Parts<'_>,
    task: Task<'_>,
    findings: &mut Findings,
    observer: &mut dyn Observer,
) -> Result<(), BenchError> {
    let mut settings = task.plan.variants[task.run.variants[0]].settings.clone();
    if settings.dut.nat.is_of_destinations() {
        // An answer before its flow's first packet opens another connection, which would outlive
        // these packets.
        settings.traffic.directions = Directions::One;
    }
    let settings = &settings;
    // A run id that no run uses.
    let run_id = task.plan.run_id(task.run.index | 1 << 30);
    // Some generators cannot keep a rate.
    let rate_pps = settings.traffic.generator.keeps_rate().then_some(RATE_PPS);
    let rate_pps = match (rate_pps, rate::of(&task, settings)) {
        (Some(low), Ok(Some(planned))) => Some(low.min(planned)),
        (low, _) => low,
    };
    let threads = parts.dut.threads();
    let trial = &task.plan.trial;
    let request = TrafficRequest {
        rate_pps,
        threads: &threads,
        ..TrafficRequest::of(settings, run_id, trial)
    };
    let (mut armed, _) = parts.ends.arm(&request, findings)?;
    let before = parts.dut.read(parts.host)?;
    armed.traffic().start()?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        std::thread::sleep(Duration::from_millis(20));
        let received: u64 = armed.traffic().snapshot().received.iter().sum();
        if received >= ENOUGH {
            armed.traffic().stop()?;
            settle(armed.traffic());
            armed.traffic().finish()?;
            return armed.end().map(drop);
        }
        if observer.cancelled() {
            return Err(BenchError::Interrupted);
        }
        if Instant::now() >= deadline {
            armed.traffic().stop()?;
            let snapshot = armed.traffic().snapshot();
            let sent: u64 = snapshot.sent.iter().sum();
            let after = parts.dut.read(parts.host)?;
            return Err(not_forwarding(parts, sent, received, snapshot.damaged, &before, &after));
        }
    }
}

/// Waits until all sent packets have arrived, or none has for a while: the trial must not count
/// packets in flight. An emulated guest that stalled for a second has a thousand of them queued.
fn settle(traffic: &mut dyn Traffic) {
    let mut last = (u64::MAX, Instant::now());
    while last.1.elapsed() < SILENCE {
        std::thread::sleep(Duration::from_millis(50));
        let snapshot = traffic.snapshot();
        let received = snapshot.received.iter().sum();
        // Some generators do not report the number of packets sent.
        if received >= snapshot.sent.iter().sum() {
            return;
        }
        if received != last.0 {
            last = (received, Instant::now());
        }
    }
}

/// Returns the error for packets that did not arrive, with the counters as evidence.
fn not_forwarding(
    parts: &Parts<'_>,
    sent: u64,
    received: u64,
    damaged: u64,
    before: &Reading,
    after: &Reading,
) -> BenchError {
    let delta = |interface: &str, column: &str| {
        let name = format!("{interface} {column}");
        let value = |reading: &Reading| reading.machine.get(&name).copied().unwrap_or(0);
        value(after).saturating_sub(value(before))
    };
    let [ingress, egress] = parts.links.both().map(|link| link.interface.as_str());
    let (packets_in, packets_out) = (delta(ingress, "rx_packets"), delta(egress, "tx_packets"));
    let next = match (packets_in, packets_out) {
        _ if damaged > 0 => format!(
            "{damaged} arrived otherwise than a router sends them: see `rewrites` in [dut], or \
             what the DUT does to MAC addresses, TTL and checksums"
        ),
        (0, _) => format!(
            "nothing reaches {ingress}: follow the cable from the sender (`fwdlab lab show`)"
        ),
        (_, 0) => "it receives and does not send: see its routes and its firewall".to_owned(),
        _ => format!("it sends on {egress}: follow the cable to the receiver"),
    };
    BenchError::environment(
        format!(
            "the DUT does not forward: of {sent} packets {received} came through within {} s; \
             {ingress} counted {packets_in} in, {egress} {packets_out} out",
            PATIENCE.as_secs()
        ),
        next,
    )
}
