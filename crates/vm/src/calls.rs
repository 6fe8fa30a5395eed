//! The file of the plugin's call tree, read from outside: header and nodes of `calls.c`, and their
//! costs by function.
//!
//! A node consists of a block of code and the node that called its function. The block determines
//! the function, as in the flat counts: if a function continues in another by a jump, the other
//! takes its place, and the sums by function equal those of the flat counts.

use crate::costs::{Burst, Costs, PROGRAMS, UNKNOWN};
use crate::counts::{Executed, quad};
use crate::error::VmError;
use crate::symbols::Symbols;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Magic word of the header: `FWCALLS1`.
const MAGIC: u64 = 0x3153_4c4c_4143_5746;
/// Bytes of the header and of a node.
const HEADER: usize = 128;
const NODE: usize = 24;
/// Number of nodes of the plugin.
const NODES: usize = 1 << 21;
/// In place of a caller: an entry into the kernel, or the start of a thread. All other values are
/// unknown.
const ENTRY: u64 = NODES as u64;
const THREAD: u64 = NODES as u64 + 1;
/// The frame below functions with unknown callers.
pub const LOST: &str = "(callers unknown)";
/// Maximum number of frames in a path: more are a cycle, which is a fault of the plugin.
const DEEPEST: usize = 4096;
/// Time within which a running guest begins a block.
const BEGINS: Duration = Duration::from_millis(200);

/// Words of the header.
#[derive(Clone, Copy)]
enum Word {
    Magic = 0,
    On = 2,
    Freeze = 3,
    Frozen = 4,
    Overflow = 5,
    Returns = 7,
    Jumps = 8,
    Lost = 9,
}

/// The file of the call tree.
#[derive(Debug)]
pub struct CallFile {
    path: PathBuf,
    file: File,
}

impl CallFile {
    /// Creates an empty file for the plugin to fill.
    ///
    /// # Errors
    /// If the file can't be created, or the disk has no room for it: otherwise the kernel would
    /// kill QEMU later.
    pub fn create(path: &Path) -> Result<CallFile, VmError> {
        let fail = |source| VmError::file(path, source);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
        let file = file.map_err(fail)?;
        file.write_all_at(&vec![0; HEADER + NODES * NODE], 0).map_err(fail)?;
        Ok(CallFile { path: path.to_owned(), file })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts counting by caller.
    ///
    /// # Errors
    /// If no plugin has written the file, or it can't be written.
    pub fn begin(&self) -> Result<(), VmError> {
        if self.read(Word::Magic)? != MAGIC {
            return Err(VmError::Counts("no plugin follows calls in this file".into()));
        }
        self.write(Word::On, 1)
    }

    /// Calls `look` while the guest is frozen, and returns its result with the tree of that moment.
    ///
    /// # Errors
    /// The errors of `look`, and if the file can't be read or written.
    pub fn frozen<T>(
        &self,
        look: impl FnOnce() -> Result<T, VmError>,
    ) -> Result<(T, Tree), VmError> {
        let before = self.read(Word::Frozen)?;
        self.write(Word::Freeze, 1)?;
        let began = Instant::now();
        let mut frozen_count = Ok(before);
        // An idle guest begins no block, and nothing changes during that time either.
        while matches!(frozen_count, Ok(now) if now == before) && began.elapsed() < BEGINS {
            std::thread::sleep(Duration::from_millis(1));
            frozen_count = self.read(Word::Frozen);
        }
        let result = frozen_count.and_then(|_| Ok((look()?, self.tree()?)));
        self.write(Word::Freeze, 0)?;
        result
    }

    fn tree(&self) -> Result<Tree, VmError> {
        let mut bytes = vec![0; HEADER + NODES * NODE];
        let result = self.file.read_exact_at(&mut bytes, 0);
        result.map_err(|source| VmError::file(&self.path, source))?;
        Ok(Tree { bytes })
    }

    fn read(&self, word: Word) -> Result<u64, VmError> {
        let mut bytes = [0; 8];
        let result = self.file.read_exact_at(&mut bytes, 8 * word as u64);
        result.map_err(|source| VmError::file(&self.path, source))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn write(&self, word: Word, value: u64) -> Result<(), VmError> {
        let result = self.file.write_all_at(&value.to_ne_bytes(), 8 * word as u64);
        result.map_err(|source| VmError::file(&self.path, source))
    }
}

/// The tree at one moment.
pub struct Tree {
    bytes: Vec<u8>,
}

/// Returns between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returns {
    /// Returns to the call site.
    pub matched: u64,
    /// Returns to other addresses, as in thunks of indirect calls.
    pub jumps: u64,
    /// Returns from unknown frames.
    pub lost: u64,
}

impl Returns {
    /// Adds the returns of another period.
    pub fn and(self, other: Returns) -> Returns {
        Returns {
            matched: self.matched + other.matched,
            jumps: self.jumps + other.jumps,
            lost: self.lost + other.lost,
        }
    }
}

/// Nodes of the tree with the number of instructions executed there.
pub type TreeCounts = Vec<(u32, u64)>;

/// Executed instructions by path, root first.
pub type Paths<'a> = BTreeMap<Vec<&'a str>, u64>;

impl Tree {
    /// Returns the instructions executed in the kernel since `before`, by node.
    ///
    /// # Errors
    /// If there were more paths than the plugin has nodes: the counts are incomplete.
    pub fn grown_since(&self, before: &Tree) -> Result<TreeCounts, VmError> {
        if self.word(Word::Overflow) != before.word(Word::Overflow) {
            return Err(VmError::Counts(
                "the guest has more call paths than the plugin has nodes\n  next step: count \
                 without calls, or boot it again for each change"
                    .into(),
            ));
        }
        let grown = (0..(self.bytes.len() - HEADER) / NODE).map(|node| {
            let at = HEADER + node * NODE + 16;
            (node as u32, quad(&self.bytes, at).wrapping_sub(quad(&before.bytes, at)))
        });
        Ok(grown.filter(|(_, times)| *times > 0).collect())
    }

    /// Groups instructions by path. Nodes keep their positions, so any later tree resolves them.
    pub fn paths<'a>(&self, grown: &[(u32, u64)], symbols: &'a Symbols) -> Paths<'a> {
        let mut paths = Paths::new();
        for (node, times) in grown {
            *paths.entry(self.path(u64::from(*node), symbols)).or_default() += times;
        }
        paths
    }

    /// Counts the returns since `before`.
    pub fn returns_since(&self, before: &Tree) -> Returns {
        let difference = |word| self.word(word).wrapping_sub(before.word(word));
        Returns {
            matched: difference(Word::Returns),
            jumps: difference(Word::Jumps),
            lost: difference(Word::Lost),
        }
    }

    /// Returns the functions from the root to a node.
    fn path<'a>(&self, mut node: u64, symbols: &'a Symbols) -> Vec<&'a str> {
        let mut path = Vec::new();
        while node < NODES as u64 && path.len() < DEEPEST {
            let at = HEADER + node as usize * NODE;
            path.push(symbols.name(quad(&self.bytes, at)).unwrap_or(UNKNOWN));
            node = quad(&self.bytes, at + 8);
        }
        if node != ENTRY && node != THREAD {
            path.push(LOST);
        }
        path.reverse();
        path
    }

    fn word(&self, word: Word) -> u64 {
        quad(&self.bytes, 8 * word as usize)
    }
}

/// The paths of a burst, and of the idle guest after it.
#[derive(Clone, Debug)]
pub struct BurstPaths<'a> {
    /// While packets were forwarded.
    pub executed: Paths<'a>,
    /// While the guest idled.
    pub idle: Paths<'a>,
}

/// Cost of a packet by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// Instructions per packet by path, root first; the paths of each function add up to its entry
    /// in [`Costs`]. Without the background.
    pub paths: Vec<(Vec<String>, f64)>,
    /// Instructions by which paths and flat counts of functions differ, over all bursts: 0 unless
    /// something is wrong.
    pub unaccounted: u64,
    /// Returns while packets were forwarded.
    pub returns: Returns,
}

impl Calls {
    /// Formats the paths in folded form, `root;caller;function 12`, in thousandths of an
    /// instruction.
    pub fn folded(&self) -> String {
        let counts = self.paths.iter().map(|(path, count)| (path, (1000.0 * count).round()));
        let counts = counts.filter(|(_, count)| *count >= 1.0);
        counts.map(|(path, count)| format!("{} {count}\n", path.join(";"))).collect()
    }

    /// Returns the share (0 to 1) of instructions with unknown callers; 0 without instructions.
    pub fn unknown_share(&self) -> f64 {
        let sum = |selects: &dyn Fn(&[String]) -> bool| -> f64 {
            self.paths.iter().filter(|(path, _)| selects(path)).map(|(_, count)| count).sum()
        };
        let total = sum(&|_| true);
        let unknown = sum(&|path| path.first().is_some_and(|root| root == LOST));
        if total > 0.0 && unknown > 0.0 { unknown / total } else { 0.0 }
    }
}

/// Divides the cost of each function among the paths to it, in proportion to their instructions in
/// all bursts.
///
/// The background of a path is subtracted in the same way as the background of a function. A path
/// with a negative remainder gets no share.
pub fn by_path(
    costs: &Costs,
    bursts: &[(Burst, BurstPaths<'_>)],
    symbols: &Symbols,
    returns: Returns,
) -> Calls {
    let mut net: BTreeMap<&[&str], f64> = BTreeMap::new();
    let mut unaccounted = 0;
    for (burst, paths) in bursts {
        let parts =
            [(&burst.executed, &paths.executed, 1.0), (&burst.idle, &paths.idle, -burst.scale)];
        for (flat, paths, factor) in parts {
            unaccounted += difference(flat, paths, symbols);
            for (path, count) in paths {
                *net.entry(path).or_default() += factor * *count as f64;
            }
        }
    }
    let mut of_function: BTreeMap<&str, f64> = BTreeMap::new();
    for (path, count) in &net {
        *of_function.entry(path.last().copied().unwrap_or(UNKNOWN)).or_default() += count.max(0.0);
    }
    let mut calls = Calls { unaccounted, returns, ..Calls::default() };
    for function in costs.functions.iter().filter(|f| !f.is_background && f.instructions > 0.0) {
        let total = of_function.get(function.name.as_str()).copied().unwrap_or(0.0);
        if total <= 0.0 {
            // Programs have no callers here.
            calls.paths.push((vec![function.name.clone()], function.instructions));
            continue;
        }
        for (path, count) in &net {
            if path.last() == Some(&function.name.as_str()) && *count > 0.0 {
                let path = path.iter().map(|&frame| frame.to_owned()).collect();
                calls.paths.push((path, function.instructions * count / total));
            }
        }
    }
    calls.paths.sort_by(|a, b| a.0.cmp(&b.0));
    calls
}

/// Returns the instructions by which flat counts and paths differ, function by function.
fn difference(flat: &[Executed], paths: &Paths<'_>, symbols: &Symbols) -> u64 {
    let mut functions: BTreeMap<&str, i128> = BTreeMap::new();
    for place in flat.iter().filter(|place| place.address != 0) {
        let name = symbols.name(place.address).unwrap_or(UNKNOWN);
        *functions.entry(name).or_default() += i128::from(place.instructions);
    }
    for (path, count) in paths {
        let name = path.last().copied().unwrap_or(PROGRAMS);
        *functions.entry(name).or_default() -= i128::from(*count);
    }
    functions.values().map(|difference| difference.unsigned_abs() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::costs;

    const NAMES: &str = "0000000000000100 T enter\n0000000000000200 T forward\n\
                         0000000000000300 T lookup\n";

    fn tree(nodes: &[(u64, u64, u64)]) -> Tree {
        let mut bytes = vec![0; HEADER];
        for (address, caller, instructions) in nodes {
            for word in [address, caller, instructions] {
                bytes.extend(word.to_ne_bytes());
            }
        }
        Tree { bytes }
    }

    #[test]
    fn paths_name_functions_from_the_root() {
        let symbols = Symbols::of_kallsyms(NAMES);
        let lost = NODES as u64 + 2;
        let before = tree(&[(0x104, ENTRY, 5), (0x200, 0, 7), (0x300, 1, 1), (0x300, lost, 0)]);
        let after = tree(&[(0x104, ENTRY, 9), (0x200, 0, 7), (0x300, 1, 4), (0x300, lost, 2)]);
        let paths = after.paths(&after.grown_since(&before).unwrap(), &symbols);
        let expected: Paths<'_> = [
            (vec!["enter"], 4),
            (vec!["enter", "forward", "lookup"], 3),
            (vec![LOST, "lookup"], 2),
        ]
        .into();
        assert_eq!(paths, expected);
        let circle = tree(&[(0x100, 1, 1), (0x200, 0, 1)]);
        assert_eq!(circle.path(0, &symbols).len(), DEEPEST + 1, "it ends");
    }

    #[test]
    fn paths_add_up_to_flat_counts() {
        let symbols = Symbols::of_kallsyms(NAMES);
        let executed =
            |address, instructions| Executed { address, instructions, ..Executed::default() };
        let burst = Burst {
            packets: 10,
            executed: vec![executed(0x100, 200), executed(0x310, 90), executed(0x320, 10)],
            idle: vec![executed(0x300, 10)],
            idle_time: Duration::from_secs(1),
            scale: 1.0,
        };
        let paths = BurstPaths {
            executed: [
                (vec!["enter"], 200),
                (vec!["enter", "lookup"], 75),
                (vec![LOST, "lookup"], 25),
            ]
            .into(),
            idle: [(vec![LOST, "lookup"], 10)].into(),
        };
        let costs = costs(&[burst.clone(), burst.clone()], &symbols);
        let bursts = vec![(burst.clone(), paths.clone()), (burst.clone(), paths.clone())];
        let calls = by_path(&costs, &bursts, &symbols, Returns::default());
        let lookup: f64 = calls
            .paths
            .iter()
            .filter(|(path, _)| path.last().unwrap() == "lookup")
            .map(|p| p.1)
            .sum();
        assert_eq!((lookup, calls.unaccounted), (9.0, 0));
        assert_eq!(calls.paths[0], (vec![LOST.to_owned(), "lookup".to_owned()], 1.5));
        assert_eq!(calls.unknown_share(), 1.5 / 29.0);
        let mut incomplete = bursts;
        incomplete[0].1.executed.remove(&vec!["enter"]);
        assert_eq!(by_path(&costs, &incomplete, &symbols, Returns::default()).unaccounted, 200);
    }
}
