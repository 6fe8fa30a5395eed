//! Asks a guest that forwards what a packet costs: bursts of batches in lockstep.

use crate::costs::{Burst, Costs, costs};
use crate::error::VmError;
use crate::linux::Running;
use crate::symbols::Symbols;
use crate::wire::{Lockstep, Wire};
use fwdlab_packet::{Family, Flows, FrameWriter, Phase, Side, Stamp, Template, address};
use std::time::{Duration, Instant};

/// MACs of the guest's cards, in their order, and of what is beyond them.
pub const GUEST_MACS: [&str; 2] = ["02:00:c6:12:00:01", "02:00:c6:12:00:02"];
/// See [`GUEST_MACS`].
const GUEST_MAC: [u8; 6] = [0x02, 0x00, 0xc6, 0x12, 0x00, 0x01];
const SENDER_MAC: [u8; 6] = [0x02, 0x00, 0xc6, 0x12, 0x01, 0x01];
const SENDER: &str = "02:00:c6:12:01:01";
const RECEIVER: &str = "02:00:c6:12:02:01";
/// Silence after which what is missing of a batch is taken for lost.
const SILENCE: Duration = Duration::from_secs(2);
/// Batches of which one may be scattered: more, and a burst means nothing.
const SCATTERED_MAX: f64 = 0.05;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Address family.
    pub family: Family,
    /// Frame size in bytes, with FCS.
    pub frame_size: u16,
    /// Flows.
    pub flows: Flows,
    /// Packets that the guest finds at once: at most 64, the budget of a poll.
    pub batch: u16,
    /// Batches of a burst.
    pub batches: u32,
    /// Bursts.
    pub bursts: u32,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What a packet costs.
    pub costs: Costs,
    /// Packets that were sent while counting.
    pub sent: u64,
    /// Those of them that did not come out.
    pub lost: u64,
    /// Batches that the guest did not find at once.
    pub scattered: u64,
}

/// Commands that make a Linux guest forward between its second and third interface, as
/// argument vectors for its `sh`.
pub fn set_up(interfaces: [&str; 2], family: Family) -> Vec<Vec<String>> {
    let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let option = if family == Family::Inet6 { "-6" } else { "-4" };
    let mut commands = Vec::new();
    for (side, interface, mac) in
        [(Side::Sender, interfaces[0], SENDER), (Side::Receiver, interfaces[1], RECEIVER)]
    {
        let own = address::dut_address(family, side);
        let peer = address::peer_address(family, side);
        let prefix = address::routed_prefix(family, side);
        let nodad = if family == Family::Inet6 { " nodad" } else { "" };
        commands.push(words(format!("ip link set {interface} up")));
        commands.push(words(format!("ip {option} addr add {own} dev {interface}{nodad}")));
        commands.push(words(format!(
            "ip {option} neigh replace {peer} lladdr {mac} dev {interface} nud permanent"
        )));
        commands.push(words(format!("ip {option} route replace {prefix} via {peer}")));
    }
    let sysctl = match family {
        Family::Inet => "net.ipv4.ip_forward=1",
        Family::Inet6 => "net.ipv6.conf.all.forwarding=1",
    };
    commands.push(words(format!("sysctl -w {sysctl}")));
    commands
}

/// Sends bursts through a guest that forwards, and counts.
///
/// # Errors
/// When it forwards nothing, does not come to rest, is gone, or QEMU does not count.
pub fn measure(
    running: &Running,
    wires: [&Wire; 2],
    symbols: &Symbols,
    question: &Question,
) -> Result<Answer, VmError> {
    let counted = bursts(running, wires, symbols, question);
    // A guest that has died says why on its console.
    let dead = || running.machine.console().look().err();
    counted.map_err(|error| running.machine.explain(dead().unwrap_or(error)))
}

fn bursts(
    running: &Running,
    wires: [&Wire; 2],
    symbols: &Symbols,
    question: &Question,
) -> Result<Answer, VmError> {
    let counts = running.counts.as_ref().ok_or_else(|| {
        VmError::Counts("the guest is executed by the CPU itself, which counts nothing".into())
    })?;
    let mut traffic = Traffic::new(question);
    let mut lockstep = Lockstep::new(&running.machine, counts, wires);
    // Every flow once, and a few batches for what is set up by the first packets.
    let warm = (question.flows.count() / u32::from(question.batch) + 1).max(20);
    let through = traffic.batches(&mut lockstep, warm)?;
    if through == 0 {
        return Err(VmError::Counts(
            "the guest forwards nothing: none of the first packets came out\n  next step: see what \
             the change does to forwarding"
                .into(),
        ));
    }
    let before = lockstep.scattered();
    let mut bursts = Vec::new();
    let (mut sent, mut lost) = (0, 0);
    for _ in 0..question.bursts {
        let opened = counts.counts()?;
        let began = Instant::now();
        let through = traffic.batches(&mut lockstep, question.batches)?;
        lockstep.wait_for_rest()?;
        let took = began.elapsed();
        let closed = counts.counts()?;
        let resting = Instant::now();
        std::thread::sleep(took);
        let idled = counts.counts()?;
        let scale = took.as_secs_f64() / resting.elapsed().as_secs_f64();
        let packets = u64::from(question.batches) * u64::from(question.batch);
        sent += packets;
        lost += packets - through;
        bursts.push(Burst {
            packets: through,
            executed: closed.since(&opened)?,
            idle: idled.since(&closed)?,
            scale,
        });
    }
    let scattered = lockstep.scattered() - before;
    let batches = f64::from(question.batches) * f64::from(question.bursts);
    if scattered as f64 > SCATTERED_MAX * batches {
        return Err(VmError::Counts(format!(
            "{scattered} of {batches} batches were not found at once by the guest: something else \
             keeps its interface busy"
        )));
    }
    Ok(Answer { costs: costs(&bursts, symbols), sent, lost, scattered })
}

/// The packets, one after the other through all flows.
struct Traffic {
    writer: FrameWriter,
    frames: Vec<Vec<u8>>,
}

impl Traffic {
    /// The identity of these packets.
    const RUN: u32 = 1;

    fn new(question: &Question) -> Traffic {
        let Question { family, frame_size, flows, batch, .. } = *question;
        let size = frame_size.max(Template::smallest_frame(family));
        let template = Template::new(family, size, flows, Self::RUN, SENDER_MAC, GUEST_MAC);
        let writer = FrameWriter::new(template, 0);
        let mut frame = vec![0; writer.frame_length()];
        writer.prepare(&mut frame);
        Traffic { writer, frames: vec![frame; usize::from(batch)] }
    }

    /// Sends so many batches; returns how many packets came out.
    fn batches(&mut self, lockstep: &mut Lockstep<'_>, batches: u32) -> Result<u64, VmError> {
        let mut through = 0;
        for number in 0..batches {
            for frame in &mut self.frames {
                self.writer.write_next(frame, Phase::Window, 0);
            }
            let own = |frame: &[u8]| {
                Stamp::parse_frame(frame).is_some_and(|stamp| stamp.run_id == Self::RUN)
            };
            let came = lockstep.batch(self.frames.iter().map(Vec::as_slice), SILENCE, own)?;
            through += came as u64;
            // What forwards nothing is not asked again and again.
            if number == 1 && through == 0 {
                break;
            }
        }
        Ok(through)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_set_up_by_plain_commands() {
        let commands: Vec<String> =
            set_up(["eth1", "eth2"], Family::Inet).iter().map(|words| words.join(" ")).collect();
        assert_eq!(commands[1], "ip -4 addr add 198.18.0.1/24 dev eth1");
        assert_eq!(commands[7], "ip -4 route replace 198.19.0.0/16 via 198.19.0.2");
        assert_eq!(commands[8], "sysctl -w net.ipv4.ip_forward=1");
    }
}
