//! Cable check: frames sent at the far end of a cable must arrive at the DUT's interface, and at no
//! other.
//!
//! The check uses the DUT's interface counters. It verifies the direction towards the DUT; for the
//! opposite direction the DUT would have to send.

use super::cable_ends::{DutEnd, FarEnd};
use super::counter::{self, Received};
use super::{bad, failed, good};
use crate::agent::Burst;
use crate::error::BenchError;
use crate::probe::Probe;
use fwdlab_model::settings::Engine;
use serde::Serialize;
use std::time::Duration;

/// Number of frames sent: more than any other traffic on the cable in that time.
const FRAMES: u64 = 1000;
/// Rate of the frames: no interface is too slow for it.
const PPS: f64 = 10_000.0;
/// Time limit for sending them on a busy machine.
const SENDING: Duration = Duration::from_secs(5);
/// Broadcast MAC.
const BROADCAST: [u8; 6] = [0xff; 6];

/// Result for one cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CableReport {
    /// Far end, `host:interface`.
    pub from: String,
    /// End at the DUT.
    pub to: String,
    /// Frames sent at the far end.
    pub sent: u64,
    /// Frames received during that time, by interface of the DUT.
    pub arrived: Received,
    /// Verdict.
    #[serde(flatten)]
    pub probe: Probe,
}

/// Sends frames along a cable to the MAC of the DUT's interface and, if they do not arrive, to the
/// broadcast address. `run_id` must be unique per cable.
pub(super) fn check(far: &FarEnd<'_>, dut: &DutEnd<'_>, run_id: u32) -> CableReport {
    let name = format!("cable {} to {}", far.name, dut.name);
    let (mut sent, mut arrived) = (0, Received::new());
    let mut probe = match attempt(far, dut, dut.mac, run_id) {
        Ok(counts) => {
            (sent, arrived) = counts;
            judge(&name, &dut.interface, sent, &arrived)
        }
        Err(error) => failed(&name, error),
    };
    if !probe.works && sent > 0 && arrived.values().all(|&count| count < most(sent)) {
        // Cards discard frames for other MACs: broadcast shows which interface the cable leads to.
        if let Ok((sent, arrived)) = attempt(far, dut, BROADCAST, run_id) {
            let other = arrived.iter().find(|(_, count)| **count >= most(sent));
            if let Some((interface, count)) = other {
                probe.detail += &format!("; {count} of {sent} to all came in at {interface}");
                probe.next = match *interface == dut.interface {
                    true => "correct the MAC of the DUT's interface in the file".into(),
                    false => SWAPPED.into(),
                };
            }
        }
    }
    CableReport { from: far.name.clone(), to: dut.name.clone(), sent, arrived, probe }
}

const SWAPPED: &str = "correct the cables in the file, or change the cables";

fn attempt(
    far: &FarEnd<'_>,
    dut: &DutEnd<'_>,
    to: [u8; 6],
    run_id: u32,
) -> Result<(u64, Received), BenchError> {
    // Every driver supports sending with AF_PACKET, and a few packets need nothing faster.
    let burst = Burst::ready(&far.end, to, run_id, Engine::Packet, Some(PPS))?;
    let before = counter::read(dut.host, dut.system, dut.interfaces)?;
    let sent = burst.fire(Some(FRAMES), SENDING)?.packets;
    let enough = |received: &Received| received.get(&dut.interface).is_some_and(|&n| n >= sent);
    Ok((sent, counter::since(dut.host, dut.system, &before, enough)?))
}

/// Nine out of ten: the rest may be missing until a card's next report.
fn most(sent: u64) -> u64 {
    (sent - sent / 10).max(1)
}

/// Verdict from the DUT's counters about frames for one of its interfaces.
fn judge(name: &str, interface: &str, sent: u64, arrived: &Received) -> Probe {
    let right = arrived.get(interface).copied().unwrap_or(0);
    let elsewhere: Vec<&str> = arrived
        .iter()
        .filter(|(other, count)| *other != interface && **count >= most(sent))
        .map(|(other, _)| other.as_str())
        .collect();
    let summary = format!("{right} of {sent} frames came in");
    match (right >= most(sent), elsewhere.as_slice()) {
        (true, []) => good(name, summary),
        (true, others) => bad(
            name,
            format!("{summary}, but also at {}", others.join(", ")),
            "see whether a switch or a bridge joins the DUT's interfaces",
        ),
        (false, []) => bad(
            name,
            summary,
            "check that both ends have a link, and that no switch between them filters",
        ),
        (false, others) => {
            bad(name, format!("{summary}, at {} instead", others.join(", ")), SWAPPED)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judge_recognises_swapped_bridged_and_lost_cables() {
        let verdict = |d0, d1| {
            let arrived = Received::from([("d0".into(), d0), ("d1".into(), d1)]);
            judge("cable far:a to dut:d0", "d0", 1000, &arrived)
        };
        // Other hosts may send a little.
        let fine = verdict(1003, 12);
        assert_eq!((fine.works, fine.detail.as_str()), (true, "1003 of 1000 frames came in"));
        let swapped = verdict(2, 1000);
        assert_eq!(swapped.detail, "2 of 1000 frames came in, at d1 instead");
        assert!(!swapped.works && swapped.next.contains("correct the cables"));
        let bridged = verdict(1000, 1000);
        assert!(!bridged.works && bridged.detail.contains("also at d1"), "{bridged:?}");
        let lost = verdict(899, 0);
        assert!(!lost.works && lost.next.contains("both ends have a link"), "{lost:?}");
        assert!(verdict(900, 0).works);
        assert!(!judge("cable", "d0", 0, &Received::new()).works, "nothing sent proves nothing");
    }
}
