//! Flows with prebuilt headers, for senders that share a CPU with the receiver.
//!
//! Only phase, sequence number and time of a packet change, and with them UDP's checksum. The sum
//! over the rest is kept.

use crate::stamp::{self, Phase};
use crate::template::Template;
use crate::{Family, FrameWriter, checksum};

/// Bytes kept per flow: a multiple of what processors copy in one step, at least headers and stamp.
const STRIDES: [usize; 2] = [64, 96];

/// Headers and stamps of some flows.
#[derive(Clone, Debug)]
pub struct PreparedFlows {
    heads: Vec<u8>,
    /// Folded sums over UDP and its pseudo header, without the changing fields.
    sums: Vec<u32>,
    stride: usize,
    udp: usize,
    stamp: usize,
    length: usize,
    sequence: u32,
    /// Template from which the lengths of a mix of sizes follow.
    mix: Option<Template>,
}

impl PreparedFlows {
    /// Prepares flows, each given as source and destination index, of sender number `sender` (0 to
    /// 15).
    pub fn new(template: &Template, sender: u8, flows: &[(u32, u32)]) -> PreparedFlows {
        let mut writer = FrameWriter::new(template.clone(), sender);
        let (udp, stamp) = (template.udp_offset(), template.stamp_offset());
        let stride = match template.family() {
            Family::Inet => STRIDES[0],
            Family::Inet6 => STRIDES[1],
        };
        let mut frame = vec![0; writer.frame_length().max(stride)];
        let mut heads = Vec::with_capacity(flows.len() * stride);
        let mut sums = Vec::with_capacity(flows.len());
        let length = writer.frame_length();
        for &(source, destination) in flows {
            writer.prepare(&mut frame[..length]);
            writer.write_flow(&mut frame[..length], source, destination, Phase::WarmUp, 0);
            if template.size().is_mix() {
                forget_lengths(template.family(), &mut frame);
            }
            // The number that the writer used is not this sender's.
            let sequence = [&frame[stamp + 10..stamp + 12], &frame[stamp + 12..stamp + 14]];
            let sequence: u32 = sequence.iter().map(|word| word_of(word)).sum();
            let whole = u32::from(!(word_of(&frame[udp + 6..udp + 8]) as u16));
            // In one's complement, subtraction is addition of the complement.
            sums.push(fold(whole + u32::from(!(fold(sequence) as u16))));
            heads.extend_from_slice(&frame[..stride]);
        }
        let mix = template.size().is_mix().then(|| template.clone());
        PreparedFlows { heads, sums, stride, udp, stamp, length, sequence: 0, mix }
    }

    /// Returns the number of flows.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// True if there are no flows.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Returns the length of the longest frame without FCS. A buffer must initially contain the
    /// template's bytes, because those after the headers are not written again.
    pub fn frame_length(&self) -> usize {
        self.length
    }

    /// Skips a sequence number whose packet was sent and lost, and is not written.
    #[inline]
    pub fn skip(&mut self) {
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Writes the next packet of the flow at index `flow` of the prepared ones into a buffer of at
    /// least 96 bytes, and returns its length. Bytes after the frame may change.
    ///
    /// # Panics
    /// If there is no such flow, or the buffer is too short.
    #[inline]
    pub fn write(&mut self, flow: usize, buffer: &mut [u8], phase: Phase, time_ns: u32) -> usize {
        let head = &self.heads[flow * self.stride..];
        // Lengths known to the compiler.
        match self.stride {
            64 => buffer[..64].copy_from_slice(&head[..64]),
            _ => buffer[..96].copy_from_slice(&head[..96]),
        }
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        let (length, lengths) = match &self.mix {
            None => (self.length, 0),
            Some(template) => write_lengths(template, sequence, buffer),
        };
        let sum = self.sums[flow]
            + lengths
            + ((phase as u32) << 8)
            + (sequence >> 16)
            + (sequence & 0xffff)
            + (time_ns >> 16)
            + (time_ns & 0xffff);
        let check = match !(fold(sum) as u16) {
            0 => 0xffff,
            check => check,
        };
        buffer[self.udp + 6..self.udp + 8].copy_from_slice(&check.to_be_bytes());
        let stamp = &mut buffer[self.stamp..self.stamp + stamp::BYTES];
        stamp[6] |= phase as u8;
        stamp[10..14].copy_from_slice(&sequence.to_be_bytes());
        stamp[14..18].copy_from_slice(&time_ns.to_be_bytes());
        length
    }
}

/// Removes the lengths from a packet's headers and from the sums that cover them.
fn forget_lengths(family: Family, frame: &mut [u8]) {
    let (ip, udp) = Template::length_offsets(family);
    let check = udp + 2;
    let take = |frame: &mut [u8], at: usize, check: usize| {
        let (field, before) = ([frame[check], frame[check + 1]], [frame[at], frame[at + 1]]);
        let updated = checksum::update(field, before, [0, 0]);
        frame[check..check + 2].copy_from_slice(&updated);
    };
    if family == Family::Inet {
        take(frame, ip, 24);
    }
    // Once for the header, once for the pseudo header.
    take(frame, udp, check);
    take(frame, udp, check);
    frame[ip..ip + 2].fill(0);
    frame[udp..udp + 2].fill(0);
}

/// Writes the lengths of the packet with a sequence number, and the checksum of IPv4. Returns its
/// length, and the contribution of the lengths to UDP's sum.
#[inline]
fn write_lengths(template: &Template, sequence: u32, buffer: &mut [u8]) -> (usize, u32) {
    let family = template.family();
    let length = template.length(sequence);
    let lengths = Template::lengths_of(family, length);
    let (ip, udp) = Template::length_offsets(family);
    if family == Family::Inet {
        let check = checksum::update([buffer[24], buffer[25]], [0, 0], lengths.ip);
        buffer[24..26].copy_from_slice(&check);
    }
    buffer[ip..ip + 2].copy_from_slice(&lengths.ip);
    buffer[udp..udp + 2].copy_from_slice(&lengths.udp);
    (length, 2 * word_of(&lengths.udp))
}

fn word_of(bytes: &[u8]) -> u32 {
    u32::from(bytes[0]) << 8 | u32::from(bytes[1])
}

/// Folds a sum to 16 bits (RFC 1071).
#[inline(always)]
fn fold(sum: u32) -> u32 {
    let sum = (sum >> 16) + (sum & 0xffff);
    (sum >> 16) + (sum & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flows;
    use crate::FrameSize;
    use crate::Stamp;
    use crate::stream::Stream;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_frame_equals_the_reference(
            inet6: bool,
            size in 84u16..300,
            sender in 0u8..16,
            first: u32,
            phase in 0usize..3,
            time_ns: u32,
            mixed: bool,
        ) {
            let family = if inet6 { Family::Inet6 } else { Family::Inet };
            let size = if inet6 { size } else { size - 20 };
            let mix = FrameSize::in_turn(&[size, 300, size + 1, 299]).expect("a mix");
            let size = if mixed { mix } else { size.into() };
            let flows = Flows { sources: 3, destinations: 70 };
            let template = Template::new(&Stream::new(family, size, flows), 9, [2; 6], [4; 6]);
            let some = [(0, 0), (2, 69), (1, 5)];
            let mut prepared = PreparedFlows::new(&template, sender, &some);
            prepared.sequence = first;
            let mut buffer = vec![0; 400];
            buffer[..template.bytes().len()].copy_from_slice(template.bytes());
            let phase = [Phase::WarmUp, Phase::Window, Phase::After][phase];
            for n in 0..6 {
                let (source, destination) = some[n % 3];
                let length = prepared.write(n % 3, &mut buffer, phase, time_ns);
                let stamp = Stamp {
                    run_id: 9,
                    sender,
                    phase: phase as u8,
                    flow: source * 70 + destination,
                    sequence: first.wrapping_add(n as u32),
                    time_ns,
                };
                let frame = &buffer[..length];
                prop_assert_eq!(frame, &template.frame(source, destination, &stamp)[..]);
            }
        }
    }
}
