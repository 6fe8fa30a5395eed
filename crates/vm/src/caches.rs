//! The file of the plugin's cache model, read from outside: header and places of `caches.c`, and
//! misses per packet by function.
//!
//! The numbers describe the model, not a machine: it ignores prefetching, writes by devices, and
//! evictions by programs and other CPUs. Its purpose is comparison: it reveals code and data that
//! have outgrown a cache.

use crate::costs::{Costs, UNKNOWN, median};
use crate::counts::quad;
use crate::error::VmError;
use crate::symbols::Symbols;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Magic word of the header.
const MAGIC: u64 = 0x3148_4341_4357_4643;
/// Bytes of the header and of a place.
const HEADER: usize = 128;
const PLACE: usize = 40;
/// Number of places of the plugin.
const PLACES: usize = 1 << 16;
/// Bytes of a cache line.
const LINE: u64 = 64;

/// Words of the header.
#[derive(Clone, Copy)]
enum Word {
    Magic = 0,
    On = 2,
    Overflow = 3,
    Shapes = 4,
}

/// A set-associative cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Size in bytes: a power of two times `ways`.
    pub bytes: u64,
    /// Lines per set.
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
    /// The instruction cache.
    pub code: Shape,
    /// The data cache.
    pub data: Shape,
    /// The cache behind both.
    pub last: Shape,
}

impl Default for Model {
    /// The first two levels of a core of Intel's servers since 2017.
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

/// The file of the cache model.
#[derive(Debug)]
pub struct CacheFile {
    path: PathBuf,
    file: File,
    /// The caches of the model.
    pub model: Model,
}

impl CacheFile {
    /// Creates a file for the plugin to fill, with the shapes of its caches.
    ///
    /// # Errors
    /// If the file can't be created, or the disk has no room for it: otherwise the kernel would
    /// kill QEMU later.
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

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the plugin watch accesses, from the next batch of packets on.
    ///
    /// # Errors
    /// If no plugin uses the file, or it can't be written.
    pub fn begin(&self) -> Result<(), VmError> {
        let mut bytes = [0; 8];
        let fail = |source| VmError::file(&self.path, source);
        self.file.read_exact_at(&mut bytes, 8 * Word::Magic as u64).map_err(fail)?;
        if u64::from_ne_bytes(bytes) != MAGIC {
            return Err(VmError::Counts("no plugin models caches in this file".into()));
        }
        self.watch(true)
    }

    /// Stops watching, which costs a guest most of its speed.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn end(&self) -> Result<(), VmError> {
        self.watch(false)
    }

    fn watch(&self, enabled: bool) -> Result<(), VmError> {
        let result = self.file.write_all_at(&u64::from(enabled).to_ne_bytes(), 8 * Word::On as u64);
        result.map_err(|source| VmError::file(&self.path, source))
    }

    /// Reads the current contents.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn seen(&self) -> Result<FileSnapshot, VmError> {
        let mut bytes = vec![0; HEADER + PLACES * PLACE];
        let result = self.file.read_exact_at(&mut bytes, 0);
        result.map_err(|source| VmError::file(&self.path, source))?;
        Ok(FileSnapshot { bytes })
    }
}

/// The file at one moment.
pub struct FileSnapshot {
    bytes: Vec<u8>,
}

/// Accesses and misses: of a block between two moments, or of a function per packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Misses {
    /// Reads and writes of data.
    pub references: f64,
    /// Lines missing in the instruction cache.
    pub code: f64,
    /// Lines missing in the data cache.
    pub data: f64,
    /// Lines of both that are also missing in the cache behind them.
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

    /// Adds `factor` times others.
    fn plus(self, factor: f64, other: Misses) -> Misses {
        let (words, other) = (self.words(), other.words());
        Misses::of(std::array::from_fn(|at| words[at] + factor * other[at]))
    }
}

/// Misses by the address of the code block that causes them.
pub type Blocks = Vec<(u64, Misses)>;

impl FileSnapshot {
    /// Returns accesses and misses since `before`.
    ///
    /// # Errors
    /// If the guest executed more blocks than there are places, or nothing was watched.
    pub fn since(&self, before: &FileSnapshot) -> Result<Blocks, VmError> {
        let overflow = 8 * Word::Overflow as usize;
        if quad(&self.bytes, overflow) != 0 {
            return Err(VmError::Counts(
                "the guest has executed more different blocks than the model of caches has \
                 places\n  next step: boot it again for each change"
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

/// A burst as seen by the model.
#[derive(Clone, Debug)]
pub struct BurstMisses {
    /// Forwarded packets.
    pub packets: u64,
    /// Misses from the first to the last packet.
    pub seen: Blocks,
    /// Misses of the idle guest.
    pub idle: Blocks,
    /// Length of the burst as a multiple of the idle time.
    pub scale: f64,
}

/// Misses per packet.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheCosts {
    /// The model's caches.
    pub model: Model,
    /// Sum of the functions, without the background.
    pub total: Misses,
    /// Misses by function, most data misses first; without the background.
    pub functions: Vec<(String, Misses)>,
}

/// Returns misses per packet by function: the median over the bursts, minus the misses of the idle
/// guest in the same time, for functions that `costs` does not attribute to the background.
///
/// # Errors
/// If the plugin has watched nothing.
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
        let median_of = |at: usize| {
            let misses_in = |burst: &BTreeMap<&str, Misses>| {
                burst.get(function.name.as_str()).map_or(0.0, |misses| misses.words()[at])
            };
            median(bursts.iter().map(misses_in).collect())
        };
        functions.push((function.name.clone(), Misses::of(std::array::from_fn(median_of))));
    }
    let sum = |sum: Misses, (_, misses): &(String, Misses)| sum.plus(1.0, *misses);
    let total = functions.iter().fold(Misses::default(), sum);
    functions
        .sort_by(|(a, one), (b, other)| other.data.total_cmp(&one.data).then_with(|| a.cmp(b)));
    Ok(CacheCosts { model, total, functions })
}

#[cfg(test)]
mod tests;
