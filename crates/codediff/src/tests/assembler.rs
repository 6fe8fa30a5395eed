//! Assembles small programs into builds.

use crate::build::Build;
use crate::image::{Alternative, Image, Jump, Kind, Patch, Section, Symbol};
use std::collections::BTreeMap;

/// Part of a function.
pub(super) enum Item {
    Bytes(Vec<u8>),
    /// `call NAME`
    Call(&'static str),
    /// `mov NAME(%rip),%eax`
    Load(&'static str),
    /// `mov $NAME,%rdi`, with an absolute address. `text` is the nameless string.
    Address(&'static str),
}

pub(super) struct FunctionCode {
    name: &'static str,
    pub(super) items: Vec<Item>,
}

pub(super) fn function(name: &'static str, items: Vec<Item>) -> FunctionCode {
    FunctionCode { name, items }
}

pub(super) fn bytes(bytes: &[u8]) -> Item {
    Item::Bytes(bytes.to_vec())
}

/// Functions, constants and variables. Constants without a name are strings.
pub(super) struct Program {
    pub(super) text: Vec<FunctionCode>,
    pub(super) read_only: Vec<(&'static str, Vec<u8>)>,
    pub(super) data: Vec<(&'static str, Vec<u8>)>,
    pub(super) base: u64,
}

/// Distance between sections, and alignment of functions and variables.
const SECTION: u64 = 0x10_0000;
const ALIGNMENT: usize = 16;

impl Program {
    pub(super) fn build(&self) -> Build {
        Build::of(self.image())
    }

    /// Builds with a static key and an alternative at the first instruction of `function`.
    pub(super) fn build_patched(
        &self,
        function: &str,
        target: &str,
        key: &str,
        replacement: &str,
    ) -> Build {
        let mut image = self.image();
        let at = |name: &str| image.address(name).unwrap();
        let jump = Jump { target: at(target), key: at(key), is_likely: false };
        let code = at(replacement);
        let alternative = Alternative { when: 7, length: 1, code, code_length: 1 };
        image
            .patches
            .insert(at(function), vec![Patch::Jump(jump), Patch::Alternative(alternative)]);
        Build::of(image)
    }

    /// Builds with the address of another variable at the beginning of some variables.
    pub(super) fn build_with_pointers(&self, pointers: &[(&str, &str)]) -> Build {
        let mut image = self.image();
        for (from, to) in pointers {
            let [at, target] = [from, to].map(|name| image.address(name).unwrap());
            let section = image.sections.iter_mut().find(|section| section.contains(at)).unwrap();
            let begin = (at - section.address) as usize;
            section.bytes[begin..begin + 8].copy_from_slice(&target.to_le_bytes());
            image.absolute.insert(at, 8);
        }
        Build::of(image)
    }

    fn image(&self) -> Image {
        let mut image = Image::default();
        let (read_only, mut names) = self.lay_out(&self.read_only, 1);
        let (data, variables) = self.lay_out(&self.data, 2);
        names.extend(variables);
        let mut at = 0;
        for function in &self.text {
            names.insert(function.name, self.base + at as u64);
            let size: usize = function.items.iter().map(Item::size).sum();
            at = (at + size).next_multiple_of(ALIGNMENT);
        }
        let mut text = Vec::new();
        for function in &self.text {
            for item in &function.items {
                let begin = self.base + text.len() as u64;
                let end = begin + item.size() as u64;
                let relative = |name| (names[name].wrapping_sub(end) as i32).to_le_bytes();
                match item {
                    Item::Bytes(bytes) => text.extend(bytes),
                    Item::Call(name) => text.extend([&[0xe8], &relative(name)[..]].concat()),
                    Item::Load(name) => text.extend([&[0x8b, 0x05], &relative(name)[..]].concat()),
                    Item::Address(name) => {
                        text.extend([0x48, 0xc7, 0xc7]);
                        text.extend((names[name] as u32).to_le_bytes());
                        image.absolute.insert(begin + 3, 4);
                    }
                }
            }
            text.resize(text.len().next_multiple_of(ALIGNMENT), 0xcc);
        }
        names.remove("text");
        let symbol =
            |(name, address): (&&str, &u64)| Symbol { address: *address, name: (*name).to_owned() };
        image.symbols = names.iter().map(symbol).collect();
        image.sections.push(self.section(".text", 0, Kind::Text, text));
        image.sections.push(self.section(".rodata", 1, Kind::ReadOnly, read_only));
        image.sections.push(self.section(".data", 2, Kind::Data, data));
        image.sort();
        image
    }

    fn section(&self, name: &str, number: u64, kind: Kind, bytes: Vec<u8>) -> Section {
        let (name, size) = (name.to_owned(), bytes.len() as u64);
        Section { name, kind, address: self.base + number * SECTION, size, bytes }
    }

    fn lay_out(
        &self,
        list: &[(&'static str, Vec<u8>)],
        number: u64,
    ) -> (Vec<u8>, BTreeMap<&'static str, u64>) {
        let (mut all, mut names) = (Vec::new(), BTreeMap::new());
        for (name, bytes) in list {
            let name = if name.is_empty() { "text" } else { name };
            names.insert(name, self.base + number * SECTION + all.len() as u64);
            all.extend(bytes);
            all.resize(all.len().next_multiple_of(ALIGNMENT), 0);
        }
        (all, names)
    }
}

impl Item {
    fn size(&self) -> usize {
        match self {
            Item::Bytes(bytes) => bytes.len(),
            Item::Call(_) => 5,
            Item::Load(_) => 6,
            Item::Address(_) => 7,
        }
    }
}

/// Changes a bit of a build's code; false if there is no code.
pub(super) fn flip(build: &mut Build, address: u64, bit: u32) -> bool {
    let mut sections = build.images_mut().iter_mut().flat_map(|image| &mut image.sections);
    let Some(section) = sections.find(|section| section.contains(address)) else { return false };
    section.bytes[(address - section.address) as usize] ^= 1 << bit;
    true
}
