//! The same packets through rules of nft(8) in the kernel and through the same rules in the
//! router: what passes is compared, packet by packet, with both of the router's paths.
//!
//! Rules and packets are random, and the same on every machine. Where nothing has a state, all
//! packets are independent of each other. Where rules keep states, packets are those of
//! conversations ([`traffic::conversations`]), in both directions, with what does not belong to
//! them in between. nf_conntrack and the router, whose states are pf's, differ where no RFC
//! decides; such packets are not sent:
//!
//! | what | nf_conntrack | router |
//! |---|---|---|
//! | a SYN within an established connection | passes, for its receiver's challenge (RFC 5961) | dropped outside of the window |
//! | fragments | put together, and cut again | pass as they are |
//! | TCP that begins in the middle | picked up | a rule without `flags S/SA` decides |

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

/// Sets of rules of each kind, and packets that each of them judges.
const SETS: u8 = 60;
const PACKETS: usize = 60;

/// Counts, by which it is seen that anything was tried.
#[derive(Default, Debug)]
struct Tried {
    passed: usize,
    dropped: usize,
    /// Passed from a side from which no rule lets anything in: as a state's.
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
        let tried = if rules.keep_state { &mut stateful } else { &mut stateless };
        faults.extend(compare(&mut kernel, set, &rules, &packets, tried));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    for tried in [&stateless, &stateful] {
        let all = tried.passed + tried.dropped;
        assert!(tried.passed > all / 5 && tried.dropped > all / 5, "{tried:?}");
    }
    assert!(stateful.by_state > stateful.passed / 20, "{stateful:?}");
}

/// What the router lets through and the kernel doesn't, or the other way round.
fn compare(
    kernel: &mut Kernel,
    set: u8,
    rules: &Rules,
    packets: &[Packet],
    tried: &mut Tried,
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
        *(if passed { &mut tried.passed } else { &mut tried.dropped }) += 1;
        tried.by_state += usize::from(passed && rules.only_from == Some(packet.from.other()));
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
    // One shows what it is; those after it in a set follow from it.
    faults.truncate(1);
    faults
}

/// Whether a packet came out at the other side, and nothing else did anywhere.
fn has_passed(packet: &Packet, seen: &[Seen]) -> bool {
    match seen {
        [] => false,
        [one] => {
            assert_eq!(one.side, packet.from.other(), "{}", packet.name);
            let (sent, came) = (&packet.frame[at::IP..], &one.bytes[at::IP..]);
            let after = if sent[0] >> 4 == 4 { at::AFTER } else { at::AFTER6 } - at::IP;
            // Without what fills short frames.
            assert!(came.starts_with(&[sent[0]]) && came.len() >= sent.len(), "{}", packet.name);
            assert_eq!(came[after..sent.len()], sent[after..], "{}", packet.name);
            true
        }
        more => panic!("{} frames of {}", more.len(), packet.name),
    }
}

/// Marks are let through by their port.
#[test]
fn marks_have_the_port_that_rules_let_through() {
    for mark in marks(1) {
        assert_eq!(mark[at::AFTER + 2..at::AFTER + 4], DESTINATION_PORT.to_be_bytes());
    }
}
