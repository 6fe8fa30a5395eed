//! The plugin's counting file, read from outside: header and slots of `count.c`, and the per-CPU
//! arrays of counters of `counters.c`.
//!
//! The plugin maps the file; a reader sees the counts without stopping the guest. A slot never
//! changes its position, so two readings can be compared slot by slot.

use crate::error::VmError;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Magic word of the header: `FWCOUNT2`.
const MAGIC: u64 = 0x3254_4e55_4f43_5746;
/// Bytes of the header and of a slot.
const HEADER: usize = 512;
const SLOT: usize = 24;
/// Number of slots of the plugin.
const SLOTS: usize = 1 << 18;
/// Counters of each CPU before those of the slots.
const OWN: usize = 8;
/// Slots and each array of counters fill whole pages.
const PAGE: usize = 4096;
/// Marks the slot of a repeated instruction, which has no atomics.
const REPEATED: u32 = 1 << 31;

/// Words of the header.
#[derive(Clone, Copy)]
enum Word {
    Magic = 0,
    Slots = 1,
    Cpus = 2,
    Gate = 3,
    Hold = 4,
    Held = 5,
}

/// Counters of a CPU that belong to no slot.
#[derive(Clone, Copy)]
enum Counter {
    Blocks = 0,
    User = 1,
    Overflow = 2,
}

/// Offsets in a file.
#[derive(Clone, Copy, Debug)]
struct Layout {
    slots: usize,
    cpus: usize,
}

impl Layout {
    /// Returns the offset of the counters of a CPU; for the CPU after the last one, the file's
    /// length.
    fn counters_of(self, cpu: usize) -> usize {
        let head = (HEADER + self.slots * SLOT).next_multiple_of(PAGE);
        head + cpu * (8 * (OWN + self.slots)).next_multiple_of(PAGE)
    }
}

/// The counting file.
#[derive(Debug)]
pub struct CountFile {
    path: PathBuf,
    file: File,
}

impl CountFile {
    /// Creates an empty file for the plugin of a guest with that number of CPUs.
    ///
    /// # Errors
    /// If the file can't be created, or the disk has no room for it: otherwise the kernel would
    /// kill QEMU later.
    pub fn create(path: &Path, cpus: u16) -> Result<CountFile, VmError> {
        let cpus = usize::from(cpus);
        let length = Layout { slots: SLOTS, cpus }.counters_of(cpus);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
        let fail = |source| VmError::file(path, source);
        let file = file.map_err(fail)?;
        file.write_all_at(&vec![0; length], 0).map_err(fail)?;
        Ok(CountFile { path: path.to_owned(), file })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the address of the block that waits while [`CountFile::hold`] is set. It takes effect
    /// when the guest next executes any code for the first time.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn set_gate(&self, address: u64) -> Result<(), VmError> {
        self.write(Word::Gate, address)
    }

    /// Closes or opens the gate.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn hold(&self, closed: bool) -> Result<(), VmError> {
        self.write(Word::Hold, u64::from(closed))
    }

    /// Returns how often the guest has waited at the gate.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn held(&self) -> Result<u64, VmError> {
        self.read(Word::Held)
    }

    /// Returns the blocks executed so far, in kernel and programs: constant while the guest idles.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn blocks(&self) -> Result<u64, VmError> {
        let layout = self.layout()?;
        let at = |cpu| layout.counters_of(cpu) + 8 * Counter::Blocks as usize;
        (0..layout.cpus).try_fold(0, |sum: u64, cpu| Ok(sum.wrapping_add(self.quad(at(cpu))?)))
    }

    /// Reads all current counts.
    ///
    /// # Errors
    /// If the file can't be read, or no plugin has written it.
    pub fn counts(&self) -> Result<Counts, VmError> {
        if self.read(Word::Magic)? != MAGIC {
            return Err(VmError::Counts("no plugin counts in this file".into()));
        }
        let layout = self.layout()?;
        let mut bytes = vec![0; layout.counters_of(layout.cpus)];
        self.file
            .read_exact_at(&mut bytes, 0)
            .map_err(|source| VmError::file(&self.path, source))?;
        Ok(Counts { layout, bytes })
    }

    fn layout(&self) -> Result<Layout, VmError> {
        let (slots, cpus) = (self.read(Word::Slots)?, self.read(Word::Cpus)?);
        Ok(Layout { slots: slots as usize, cpus: cpus as usize })
    }

    fn read(&self, word: Word) -> Result<u64, VmError> {
        self.quad(8 * word as usize)
    }

    fn quad(&self, at: usize) -> Result<u64, VmError> {
        let mut bytes = [0; 8];
        match self.file.read_exact_at(&mut bytes, at as u64) {
            Ok(()) => Ok(u64::from_ne_bytes(bytes)),
            // Not yet written.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(0),
            Err(source) => Err(VmError::file(&self.path, source)),
        }
    }

    fn write(&self, word: Word, value: u64) -> Result<(), VmError> {
        self.file
            .write_all_at(&value.to_ne_bytes(), 8 * word as u64)
            .map_err(|source| VmError::file(&self.path, source))
    }
}

/// All counts at one moment.
#[derive(Clone)]
pub struct Counts {
    layout: Layout,
    bytes: Vec<u8>,
}

/// Code executed at one address between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Address of the block's first instruction; 0 for programs outside of the kernel.
    pub address: u64,
    /// Instructions; a repeated string instruction counts once.
    pub instructions: u64,
    /// Atomic instructions among them (`lock`, or `xchg` with memory).
    pub atomics: u64,
    /// Bytes moved by a repeated string instruction.
    pub bytes: u64,
}

impl Counts {
    /// Returns the code executed since `before`.
    ///
    /// # Errors
    /// If more blocks were executed than there are slots: the counts are incomplete.
    pub fn since(&self, before: &Counts) -> Result<Vec<Executed>, VmError> {
        if self.counter(Counter::Overflow as usize) != before.counter(Counter::Overflow as usize) {
            return Err(VmError::Counts(
                "the guest has executed more different blocks than the plugin has slots\n  next \
                 step: boot it again for each change"
                    .into(),
            ));
        }
        let since = |number| self.counter(number).wrapping_sub(before.counter(number));
        let user = since(Counter::User as usize);
        let mut executed = Vec::new();
        if user > 0 {
            executed.push(Executed { instructions: user, ..Executed::default() });
        }
        for slot in 0..self.layout.slots {
            let at = HEADER + slot * SLOT;
            let address = quad(&self.bytes, at);
            let bytes = quad(&self.bytes, at + 16).wrapping_sub(quad(&before.bytes, at + 16));
            let times = if address == 0 { 0 } else { since(OWN + slot) };
            if times == 0 && bytes == 0 {
                continue;
            }
            let (instructions, atomics) = (half(&self.bytes, at + 8), half(&self.bytes, at + 12));
            let atomics = if atomics & REPEATED == 0 { atomics } else { 0 };
            executed.push(Executed {
                address,
                instructions: times * u64::from(instructions),
                atomics: times * u64::from(atomics),
                bytes,
            });
        }
        Ok(executed)
    }

    /// Returns the sum of a counter over all CPUs.
    fn counter(&self, number: usize) -> u64 {
        let value_on = |cpu| quad(&self.bytes, self.layout.counters_of(cpu) + 8 * number);
        (0..self.layout.cpus).fold(0, |sum, cpu| sum.wrapping_add(value_on(cpu)))
    }
}

pub(crate) fn quad(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Address, instructions, atomics, bytes, and executions on each of two CPUs.
    type Slot = (u64, u32, u32, u64, [u64; 2]);

    /// Writes a file of two CPUs; the first one has executed `user` instructions of programs, the
    /// second one lost `overflow` blocks.
    fn write_counts(file: &CountFile, overflow: u64, user: u64, slots: &[Slot]) {
        let layout = Layout { slots: slots.len(), cpus: 2 };
        let mut bytes = vec![0; layout.counters_of(2)];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        for (word, value) in [MAGIC, slots.len() as u64, 2].iter().enumerate() {
            put(8 * word, &value.to_ne_bytes());
        }
        for (slot, (address, instructions, atomics, moved, executions)) in slots.iter().enumerate()
        {
            let at = HEADER + slot * SLOT;
            put(at, &address.to_ne_bytes());
            put(at + 8, &instructions.to_ne_bytes());
            put(at + 12, &atomics.to_ne_bytes());
            put(at + 16, &moved.to_ne_bytes());
            for (cpu, times) in executions.iter().enumerate() {
                put(layout.counters_of(cpu) + 8 * (OWN + slot), &times.to_ne_bytes());
            }
        }
        put(layout.counters_of(0) + 8 * Counter::User as usize, &user.to_ne_bytes());
        put(layout.counters_of(1) + 8 * Counter::Overflow as usize, &overflow.to_ne_bytes());
        for cpu in 0..2 {
            put(layout.counters_of(cpu) + 8 * Counter::Blocks as usize, &21_u64.to_ne_bytes());
        }
        file.file.write_all_at(&bytes, 0).unwrap();
    }

    #[test]
    fn since_subtracts_slot_by_slot() {
        let directory = tempfile::tempdir().unwrap();
        let file = CountFile::create(&directory.path().join("counts"), 2).unwrap();
        assert!(file.counts().is_err(), "nobody has written it");
        let copy = REPEATED;
        write_counts(
            &file,
            0,
            7,
            &[(0x10, 5, 1, 0, [100, 7]), (0, 0, 0, 0, [0, 0]), (0x20, 1, copy, 64, [3, 0])],
        );
        let before = file.counts().unwrap();
        write_counts(
            &file,
            0,
            9,
            &[(0x10, 5, 1, 0, [103, 8]), (0x30, 2, 0, 0, [0, 1]), (0x20, 1, copy, 96, [4, 0])],
        );
        let executed = file.counts().unwrap().since(&before).unwrap();
        let executed_at = |address, instructions, atomics, bytes| Executed {
            address,
            instructions,
            atomics,
            bytes,
        };
        let expected = [
            executed_at(0, 2, 0, 0),
            executed_at(0x10, 20, 4, 0),
            executed_at(0x30, 2, 0, 0),
            executed_at(0x20, 1, 0, 32),
        ];
        assert_eq!(executed, expected);
        assert_eq!(file.blocks().unwrap(), 42);
        write_counts(&file, 1, 9, &[(0x10, 5, 1, 0, [104, 0])]);
        assert!(file.counts().unwrap().since(&before).is_err(), "counts that lack something");
    }

    #[test]
    fn gate_is_stored_in_header() {
        let directory = tempfile::tempdir().unwrap();
        let file = CountFile::create(&directory.path().join("counts"), 2).unwrap();
        write_counts(&file, 0, 0, &[]);
        file.set_gate(0xffff_ffff_8100_0000).unwrap();
        file.hold(true).unwrap();
        assert_eq!(file.read(Word::Gate).unwrap(), 0xffff_ffff_8100_0000);
        assert_eq!((file.read(Word::Hold).unwrap(), file.held().unwrap()), (1, 0));
    }
}
