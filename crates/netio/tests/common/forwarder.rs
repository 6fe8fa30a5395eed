//! A router for tests: it forwards frames correctly except for one injected fault.

use fwdlab_netio::Frame;
use fwdlab_netio::circuit::FAR;
use fwdlab_netio::tap::inflict;
use fwdlab_packet::checksum;
use fwdlab_packet::injection::Damage;
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// MACs that it sends from and to.
pub(crate) const FROM: [u8; 6] = [2, 0, 0, 0, 0, 3];
/// See [`FROM`].
pub(crate) const TO: [u8; 6] = [2, 0, 0, 0, 0, 4];
/// Frames in a batch.
pub(crate) const BATCH: usize = 64;
/// Few enough packets that all their bytes are checked.
pub(crate) const BATCHES: usize = 12;

/// Fault of the forwarder, once in each batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wrong {
    Nothing,
    Damage(Damage),
    /// One packet is duplicated, in place of the next one.
    Twice,
    /// One packet swaps places with the next of its flow.
    Overtaken,
    /// All packets of flow 5 are lost.
    FlowLost,
}

/// Forwards like a router, except for the fault.
pub(crate) struct Forwarder {
    pub(crate) wrong: Wrong,
    random: Xoshiro256StarStar,
    /// Number of faults so far.
    pub(crate) done: u64,
    /// Number of faulty batches; after [`BATCHES`] it forwards correctly, except for lost flows.
    batches: usize,
}

impl Forwarder {
    pub(crate) fn new(wrong: Wrong, seed: u64) -> Forwarder {
        Forwarder { wrong, random: Xoshiro256StarStar::seed_from_u64(seed), done: 0, batches: 0 }
    }

    /// Forwards consecutive packets, at least twice as many as there are flows.
    pub(crate) fn forward(&mut self, frames: &mut [Frame]) {
        for frame in frames.iter_mut() {
            let bytes = frame.buffer_mut();
            bytes[0..6].copy_from_slice(&TO);
            bytes[6..12].copy_from_slice(&FROM);
            if bytes[12] == 0x08 {
                let before = [bytes[22], bytes[23]];
                bytes[22] -= 1;
                let check =
                    checksum::update([bytes[24], bytes[25]], before, [bytes[22], bytes[23]]);
                bytes[24..26].copy_from_slice(&check);
            } else {
                bytes[21] -= 1;
            }
            frame.send_to(FAR);
        }
        if self.batches == BATCHES && self.wrong != Wrong::FlowLost {
            return;
        }
        self.batches += 1;
        let random = self.random.next_u64();
        // A packet with others of its flow on both sides.
        let at = (random >> 32) as usize % (frames.len() - 32) + 16;
        match self.wrong {
            Wrong::Nothing => {}
            Wrong::Damage(damage) => {
                self.done += u64::from(inflict(damage, &mut frames[at], random))
            }
            Wrong::Twice => {
                frames[at + 1] = frames[at].clone();
                self.done += 1;
            }
            Wrong::Overtaken => {
                frames.swap(at, at + 16);
                self.done += 1;
            }
            Wrong::FlowLost => {
                for frame in frames.iter_mut() {
                    let low = if frame.bytes()[12] == 0x08 { 44 } else { 64 };
                    if frame.bytes()[low + 7] == 5 {
                        *frame = Frame::of(0, frame.bytes()).expect("it fits"); // goes nowhere
                        self.done += 1;
                    }
                }
            }
        }
    }

    /// Forwards a single frame without a fault.
    pub(crate) fn forward_one(&mut self, frame: &mut Frame) {
        let mut frames = vec![frame.clone(); 33];
        self.forward(&mut frames);
        frame.clone_from(&frames[0]);
    }
}
