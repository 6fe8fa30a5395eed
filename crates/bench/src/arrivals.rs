//! The receiver's checks and their results in the form of a run's record.

use fwdlab_model::record::{Arrivals, Checked, FlowArrivals, WorstFlow};
use fwdlab_model::warning::{CheckedSample, Warning};
use fwdlab_netio::{Received, Receiver, Watch};
use fwdlab_packet::Phase;
use fwdlab_packet::arrivals::{CHECKED_ONE_IN, FIRST_CHECKED, PAYLOAD_ONE_IN};
use fwdlab_packet::arrivals::{Expected, Fault, FlowSummary, Pattern};

/// Returns the packet checks of a receiver.
pub(crate) fn checked(watch: &Watch) -> Checked {
    match watch {
        Watch::Stamps { .. } => Checked::Stamp,
        Watch::Packets(expected) => checked_against(expected),
    }
}

/// Returns the packet checks of a receiver that knows the expected packets.
pub(crate) fn checked_against(expected: &Expected) -> Checked {
    let has_payload = Pattern::new(expected).has_payload();
    Checked::Packets { payload_one_in: if has_payload { PAYLOAD_ONE_IN } else { 1 } }
}

/// Results of the receiver's checks so far.
pub(crate) fn found(receiver: &dyn Receiver, checked: Checked) -> Arrivals {
    record(&receiver.received(), receiver.flows(), checked)
}

fn record(received: &Received, flows: Option<FlowSummary>, checked: Checked) -> Arrivals {
    let window = Phase::Window as usize;
    let sum = |phases: [u64; 4]| phases.iter().copied().fold(0, u64::saturating_add);
    let faults = Fault::ALL.into_iter().zip(received.faults).filter(|(_, packets)| *packets > 0);
    Arrivals {
        checked,
        damaged: sum(received.damaged),
        damaged_in_window: received.damaged[window],
        faults: faults.map(|(fault, packets)| (fault.name().to_owned(), packets)).collect(),
        duplicates: sum(received.duplicates),
        duplicates_in_window: received.duplicates[window],
        reordered: sum(received.reordered),
        reordered_in_window: received.reordered[window],
        others: received.others,
        bytes_in_window: received.bytes[window],
        in_full: received.in_full,
        sample: sample(received).filter(|_| matches!(checked, Checked::Packets { .. })),
        flows: flows.map(|flows| flow_arrivals(&flows)),
        reverse: None,
    }
}

/// Sample of packets that were checked; `None` if all were.
fn sample(received: &Received) -> Option<CheckedSample> {
    let (checked, of) = (received.checked, received.ours());
    let damaged = received.damaged.iter().sum::<u64>().saturating_sub(received.evident);
    let (first, one_in) = (FIRST_CHECKED, CHECKED_ONE_IN);
    (checked < of).then_some(CheckedSample { first, one_in, checked, of, damaged })
}

fn flow_arrivals(summary: &FlowSummary) -> FlowArrivals {
    FlowArrivals {
        flows: summary.flows,
        sent: summary.sent,
        seen: summary.seen,
        with_loss: summary.with_loss,
        missing: summary.missing,
        worst: summary.worst.map(|worst| WorstFlow {
            flow: worst.flow,
            sent: worst.sent,
            arrived: worst.arrived,
        }),
        unseen_by_chance: summary.unseen_by_chance,
        lacking: summary.lacks_flows(),
    }
}

/// Warnings from the receiver's checks; `arrived` packets were received intact, each once.
pub(crate) fn doubts(arrivals: &Arrivals, arrived: u64, unstamped: u64) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if arrivals.damaged > 0 {
        let (packets, faults) = (arrivals.damaged, arrivals.faults.clone());
        let sample = arrivals.sample;
        warnings.push(Warning::Damaged { packets, intact: arrived, faults, sample });
    }
    if arrivals.duplicates > 0 {
        warnings.push(Warning::Duplicated { packets: arrivals.duplicates, arrived });
    }
    if arrivals.reordered > 0 {
        warnings.push(Warning::Reordered { packets: arrivals.reordered, arrived });
    }
    if unstamped > 0 {
        warnings.push(Warning::Unstamped { packets: unstamped });
    }
    if let Some(flows) = arrivals.flows.filter(|flows| flows.lacking) {
        warnings.push(Warning::FlowsMissing { seen: flows.seen, sent: flows.sent });
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_packet::arrivals::FAULTS;

    #[test]
    fn each_fault_gets_one_warning_and_an_intact_run_none() {
        let clean = FlowSummary { flows: 5, sent: 5, seen: 5, ..FlowSummary::default() };
        let received = Received { packets: [1, 9, 0, 0], others: 7, ..Received::default() };
        let none = record(&received, Some(clean), Checked::Packets { payload_one_in: 1 });
        assert_eq!(doubts(&none, 10, 0), []);

        let mut faults = [0; FAULTS];
        (faults[Fault::Ttl as usize], faults[Fault::Payload as usize]) = (2, 3);
        let received = Received {
            damaged: [4, 1, 0, 0],
            faults,
            duplicates: [0, 2, 0, 0],
            reordered: [1, 0, 0, 0],
            ..received
        };
        let lacking = FlowSummary { seen: 4, ..clean };
        let bad = record(&received, Some(lacking), Checked::Stamp);
        assert_eq!((bad.damaged, bad.damaged_in_window, bad.duplicates_in_window), (5, 1, 2));
        let sentences: Vec<String> = doubts(&bad, 10, 6).iter().map(Warning::sentence).collect();
        assert_eq!(
            sentences[0].split(", 10 intact").next(),
            Some("5 packets arrived damaged (3 x payload, 2 x ttl)")
        );
        assert!(sentences[1].starts_with("2 packets arrived again"), "{sentences:?}");
        assert!(
            sentences[2].starts_with("1 of 10 packets arrived after a later one"),
            "{sentences:?}"
        );
        assert!(sentences[3].starts_with("6 UDP packets"), "{sentences:?}");
        assert_eq!(sentences[4], "4 of 5 flows arrived");
        assert!(!doubts(&bad, 10, 0).iter().any(Warning::is_fatal));
        assert!(doubts(&bad, 4, 0)[0].is_fatal(), "most of it was damaged");
    }

    #[test]
    fn sampled_checks_report_damage_as_share_of_the_sample() {
        let packets = Checked::Packets { payload_one_in: 1 };
        let all = Received { packets: [0, 100, 0, 0], checked: 100, ..Received::default() };
        assert_eq!(record(&all, None, packets).sample, None);
        let mut faults = [0; FAULTS];
        faults[Fault::Ttl as usize] = 9;
        let part = Received {
            packets: [0, 300_000, 0, 0],
            damaged: [0, 9, 0, 0],
            faults,
            checked: 125_000,
            evident: 4,
            ..Received::default()
        };
        let arrivals = record(&part, None, packets);
        let sample =
            CheckedSample { first: 65_536, one_in: 4, checked: 125_000, of: 300_009, damaged: 5 };
        assert_eq!(arrivals.sample, Some(sample));
        let warnings = doubts(&arrivals, 300_000, 0);
        let sentence = warnings[0].sentence();
        assert!(sentence.contains("125000 of 300009 packets were checked"), "{sentence}");
        assert!(sentence.contains("5 of these are damaged (0.004 %)"), "{sentence}");
        assert!(!warnings[0].is_fatal());
        let worse = CheckedSample { damaged: 70_000, ..sample };
        let worse = Arrivals { sample: Some(worse), ..arrivals };
        assert!(doubts(&worse, 300_000, 0)[0].is_fatal(), "most of what was checked was damaged");
        // Stamps alone are no sample of checks.
        assert_eq!(record(&part, None, Checked::Stamp).sample, None);
    }
}
