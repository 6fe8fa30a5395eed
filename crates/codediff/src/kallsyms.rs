//! The symbols that a kernel contains for `/proc/kallsyms`.
//!
//! scripts/kallsyms.c of Linux writes them: names, compressed with a table of 256 tokens, and the
//! addresses relative to a base. None of these tables has a symbol itself in a stripped kernel, so
//! they are found by their form: the token table contains the digits one after the other, and every
//! other table is checked against it.

/// A symbol: its address, its kind as `nm` prints it, and its name.
pub(crate) type Kallsym = (u64, u8, String);

/// Number of tokens.
const TOKENS: usize = 256;
/// Alignment of each table.
const ALIGNMENT: usize = 8;
/// Names between two markers.
const MARKED: usize = 256;
/// Plausible numbers of symbols.
const COUNTS: std::ops::Range<usize> = 1_000..4_000_000;
/// Lowest address of the kernel's mapping on x86-64.
const KERNEL: u64 = 0xffff_ffff_8000_0000;

/// Reads the symbols from the section that contains the tables, sorted by address; `None` if it
/// contains none.
pub(crate) fn read(section: &[u8]) -> Option<Vec<Kallsym>> {
    let tokens = Tokens::find(section)?;
    let (count_at, names) = names(section, &tokens)?;
    let addresses = addresses_after(section, names.len(), &tokens)
        .or_else(|| addresses_before(section, count_at, names.len()))?;
    let symbols = addresses.into_iter().zip(names);
    let mut symbols: Vec<Kallsym> = symbols.map(|(at, (kind, name))| (at, kind, name)).collect();
    symbols.sort_by_key(|(address, ..)| *address);
    Some(symbols)
}

/// The table of tokens.
struct Tokens {
    begin: usize,
    /// End of the index that follows it.
    end: usize,
    tokens: Vec<Vec<u8>>,
}

impl Tokens {
    fn find(section: &[u8]) -> Option<Tokens> {
        let digits: Vec<u8> = (b'0'..=b'9').flat_map(|digit| [digit, 0]).collect();
        let mut from = 0;
        while let Some(at) = section[from..].windows(digits.len()).position(|w| w == digits) {
            let at = from + at;
            if let Some(found) = Tokens::around(section, at) {
                return Some(found);
            }
            from = at + 1;
        }
        None
    }

    /// Reads the table whose token `0` is at `zero`, and checks it against its index.
    fn around(section: &[u8], zero: usize) -> Option<Tokens> {
        // Before it are 48 tokens, each with a zero byte at its end.
        let mut begin = zero;
        for _ in 0..usize::from(b'0') {
            begin = 1 + section[..begin.checked_sub(1)?].iter().rposition(|byte| *byte == 0)?;
        }
        // The first token may be preceded by bytes of another table without a zero among them: since
        // Linux 6.2 (6.1.187 of the stable series) the order of the names, three bytes for each.
        let length = section[begin..].iter().position(|byte| *byte == 0)?;
        let first = begin..=zero.min(begin + length);
        first.filter(|at| at % ALIGNMENT == 0).find_map(|begin| Tokens::at(section, begin))
    }

    fn at(section: &[u8], begin: usize) -> Option<Tokens> {
        let mut tokens = Vec::with_capacity(TOKENS);
        let mut at = begin;
        for _ in 0..TOKENS {
            let length = section.get(at..)?.iter().take(64).position(|byte| *byte == 0)?;
            tokens.push((at - begin, section[at..at + length].to_vec()));
            at += length + 1;
        }
        let index = at.next_multiple_of(ALIGNMENT);
        let matches = tokens.iter().enumerate().all(|(number, (offset, _))| {
            let word = section.get(index + 2 * number..index + 2 * number + 2);
            word.is_some_and(|word| usize::from(u16::from_le_bytes([word[0], word[1]])) == *offset)
        });
        let tokens = tokens.into_iter().map(|(_, token)| token).collect();
        matches.then_some(Tokens { begin, end: index + 2 * TOKENS, tokens })
    }
}

/// Kind and name of a symbol.
type Name = (u8, String);

/// Finds the names, which precede the tokens; returns the offset of their number, and the names.
fn names(section: &[u8], tokens: &Tokens) -> Option<(usize, Vec<Name>)> {
    (0..tokens.begin).rev().filter(|at| at % ALIGNMENT == 0).find_map(|at| {
        let count = word(section, at)? as usize;
        if !COUNTS.contains(&count) || word(section, at + 4)? != 0 {
            return None;
        }
        let (names, starts, end) = expand(&section[..tokens.begin], at + 8, count, tokens)?;
        let markers = end.next_multiple_of(ALIGNMENT);
        let is_marked = starts.iter().step_by(MARKED).enumerate().all(|(number, start)| {
            word(section, markers + 4 * number) == Some((start - at - 8) as u32)
        });
        is_marked.then_some((at, names))
    })
}

/// Expands `count` names from `at`: names, where each one starts, and the end.
fn expand(
    section: &[u8],
    at: usize,
    count: usize,
    tokens: &Tokens,
) -> Option<(Vec<Name>, Vec<usize>, usize)> {
    let (mut names, mut starts, mut at) = (Vec::new(), Vec::new(), at);
    for _ in 0..count {
        starts.push(at);
        let mut length = usize::from(*section.get(at)?);
        at += 1;
        if length & 0x80 != 0 {
            // Names of 128 tokens and more have a second byte (since Linux 6.1).
            length = (length & 0x7f) | usize::from(*section.get(at)?) << 7;
            at += 1;
        }
        let coded = section.get(at..at + length)?;
        at += length;
        let text: Vec<u8> =
            coded.iter().flat_map(|token| tokens.tokens[usize::from(*token)].clone()).collect();
        let (kind, name) = text.split_first()?;
        if !kind.is_ascii_graphic() || !name.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        names.push((*kind, String::from_utf8_lossy(name).into_owned()));
    }
    Some((names, starts, at))
}

/// Reads the addresses behind the tokens, where they are since Linux 6.4.
fn addresses_after(section: &[u8], count: usize, tokens: &Tokens) -> Option<Vec<u64>> {
    let offsets = tokens.end.next_multiple_of(ALIGNMENT);
    let base = (offsets + 4 * count).next_multiple_of(ALIGNMENT);
    absolute(section, offsets, base, count)
}

/// Reads the addresses before the names, where they were until Linux 6.3.
fn addresses_before(section: &[u8], count_at: usize, count: usize) -> Option<Vec<u64>> {
    let base = count_at.checked_sub(8)?;
    let offsets = base.checked_sub((4 * count).next_multiple_of(ALIGNMENT))?;
    absolute(section, offsets, base, count)
}

/// Adds the base to the offsets. With absolute addresses of per-CPU data, offsets of other symbols
/// are negative: `base - 1 - offset`. `None` unless this results in ascending addresses.
fn absolute(section: &[u8], offsets: usize, base: usize, count: usize) -> Option<Vec<u64>> {
    let base = u64::from_le_bytes(section.get(base..base + 8)?.try_into().ok()?);
    if base < KERNEL {
        return None;
    }
    let offset = |number| Some(word(section, offsets + 4 * number)? as i32);
    let offsets: Vec<i32> = (0..count).map(offset).collect::<Option<_>>()?;
    let has_negative = offsets.iter().any(|offset| *offset < 0);
    let address = |offset: &i32| match has_negative {
        false => base.wrapping_add(u64::from(*offset as u32)),
        true if *offset >= 0 => *offset as u64,
        true => base.wrapping_sub(1).wrapping_sub(i64::from(*offset) as u64),
    };
    let addresses: Vec<u64> = offsets.iter().map(address).collect();
    addresses.is_sorted().then_some(addresses)
}

fn word(section: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(section.get(at..at + 4)?.try_into().ok()?))
}
