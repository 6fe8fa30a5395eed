//! Code that the kernel patches: alternatives by features of the processor, static keys, and
//! constants that the boot computes.
//!
//! Other patched places (retpolines, calls of ftrace, lock prefixes) follow from the code at the
//! place itself, so code that is equal is patched alike. Static calls are compared where they are
//! called.

use crate::error::CodeError;
use crate::image::{Alternative, Image, Jump, Kind, Patch};
use std::collections::BTreeMap;

/// Layouts of `struct alt_instr` (arch/x86/include/asm/alternative.h of Linux): bytes of an entry,
/// and of its feature and flags. The lengths of old and new code follow; Linux before 5.14 has a
/// third length.
const LAYOUTS: [(u64, u64); 3] = [(12, 2), (14, 4), (13, 2)];
/// Beginnings of the names of sections that list places of a constant (include/asm-generic/vmlinux.lds.h
/// of Linux, since 6.11).
const CONSTANTS: [&str; 2] = ["runtime_ptr_", "runtime_shift_"];
/// Bits of a static key's address that are flags.
const KEY_FLAGS: u64 = 3;
/// Bytes of an entry of the jump table.
const JUMP: u64 = 16;

/// Reads the patches of an image by the address of the patched code.
pub(crate) fn read(name: &str, image: &Image) -> Result<BTreeMap<u64, Vec<Patch>>, CodeError> {
    let mut patches: BTreeMap<u64, Vec<Patch>> = BTreeMap::new();
    for (at, patch) in
        alternatives(name, image)?.into_iter().chain(jumps(image)).chain(constants(image))
    {
        patches.entry(at).or_default().push(patch);
    }
    Ok(patches)
}

fn alternatives(name: &str, image: &Image) -> Result<Vec<(u64, Patch)>, CodeError> {
    let section = image.sections.iter().find(|section| section.name == ".altinstructions");
    let Some(section) = section else { return Ok(Vec::new()) };
    let read = |(size, when): (u64, u64)| -> Option<Vec<(u64, Patch)>> {
        if section.size % size != 0 {
            return None;
        }
        let entry = |number| alternative(image, section.address + number * size, when);
        (0..section.size / size).map(entry).collect()
    };
    LAYOUTS.into_iter().find_map(read).ok_or_else(|| {
        CodeError::unsupported(name, "entries of .altinstructions have an unknown layout")
    })
}

/// Reads an entry; `None` if it does not refer to code.
fn alternative(image: &Image, at: u64, when_size: u64) -> Option<(u64, Patch)> {
    let is_code = |at: u64| image.section(at).is_some_and(|section| section.kind == Kind::Text);
    let relative = |at: u64| Some(at.wrapping_add_signed(i64::from(image.word(at)?)));
    let (place, code) = (relative(at)?, relative(at + 4)?);
    let when = match image.bytes(at + 8, when_size)? {
        [a, b] => u32::from(u16::from_le_bytes([*a, *b])),
        [a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]),
        _ => return None,
    };
    let lengths = image.bytes(at + 8 + when_size, 2)?;
    let (length, code_length) = (lengths[0], lengths[1]);
    // An entry without new code may point anywhere.
    let is_valid = is_code(place) && length > 0 && (code_length == 0 || is_code(code));
    is_valid.then_some((place, Patch::Alternative(Alternative { when, length, code, code_length })))
}

fn jumps(image: &Image) -> Vec<(u64, Patch)> {
    let section = image.sections.iter().find(|section| section.name == "__jump_table");
    let (begin, end) = match section {
        Some(section) => (section.address, section.address + section.bytes.len() as u64),
        None => {
            let ends = ["__start___jump_table", "__stop___jump_table"].map(|n| image.address(n));
            let [Some(begin), Some(end)] = ends else { return Vec::new() };
            (begin, end)
        }
    };
    let entry = |at: u64| {
        let place = at.wrapping_add_signed(i64::from(image.word(at)?));
        let target = (at + 4).wrapping_add_signed(i64::from(image.word(at + 4)?));
        let key = i64::from_le_bytes(image.bytes(at + 8, 8)?.try_into().ok()?);
        let key = (at + 8).wrapping_add_signed(key);
        let jump = Jump { target, key: key & !KEY_FLAGS, is_likely: key & 1 != 0 };
        Some((place, Patch::Jump(jump)))
    };
    let number = end.saturating_sub(begin) / JUMP;
    (0..number).map_while(|number| entry(begin + number * JUMP)).collect()
}

fn constants(image: &Image) -> Vec<(u64, Patch)> {
    let is_list = |name: &str| CONSTANTS.iter().any(|begin| name.starts_with(begin));
    let lists = image.sections.iter().filter(|section| is_list(&section.name));
    let places = lists.flat_map(|section| {
        let entries = (section.address..section.address + section.size).step_by(4);
        entries.filter_map(move |at| {
            let place = at.wrapping_add_signed(i64::from(image.word(at)?));
            Some((place, Patch::Constant(section.name.clone())))
        })
    });
    places.collect()
}
