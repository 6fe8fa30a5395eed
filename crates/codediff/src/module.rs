//! Loads a module: a relocatable ELF file.
//!
//! Sections are placed one after the other at addresses that only this crate knows, and relocations
//! are applied, as kernel/module/main.c and arch/x86/kernel/module.c of Linux do. Symbols of other
//! images get places in a section without content.

use crate::error::CodeError;
use crate::image::{Image, Kind, Section, Symbol};
use crate::patches;
use object::Endianness;
use object::elf::{
    EM_X86_64, FileHeader64, R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_NONE, R_X86_64_PC32,
    R_X86_64_PC64, R_X86_64_PLT32, Rela64, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHN_ABS,
    SHN_COMMON, SHN_UNDEF, SHT_NOBITS, SHT_RELA, STT_SECTION,
};
use object::read::elf::{FileHeader, Rela, SectionHeader, Sym};
use std::collections::BTreeMap;

/// Addresses of the first module's sections, and of the symbols of other images. Both are where
/// relocations of 32 bits reach.
const FIRST: u64 = 0xffff_ffff_a000_0000;
const UNDEFINED: u64 = 0xffff_ffff_c000_0000;
/// Room of a module, of a symbol of another image, and before its address.
const ROOM: u64 = 16 << 20;
const PLACE: u64 = 64 << 10;
const BEFORE: u64 = PLACE / 2;
/// Alignment of sections.
const ALIGNMENT: u64 = 4096;
/// Number of modules that have room.
const MODULES: u64 = (UNDEFINED - FIRST) / ROOM;

type Header = FileHeader64<Endianness>;

/// Loads module `number`.
pub(crate) fn load(name: &str, content: &[u8], number: u64) -> Result<Image, CodeError> {
    let fault = |source| CodeError::Elf { name: name.to_owned(), source };
    let header = Header::parse(content).map_err(fault)?;
    let endian = header.endian().map_err(fault)?;
    if header.e_machine(endian) != EM_X86_64 || number >= MODULES {
        return Err(CodeError::unsupported(name, "not a module for x86-64, or one too many"));
    }
    let table = header.sections(endian, content).map_err(fault)?;
    let mut image = Image::default();
    let mut addresses = vec![None; table.len()];
    let mut next = FIRST + number * ROOM;
    for (index, section) in table.iter().enumerate() {
        let flags = section.sh_flags(endian);
        let size = section.sh_size(endian);
        if flags & u64::from(SHF_ALLOC) == 0 || size == 0 {
            continue;
        }
        let title = table.section_name(endian, section).map_err(fault)?;
        let title = String::from_utf8_lossy(title).into_owned();
        let kind = match () {
            () if section.sh_type(endian) == SHT_NOBITS => Kind::Zero,
            () if flags & u64::from(SHF_EXECINSTR) != 0 => Kind::Text,
            () if title.starts_with(".rodata") || title.starts_with(".data.rel.ro") => {
                Kind::ReadOnly
            }
            () if flags & u64::from(SHF_WRITE) == 0 => Kind::ReadOnly,
            () => Kind::Data,
        };
        addresses[index] = Some(next);
        let bytes = section.data(endian, content).map_err(fault)?.to_vec();
        image.sections.push(Section { name: title, kind, address: next, size, bytes });
        next = next.saturating_add(size).checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
        if next > FIRST + (number + 1) * ROOM {
            return Err(CodeError::unsupported(name, "a module of more than 16 MiB"));
        }
    }
    let symbols = table.symbols(endian, content, object::elf::SHT_SYMTAB).map_err(fault)?;
    let mut values = vec![None; symbols.len()];
    let mut undefined = 0;
    for (index, symbol) in symbols.enumerate() {
        let title = symbols.symbol_name(endian, symbol).map_err(fault)?;
        let title = String::from_utf8_lossy(title).into_owned();
        let value = symbol.st_value(endian);
        let address = match symbol.st_shndx(endian) {
            SHN_UNDEF if title.is_empty() => continue,
            SHN_UNDEF => {
                undefined += 1;
                UNDEFINED + undefined * PLACE + BEFORE
            }
            SHN_ABS => value,
            SHN_COMMON => continue,
            section => match addresses.get(usize::from(section)).copied().flatten() {
                Some(begin) => begin.wrapping_add(value),
                None => continue,
            },
        };
        values[index.0] = Some(address);
        let is_named = symbol.st_type() != STT_SECTION && !title.is_empty();
        if is_named && symbol.st_shndx(endian) != SHN_ABS && !title.starts_with(".L") {
            image.symbols.push(Symbol { address, name: title });
        }
    }
    image.sections.push(Section {
        name: "symbols of other images".to_owned(),
        kind: Kind::Undefined,
        address: UNDEFINED,
        size: (undefined + 1) * PLACE,
        bytes: Vec::new(),
    });
    image.sort();
    for section in table.iter().filter(|section| section.sh_type(endian) == SHT_RELA) {
        let target = section.sh_info(endian) as usize;
        let Some(begin) = addresses.get(target).copied().flatten() else { continue };
        let found = section.rela(endian, content).map_err(fault)?;
        let list = found.map_or(&[][..], |(list, _)| list);
        relocate(&mut image, begin, list, endian, &values)
            .map_err(|why| CodeError::unsupported(name, why))?;
    }
    image.check(name)?;
    image.patches = patches::read(name, &image)?;
    Ok(image)
}

/// Applies the relocations of the section at `begin`.
fn relocate(
    image: &mut Image,
    begin: u64,
    list: &[Rela64<Endianness>],
    endian: Endianness,
    values: &[Option<u64>],
) -> Result<(), String> {
    let Some(section) = image.sections.iter_mut().find(|section| section.address == begin) else {
        return Ok(());
    };
    let mut absolute = BTreeMap::new();
    for one in list {
        let offset = one.r_offset(endian);
        let place = begin.wrapping_add(offset);
        let number = one.r_sym(endian, false) as usize;
        let value = values.get(number).copied().flatten().unwrap_or(0);
        let target = value.wrapping_add_signed(one.r_addend(endian));
        let (word, width) = match one.r_type(endian, false) {
            R_X86_64_NONE => continue,
            R_X86_64_64 => (target, 8),
            R_X86_64_PC64 => (target.wrapping_sub(place), 8),
            R_X86_64_32 | R_X86_64_32S => (target, 4),
            R_X86_64_PC32 | R_X86_64_PLT32 => (target.wrapping_sub(place), 4),
            other => return Err(format!("a relocation of unknown type {other}")),
        };
        let begin = usize::try_from(offset).map_err(|error| error.to_string())?;
        let field = section.bytes.get_mut(begin..begin.saturating_add(width));
        let field = field.ok_or("a relocation outside of its section")?;
        field.copy_from_slice(&word.to_le_bytes()[..width]);
        if matches!(one.r_type(endian, false), R_X86_64_64 | R_X86_64_32 | R_X86_64_32S) {
            absolute.insert(place, width as u8);
        }
    }
    image.absolute.extend(absolute);
    Ok(())
}
