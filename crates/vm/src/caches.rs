//! The file of the plugin's model of caches, seen from outside: header and places of
//! `caches.c`, and misses a packet by function.
//!
//! They are a model's, of no machine: what a CPU fetches ahead, what devices write, and what
//! programs and other CPUs evict is not in them. What it is good for is comparing: code and
//! data that grew out of a cache show.

use crate::costs::{Costs, UNKNOWN, median};
use crate::counts::quad;
use crate::error::VmError;
use crate::symbols::Symbols;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The word that the header begins with.
const MAGIC: u64 = 0x3148_4341_4357_4643;
/// Bytes of the header and of a place.
const HEADER: usize = 128;
const PLACE: usize = 40;
/// Places that the plugin has.
const PLACES: usize = 1 << 16;
/// Bytes of a line.
const LINE: u64 = 64;

/// Words of the header.
#[derive(Clone, Copy)]
enum Word {
    Magic = 0,
    On = 2,
    Overflow = 3,
    Shapes = 4,
}

/// A cache, set-associative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its size in bytes: a power of two times `ways`.
    pub bytes: u64,
    /// Lines of a set.
    pub ways: u64,
}

impl Shape {
    fn sets(self) -> u64 {
        self.bytes / LINE / self.ways
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes % (1 << 20) {
            0 => write!(f, "{} MiB {}-way", self.bytes >> 20, self.ways),
            _ => write!(f, "{} KiB {}-way", self.bytes >> 10, self.ways),
        }
    }
}

/// The caches of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// That of instructions.
    pub code: Shape,
    /// That of data.
    pub data: Shape,
    /// The one behind both.
    pub last: Shape,
}

impl Default for Model {
    /// As a core of Intel's servers had since 2017, whatever is behind its second level.
    fn default() -> Model {
        let first = Shape { bytes: 32 << 10, ways: 8 };
        Model { code: first, data: first, last: Shape { bytes: 1 << 20, ways: 16 } }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Model { code, data, last } = self;
        write!(f, "L1I {code}, L1D {data}, L2 {last}, lines of {LINE} bytes")
    }
}

/// The file.
#[derive(Debug)]
pub struct CacheFile {
    path: PathBuf,
    file: File,
    /// The caches of the model.
    pub model: Model,
}

impl CacheFile {
    /// A file for the plugin to fill, with the shapes of its caches.
    ///
    /// # Errors
    /// When it can't be made, or the disk has no room for it: QEMU would be killed there.
    pub fn create(path: &Path, model: Model) -> Result<CacheFile, VmError> {
        let fail = |source| VmError::file(path, source);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
        let file = file.map_err(fail)?;
        let mut bytes = vec![0; HEADER + PLACES * PLACE];
        let shapes = [model.code, model.data, model.last].map(|shape| [shape.sets(), shape.ways]);
        for (number, word) in shapes.iter().flatten().enumerate() {
            let at = 8 * (Word::Shapes as usize + number);
            bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
        file.write_all_at(&bytes, 0).map_err(fail)?;
        Ok(CacheFile { path: path.to_owned(), file, model })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks the plugin to watch accesses, from the next batch of packets on.
    ///
    /// # Errors
    /// When no plugin has the file, or it can't be written.
    pub fn begin(&self) -> Result<(), VmError> {
        let mut bytes = [0; 8];
        let fail = |source| VmError::file(&self.path, source);
        self.file.read_exact_at(&mut bytes, 8 * Word::Magic as u64).map_err(fail)?;
        if u64::from_ne_bytes(bytes) != MAGIC {
            return Err(VmError::Counts("no plugin models caches in this file".into()));
        }
        self.file.write_all_at(&1u64.to_ne_bytes(), 8 * Word::On as u64).map_err(fail)
    }

    /// Everything as it is now.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn seen(&self) -> Result<Seen, VmError> {
        let mut bytes = vec![0; HEADER + PLACES * PLACE];
        let read = self.file.read_exact_at(&mut bytes, 0);
        read.map_err(|source| VmError::file(&self.path, source))?;
        Ok(Seen { bytes })
    }
}

/// The file at one moment.
pub struct Seen {
    bytes: Vec<u8>,
}

/// Accesses and misses: of a block between two moments, or of a function a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Misses {
    /// Reads and writes of data.
    pub references: f64,
    /// Lines that the cache of instructions had not.
    pub code: f64,
    /// Lines that the cache of data had not.
    pub data: f64,
    /// Of both, those that the one behind them had not either.
    pub last: f64,
}

impl Misses {
    fn of(words: [f64; 4]) -> Misses {
        let [references, code, data, last] = words;
        Misses { references, code, data, last }
    }

    fn words(self) -> [f64; 4] {
        [self.references, self.code, self.data, self.last]
    }

    /// With `factor` times others.
    fn plus(self, factor: f64, other: Misses) -> Misses {
        let (own, other) = (self.words(), other.words());
        Misses::of(std::array::from_fn(|at| own[at] + factor * other[at]))
    }
}

/// Misses by the address of the block of code that has them.
pub type Blocks = Vec<(u64, Misses)>;

impl Seen {
    /// What was accessed and missed since `before`.
    ///
    /// # Errors
    /// When more blocks were executed than there are places, or nothing was watched.
    pub fn since(&self, before: &Seen) -> Result<Blocks, VmError> {
        let overflow = 8 * Word::Overflow as usize;
        if quad(&self.bytes, overflow) != 0 {
            return Err(VmError::Counts(
                "the guest has executed more different blocks than the model of caches has \
                 places\n  next step: boot it anew for each change"
                    .into(),
            ));
        }
        let mut blocks = Blocks::new();
        for at in (HEADER..self.bytes.len()).step_by(PLACE) {
            let word = |number: usize| {
                let at = at + 8 * number;
                quad(&self.bytes, at).wrapping_sub(quad(&before.bytes, at)) as f64
            };
            let misses = Misses::of([word(1), word(2), word(3), word(4)]);
            if misses != Misses::default() {
                blocks.push((quad(&self.bytes, at), misses));
            }
        }
        Ok(blocks)
    }
}

/// A burst, as the model saw it.
#[derive(Clone, Debug)]
pub struct BurstMisses {
    /// Packets that were forwarded.
    pub packets: u64,
    /// From the first to the last of them.
    pub seen: Blocks,
    /// Of the idle guest.
    pub idle: Blocks,
    /// Length of the burst as a multiple of the idle time.
    pub scale: f64,
}

/// Misses a packet.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheCosts {
    /// The model's caches.
    pub model: Model,
    /// All together, but for the background.
    pub total: Misses,
    /// By function, those with most misses of data first; background is left out.
    pub functions: Vec<(String, Misses)>,
}

/// Misses a packet by function: the median over the bursts, without what the idle guest
/// misses in as much time, of the functions that are no background by `costs`.
///
/// # Errors
/// When the plugin has watched nothing.
pub fn by_function(
    model: Model,
    costs: &Costs,
    bursts: &[BurstMisses],
    symbols: &Symbols,
) -> Result<CacheCosts, VmError> {
    let of_burst = |burst: &BurstMisses| {
        let mut sums: BTreeMap<&str, Misses> = BTreeMap::new();
        let packets = burst.packets.max(1) as f64;
        for (blocks, factor) in [(&burst.seen, 1.0), (&burst.idle, -burst.scale)] {
            for (address, misses) in blocks {
                let sum = sums.entry(symbols.name(*address).unwrap_or(UNKNOWN)).or_default();
                *sum = sum.plus(factor / packets, *misses);
            }
        }
        sums
    };
    if bursts.iter().any(|burst| burst.seen.is_empty()) {
        return Err(VmError::Counts(
            "the plugin has not modelled any cache while packets were forwarded".into(),
        ));
    }
    let bursts: Vec<BTreeMap<&str, Misses>> = bursts.iter().map(of_burst).collect();
    let mut functions: Vec<(String, Misses)> = Vec::new();
    for function in costs.functions.iter().filter(|function| !function.is_background) {
        let own = |at: usize| {
            let of = |burst: &BTreeMap<&str, Misses>| {
                burst.get(function.name.as_str()).map_or(0.0, |misses| misses.words()[at])
            };
            median(bursts.iter().map(of).collect())
        };
        functions.push((function.name.clone(), Misses::of(std::array::from_fn(own))));
    }
    let sum = |sum: Misses, (_, misses): &(String, Misses)| sum.plus(1.0, *misses);
    let total = functions.iter().fold(Misses::default(), sum);
    functions
        .sort_by(|(a, one), (b, other)| other.data.total_cmp(&one.data).then_with(|| a.cmp(b)));
    Ok(CacheCosts { model, total, functions })
}

#[cfg(test)]
mod tests;
