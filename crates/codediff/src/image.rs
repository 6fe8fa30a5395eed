//! A kernel or a module in memory: sections, symbols, and places that contain addresses.

use crate::error::CodeError;
use std::collections::BTreeMap;

/// Suffixes of the compiler for parts and copies of functions; they differ between builds.
const PARTS: [&str; 6] = [".isra.", ".constprop.", ".part.", ".cold", ".llvm.", ".lto_priv."];

/// Largest section in bytes.
const LARGEST: u64 = 1 << 32;

/// Contents of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    ReadOnly,
    /// Writable, with initial content.
    Data,
    /// Zero at first.
    Zero,
    /// Places of symbols that another image defines.
    Undefined,
}

/// A section.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// Content; empty for [`Kind::Zero`] and [`Kind::Undefined`].
    pub(crate) bytes: Vec<u8>,
}

impl Section {
    pub(crate) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.size
    }
}

/// A symbol.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    pub(crate) address: u64,
    pub(crate) name: String,
}

/// A patch of the code at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Patch {
    Alternative(Alternative),
    Jump(Jump),
    /// A constant that the boot computes, by its name.
    Constant(String),
}

/// Other instructions if the processor has a feature, or lacks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alternative {
    /// Feature and flags.
    pub(crate) when: u32,
    /// Bytes of the replaced code.
    pub(crate) length: u8,
    /// Address and bytes of the new code.
    pub(crate) code: u64,
    pub(crate) code_length: u8,
}

/// A jump that a static key switches on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    pub(crate) target: u64,
    /// Address of the key.
    pub(crate) key: u64,
    pub(crate) is_likely: bool,
}

/// A kernel or a module.
#[derive(Debug, Default)]
pub(crate) struct Image {
    /// Sorted by address.
    pub(crate) sections: Vec<Section>,
    /// Sorted by address, then by name.
    pub(crate) symbols: Vec<Symbol>,
    /// Places that contain an absolute address, and their width in bytes.
    pub(crate) absolute: BTreeMap<u64, u8>,
    /// Code that the kernel patches, by its address.
    pub(crate) patches: BTreeMap<u64, Vec<Patch>>,
}

/// An address of an image, and the symbol to which it belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location<'a> {
    pub(crate) image: &'a Image,
    pub(crate) section: &'a Section,
    pub(crate) address: u64,
    /// Name of the last symbol at or before the address in its section, without suffixes of the
    /// compiler; empty before the first one.
    pub(crate) symbol: &'a str,
    /// Distance from that symbol.
    pub(crate) offset: u64,
    /// Bytes from that symbol to the next one, or to the end of the section.
    pub(crate) extent: u64,
}

impl Image {
    /// Sorts sections and symbols, as lookups require it.
    pub(crate) fn sort(&mut self) {
        self.sections.sort_by_key(|section| section.address);
        self.symbols.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
    }

    /// Refuses sections that are larger than any kernel's.
    ///
    /// # Errors
    /// If there is one.
    pub(crate) fn check(&self, name: &str) -> Result<(), CodeError> {
        let is_sane = |section: &Section| {
            section.size < LARGEST && section.address.checked_add(section.size).is_some()
        };
        match self.sections.iter().find(|section| !is_sane(section)) {
            None => Ok(()),
            Some(section) => {
                Err(CodeError::unsupported(name, format!("no valid section {}", section.name)))
            }
        }
    }

    pub(crate) fn section(&self, address: u64) -> Option<&Section> {
        let after = self.sections.partition_point(|section| section.address <= address);
        self.sections[..after].iter().rev().find(|section| section.contains(address))
    }

    /// Returns the address of a symbol.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        self.symbols.iter().find(|symbol| symbol.name == name).map(|symbol| symbol.address)
    }

    /// Returns the section and symbol of an address; `None` outside of all sections.
    pub(crate) fn locate(&self, address: u64) -> Option<Location<'_>> {
        let section = self.section(address)?;
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let end = section.address + section.size;
        let next = self.symbols.get(after).map_or(end, |symbol| symbol.address.min(end));
        let before = self.symbols[..after].last().filter(|last| last.address >= section.address);
        let (begin, symbol) = match before {
            // The first of all names of that address.
            Some(last) => {
                let first = self.symbols.partition_point(|one| one.address < last.address);
                (last.address, plain(&self.symbols[first].name))
            }
            None => (section.address, ""),
        };
        let (offset, extent) = (address - begin, next - begin);
        Some(Location { image: self, section, address, symbol, offset, extent })
    }

    /// Returns all names of the symbols at an address, without suffixes of the compiler.
    pub(crate) fn names(&self, address: u64) -> impl Iterator<Item = &str> {
        let first = self.symbols.partition_point(|symbol| symbol.address < address);
        let same = self.symbols[first..].iter().take_while(move |one| one.address == address);
        same.map(|symbol| plain(&symbol.name))
    }

    /// Returns `length` bytes of content; `None` if they are not within one section with content.
    pub(crate) fn bytes(&self, address: u64, length: u64) -> Option<&[u8]> {
        let section = self.section(address)?;
        let begin = usize::try_from(address - section.address).ok()?;
        section.bytes.get(begin..begin.checked_add(usize::try_from(length).ok()?)?)
    }

    /// Returns the little-endian signed word at an address.
    pub(crate) fn word(&self, address: u64) -> Option<i32> {
        Some(i32::from_le_bytes(self.bytes(address, 4)?.try_into().ok()?))
    }

    /// Returns the absolute address that the image contains at `address`; `None` if it contains
    /// none there.
    pub(crate) fn pointer(&self, address: u64) -> Option<(u64, u8)> {
        let width = *self.absolute.get(&address)?;
        let target = match width {
            4 => i64::from(self.word(address)?) as u64,
            _ => u64::from_le_bytes(self.bytes(address, 8)?.try_into().ok()?),
        };
        Some((target, width))
    }
}

impl<'a> Location<'a> {
    /// Returns the location of another address of the same image.
    pub(crate) fn to(&self, address: u64) -> Option<Location<'a>> {
        self.image.locate(address)
    }

    /// Address of the symbol.
    pub(crate) fn begin(&self) -> u64 {
        self.address - self.offset
    }
}

/// Beginning of names that end with a number of the compiler.
const UNIQUE: &str = "__UNIQUE_ID_";

/// Returns a name without suffixes of the compiler for parts and copies of functions, and without
/// numbers of local variables.
pub(crate) fn plain(name: &str) -> &str {
    if name.starts_with(UNIQUE) {
        return name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    }
    let end = PARTS.iter().filter_map(|suffix| name.find(suffix)).min();
    let name = end.map_or(name, |end| &name[..end]);
    match name.rsplit_once('.') {
        Some((begin, number))
            if !begin.is_empty() && number.bytes().all(|c| c.is_ascii_digit()) =>
        {
            begin
        }
        _ => name,
    }
}
