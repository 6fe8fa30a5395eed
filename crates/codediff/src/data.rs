//! Compares the functions and data to which code refers: variables, tables and strings.
//!
//! A kernel contains names of variables, but neither their sizes nor names of string literals and
//! of constants of the compiler. A reference into data is therefore resolved in this order: a string,
//! the bytes that the instruction accesses, a table of addresses, the variable as far as the next
//! symbol.

use crate::build::Build;
use crate::image::{Kind, Location};
use crate::reason::{Reason, names};
use crate::reference::Use;
use std::collections::HashMap;

/// Descriptions of debugging messages: file, line and format of a message. Only the key by which the
/// message is switched on is compared.
const MESSAGE: &str = "__UNIQUE_ID_ddebug";

/// Longest string, and largest variable whose content is compared.
const STRING: u64 = 4096;
const VARIABLE: u64 = 1 << 20;
/// Bytes before the end of a variable that can belong to the next one.
const EDGE: u64 = 64;
/// Distance from a symbol of another image from which an address belongs to the next one.
const UNDEFINED: u64 = 32 << 10;
/// Beginnings of the names of a static call's trampoline and key.
const TRAMPOLINE: &str = "__SCT__";
const KEY: &str = "__SCK__";
/// Bytes of a string in a reason.
const QUOTED: usize = 40;

/// Functions and data to which the code of two builds refers; remembers which addresses correspond.
pub(crate) struct Targets<'a> {
    builds: [&'a Build; 2],
    /// Address in the other build of functions and variables without a unique name.
    pairs: [HashMap<u64, u64>; 2],
    /// Data already compared, or being compared: the reason if it differs.
    data: HashMap<(u64, u64), Option<Reason>>,
    /// Data found equal, in the order of the comparisons.
    assumed: Vec<(u64, u64)>,
}

impl<'a> Targets<'a> {
    pub(crate) fn new(builds: [&'a Build; 2]) -> Targets<'a> {
        Targets { builds, pairs: Default::default(), data: HashMap::new(), assumed: Vec::new() }
    }

    /// Compares the targets of two references.
    pub(crate) fn compare(
        &mut self,
        targets: [Location<'a>; 2],
        how: Use,
        offset: u64,
    ) -> Result<(), Reason> {
        let [old, new] = [self.builds[0].resolve(targets[0]), self.builds[1].resolve(targets[1])];
        match (old.section.kind, new.section.kind) {
            (Kind::Text, Kind::Text) | (Kind::Undefined, Kind::Undefined) => self.named(old, new),
            (Kind::Text | Kind::Undefined, _) | (_, Kind::Text | Kind::Undefined) => {
                Err(names(old, new))
            }
            _ => data(self, [old, new], how, offset),
        }
    }

    /// Compares two locations by name and offset.
    fn named(&mut self, old: Location<'a>, new: Location<'a>) -> Result<(), Reason> {
        let same = |one: Location<'a>| {
            let mut names = new.image.names(new.begin());
            !one.symbol.is_empty()
                && names.any(|name| one.image.names(one.begin()).any(|n| n == name))
        };
        if !same(old) || old.offset != new.offset {
            return Err(names(old, new));
        }
        self.static_call(old, new)?;
        match old.section.kind {
            // The beginning of a place belongs to the symbol behind it.
            Kind::Undefined if old.offset >= UNDEFINED => Err(names(old, new)),
            Kind::Undefined => Ok(()),
            _ => self.correspond(old.begin(), new.begin()).map_err(|()| names(old, new)),
        }
    }

    /// Compares the initial functions of a static call, which the kernel calls in place of its
    /// trampoline.
    fn static_call(&mut self, old: Location<'a>, new: Location<'a>) -> Result<(), Reason> {
        let Some(name) = old.symbol.strip_prefix(TRAMPOLINE) else { return Ok(()) };
        let key = |one: Location<'a>| {
            let address = one.image.address(&format!("{KEY}{name}"))?;
            one.to(address)
        };
        match (key(old), key(new)) {
            (Some(old), Some(new)) => variable(self, [old, new], Use::Address, 0),
            (None, None) => Ok(()),
            _ => Err(names(old, new)),
        }
    }

    /// Notes that two addresses correspond; fails if one of them corresponds to another already.
    pub(crate) fn correspond(&mut self, old: u64, new: u64) -> Result<(), ()> {
        let is_same = *self.pairs[0].entry(old).or_insert(new) == new
            && *self.pairs[1].entry(new).or_insert(old) == old;
        if is_same { Ok(()) } else { Err(()) }
    }
}

/// Compares the data at two locations.
fn data<'a>(
    targets: &mut Targets<'a>,
    [old, new]: [Location<'a>; 2],
    how: Use,
    offset: u64,
) -> Result<(), Reason> {
    if [old, new].iter().all(|one| one.section.kind == Kind::ReadOnly) {
        let is_nameless = |one: Location<'a>| one.image.names(one.address).next().is_none();
        if how == Use::Address
            && is_nameless(old)
            && is_nameless(new)
            && let (Some(a), Some(b)) = (string(old), string(new))
        {
            return match a == b {
                true => Ok(()),
                // Both may be tables that look like text.
                false => variable(targets, [old, new], how, offset).map_err(|_| quoted(a, b)),
            };
        }
        if let Use::Access(size) = how
            && is_elsewhere(old, new)
            && let Some(result) = constant([old, new], size)
        {
            return result;
        }
        if how == Use::Table
            && is_nameless(old)
            && is_nameless(new)
            && let Some(result) = table(targets, [old, new], offset)
        {
            return result;
        }
    }
    variable(targets, [old, new], how, offset)
}

/// The reason that two strings differ.
fn quoted(old: &[u8], new: &[u8]) -> Reason {
    let quoted = |text: &[u8]| {
        let text = text.strip_suffix(b"\0").unwrap_or(text);
        format!("{:?}", String::from_utf8_lossy(&text[..text.len().min(QUOTED)]))
    };
    Reason::Target { names: [quoted(old), quoted(new)] }
}

/// True if the locations belong to different variables, or to no variable: constants of the compiler
/// are behind any symbol.
fn is_elsewhere(old: Location<'_>, new: Location<'_>) -> bool {
    old.symbol != new.symbol || old.offset != new.offset
}

/// The string at a location, with its final zero; `None` if there is other data.
fn string(location: Location<'_>) -> Option<&[u8]> {
    let section = location.section;
    let begin = usize::try_from(location.address - section.address).ok()?;
    let rest = section.bytes.get(begin..)?;
    let end = rest.iter().take(STRING as usize).position(|byte| *byte == 0)?;
    // A level of printk begins with 1; the rest is text.
    let text = rest[..end].strip_prefix(&[1]).unwrap_or(&rest[..end]);
    let is_text = |byte: &u8| (0x20..0x7f).contains(byte) || matches!(byte, b'\n' | b'\t' | b'\r');
    (end >= 2 && text.iter().all(is_text)).then_some(&rest[..=end])
}

/// Compares `size` bytes; `None` if they contain addresses.
fn constant([old, new]: [Location<'_>; 2], size: u64) -> Option<Result<(), Reason>> {
    let has_address = |one: Location<'_>| {
        one.image
            .absolute
            .range(one.address.saturating_sub(7)..one.address.saturating_add(size))
            .next()
            .is_some()
    };
    if size == 0 || has_address(old) || has_address(new) {
        return None;
    }
    let (a, b) = (old.image.bytes(old.address, size)?, new.image.bytes(new.address, size)?);
    Some(if a == b { Ok(()) } else { Err(names(old, new)) })
}

/// Compares two tables of code addresses without names, as compilers make them for `switch`; `None`
/// for other data.
fn table<'a>(
    targets: &mut Targets<'a>,
    [old, new]: [Location<'a>; 2],
    offset: u64,
) -> Option<Result<(), Reason>> {
    if !is_elsewhere(old, new) {
        return None;
    }
    let pointer = |one: Location<'a>, at| one.image.pointer(one.address + at).filter(|p| p.1 == 8);
    pointer(old, 0)?;
    let mut at = 0;
    loop {
        let (a, b) = match (pointer(old, at), pointer(new, at)) {
            (None, None) => return Some(Ok(())),
            (Some((a, _)), Some((b, _))) => (old.to(a), new.to(b)),
            _ => return Some(Err(Reason::Unresolved { offset })),
        };
        let (Some(a), Some(b)) = (a, b) else {
            return Some(Err(Reason::Unresolved { offset }));
        };
        if a.section.kind != Kind::Text || b.section.kind != Kind::Text {
            return Some(Err(Reason::Unresolved { offset }));
        }
        if let Err(reason) = targets.named(a, b) {
            return Some(Err(reason));
        }
        at += 8;
    }
}

/// Compares two variables by name, and by their initial content as far as the next symbol.
fn variable<'a>(
    targets: &mut Targets<'a>,
    [old, new]: [Location<'a>; 2],
    how: Use,
    offset: u64,
) -> Result<(), Reason> {
    targets.named(old, new)?;
    if let Use::Access(size) = how {
        let is_within = |one: Location<'a>| size <= one.extent.saturating_sub(one.offset);
        return match is_within(old) && is_within(new) {
            true => content(targets, [old, new], size, offset),
            false => Err(Reason::Unresolved { offset }),
        };
    }
    // The address of a table without its first elements can belong to another variable, and the
    // address of an end belongs to the next one.
    let is_at_edge = old.extent - old.offset <= EDGE || new.extent - new.offset <= EDGE;
    if how == Use::Table && is_at_edge {
        let next = |one: Location<'a>| one.to(one.begin() + one.extent);
        if let (Some(a), Some(b)) = (next(old), next(new)) {
            variable(targets, [a, b], Use::Address, offset)?;
        }
    }
    if old.section.kind == Kind::Zero && old.extent != new.extent {
        return Err(Reason::Unresolved { offset });
    }
    if old.symbol.starts_with(MESSAGE) {
        return Ok(());
    }
    let (old, new) = (whole(old), whole(new));
    let (a, b) = (old.begin(), new.begin());
    if let Some(known) = targets.data.get(&(a, b)) {
        return known.clone().map_or(Ok(()), Err);
    }
    // Data can refer to itself.
    targets.data.insert((a, b), None);
    let begin = targets.assumed.len();
    targets.assumed.push((a, b));
    let size = old.extent.max(new.extent);
    let result = content(targets, [old, new], size, offset);
    if result.is_err() {
        // Data found equal since then may have assumed that this is equal.
        for pair in targets.assumed.split_off(begin) {
            targets.data.remove(&pair);
        }
    }
    targets.data.insert((a, b), result.clone().err());
    result
}

/// The variable to which a location belongs.
fn whole(location: Location<'_>) -> Location<'_> {
    Location { address: location.begin(), offset: 0, ..location }
}

/// Compares `size` bytes from two locations; behind the end of a variable are zeros.
fn content<'a>(
    targets: &mut Targets<'a>,
    [old, new]: [Location<'a>; 2],
    size: u64,
    offset: u64,
) -> Result<(), Reason> {
    match (old.section.kind, new.section.kind) {
        (Kind::Zero, Kind::Zero) => return Ok(()),
        _ if size > VARIABLE => return Err(Reason::Unresolved { offset }),
        _ => {}
    }
    let differs = |at| {
        let name = old.symbol.to_owned();
        Err(Reason::Data { name, offset: old.offset + at })
    };
    let byte = |one: Location<'a>, at: u64| {
        let is_within = one.offset + at < one.extent;
        let bytes = is_within.then(|| one.image.bytes(one.address + at, 1)).flatten();
        bytes.map_or(0, |bytes| bytes[0])
    };
    let pointer = |one: Location<'a>, at| {
        one.image.pointer(one.address + at).filter(|_| one.offset + at < one.extent)
    };
    let mut at = 0;
    while at < size {
        match (pointer(old, at), pointer(new, at)) {
            (None, None) if byte(old, at) == byte(new, at) => at += 1,
            (Some((x, width)), Some((y, other))) if width == other => {
                if !pointed(targets, [old, new], [x, y], offset) {
                    return differs(at);
                }
                at += u64::from(width);
            }
            _ => return differs(at),
        }
    }
    Ok(())
}

/// Compares what two addresses in data refer to. Constant data is compared with its content, other
/// data by name.
fn pointed<'a>(
    targets: &mut Targets<'a>,
    from: [Location<'a>; 2],
    addresses: [u64; 2],
    offset: u64,
) -> bool {
    let (Some(old), Some(new)) = (from[0].to(addresses[0]), from[1].to(addresses[1])) else {
        // Marks of the linker between sections.
        let [mut old, new] = [0, 1].map(|n| from[n].image.names(addresses[n]));
        let new: Vec<&str> = new.collect();
        return old.any(|name| new.contains(&name));
    };
    let [old, new] = [targets.builds[0].resolve(old), targets.builds[1].resolve(new)];
    match (old.section.kind, new.section.kind) {
        (Kind::ReadOnly, Kind::ReadOnly) => data(targets, [old, new], Use::Address, offset).is_ok(),
        _ => targets.named(old, new).is_ok(),
    }
}
