//! Modules, written with another library.

use crate::build::Build;
use crate::compare::compare;
use crate::module;
use crate::reason::Reason;
use object::write::{Object, Relocation, StandardSection, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SymbolFlags, SymbolKind, SymbolScope,
};

/// A module with a function that calls `callee`, loads the address of a string, and returns.
fn module(callee: &str, text: &str, filler: usize) -> Vec<u8> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let code = object.section_id(StandardSection::Text);
    let strings = object.section_id(StandardSection::ReadOnlyString);
    object.append_section_data(strings, format!("{}\0", "x".repeat(filler)).as_bytes(), 1);
    let at = object.append_section_data(strings, format!("{text}\0").as_bytes(), 1);
    object.append_section_data(code, &vec![0x90; filler], 16);
    let bytes = [0xe8, 0, 0, 0, 0, 0x48, 0xc7, 0xc7, 0, 0, 0, 0, 0xc3];
    let begin = object.append_section_data(code, &bytes, 16);
    let mut symbol = |name: &str, section, value| {
        object.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value,
            size: 0,
            kind: SymbolKind::Text,
            scope: SymbolScope::Linkage,
            weak: false,
            section,
            flags: SymbolFlags::None,
        })
    };
    symbol("start_xmit", SymbolSection::Section(code), begin);
    let callee = symbol(callee, SymbolSection::Undefined, 0);
    let string = object.section_symbol(strings);
    let relocations = [
        (begin + 1, callee, -4, object::elf::R_X86_64_PLT32),
        (begin + 8, string, at as i64, object::elf::R_X86_64_32S),
    ];
    for (offset, symbol, addend, r_type) in relocations {
        let flags = RelocationFlags::Elf { r_type };
        object.add_relocation(code, Relocation { offset, symbol, addend, flags }).unwrap();
    }
    object.write().unwrap()
}

fn build(content: &[u8]) -> Build {
    Build::of(module::load("virtio_net", content, 0).unwrap())
}

#[test]
fn load_resolves_names_and_strings() {
    let old = build(&module("napi_schedule", "input", 3));
    let same = compare(&old, &build(&module("napi_schedule", "input", 40)), ["start_xmit"]);
    assert_eq!((same.equal.len(), same.moved), (1, 1), "{same:?}");
    let other = compare(&old, &build(&module("netif_rx", "input", 3)), ["start_xmit"]);
    let names = ["napi_schedule".to_owned(), "netif_rx".to_owned()];
    assert_eq!(other.changed[0].reason, Reason::Target { names });
    let other = compare(&old, &build(&module("napi_schedule", "output", 3)), ["start_xmit"]);
    assert_eq!(other.changed.len(), 1, "{other:?}");
}

#[test]
fn load_refuses_what_is_no_module() {
    for content in [&b"\x7fELF"[..], b"", &[0; 64]] {
        let error = module::load("x.ko", content, 0).unwrap_err().to_string();
        assert!(error.starts_with("x.ko: "), "{error}");
    }
}
