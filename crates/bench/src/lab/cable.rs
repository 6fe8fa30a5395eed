//! Cable check: frames sent at the far end of a cable must arrive at the DUT's interface, and
//! at no other.
//!
//! The check uses the DUT's interface counters. It proves the direction towards the DUT; for
//! the other one the DUT would have to send.

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
/// Their rate: no interface is too slow for it.
const PPS: f64 = 10_000.0;
/// Time to send them on a busy machine.
const SENDING: Duration = Duration::from_secs(5);
/// Broadcast MAC.
const EVERYBODY: [u8; 6] = [0xff; 6];

/// Result of one cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CableReport {
    /// Its far end, `host:interface`.
    pub from: String,
    /// Its end at the DUT.
    pub to: String,
    /// Frames sent at the far end.
    pub sent: u64,
    /// Frames that came in meanwhile, by interface of the DUT.
    pub arrived: Received,
    /// The verdict.
    #[serde(flatten)]
    pub probe: Probe,
}

/// Sends frames along a cable to the MAC of the DUT's interface and, if they don't arrive,
/// to the broadcast address. `run_id` is the cable's own.
pub(super) fn check(far: &FarEnd<'_>, dut: &DutEnd<'_>, run_id: u32) -> CableReport {
    let name = format!("cable {} to {}", far.name, dut.name);
    let (mut sent, mut arrived) = (0, Received::new());
    let mut probe = match attempt(far, dut, dut.mac, run_id) {
        Ok(seen) => {
            (sent, arrived) = seen;
            judge(&name, &dut.interface, sent, &arrived)
        }
        Err(error) => failed(&name, error),
    };
    if !probe.works && sent > 0 && arrived.values().all(|&count| count < most(sent)) {
        // Cards discard frames for other MACs: broadcast shows where the cable leads.
        if let Ok((sent, arrived)) = attempt(far, dut, EVERYBODY, run_id) {
            let there = arrived.iter().find(|(_, count)| **count >= most(sent));
            if let Some((interface, count)) = there {
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
    // Every driver carries AF_PACKET out; few packets need nothing faster.
    let burst = Burst::ready(&far.end, to, run_id, Engine::Packet, Some(PPS))?;
    let before = counter::read(dut.host, dut.system, dut.interfaces)?;
    let sent = burst.fire(Some(FRAMES), SENDING)?.packets;
    let enough = |received: &Received| received.get(&dut.interface).is_some_and(|&n| n >= sent);
    Ok((sent, counter::since(dut.host, dut.system, &before, enough)?))
}

/// Nine of ten: the rest may wait for a card's next report.
fn most(sent: u64) -> u64 {
    (sent - sent / 10).max(1)
}

/// What the DUT's counters say about frames that were for one of its interfaces.
fn judge(name: &str, interface: &str, sent: u64, arrived: &Received) -> Probe {
    let right = arrived.get(interface).copied().unwrap_or(0);
    let elsewhere: Vec<&str> = arrived
        .iter()
        .filter(|(other, count)| *other != interface && **count >= most(sent))
        .map(|(other, _)| other.as_str())
        .collect();
    let came = format!("{right} of {sent} frames came in");
    match (right >= most(sent), elsewhere.as_slice()) {
        (true, []) => good(name, came),
        (true, others) => bad(
            name,
            format!("{came}, but also at {}", others.join(", ")),
            "see whether a switch or a bridge joins the DUT's interfaces",
        ),
        (false, []) => bad(
            name,
            came,
            "check that both ends have a link, and that no switch between them filters",
        ),
        (false, others) => bad(name, format!("{came}, at {} instead", others.join(", ")), SWAPPED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_say_where_a_cable_leads() {
        let judged = |d0, d1| {
            let arrived = Received::from([("d0".into(), d0), ("d1".into(), d1)]);
            judge("cable far:a to dut:d0", "d0", 1000, &arrived)
        };
        // Others may send a little.
        let fine = judged(1003, 12);
        assert_eq!((fine.works, fine.detail.as_str()), (true, "1003 of 1000 frames came in"));
        let swapped = judged(2, 1000);
        assert_eq!(swapped.detail, "2 of 1000 frames came in, at d1 instead");
        assert!(!swapped.works && swapped.next.contains("correct the cables"));
        let bridged = judged(1000, 1000);
        assert!(!bridged.works && bridged.detail.contains("also at d1"), "{bridged:?}");
        let lost = judged(899, 0);
        assert!(!lost.works && lost.next.contains("both ends have a link"), "{lost:?}");
        assert!(judged(900, 0).works);
        assert!(!judge("cable", "d0", 0, &Received::new()).works, "nothing sent proves nothing");
    }
}
