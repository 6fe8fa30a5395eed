//! `fwdlab route` with `path = "xdp"`: packets of known flows take a BPF program, and come out as
//! from the process.

use crate::cases;
use crate::kernel::Kernel;
use crate::packets::udp;
use crate::router;
use crate::seen::{Seen, Side, in_order};
use fwdlab_packet::{Family, checksum};

fn routed(directory: &tempfile::TempDir, polls: bool) -> Option<Kernel> {
    let router = Kernel::replaced("xdp", directory.path(), polls);
    if router.is_none() {
        fwdlab_testdata::skip("network namespaces can't be made here (not root, or no ip)");
    }
    router
}

fn forwarded_in_xdp(router: &mut Kernel) -> u64 {
    let stats = router.end();
    let (_, packets) =
        stats.facts.iter().find(|(name, _)| name == "packets forwarded in XDP").expect("a fact");
    packets.parse().expect("a number")
}

#[test]
fn xdp_and_process_forward_alike() {
    let directory = tempfile::tempdir().expect("a directory");
    let cases = cases::all();
    let frames: Vec<_> = cases.iter().map(|case| (Side::Near, &case.frame[..])).collect();
    let expected = router::forward("fast", "", &frames);
    let Some(mut router) = routed(&directory, true) else { return };
    let mut faults = Vec::new();
    for (number, (case, expected)) in (1..).step_by(3).zip(cases.iter().zip(expected)) {
        let expected = in_order(expected);
        for turn in 0..3 {
            let seen = in_order(router.forward(number + turn, Side::Near, &case.frame));
            if !alike(&seen, &expected) {
                faults.push(format!("{}, turn {turn}: {}", case.name, unlike(&seen, &expected)));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    // Marks and plain UDP are forwarded in XDP.
    let packets = forwarded_in_xdp(&mut router);
    assert!(packets > cases.len() as u64 / 4, "{packets} of {} cases", cases.len());
}

/// Leaves questions for neighbours out, which come at any time.
fn to_hosts(mut frames: Vec<Seen>) -> Vec<Seen> {
    frames.retain(|seen| seen.bytes[0] & 1 == 0);
    in_order(frames)
}

fn unlike(seen: &[Seen], expected: &[Seen]) -> String {
    let kinds = |seen: &[Seen]| seen.iter().map(Seen::kind).collect::<Vec<_>>();
    format!("{:?}, not {:?}", kinds(seen), kinds(expected))
}

fn alike(seen: &[Seen], expected: &[Seen]) -> bool {
    seen.len() == expected.len()
        && seen.iter().zip(expected).all(|(a, b)| a.side == b.side && a.bytes == b.bytes)
}

#[test]
fn damaged_packets_of_known_flows_are_treated_as_by_the_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut frames = Vec::new();
    for family in [Family::Inet, Family::Inet6] {
        let whole = udp(family, 100, 7);
        // Every bit of the headers, in a packet whose flow is known.
        for bit in 12 * 8..(if family == Family::Inet { 42 } else { 62 }) * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            frames.push((whole.clone(), damaged));
        }
        for length in [14, 20, 34, 41, 60, 95] {
            frames.push((whole.clone(), whole[..length].to_vec()));
        }
        frames.push((whole.clone(), [&whole[..], &[0; 9]].concat()));
    }
    // A total length below the header's, with its checksum, in the shortest frame.
    let whole = udp(Family::Inet, 64, 7);
    for length in [0, 1, 19, 20, 27] {
        let mut damaged = whole.clone();
        let before = [damaged[16], damaged[17]];
        let after = u16::to_be_bytes(length);
        let check = checksum::update([damaged[24], damaged[25]], before, after);
        damaged[16..18].copy_from_slice(&after);
        damaged[24..26].copy_from_slice(&check);
        frames.push((whole.clone(), damaged));
    }
    let damaged: Vec<_> = frames.iter().map(|(_, damaged)| (Side::Near, &damaged[..])).collect();
    let expected = router::forward("fast", "", &damaged);
    let Some(mut router) = routed(&directory, true) else { return };
    let mut faults = Vec::new();
    for (number, ((whole, damaged), expected)) in (1..).step_by(2).zip(frames.iter().zip(expected))
    {
        let intact = to_hosts(router.forward(number, Side::Near, whole));
        assert!(matches!(&intact[..], [Seen { side: Side::Far, .. }]), "{intact:?}");
        let seen = router.forward(number + 1, Side::Near, damaged);
        let [seen, expected] = [seen, expected].map(to_hosts);
        if !alike(&seen, &expected) {
            let (at, _) = whole
                .iter()
                .zip(damaged)
                .enumerate()
                .find(|(_, (a, b))| a != b)
                .unwrap_or((damaged.len(), (&0, &0)));
            faults.push(format!("byte {at}: {}", unlike(&seen, &expected)));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(forwarded_in_xdp(&mut router) >= frames.len() as u64);
}

#[test]
fn link_that_takes_no_redirected_frames_is_served_by_the_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(mut router) = routed(&directory, false) else { return };
    let mut lost = 0;
    for _ in 0..39 {
        let seen = router.forward_some(&udp(Family::Inet, 100, 7));
        lost += usize::from(seen.is_empty());
    }
    let stats = router.end();
    assert!(lost < 5, "{lost} of 39 packets are lost: {stats:?}");
    assert!(
        stats.facts.iter().any(|(name, why)| name == "no XDP frames to" && why.starts_with("d1")),
        "{stats:?}"
    );
    assert_eq!(stats.received, stats.forwarded + stats.dropped + stats.slow, "{stats:?}");
    let far =
        stats.interfaces.iter().find(|interface| interface.name == "d1").expect("an interface");
    assert!(far.lost > 0 && far.lost < 10, "{stats:?}");
}
