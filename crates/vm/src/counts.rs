//! The file that the plugin counts in, seen from outside: header and slots of `count.c`.
//!
//! The plugin maps the file; whoever reads it sees the counts as they are, without
//! stopping the guest. A slot never changes its place, so that two readings are compared
//! slot by slot.

use crate::error::VmError;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The word that a header begins with: `FWCOUNT1`.
const MAGIC: u64 = 0x3154_4e55_4f43_5746;
/// Bytes of the header and of a slot.
const HEADER: usize = 512;
const SLOT: usize = 32;
/// Slots that the plugin has.
const SLOTS: usize = 1 << 18;
/// Marks the slot of a repeated instruction; the other bits are the bytes of an iteration.
const REPEATED: u32 = 1 << 31;

/// Words of the header.
#[derive(Clone, Copy)]
enum Word {
    Magic = 0,
    Slots = 1,
    Overflow = 2,
    User = 3,
    Blocks = 4,
    Gate = 5,
    Hold = 6,
    Held = 7,
}

/// The file.
#[derive(Debug)]
pub struct CountFile {
    path: PathBuf,
    file: File,
}

impl CountFile {
    /// An empty file for the plugin to fill.
    ///
    /// # Errors
    /// When it can't be made, or the disk has no room for it: QEMU would be killed there.
    pub fn create(path: &Path) -> Result<CountFile, VmError> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
        let fail = |source| VmError::file(path, source);
        let file = file.map_err(fail)?;
        file.write_all_at(&vec![0; HEADER + SLOTS * SLOT], 0).map_err(fail)?;
        Ok(CountFile { path: path.to_owned(), file })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The block that waits while [`CountFile::hold`] says so. It counts from the next time
    /// on that the guest executes anything for the first time.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn set_gate(&self, address: u64) -> Result<(), VmError> {
        self.write(Word::Gate, address)
    }

    /// Closes or opens the gate.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn hold(&self, closed: bool) -> Result<(), VmError> {
        self.write(Word::Hold, u64::from(closed))
    }

    /// How often the guest has waited at the gate.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn held(&self) -> Result<u64, VmError> {
        self.read(Word::Held)
    }

    /// Blocks executed so far, of kernel and programs: stands still while the guest idles.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn blocks(&self) -> Result<u64, VmError> {
        self.read(Word::Blocks)
    }

    /// Everything as it is now.
    ///
    /// # Errors
    /// When the file can't be read, or no plugin has written it.
    pub fn counts(&self) -> Result<Counts, VmError> {
        if self.read(Word::Magic)? != MAGIC {
            return Err(VmError::Counts("no plugin counts in this file".into()));
        }
        let slots = self.read(Word::Slots)? as usize;
        let mut bytes = vec![0; HEADER + slots * SLOT];
        self.file
            .read_exact_at(&mut bytes, 0)
            .map_err(|source| VmError::file(&self.path, source))?;
        Ok(Counts { bytes })
    }

    fn read(&self, word: Word) -> Result<u64, VmError> {
        let mut bytes = [0; 8];
        match self.file.read_exact_at(&mut bytes, 8 * word as u64) {
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
    bytes: Vec<u8>,
}

/// What was executed at one place between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Address of the block's first instruction; 0 for programs outside of the kernel.
    pub address: u64,
    /// Instructions; a repeated string instruction counts once.
    pub instructions: u64,
    /// Atomic ones among them (`lock`, or `xchg` with memory).
    pub atomics: u64,
    /// Bytes that a repeated string instruction moved.
    pub bytes: u64,
}

impl Counts {
    /// What was executed since `before`.
    ///
    /// # Errors
    /// When more blocks were executed than there are slots: the counts lack something.
    pub fn since(&self, before: &Counts) -> Result<Vec<Executed>, VmError> {
        if self.word(Word::Overflow) != before.word(Word::Overflow) {
            return Err(VmError::Counts(
                "the guest has executed more different blocks than the plugin has slots\n  next step: \
                 boot it anew for each change"
                    .into(),
            ));
        }
        let user = self.word(Word::User).wrapping_sub(before.word(Word::User));
        let mut executed = Vec::new();
        if user > 0 {
            executed.push(Executed { instructions: user, ..Executed::default() });
        }
        for at in (HEADER..self.bytes.len()).step_by(SLOT) {
            let address = quad(&self.bytes, at);
            let times = quad(&self.bytes, at + 16).wrapping_sub(quad(&before.bytes, at + 16));
            let bytes = quad(&self.bytes, at + 24).wrapping_sub(quad(&before.bytes, at + 24));
            if address == 0 || times == 0 && bytes == 0 {
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

    fn word(&self, word: Word) -> u64 {
        quad(&self.bytes, 8 * word as usize)
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

    fn written(file: &CountFile, overflow: u64, user: u64, slots: &[(u64, u32, u32, u64, u64)]) {
        let mut bytes = vec![0; HEADER];
        for (at, value) in [MAGIC, slots.len() as u64, overflow, user].iter().enumerate() {
            bytes[8 * at..8 * at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        for (address, instructions, atomics, executions, moved) in slots {
            bytes.extend(address.to_ne_bytes());
            bytes.extend(instructions.to_ne_bytes());
            bytes.extend(atomics.to_ne_bytes());
            bytes.extend(executions.to_ne_bytes());
            bytes.extend(moved.to_ne_bytes());
        }
        file.file.write_all_at(&bytes, 0).unwrap();
    }

    #[test]
    fn differences_are_taken_slot_by_slot() {
        let directory = tempfile::tempdir().unwrap();
        let file = CountFile::create(&directory.path().join("counts")).unwrap();
        assert!(file.counts().is_err(), "nobody has written it");
        let copy = REPEATED | 8;
        written(&file, 0, 7, &[(0x10, 5, 1, 100, 0), (0, 0, 0, 0, 0), (0x20, 1, copy, 3, 64)]);
        let before = file.counts().unwrap();
        written(&file, 0, 9, &[(0x10, 5, 1, 104, 0), (0x30, 2, 0, 1, 0), (0x20, 1, copy, 4, 96)]);
        let executed = file.counts().unwrap().since(&before).unwrap();
        let of = |address, instructions, atomics, bytes| Executed {
            address,
            instructions,
            atomics,
            bytes,
        };
        let expected = [of(0, 2, 0, 0), of(0x10, 20, 4, 0), of(0x30, 2, 0, 0), of(0x20, 1, 0, 32)];
        assert_eq!(executed, expected);
        written(&file, 1, 9, &[(0x10, 5, 1, 104, 0)]);
        assert!(file.counts().unwrap().since(&before).is_err(), "counts that lack something");
    }

    #[test]
    fn the_gate_is_set_and_closed_in_the_header() {
        let directory = tempfile::tempdir().unwrap();
        let file = CountFile::create(&directory.path().join("counts")).unwrap();
        written(&file, 0, 0, &[]);
        file.set_gate(0xffff_ffff_8100_0000).unwrap();
        file.hold(true).unwrap();
        assert_eq!(file.read(Word::Gate).unwrap(), 0xffff_ffff_8100_0000);
        assert_eq!((file.read(Word::Hold).unwrap(), file.held().unwrap()), (1, 0));
    }
}
