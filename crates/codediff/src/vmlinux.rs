//! Loads a kernel from the content of its compressed image.
//!
//! arch/x86/boot/compressed/Makefile of Linux: the content is `vmlinux` without its symbol table,
//! followed by the list of places to relocate, which arch/x86/tools/relocs.c writes.

use crate::error::CodeError;
use crate::image::{Image, Kind, Section, Symbol};
use crate::{kallsyms, patches};
use object::Endianness;
use object::elf::{EM_X86_64, FileHeader64, SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS};
use object::read::elf::{FileHeader, SectionHeader};
use std::collections::BTreeMap;

/// Section that contains the symbols.
const SYMBOLS: &str = ".rodata";

/// Loads a kernel.
pub(crate) fn load(name: &str, content: &[u8]) -> Result<Image, CodeError> {
    let fault = |source| CodeError::Elf { name: name.to_owned(), source };
    let header = FileHeader64::<Endianness>::parse(content).map_err(fault)?;
    let endian = header.endian().map_err(fault)?;
    if header.e_machine(endian) != EM_X86_64 {
        return Err(CodeError::unsupported(name, "a kernel for another architecture than x86-64"));
    }
    let table = header.sections(endian, content).map_err(fault)?;
    let size = u64::from(header.e_shentsize(endian)) * table.len() as u64;
    let mut end = header.e_shoff(endian).saturating_add(size);
    let mut image = Image::default();
    for section in table.iter() {
        let is_empty = section.sh_type(endian) == SHT_NOBITS;
        if !is_empty {
            end = end.max(section.sh_offset(endian).saturating_add(section.sh_size(endian)));
        }
        let flags = section.sh_flags(endian);
        if flags & u64::from(SHF_ALLOC) == 0 {
            continue;
        }
        let title = table.section_name(endian, section).map_err(fault)?;
        let title = String::from_utf8_lossy(title).into_owned();
        let kind = match () {
            () if is_empty => Kind::Zero,
            () if flags & u64::from(SHF_EXECINSTR) != 0 => Kind::Text,
            // Writable in the file, because it contains variables that only the boot writes.
            () if title.starts_with(SYMBOLS) => Kind::ReadOnly,
            () if flags & u64::from(object::elf::SHF_WRITE) == 0 => Kind::ReadOnly,
            () => Kind::Data,
        };
        image.sections.push(Section {
            name: title,
            kind,
            address: section.sh_addr(endian),
            size: section.sh_size(endian),
            bytes: section.data(endian, content).map_err(fault)?.to_vec(),
        });
    }
    let symbols = image.sections.iter().find(|section| section.name == SYMBOLS);
    let symbols = symbols.and_then(|section| kallsyms::read(&section.bytes));
    let symbols = symbols.ok_or_else(|| {
        let why = "no symbols found in it\n  next step: build with CONFIG_KALLSYMS_ALL=y";
        CodeError::unsupported(name, why)
    })?;
    let symbols = symbols.into_iter().map(|(address, _, name)| Symbol { address, name });
    image.symbols = symbols.collect();
    let relocations = usize::try_from(end).ok().and_then(|end| content.get(end..));
    image.absolute = relocations.map(absolute).unwrap_or_default();
    if image.absolute.is_empty() {
        let why = "no relocations behind it\n  next step: give the bzImage of a kernel with \
                   CONFIG_RELOCATABLE=y";
        return Err(CodeError::unsupported(name, why));
    }
    split_constants(name, &mut image)?;
    image.sort();
    image.check(name)?;
    move_per_cpu(&mut image);
    image.patches = patches::read(name, &image)?;
    Ok(image)
}

/// Divides the section of constants: variables that only the boot writes are in the middle of it.
fn split_constants(name: &str, image: &mut Image) -> Result<(), CodeError> {
    let ends = ["__start_ro_after_init", "__end_ro_after_init"].map(|name| image.address(name));
    let at = image.sections.iter().position(|section| section.name == SYMBOLS);
    let ([Some(begin), Some(end)], Some(at)) = (ends, at) else {
        return Err(CodeError::unsupported(name, "it does not name its read-only variables"));
    };
    let whole = image.sections.swap_remove(at);
    let offset = |address: u64| usize::try_from(address.wrapping_sub(whole.address)).ok();
    let parts = match (offset(begin), offset(end)) {
        (Some(a), Some(b)) if a <= b && b <= whole.bytes.len() => [0, a, b, whole.bytes.len()],
        _ => return Err(CodeError::unsupported(name, "its read-only variables are elsewhere")),
    };
    let kinds = [Kind::ReadOnly, Kind::Data, Kind::ReadOnly];
    for (range, kind) in parts.windows(2).zip(kinds) {
        let bytes = whole.bytes[range[0]..range[1]].to_vec();
        let (address, size) = (whole.address + range[0] as u64, bytes.len() as u64);
        image.sections.push(Section { name: SYMBOLS.to_owned(), kind, address, size, bytes });
    }
    Ok(())
}

/// Moves places in per-CPU data to its addresses, if these begin at 0: the list contains the address
/// at which the data is stored until the kernel copies it for each processor.
fn move_per_cpu(image: &mut Image) {
    let size = image.section(0).map_or(0, |section| section.size);
    let Some(stored) = image.address("__per_cpu_load").filter(|_| size > 0) else { return };
    let Some(end) = stored.checked_add(size) else { return };
    let moved: Vec<(u64, u8)> =
        image.absolute.range(stored..end).map(|(at, w)| (*at, *w)).collect();
    for (at, width) in moved {
        image.absolute.remove(&at);
        image.absolute.insert(at - stored, width);
    }
}

/// Reads the places that contain absolute addresses. The list consists of sign-extended words in
/// groups, each with a zero before it: addresses of 64 bits, until Linux 6.14 negated distances
/// from per-CPU data, and addresses of 32 bits.
fn absolute(list: &[u8]) -> BTreeMap<u64, u8> {
    let word = |word: &[u8]| i32::from_le_bytes([word[0], word[1], word[2], word[3]]);
    let words: Vec<i32> = list.chunks_exact(4).map(word).collect();
    let groups: Vec<&[i32]> = words.split(|word| *word == 0).skip(1).collect();
    let Some((last, others)) = groups.split_last() else { return BTreeMap::new() };
    let wide = others.first().copied().unwrap_or_default();
    let place = |word: &i32, width| (i64::from(*word) as u64, width);
    let wide = wide.iter().map(|word| place(word, 8));
    wide.chain(last.iter().map(|word| place(word, 4))).collect()
}
