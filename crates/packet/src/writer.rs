//! Writes one packet after the other, for senders in user space.

use crate::address::{Family, Side, flow_base};
use crate::checksum;
use crate::stamp::{Phase, Stamp};
use crate::template::{Sums, Template};

/// Goes through all flows of a template, round and round, destinations first.
#[derive(Clone, Debug)]
pub struct FrameWriter {
    template: Template,
    sums: Sums,
    sender: u8,
    source: u32,
    destination: u32,
    sequence: u32,
}

impl FrameWriter {
    /// A writer for sender number `sender` (0 to 15).
    pub fn new(template: Template, sender: u8) -> FrameWriter {
        let sums = template.sums();
        FrameWriter { template, sums, sender, source: 0, destination: 0, sequence: 0 }
    }

    /// Length of every frame without FCS.
    pub fn frame_length(&self) -> usize {
        self.template.bytes().len()
    }

    /// Fills a buffer once; [`FrameWriter::write_next`] then changes only what
    /// differs from packet to packet.
    pub fn prepare(&self, frame: &mut [u8]) {
        frame.copy_from_slice(self.template.bytes());
    }

    /// Writes the next packet into a buffer that was prepared.
    pub fn write_next(&mut self, frame: &mut [u8], phase: Phase, time_ns: u32) {
        self.write_flow(frame, self.source, self.destination, phase, time_ns);
        self.advance();
    }

    /// Writes a packet of the flow from this source to this destination (their indices)
    /// into a buffer that was prepared. Which flow [`FrameWriter::write_next`] takes
    /// next stays as it is.
    #[inline]
    pub fn write_flow(
        &mut self,
        frame: &mut [u8],
        source: u32,
        destination: u32,
        phase: Phase,
        time_ns: u32,
    ) {
        let family = self.template.family();
        let flow = self.template.flow(source, destination);
        let source = (flow_base(family, Side::Sender) + source).to_be_bytes();
        let destination = (flow_base(family, Side::Receiver) + destination).to_be_bytes();
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
        if family == Family::Inet {
            frame[24..26].copy_from_slice(&checksum::finish(addresses(self.sums.ip)));
        }
        let sum = checksum::add(addresses(self.sums.udp), &frame[at + 6..at + 18]);
        let check = match checksum::finish(sum) {
            [0, 0] => [0xff, 0xff],
            check => check,
        };
        frame[udp + 6..udp + 8].copy_from_slice(&check);
        self.sequence = self.sequence.wrapping_add(1);
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
    use crate::template::FlowRange;

    #[test]
    fn every_frame_equals_the_reference_and_every_flow_comes_in_turn() {
        for family in [Family::Inet, Family::Inet6] {
            let flows = FlowRange { sources: 3, destinations: 4 };
            let template = Template::new(family, 100, flows, 9, [2; 6], [4; 6]);
            let mut writer = FrameWriter::new(template.clone(), 2);
            let mut frame = vec![0xa5; writer.frame_length()];
            writer.prepare(&mut frame);
            for sequence in 0..25u32 {
                writer.write_next(&mut frame, Phase::Window, 1000 + sequence);
                let flow = sequence % 12;
                let stamp = Stamp {
                    run_id: 9,
                    sender: 2,
                    phase: 1,
                    flow,
                    sequence,
                    time_ns: 1000 + sequence,
                };
                assert_eq!(frame, template.frame(flow / 4, flow % 4, &stamp), "{family:?}");
            }
        }
    }
}
