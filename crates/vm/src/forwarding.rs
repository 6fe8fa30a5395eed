//! Measures the cost of a packet in a forwarding guest: bursts of batches in lockstep.

use crate::bursts::{self, Burst, CountSnapshot, PacketCost};
use crate::counts::CountFile;
use crate::error::VmError;
use crate::guest::{RunningGuest, System};
use crate::symbols::Symbols;
use crate::wire::{Lockstep, Wire};
use fwdlab_packet::{
    Endpoints, Family, Flows, FrameWriter, Phase, Side, Stamp, Stream, Template, address, answer,
};
use std::time::{Duration, Instant};

/// MACs of the guest's cards, in order, and of the stations beyond them.
pub const GUEST_MACS: [&str; 2] = ["02:00:c6:12:00:01", "02:00:c6:12:00:02"];
/// See [`GUEST_MACS`].
const GUEST_MAC: [u8; 6] = [0x02, 0x00, 0xc6, 0x12, 0x00, 0x01];
const GUEST_MAC_OUT: [u8; 6] = [0x02, 0x00, 0xc6, 0x12, 0x00, 0x02];
const SENDER_MAC: [u8; 6] = [0x02, 0x00, 0xc6, 0x12, 0x01, 0x01];
const SENDER: &str = "02:00:c6:12:01:01";
/// MAC of the station beyond the guest's second card.
pub const RECEIVER: &str = "02:00:c6:12:02:01";
const RECEIVER_MAC: [u8; 6] = [0x02, 0x00, 0xc6, 0x12, 0x02, 0x01];
/// Silence after which the missing packets of a batch count as lost.
const SILENCE: Duration = Duration::from_secs(2);
/// Maximum share of scattered batches: with more, a burst is meaningless.
const SCATTERED_MAX: f64 = 0.05;

/// The traffic to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Address family.
    pub family: Family,
    /// Frame size in bytes, with FCS.
    pub frame_size: u16,
    /// Number of flows.
    pub flows: Flows,
    /// Packets that the guest finds in its ring at the same time: at most 64, the budget of a poll.
    pub batch: u16,
    /// Batches per burst.
    pub batches: u32,
    /// Number of bursts.
    pub bursts: u32,
    /// True if the device encrypts: then every unicast frame to the receiver counts as a packet.
    /// Otherwise packets are found by their stamps, behind any headers.
    pub is_encrypted: bool,
    /// True if each flow is answered before counting, so that the device's states are established.
    pub has_answers: bool,
    /// Added to the source port. Flows of an earlier measurement may have left states in the
    /// device.
    pub port_offset: u16,
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Cost of a packet.
    pub found: PacketCost,
    /// Packets sent while counting.
    pub sent: u64,
    /// Sent packets that were not forwarded.
    pub lost: u64,
    /// Batches that the guest did not find as a whole.
    pub scattered: u64,
}

/// Returns commands that make a guest forward between two interfaces, as argument vectors.
pub fn set_up(system: System, interfaces: [&str; 2], family: Family) -> Vec<Vec<String>> {
    let commands = match system {
        System::Linux => linux(interfaces, family),
        System::FreeBsd => freebsd(interfaces, family),
    };
    commands.iter().map(|text| text.split(' ').map(str::to_owned).collect()).collect()
}

/// Returns the two sides of a guest, with the MACs beyond them.
fn sides(interfaces: [&str; 2]) -> [(Side, &str, &'static str); 2] {
    [(Side::Sender, interfaces[0], SENDER), (Side::Receiver, interfaces[1], RECEIVER)]
}

fn linux(interfaces: [&str; 2], family: Family) -> Vec<String> {
    let (option, nodad, sysctl) = match family {
        Family::Inet => ("-4", "", "net.ipv4.ip_forward=1"),
        Family::Inet6 => ("-6", " nodad", "net.ipv6.conf.all.forwarding=1"),
    };
    let mut commands = Vec::new();
    for (side, interface, mac) in sides(interfaces) {
        let dut = address::dut_address(family, side);
        let peer = address::peer_address(family, side);
        let prefix = address::routed_prefix(family, side);
        commands.push(format!("ip link set {interface} up"));
        commands.push(format!("ip {option} addr add {dut} dev {interface}{nodad}"));
        commands.push(format!(
            "ip {option} neigh replace {peer} lladdr {mac} dev {interface} nud permanent"
        ));
        commands.push(format!("ip {option} route replace {prefix} via {peer}"));
    }
    commands.push(format!("sysctl -w {sysctl}"));
    commands
}

fn freebsd(interfaces: [&str; 2], family: Family) -> Vec<String> {
    let (nodad, neighbour, sysctl) = match family {
        Family::Inet => ("", "arp -S", "net.inet.ip.forwarding=1"),
        // Duplicate address detection sends frames that no station answers.
        Family::Inet6 => (" -ifdisabled no_dad", "ndp -s", "net.inet6.ip6.forwarding=1"),
    };
    let mut commands = Vec::new();
    for (side, interface, mac) in sides(interfaces) {
        let dut = address::dut_address(family, side);
        let peer = address::peer_address(family, side);
        let prefix = address::routed_prefix(family, side);
        commands.push(format!("ifconfig {interface} {family} {dut}{nodad} up"));
        commands.push(format!("{neighbour} {peer} {mac}"));
        commands.push(format!("route -n add -{family} {prefix} {peer}"));
    }
    commands.push(format!("sysctl {sysctl}"));
    commands
}

/// Sends bursts through a forwarding guest, and counts. Calls `report` with the number of each
/// burst before it starts, from 1, and with `None` for the warm-up.
///
/// # Errors
/// If the guest forwards nothing, does not come to rest, or is gone, or if QEMU does not count.
pub fn measure(
    running: &RunningGuest,
    wires: [&Wire; 2],
    symbols: &Symbols,
    question: &Question,
    report: &mut dyn FnMut(Option<u32>),
) -> Result<Answer, VmError> {
    let result = bursts(running, wires, symbols, question, report);
    // The console of a dead guest contains the reason.
    let dead = || running.machine.console().look().err();
    result.map_err(|error| running.machine.explain(dead().unwrap_or(error)))
}

fn bursts(
    running: &RunningGuest,
    wires: [&Wire; 2],
    symbols: &Symbols,
    question: &Question,
    report: &mut dyn FnMut(Option<u32>),
) -> Result<Answer, VmError> {
    report(None);
    let counts = running.counts.as_ref().ok_or_else(|| {
        VmError::Counts("the guest was started without a plugin that counts".into())
    })?;
    let mut traffic = Traffic::new(question);
    let mut lockstep = Lockstep::new(&running.machine, counts, wires);
    // Each flow once, and at least some batches for the state that the first packets create.
    let warm = (question.flows.count() / u32::from(question.batch) + 1).max(20);
    traffic.keeps_arrivals = question.has_answers;
    let forwarded = traffic.batches(&mut lockstep, warm)?;
    if forwarded == 0 {
        return Err(VmError::ForwardsNothing);
    }
    if question.has_answers {
        traffic.keeps_arrivals = false;
        traffic.answer(running, counts, wires)?;
        traffic.batches(&mut lockstep, warm)?;
    }
    bursts::begin(running)?;
    // Stacks are known from here on, and caches fill with the data of every flow.
    let warm_batches = if running.caches.is_some() { warm } else { 1 };
    traffic.batches(&mut lockstep, warm_batches)?;
    let before = lockstep.scattered();
    let mut bursts = Vec::new();
    let (mut sent, mut lost) = (0, 0);
    for burst in 1..=question.bursts {
        report(Some(burst));
        let (start, began) = (CountSnapshot::at(running)?, Instant::now());
        let forwarded = traffic.batches(&mut lockstep, question.batches)?;
        // There is no cost per packet, and the burst was not sent to its end.
        if forwarded == 0 {
            return Err(VmError::ForwardsNothing);
        }
        lockstep.wait_for_rest()?;
        let took = began.elapsed();
        let work = CountSnapshot::at(running)?.since(&start)?;
        let packets = u64::from(question.batches) * u64::from(question.batch);
        sent += packets;
        lost += packets - forwarded;
        bursts.push((Burst { packets: forwarded, work, ..Burst::default() }, took));
    }
    let scattered = lockstep.scattered() - before;
    let batches = f64::from(question.batches) * f64::from(question.bursts);
    if scattered as f64 > SCATTERED_MAX * batches {
        return Err(VmError::Counts(format!(
            "{scattered} of {batches} batches were not found at once by the guest: something else \
             keeps its interface busy"
        )));
    }
    let (bursts, last) = bursts::with_idle(running, bursts)?;
    let found = bursts::found(running, bursts, &last, symbols)?;
    Ok(Answer { found, sent, lost, scattered })
}

/// The packets, in turn through all flows.
struct Traffic {
    writer: FrameWriter,
    frames: Vec<Vec<u8>>,
    is_encrypted: bool,
    /// True if arrivals are kept for answers.
    keeps_arrivals: bool,
    arrivals: Vec<Vec<u8>>,
}

impl Traffic {
    /// Run id of the packets.
    const RUN: u32 = 1;

    fn new(question: &Question) -> Traffic {
        let Question { family, frame_size, flows, batch, is_encrypted, port_offset, .. } =
            *question;
        let size = frame_size.max(Template::smallest_frame(family));
        let planned = Endpoints::planned(family);
        let source_port = planned.source_port.wrapping_add(port_offset);
        let mut stream = Stream::new(family, size, flows);
        stream.endpoints = (port_offset > 0).then_some(Endpoints { source_port, ..planned });
        let template = Template::new(&stream, Self::RUN, SENDER_MAC, GUEST_MAC);
        let writer = FrameWriter::new(template, 0);
        let mut frame = vec![0; writer.frame_length()];
        writer.prepare(&mut frame);
        Traffic {
            writer,
            frames: vec![frame; usize::from(batch)],
            is_encrypted,
            keeps_arrivals: false,
            arrivals: Vec::new(),
        }
    }

    /// Answers the kept arrivals through the guest. The first packets of a flow may be lost while
    /// others create its state, so each flow is answered as often as it arrived.
    fn answer(
        &mut self,
        running: &RunningGuest,
        counts: &CountFile,
        [sender, receiver]: [&Wire; 2],
    ) -> Result<(), VmError> {
        let mut lockstep = Lockstep::new(&running.machine, counts, [receiver, sender]);
        let answers = std::mem::take(&mut self.arrivals);
        let answers: Vec<Vec<u8>> =
            answers.iter().filter_map(|frame| answer(frame, RECEIVER_MAC, GUEST_MAC_OUT)).collect();
        let mut passed = 0;
        for (number, batch) in answers.chunks(self.frames.len()).enumerate() {
            let is_own = |frame: &[u8]| Stamp::find(frame, Self::RUN).is_some();
            passed += lockstep.batch(batch.iter().map(Vec::as_slice), SILENCE, is_own)?;
            if passed == 0 && number > 0 {
                break;
            }
        }
        // A flow that is not answered has no established state.
        match passed * 10 >= answers.len() * 9 && passed > 0 {
            true => Ok(()),
            false => Err(VmError::Unanswered { passed, sent: answers.len() }),
        }
    }

    /// Sends `batches` batches; returns the number of forwarded packets.
    fn batches(&mut self, lockstep: &mut Lockstep<'_>, batches: u32) -> Result<u64, VmError> {
        let mut forwarded = 0;
        for number in 0..batches {
            for frame in &mut self.frames {
                self.writer.write_next(frame, Phase::Window, 0);
            }
            let is_own = |frame: &[u8]| {
                let is_own = match self.is_encrypted {
                    true => frame.starts_with(&RECEIVER_MAC),
                    false => Stamp::find(frame, Self::RUN).is_some(),
                };
                if is_own && self.keeps_arrivals {
                    self.arrivals.push(frame.to_vec());
                }
                is_own
            };
            let arrived = lockstep.batch(self.frames.iter().map(Vec::as_slice), SILENCE, is_own)?;
            forwarded += arrived as u64;
            // Does not try a guest that forwards nothing again and again.
            if number == 1 && forwarded == 0 {
                break;
            }
        }
        Ok(forwarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_up_returns_plain_commands() {
        let commands = |system, interfaces| -> Vec<String> {
            let commands = set_up(system, interfaces, Family::Inet);
            commands.iter().map(|words| words.join(" ")).collect()
        };
        let of_freebsd = commands(System::FreeBsd, ["vtnet1", "vtnet2"]);
        assert_eq!(of_freebsd[0], "ifconfig vtnet1 inet 198.18.0.1/24 up");
        assert_eq!(of_freebsd[5], "route -n add -inet 198.19.0.0/16 198.19.0.2");
        let commands = commands(System::Linux, ["eth1", "eth2"]);
        assert_eq!(commands[1], "ip -4 addr add 198.18.0.1/24 dev eth1");
        assert_eq!(commands[7], "ip -4 route replace 198.19.0.0/16 via 198.19.0.2");
        assert_eq!(commands[8], "sysctl -w net.ipv4.ip_forward=1");
    }
}
