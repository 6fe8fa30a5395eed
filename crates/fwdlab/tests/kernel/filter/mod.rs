//! Compares packet filtering by nft(8) rules in the kernel and by the same rules in the router, on
//! both of its paths, packet by packet.
//!
//! Rules and packets are random, and the same on every machine. Without states all packets are
//! independent of each other. With states the packets belong to conversations
//! ([`traffic::conversations`]), in both directions, with unrelated packets in between.
//! nf_conntrack and the router, whose states follow pf, differ where no RFC decides; these packets
//! are not sent:
//!
//! | what | nf_conntrack | router |
//! |---|---|---|
//! | a SYN of the initiator within an established connection | passes, for its receiver's challenge (RFC 5961) | passes, whatever its number |
//! | fragments | reassembled and fragmented again | pass unchanged |
//! | TCP that begins in the middle | picked up | a rule with `flags any` decides |

mod rules;
mod traffic;

use crate::kernel::Kernel;
use crate::packets::{at, marks};
use crate::router;
use crate::seen::Seen;
use fwdlab_packet::template::DESTINATION_PORT;
use fwdlab_testdata::Random;
use rules::Rules;
use std::process::Command;
use traffic::Packet;

/// Number of rule sets of each kind, and of packets for each set.
const SETS: u8 = 60;
const PACKETS: usize = 60;

/// Counts that show how much was tried.
#[derive(Default, Debug)]
struct Tried {
    passed: usize,
    dropped: usize,
    /// Passed from a side from which no rule admits packets: by a state.
    by_state: usize,
}

#[test]
fn router_and_nft_filter_alike() {
    if !Command::new("nft").arg("--version").output().is_ok_and(|nft| nft.status.success()) {
        return fwdlab_testdata::skip("nft is not installed");
    }
    let Some(mut kernel) = crate::kernel() else { return };
    let [mut stateless, mut stateful] = [(); 2].map(|()| Tried::default());
    let mut faults = Vec::new();
    for set in 0..SETS {
        let mut random = Random::of(&format!("rules {set}"));
        let rules = Rules::random(&mut random, set);
        let packets = match rules.keep_state {
            true => traffic::conversations(&mut random, set, PACKETS),
            false => (0..PACKETS).map(|_| traffic::packet(&mut random, set)).collect(),
        };
        let counts = if rules.keep_state { &mut stateful } else { &mut stateless };
        faults.extend(compare(&mut kernel, set, &rules, &packets, counts));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    for counts in [&stateless, &stateful] {
        let all = counts.passed + counts.dropped;
        assert!(counts.passed > all / 5 && counts.dropped > all / 5, "{counts:?}");
    }
    assert!(stateful.by_state > stateful.passed / 20, "{stateful:?}");
}

/// Packets that only the router or only the kernel lets through.
fn compare(
    kernel: &mut Kernel,
    set: u8,
    rules: &Rules,
    packets: &[Packet],
    counts: &mut Tried,
) -> Vec<String> {
    let nft = rules.nft(DESTINATION_PORT);
    kernel.filter(&nft);
    let ours = rules.ours(DESTINATION_PORT);
    let frames: Vec<_> = packets.iter().map(|packet| (packet.from, &packet.frame[..])).collect();
    let paths = ["fast", "full"].map(|path| router::forward(path, &ours, &frames));
    let mut faults = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        let by_kernel = kernel.forward(number as u32, packet.from, &packet.frame);
        let has_passed = |seen: &[Seen]| has_passed(packet, seen);
        let passed = has_passed(&by_kernel);
        *(if passed { &mut counts.passed } else { &mut counts.dropped }) += 1;
        counts.by_state += usize::from(passed && rules.only_from == Some(packet.from.other()));
        for (path, seen) in ["fast", "full"].iter().zip(&paths) {
            if has_passed(&seen[number]) != passed {
                let verdict = if passed { "passes" } else { "drops" };
                faults.push(format!(
                    "set {set}, packet {number}: the kernel {verdict} {}, the {path} path does \
                     not\n{ours}\n{nft}",
                    packet.name
                ));
            }
        }
    }
    // The first fault shows the problem; later ones in a set follow from it.
    faults.truncate(1);
    faults
}

/// True if a packet came out at the other side, and nothing else did anywhere.
fn has_passed(packet: &Packet, seen: &[Seen]) -> bool {
    match seen {
        [] => false,
        [one] => {
            assert_eq!(one.side, packet.from.other(), "{}", packet.name);
            let (sent, came) = (&packet.frame[at::IP..], &one.bytes[at::IP..]);
            let after = if sent[0] >> 4 == 4 { at::AFTER } else { at::AFTER6 } - at::IP;
            // Without the padding of short frames.
            assert!(came.starts_with(&[sent[0]]) && came.len() >= sent.len(), "{}", packet.name);
            assert_eq!(came[after..sent.len()], sent[after..], "{}", packet.name);
            true
        }
        more => panic!("{} frames of {}", more.len(), packet.name),
    }
}

/// Rules admit marks by their port.
#[test]
fn marks_use_the_port_that_rules_admit() {
    for mark in marks(1) {
        assert_eq!(mark[at::AFTER + 2..at::AFTER + 4], DESTINATION_PORT.to_be_bytes());
    }
}
