//! Checks with a few packets that the DUT forwards: responding to management is not enough.

use super::rate;
use crate::dut::Reading;
use crate::dut::findings::Findings;
use crate::error::BenchError;
use crate::testbed::{Parts, TrafficRequest};
use crate::trial::Traffic;
use crate::{Observer, Task};
use std::time::{Duration, Instant};

/// Rate of the test packets, packets per second.
const RATE_PPS: f64 = 1000.0;
/// Number of packets that must arrive.
const ENOUGH: u64 = 10;
/// Silence after which what has not arrived is taken for lost.
const SILENCE: Duration = Duration::from_secs(1);
/// Time limit: links come up, bridges learn addresses.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends packets at a low rate until [`ENOUGH`] of them arrive.
///
/// # Errors
/// When too few arrive, with what the counters say about where they were lost.
pub(super) fn attempt(
    parts: &mut Parts<'_>,
    task: Task<'_>,
    findings: &mut Findings,
    observer: &mut dyn Observer,
) -> Result<(), BenchError> {
    let settings = &task.plan.variants[task.run.variants[0]].settings;
    // A run id that no run uses.
    let run_id = task.plan.run_id(task.run.index | 1 << 30);
    // Not every generator keeps a rate everywhere.
    let rate_pps = settings.traffic.generator.keeps_rate().then_some(RATE_PPS);
    let rate_pps = match (rate_pps, rate::of(&task, settings)) {
        (Some(few), Ok(Some(asked))) => Some(few.min(asked)),
        (few, _) => few,
    };
    let threads = parts.dut.threads();
    let trial = &task.plan.trial;
    let wanted = TrafficRequest {
        rate_pps,
        threads: &threads,
        ..TrafficRequest::of(settings, run_id, trial)
    };
    let (mut armed, _) = parts.ends.arm(&wanted, findings)?;
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
            let seen = armed.traffic().snapshot();
            let sent: u64 = seen.sent.iter().sum();
            let after = parts.dut.read(parts.host)?;
            return Err(in_vain(parts, sent, received, seen.damaged, &before, &after));
        }
    }
}

/// Waits until the packets that were sent have arrived, or none has for a while: those in flight
/// must not be counted by the trial. An emulated guest that stood still for a second has a
/// thousand of them before it.
fn settle(traffic: &mut dyn Traffic) {
    let mut last = (u64::MAX, Instant::now());
    while last.1.elapsed() < SILENCE {
        std::thread::sleep(Duration::from_millis(50));
        let seen = traffic.snapshot();
        let received = seen.received.iter().sum();
        // Not every generator says how many it has sent.
        if received >= seen.sent.iter().sum() {
            return;
        }
        if received != last.0 {
            last = (received, Instant::now());
        }
    }
}

/// The error for packets that did not arrive, with the counters' evidence.
fn in_vain(
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
    let (came, went) = (delta(ingress, "rx_packets"), delta(egress, "tx_packets"));
    let next = match (came, went) {
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
             {ingress} counted {came} in, {egress} {went} out",
            PATIENCE.as_secs()
        ),
        next,
    )
}
