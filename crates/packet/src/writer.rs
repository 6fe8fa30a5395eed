//! Writer of consecutive packets, for senders in user space.

use crate::address::Family;
use crate::checksum;
use crate::stamp::{Phase, Stamp};
use crate::template::{Sums, Template};
use std::sync::Arc;

/// The queue of each flow, and the queues whose flows a sender sends.
#[derive(Clone, Debug)]
pub struct Turns {
    /// Queue of each flow, by flow number.
    pub queues: Arc<[u16]>,
    /// Queues whose flows are sent, ascending; at least one flow must have one of them.
    pub own: Vec<u16>,
}

impl Turns {
    /// Returns the number of sent packets among the first `packets` of all senders, which go through
    /// all flows repeatedly.
    pub fn own_of_first(&self, packets: u64) -> u64 {
        let own = |queues: &[u16]| {
            queues.iter().filter(|queue| self.own.binary_search(queue).is_ok()).count() as u64
        };
        let flows = (self.queues.len() as u64).max(1);
        let begun = (packets % flows) as usize;
        packets / flows * own(&self.queues) + own(&self.queues[..begun.min(self.queues.len())])
    }

    /// True if there is a flow to send.
    pub fn has_flows(&self) -> bool {
        self.queues.iter().any(|queue| self.own.binary_search(queue).is_ok())
    }
}

/// Goes through all flows of a template repeatedly, destinations first.
#[derive(Clone, Debug)]
pub struct FrameWriter {
    template: Template,
    sums: Sums,
    sender: u8,
    source: u32,
    destination: u32,
    sequence: u32,
    turns: Option<Turns>,
}

impl FrameWriter {
    /// Creates a writer for sender number `sender` (0 to 15).
    pub fn new(template: Template, sender: u8) -> FrameWriter {
        let sums = template.sums();
        let turns = None;
        FrameWriter { template, sums, sender, source: 0, destination: 0, sequence: 0, turns }
    }

    /// Restricts the writer to the flows of some queues; `turns` must have flows.
    pub fn with_turns(mut self, turns: Turns) -> FrameWriter {
        self.turns = turns.has_flows().then_some(turns);
        self
    }

    /// Starts at a flow, with the sequence number that belongs to it.
    pub fn beginning_with(mut self, flow: u32) -> FrameWriter {
        let destinations = self.template.flows().destinations;
        (self.source, self.destination) = (flow / destinations, flow % destinations);
        self.sequence = flow;
        self
    }

    /// Advances to the next flow that the sender sends and returns its queue. A skipped flow
    /// consumes its sequence number: flow and sequence belong together as if all were sent.
    #[inline]
    pub fn next_queue(&mut self) -> u16 {
        let destinations = self.template.flows().destinations;
        loop {
            let Some(turns) = &self.turns else { return 0 };
            let flow = self.source * destinations + self.destination;
            let queue = turns.queues.get(flow as usize).copied().unwrap_or(0);
            if turns.own.binary_search(&queue).is_ok() {
                return queue;
            }
            self.sequence = self.sequence.wrapping_add(1);
            self.advance();
        }
    }

    /// Returns the length of the longest frame without FCS.
    pub fn frame_length(&self) -> usize {
        self.template.bytes().len()
    }

    /// Fills a buffer initially; [`FrameWriter::write_next`] then changes only what differs from
    /// packet to packet.
    pub fn prepare(&self, frame: &mut [u8]) {
        frame.copy_from_slice(self.template.bytes());
    }

    /// Writes the next packet into a prepared buffer; returns its length.
    pub fn write_next(&mut self, frame: &mut [u8], phase: Phase, time_ns: u32) -> usize {
        let length = self.write_flow(frame, self.source, self.destination, phase, time_ns);
        self.advance();
        length
    }

    /// Writes a packet of the flow from this source to this destination (their indices) into a
    /// prepared buffer, and returns its length. The next flow of [`FrameWriter::write_next`] does
    /// not change.
    #[inline]
    pub fn write_flow(
        &mut self,
        frame: &mut [u8],
        source: u32,
        destination: u32,
        phase: Phase,
        time_ns: u32,
    ) -> usize {
        let family = self.template.family();
        let flow = self.template.flow(source, destination);
        let (first_source, first_destination) = self.template.bases();
        let source = (first_source + source).to_be_bytes();
        let destination = (first_destination + destination).to_be_bytes();
        let stamp = Stamp {
            run_id: self.template.run_id(),
            sender: self.sender,
            phase: phase as u8,
            flow,
            sequence: self.sequence,
            time_ns,
        };
        let (udp, at) = (self.template.udp_offset(), self.template.stamp_offset());
        stamp.emit(&mut frame[at..]);
        let addresses = |sum| checksum::add(checksum::add(sum, &source), &destination);
        let (source_at, destination_at) = match family {
            Family::Inet => (26, 30),
            Family::Inet6 => (34, 50),
        };
        frame[source_at..source_at + 4].copy_from_slice(&source);
        frame[destination_at..destination_at + 4].copy_from_slice(&destination);
        let (mut sums, mut length) = (self.sums, self.template.bytes().len());
        if self.template.size().is_mix() {
            length = self.template.length(self.sequence);
            let lengths = Template::lengths_of(family, length);
            let (ip_at, udp_at) = Template::length_offsets(family);
            frame[ip_at..ip_at + 2].copy_from_slice(&lengths.ip);
            frame[udp_at..udp_at + 2].copy_from_slice(&lengths.udp);
            sums.ip = checksum::add(sums.ip, &lengths.ip);
            sums.udp = checksum::add(checksum::add(sums.udp, &lengths.udp), &lengths.udp);
        }
        if family == Family::Inet {
            frame[24..26].copy_from_slice(&checksum::finish(addresses(sums.ip)));
        }
        let sum = checksum::add(addresses(sums.udp), &frame[at + 6..at + 18]);
        let check = match checksum::finish(sum) {
            [0, 0] => [0xff, 0xff],
            check => check,
        };
        frame[udp + 6..udp + 8].copy_from_slice(&check);
        self.sequence = self.sequence.wrapping_add(1);
        length
    }

    /// Skips the next packet, which was sent and lost before it was written.
    pub fn skip(&mut self) {
        self.sequence = self.sequence.wrapping_add(1);
        self.advance();
    }

    /// Takes back the last `packets` of [`FrameWriter::write_next`] that were not sent: the next
    /// calls write them again.
    pub fn take_back(&mut self, packets: u32) {
        for _ in 0..packets {
            self.sequence = self.sequence.wrapping_sub(1);
            let flows = self.template.flows();
            if self.destination == 0 {
                self.destination = flows.destinations;
                self.source = if self.source == 0 { flows.sources } else { self.source } - 1;
            }
            self.destination -= 1;
        }
    }

    fn advance(&mut self) {
        let flows = self.template.flows();
        self.destination += 1;
        if self.destination >= flows.destinations {
            self.destination = 0;
            self.source += 1;
            if self.source >= flows.sources {
                self.source = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flows;
    use crate::stream::Stream;

    #[test]
    fn only_flows_of_selected_queues_are_sent_with_their_sequence() {
        let flows = Flows { sources: 3, destinations: 4 };
        let template = Template::new(&Stream::new(Family::Inet, 64, flows), 9, [2; 6], [4; 6]);
        let queues: Arc<[u16]> = (0..12).map(|flow| flow % 3).collect();
        let turns = Turns { queues, own: vec![0, 2] };
        let mut writer = FrameWriter::new(template, 2).with_turns(turns);
        let mut frame = vec![0; writer.frame_length()];
        writer.prepare(&mut frame);
        let mut sent = Vec::new();
        for _ in 0..10 {
            let queue = writer.next_queue();
            writer.write_next(&mut frame, Phase::Window, 0);
            let stamp = Stamp::parse_frame(&frame).expect("a stamp");
            assert_eq!(stamp.flow, stamp.sequence % 12);
            assert_eq!(queue as u32, stamp.flow % 3);
            sent.push(stamp.sequence);
        }
        assert_eq!(sent, [0, 2, 3, 5, 6, 8, 9, 11, 12, 14]);
    }

    #[test]
    fn counted_packets_of_all_queues_are_shared_over_several_rounds() {
        let queues: Arc<[u16]> = (0..10).map(|flow| flow % 4).collect();
        let turns = [vec![0, 2], vec![1, 3]].map(|own| Turns { queues: queues.clone(), own });
        for packets in [0, 1, 7, 10, 64, 1_000_003] {
            let shares = turns.each_ref().map(|turns| turns.own_of_first(packets));
            assert_eq!(shares.iter().sum::<u64>(), packets);
        }
        // Flows 0, 2, 4, 6 and 8 of each round, and 0 and 2 of the last one.
        assert_eq!(turns[0].own_of_first(64), 6 * 5 + 2);
    }

    #[test]
    fn taken_back_packets_are_written_again() {
        let flows = Flows { sources: 3, destinations: 4 };
        let template = Template::new(&Stream::new(Family::Inet, 64, flows), 9, [2; 6], [4; 6]);
        let mut writer = FrameWriter::new(template, 2);
        let mut next = || -> Vec<Vec<u8>> {
            let mut all = Vec::new();
            for _ in 0..17 {
                let mut frame = vec![0; writer.frame_length()];
                writer.prepare(&mut frame);
                writer.write_next(&mut frame, Phase::Window, 7);
                all.push(frame);
            }
            writer.take_back(17);
            all
        };
        assert_eq!(next(), next());
    }

    #[test]
    fn frames_equal_the_reference_and_flows_take_turns() {
        let mix = crate::FrameSize::parse("imix").expect("known").at_least(84);
        let sizes = [100.into(), mix];
        let kinds = [(Family::Inet, 0), (Family::Inet6, 0), (Family::Inet, 7)];
        for ((family, first), size) in kinds
            .into_iter()
            .zip(sizes.into_iter().cycle())
            .chain([((Family::Inet, 3), mix), ((Family::Inet6, 0), mix)])
        {
            let flows = Flows { sources: 3, destinations: 4 };
            let template = Template::new(&Stream::new(family, size, flows), 9, [2; 6], [4; 6]);
            let mut writer = FrameWriter::new(template.clone(), 2).beginning_with(first);
            let mut frame = vec![0xa5; writer.frame_length()];
            writer.prepare(&mut frame);
            for sequence in first..first + 25 {
                let length = writer.write_next(&mut frame, Phase::Window, 1000 + sequence);
                let flow = sequence % 12;
                let stamp = Stamp {
                    run_id: 9,
                    sender: 2,
                    phase: 1,
                    flow,
                    sequence,
                    time_ns: 1000 + sequence,
                };
                let reference = template.frame(flow / 4, flow % 4, &stamp);
                assert_eq!(frame[..length], reference, "{family:?}");
            }
        }
    }
}
