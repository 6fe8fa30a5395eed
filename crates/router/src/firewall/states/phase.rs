//! Phases of a connection, and the timeouts of its state.

use crate::firewall::packet::protocol::{ICMP, ICMP6, TCP, UDP};
use crate::firewall::packet::{Packet, bit, flag};
use std::time::Duration;

/// Phase of a connection. Coarse: sequence numbers are tracked in `window.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Phase {
    /// One packet so far.
    First,
    /// Several packets, all from the initiator. Not TCP.
    Single,
    /// Packets from both sides. Not TCP.
    Multiple,
    /// TCP: the other side has answered.
    Opening,
    /// TCP: both have answered.
    Established,
    /// TCP: one side has finished.
    Closing,
    /// TCP: both sides have finished, or one has reset it.
    Closed,
}

/// Idle timeouts of states. The defaults are those of pf.conf(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP before any answer.
    pub tcp_first: Duration,
    /// TCP before both sides have answered.
    pub tcp_opening: Duration,
    /// Established TCP.
    pub tcp_established: Duration,
    /// TCP that one side has finished.
    pub tcp_closing: Duration,
    /// Closed TCP.
    pub tcp_closed: Duration,
    /// UDP after one packet.
    pub udp_first: Duration,
    /// UDP without answers.
    pub udp_single: Duration,
    /// UDP in both directions.
    pub udp_multiple: Duration,
    /// ICMP queries.
    pub icmp: Duration,
    /// Other protocols after one packet.
    pub other_first: Duration,
    /// Other protocols without answers.
    pub other_single: Duration,
    /// Other protocols in both directions.
    pub other_multiple: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        let s = Duration::from_secs;
        Timeouts {
            tcp_first: s(120),
            tcp_opening: s(30),
            tcp_established: s(86_400),
            tcp_closing: s(900),
            tcp_closed: s(90),
            udp_first: s(60),
            udp_single: s(30),
            udp_multiple: s(60),
            icmp: s(20),
            other_first: s(60),
            other_single: s(30),
            other_multiple: s(60),
        }
    }
}

/// Timeouts in nanoseconds by kind of protocol and phase.
#[derive(Clone, Copy, Debug)]
pub(in crate::firewall) struct Limits([[i64; 8]; 5]);

/// Kind of protocol, each with its own timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Sort {
    Tcp,
    Udp,
    Icmp,
    Other,
    /// TCP without windows.
    SloppyTcp,
}

impl Sort {
    pub(super) fn of(protocol: u8, sloppy: bool) -> Sort {
        match protocol {
            TCP if sloppy => Sort::SloppyTcp,
            TCP => Sort::Tcp,
            UDP => Sort::Udp,
            ICMP | ICMP6 => Sort::Icmp,
            _ => Sort::Other,
        }
    }
}

impl Limits {
    pub(in crate::firewall) fn of(timeouts: &Timeouts) -> Limits {
        let t = timeouts;
        let udp = [t.udp_first, t.udp_single, t.udp_multiple];
        let other = [t.other_first, t.other_single, t.other_multiple];
        let tcp = [
            t.tcp_first,
            t.tcp_first,
            t.tcp_established,
            t.tcp_opening,
            t.tcp_established,
            t.tcp_closing,
            t.tcp_closed,
            t.tcp_closed,
        ];
        let without_tcp = |[first, single, multiple]: [Duration; 3]| {
            [first, single, multiple, multiple, multiple, multiple, multiple, multiple]
        };
        let all = [tcp, without_tcp(udp), without_tcp([t.icmp; 3]), without_tcp(other), tcp];
        let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        Limits(all.map(|times| times.map(ns)))
    }

    /// Each timeout multiplied by `part` / 256.
    pub(super) fn shortened(&self, part: u8) -> Limits {
        Limits(self.0.map(|times| times.map(|ns| ns / 256 * i64::from(part))))
    }

    /// The shortest timeout, in nanoseconds.
    pub(super) fn shortest(&self) -> u64 {
        self.0.iter().flatten().map(|&ns| ns.max(0).cast_unsigned()).min().unwrap_or(0)
    }

    /// Nanoseconds without packets after which a connection expires.
    #[inline(always)]
    pub(super) fn get(&self, sort: Sort, phase: Phase) -> i64 {
        self.0[sort as usize][phase as usize]
    }
}

/// Sides that have finished; bit 0 is the initiator.
pub(super) type Finished = u8;

/// Initial phase of a connection. TCP that is picked up mid-stream is not established until both
/// sides have answered: a flood of single segments would keep its states for a day. Without windows
/// it is, as the other side may take another way.
pub(super) fn begin(packet: &Packet, sort: Sort) -> (Phase, Finished) {
    let is_tcp = matches!(sort, Sort::Tcp | Sort::SloppyTcp);
    match sort {
        _ if is_tcp && packet.flags() & flag::FIN != 0 => (Phase::Closing, 1),
        Sort::SloppyTcp if !packet.is(bit::OPENS_TCP) => (Phase::Established, 0),
        _ => (Phase::First, 0),
    }
}

/// Phase after a further packet. Not for TCP.
#[inline(always)]
pub(super) fn go_on(phase: Phase, reply: bool) -> Phase {
    if reply || phase == Phase::Multiple { Phase::Multiple } else { Phase::Single }
}

/// Phase after a further TCP packet. A separate function, so that the paths of other protocols
/// don't inline it.
#[inline(never)]
pub(super) fn tcp(
    (phase, mut finished): (Phase, Finished),
    flags: u8,
    reply: bool,
) -> (Phase, Finished) {
    if flags & flag::RST != 0 || phase == Phase::Closed {
        return (Phase::Closed, finished);
    }
    if flags & flag::FIN != 0 {
        finished |= 1 << u8::from(reply);
    }
    let phase = match (finished, phase) {
        (3, _) => Phase::Closed,
        (1 | 2, _) => Phase::Closing,
        (_, Phase::First) if reply => Phase::Opening,
        (_, Phase::Opening) if !reply && flags & flag::ACK != 0 => Phase::Established,
        (_, phase) => phase,
    };
    (phase, finished)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(packets: &[(u8, bool)]) -> Vec<Phase> {
        let packet = |flags| {
            let opens = flags & (flag::SYN | flag::ACK) == flag::SYN;
            let word = u32::from(TCP) << 8 | if opens { bit::OPENS_TCP } else { 0 };
            Packet::new(word, 0, flags, 0)
        };
        let mut state = begin(&packet(packets[0].0), Sort::Tcp);
        let mut phases = vec![state.0];
        for &(flags, reply) in &packets[1..] {
            state = tcp(state, flags, reply);
            phases.push(state.0);
        }
        phases
    }

    #[test]
    fn tcp_phases_follow_flags() {
        use Phase::{Closed, Closing, Established, First, Opening};
        let (syn, ack, fin, rst) = (flag::SYN, flag::ACK, flag::FIN | flag::ACK, flag::RST);
        let whole = [(syn, false), (syn | ack, true), (ack, false), (ack, true)];
        assert_eq!(phases(&whole), [First, Opening, Established, Established]);
        let end = [(ack, false), (fin, true), (ack, false), (fin, false), (ack, true)];
        assert_eq!(phases(&end), [First, Closing, Closing, Closed, Closed]);
        let midstream = [(ack, false), (ack, false), (ack, true), (ack, true), (ack, false)];
        assert_eq!(phases(&midstream), [First, First, Opening, Opening, Established]);
        let again = [(syn, false), (syn, false), (syn | ack, true), (syn | ack, true)];
        assert_eq!(phases(&again), [First, First, Opening, Opening]);
        assert_eq!(phases(&[(syn, false), (rst, true)]), [First, Closed]);
        assert_eq!(phases(&[(fin, false), (fin, false), (fin, true)]), [Closing, Closing, Closed]);
    }

    #[test]
    fn timeouts_depend_on_protocol_and_phase() {
        let limits = Limits::of(&Timeouts::default());
        let seconds =
            |protocol, phase| limits.get(Sort::of(protocol, false), phase) / 1_000_000_000;
        assert_eq!(seconds(TCP, Phase::Opening), 30);
        assert_eq!(seconds(TCP, Phase::Established), 86_400);
        assert_eq!(seconds(UDP, Phase::Single), 30);
        assert_eq!(seconds(UDP, Phase::Multiple), 60);
        assert_eq!(seconds(ICMP6, Phase::First), 20);
        assert_eq!(seconds(47, Phase::First), 60);
    }
}
