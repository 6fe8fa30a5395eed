//! Sizes of a run's frames: a single size, or a mix of several (IMIX).
//!
//! A mix is a sequence of sizes that is sent repeatedly, as in RFC 6985 (IMIX Genome). The size of
//! a packet follows from its sequence number alone, so every sender sends the same frames and a
//! receiver knows the length of each one.
//!
//! If the number of flows and the length of the sequence have a common divisor, a flow would have
//! only some of the sizes. In that case one more position of the sequence is skipped after each
//! round of the flows, or a few positions, so that each flow has all sizes in the mix's
//! proportions.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Bytes of the frame check sequence, counted in a [`FrameSize`] and never in memory.
pub const FCS_BYTES: u16 = 4;
/// Preamble (7), start delimiter (1) and inter-frame gap (12) of Ethernet: the bytes that a frame
/// occupies on a wire in addition to its own.
pub const WIRE_OVERHEAD_BYTES: u16 = 20;
/// Smallest frame of Ethernet.
pub const FRAME_MIN: u16 = 64;
/// Largest frame that is sent: 1500 bytes of IP.
pub const FRAME_MAX: u16 = 1518;
/// Longest sequence of a mix.
pub const SEQUENCE_MAX: usize = 64;

/// Named mixes: sizes and their numbers of frames.
///
/// `imix` is the most common mix of that name: IP packets of 40, 576 and 1500 bytes, 7 : 4 : 1
/// (TRex's `imix.py`, Spirent's and Ostinato's profiles), as frames with FCS. `imix-570` has 570
/// bytes in the middle, as FD.io CSIT's `IMIX_v4_1` and Ixia's profile.
pub const NAMED: [(&str, [(u16, usize); 3]); 2] =
    [("imix", [(64, 7), (594, 4), (1518, 1)]), ("imix-570", [(64, 7), (570, 4), (1518, 1)])];

/// Letters of an IMIX genome and their sizes, as far as these frames are supported (RFC 6985,
/// section 4; `z` is the MTU, here Ethernet's).
pub const GENOME: [(char, u16); 8] = [
    ('a', 64),
    ('b', 128),
    ('c', 256),
    ('d', 512),
    ('e', 1024),
    ('f', 1280),
    ('g', 1518),
    ('z', 1518),
];

/// Bytes of a run's frames from destination MAC through FCS, in sending order: one size, or the
/// sequence of a mix.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameSize {
    sequence: [u16; SEQUENCE_MAX],
    length: u8,
}

impl FrameSize {
    /// Frames of one size.
    pub const fn of(bytes: u16) -> FrameSize {
        let mut sequence = [0; SEQUENCE_MAX];
        sequence[0] = bytes;
        FrameSize { sequence, length: 1 }
    }

    /// Frames of these sizes in turn; `None` without a size, or with more than [`SEQUENCE_MAX`].
    /// Equal sizes become one size.
    pub fn in_turn(sizes: &[u16]) -> Option<FrameSize> {
        let (&first, others) = sizes.split_first()?;
        if others.iter().all(|&size| size == first) {
            return Some(FrameSize::of(first));
        }
        let mut sequence = [0; SEQUENCE_MAX];
        sequence.get_mut(..sizes.len())?.copy_from_slice(sizes);
        Some(FrameSize { sequence, length: sizes.len() as u8 })
    }

    /// Frames of each size in these numbers, spread as evenly as possible.
    pub fn mixed(parts: &[(u16, usize)]) -> Option<FrameSize> {
        let all: usize = parts.iter().map(|(_, frames)| frames).sum();
        let mut sent = vec![0; parts.len()];
        let mut sizes = Vec::with_capacity(all);
        for place in 1..=all {
            // The size furthest behind its share; the first of equals.
            let behind = |n: usize| (place * parts[n].1) as i64 - (sent[n] * all) as i64;
            let next = (0..parts.len()).rev().max_by_key(|&n| behind(n))?;
            sent[next] += 1;
            sizes.push(parts[next].0);
        }
        FrameSize::in_turn(&sizes)
    }

    /// Parses a mix in an experiment file: a name, or `genome:` and letters of RFC 6985.
    ///
    /// # Errors
    /// The fault, as the end of a sentence.
    pub fn parse(text: &str) -> Result<FrameSize, String> {
        if let Some((_, parts)) = NAMED.iter().find(|(name, _)| *name == text) {
            return FrameSize::mixed(parts).ok_or_else(|| "of no frames".to_owned());
        }
        let Some(letters) = text.strip_prefix("genome:") else {
            let names: Vec<String> = NAMED.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            return Err(format!("no mix has this name: there are {}", names.join(" and ")));
        };
        let sizes: Result<Vec<u16>, String> = letters
            .chars()
            .map(|letter| {
                let known = GENOME.iter().find(|(known, _)| *known == letter);
                known.map(|(_, size)| *size).ok_or_else(|| {
                    format!("`{letter}` is no size: the letters are a to g and z (RFC 6985)")
                })
            })
            .collect();
        FrameSize::in_turn(&sizes?)
            .ok_or_else(|| format!("a genome has 1 to {SEQUENCE_MAX} letters"))
    }

    /// Returns the sizes in sending order.
    pub fn sizes(&self) -> &[u16] {
        &self.sequence[..usize::from(self.length)]
    }

    /// Returns the size of all frames; `None` for a mix.
    pub fn one(&self) -> Option<u16> {
        (self.length == 1).then_some(self.sequence[0])
    }

    /// True for a mix.
    pub fn is_mix(&self) -> bool {
        self.length > 1
    }

    /// Returns the smallest size.
    pub fn least(&self) -> u16 {
        self.sizes().iter().copied().min().unwrap_or_default()
    }

    /// Returns the largest size.
    pub fn most(&self) -> u16 {
        self.sizes().iter().copied().max().unwrap_or_default()
    }

    /// Returns the mean size of a packet in bytes.
    pub fn mean(&self) -> f64 {
        let bytes: u64 = self.sizes().iter().map(|&size| u64::from(size)).sum();
        bytes as f64 / self.sizes().len() as f64
    }

    /// Raises smaller sizes to `bytes`.
    #[must_use]
    pub fn at_least(mut self, bytes: u16) -> FrameSize {
        self.sequence[..usize::from(self.length)].iter_mut().for_each(|size| {
            *size = bytes.max(*size);
        });
        FrameSize::in_turn(self.sizes()).unwrap_or(self)
    }

    /// Returns the L2 rate in bit/s of `pps` frames per second: pps x frame x 8; for a mix,
    /// assuming that all frames arrive.
    pub fn l2_bits_per_second(&self, pps: f64) -> f64 {
        pps * self.mean() * 8.0
    }

    /// Returns the L1 rate in bit/s of `pps` frames per second: pps x (frame + 20) x 8; for a mix,
    /// assuming that all frames arrive.
    pub fn l1_bits_per_second(&self, pps: f64) -> f64 {
        pps * (self.mean() + f64::from(WIRE_OVERHEAD_BYTES)) * 8.0
    }

    /// Returns the notation of experiment files. For a mix with raised sizes, it is the requested
    /// mix.
    pub fn text(&self) -> String {
        if let Some(bytes) = self.one() {
            return bytes.to_string();
        }
        let least = self.least();
        let named = NAMED.iter().find(|(_, parts)| {
            FrameSize::mixed(parts).is_some_and(|mix| mix.at_least(least) == *self)
        });
        if let Some((name, _)) = named {
            return (*name).to_owned();
        }
        let letter = |size: &u16| {
            let raised = |known: u16| known.max(least);
            GENOME.iter().find(|(_, known)| raised(*known) == *size).map(|(letter, _)| *letter)
        };
        match self.sizes().iter().map(letter).collect::<Option<String>>() {
            Some(letters) => format!("genome:{letters}"),
            None => {
                let sizes: Vec<String> = self.sizes().iter().map(u16::to_string).collect();
                sizes.join("+")
            }
        }
    }

    /// Returns the number of frames per size in words: `7 x 64, 4 x 594, 1 x 1518`.
    pub fn proportions(&self) -> String {
        let mut sizes = self.sizes().to_vec();
        sizes.sort_unstable();
        let groups = sizes.chunk_by(|a, b| a == b);
        let words: Vec<String> =
            groups.map(|group| format!("{} x {}", group.len(), group[0])).collect();
        words.join(", ")
    }

    /// Returns the mapping from sequence numbers to sizes for this number of flows.
    pub fn turns(&self, flows: u32) -> SizeTurns {
        let length = u64::from(self.length);
        let pass = (0..length).find(|pass| gcd(u64::from(flows) + pass, length) == 1);
        SizeTurns { flows: u64::from(flows.max(1)), pass: pass.unwrap_or(0) }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Mapping from a packet's sequence number to the position in a mix's sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeTurns {
    flows: u64,
    /// Positions skipped after each round of the flows.
    pass: u64,
}

impl SizeTurns {
    /// Returns the size of the packet with a sequence number.
    #[inline]
    pub fn size(&self, sizes: &FrameSize, sequence: u32) -> u16 {
        if sizes.length == 1 {
            return sizes.sequence[0];
        }
        let sequence = u64::from(sequence);
        let place = sequence + sequence / self.flows * self.pass;
        sizes.sequence[(place % u64::from(sizes.length)) as usize]
    }

    /// Returns the number of positions skipped after each round of the flows.
    pub fn pass(&self) -> u32 {
        self.pass as u32
    }
}

impl From<u16> for FrameSize {
    fn from(bytes: u16) -> FrameSize {
        FrameSize::of(bytes)
    }
}

impl fmt::Display for FrameSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.one() {
            Some(bytes) => write!(f, "{bytes} bytes"),
            None => {
                write!(f, "{} ({}: {:.1} bytes)", self.text(), self.proportions(), self.mean())
            }
        }
    }
}

impl fmt::Debug for FrameSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FrameSize").field(&self.sizes()).finish()
    }
}

/// One size is serialised as a number, a mix as the list of its sizes.
impl Serialize for FrameSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.one() {
            Some(bytes) => serializer.serialize_u16(bytes),
            None => serializer.collect_seq(self.sizes()),
        }
    }
}

impl<'de> Deserialize<'de> for FrameSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FrameSize, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(u16),
            Mix(Vec<u16>),
        }
        match Written::deserialize(deserializer)? {
            Written::One(bytes) => Ok(FrameSize::of(bytes)),
            Written::Mix(sizes) => FrameSize::in_turn(&sizes).ok_or_else(|| {
                serde::de::Error::custom(format!("a mix has 1 to {SEQUENCE_MAX} frames"))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn mixes_match_their_definitions() {
        let imix = FrameSize::parse("imix").expect("known");
        assert_eq!(imix.sizes().len(), 12);
        assert_eq!(imix.proportions(), "7 x 64, 4 x 594, 1 x 1518");
        assert!((imix.mean() - 4342.0 / 12.0).abs() < 1e-9);
        assert_eq!(
            FrameSize::parse("imix-570").expect("known").proportions(),
            "7 x 64, 4 x 570, 1 x 1518"
        );
        let genome = FrameSize::parse("genome:aafga").expect("letters");
        assert_eq!(genome.sizes(), [64, 64, 1280, 1518, 64]);
        assert!(FrameSize::parse("genome:h").is_err(), "2112 bytes are no frame here");
        assert!(FrameSize::parse("genome:").is_err());
        assert!(FrameSize::parse(&format!("genome:{}", "ab".repeat(33))).is_err());
        assert!(FrameSize::parse("imiks").is_err());
        // No two large frames are adjacent unless they must be.
        let sizes = imix.sizes();
        assert!((0..12).all(|n| sizes[n] == 64 || sizes[(n + 1) % 12] == 64), "{sizes:?}");
    }

    #[test]
    fn flows_have_all_sizes_in_proportion() {
        for text in ["imix", "genome:aafga", "genome:ag", "genome:aaaaag"] {
            let mix = FrameSize::parse(text).expect("known");
            for flows in [1, 2, 5, 12, 20, 100, 2000] {
                let turns = mix.turns(flows);
                let length = mix.sizes().len() as u32;
                let mut found: BTreeMap<(u32, u16), u32> = BTreeMap::new();
                for sequence in 0..flows * length {
                    let size = turns.size(&mix, sequence);
                    *found.entry((sequence % flows, size)).or_default() += 1;
                }
                for ((flow, size), count) in found {
                    let expected = mix.sizes().iter().filter(|&&one| one == size).count();
                    assert_eq!(count as usize, expected, "{text}: flow {flow} of {flows}, {size}");
                }
            }
        }
    }

    #[test]
    fn text_survives_a_round_trip() {
        let raised = FrameSize::parse("imix").expect("known").at_least(84);
        for mix in [FrameSize::of(64), FrameSize::parse("genome:aafga").expect("letters"), raised] {
            let json = serde_json::to_string(&mix).expect("JSON");
            assert_eq!(serde_json::from_str::<FrameSize>(&json).expect("JSON"), mix, "{json}");
        }
        assert_eq!(serde_json::to_string(&FrameSize::of(64)).expect("JSON"), "64");
        assert_eq!(raised.text(), "imix");
        assert_eq!(FrameSize::parse("genome:aafga").expect("letters").text(), "genome:aafga");
        assert_eq!(raised.least(), 84);
        assert!(serde_json::from_str::<FrameSize>("[]").is_err());
    }

    #[test]
    fn smallest_frames_fill_ten_gigabit_at_14_88_mpps() {
        let l1 = FrameSize::of(64).l1_bits_per_second(14_880_952.0);
        assert!((l1 - 10e9).abs() < 1e3, "{l1}");
    }
}
