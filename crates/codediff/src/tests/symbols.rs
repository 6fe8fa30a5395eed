//! Tables of symbols, written as scripts/kallsyms.c of Linux does.

use crate::kallsyms;
use proptest::prelude::*;

/// Placement of the addresses: before the names until Linux 6.3, behind the tokens since.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Before,
    After,
}

const BASE: u64 = 0xffff_ffff_8100_0000;

fn align(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

/// Writes the tables; each token is a character. With `has_order`, the tokens follow the order of the
/// names (Linux 6.1.187).
fn tables(
    symbols: &[(u64, u8, String)],
    layout: Layout,
    per_cpu: bool,
    has_order: bool,
) -> Vec<u8> {
    let mut bytes = b"data before the tables\0\0".to_vec();
    let addresses = |bytes: &mut Vec<u8>| {
        align(bytes);
        for (address, ..) in symbols {
            let offset = match per_cpu {
                true if *address < BASE => *address as u32,
                true => BASE.wrapping_sub(1).wrapping_sub(*address) as u32,
                false => (address - BASE) as u32,
            };
            bytes.extend(offset.to_le_bytes());
        }
        align(bytes);
        bytes.extend(BASE.to_le_bytes());
    };
    if matches!(layout, Layout::Before) {
        addresses(&mut bytes);
    }
    align(&mut bytes);
    bytes.extend((symbols.len() as u64).to_le_bytes());
    let names = bytes.len();
    let mut markers = Vec::new();
    for (number, (_, kind, name)) in symbols.iter().enumerate() {
        if number % 256 == 0 {
            markers.extend(((bytes.len() - names) as u32).to_le_bytes());
        }
        let length = name.len() + 1;
        match length < 0x80 {
            true => bytes.push(length as u8),
            false => bytes.extend([(length & 0x7f | 0x80) as u8, (length >> 7) as u8]),
        }
        bytes.push(*kind);
        bytes.extend(name.as_bytes());
    }
    align(&mut bytes);
    bytes.extend(markers);
    align(&mut bytes);
    if has_order {
        for number in 0..symbols.len() as u32 {
            bytes.extend(&(0x01_0101 + number).to_be_bytes()[1..]);
        }
        // Often there is no zero in front of the tokens.
        let last = *bytes.last().unwrap_or(&1);
        bytes.resize(bytes.len().next_multiple_of(8), last);
    }
    let begin = bytes.len();
    let mut index = Vec::new();
    for token in 0..=255_u8 {
        index.extend(((bytes.len() - begin) as u16).to_le_bytes());
        // Unused characters stand for frequent pairs.
        match token.is_ascii_graphic() {
            true => bytes.push(token),
            false => bytes.extend(b"__"),
        }
        bytes.push(0);
    }
    align(&mut bytes);
    bytes.extend(index);
    if matches!(layout, Layout::After) {
        addresses(&mut bytes);
    }
    bytes.extend(b"data behind the tables");
    bytes
}

fn symbols() -> impl Strategy<Value = Vec<(u64, u8, String)>> {
    let symbol = (0_u64..1 << 30, prop::sample::select(b"TtDdRrBbW?".to_vec()), "[a-z_]{1,40}");
    prop::collection::vec(symbol, 1000..1600).prop_map(|mut all| {
        all.iter_mut().for_each(|(address, ..)| *address += BASE);
        all.sort_by_key(|(address, ..)| *address);
        all[7].2 = "long_".repeat(40);
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn read_returns_the_symbols_of_both_layouts(
        mut symbols in symbols(),
        is_before: bool,
        per_cpu: bool,
        has_order: bool,
    ) {
        let layout = if is_before { Layout::Before } else { Layout::After };
        if per_cpu {
            symbols.insert(0, (0x1f40, b'A', "runqueues".to_owned()));
        }
        let bytes = tables(&symbols, layout, per_cpu, has_order);
        let read = kallsyms::read(&bytes);
        prop_assert_eq!(read.as_deref(), Some(&symbols[..]));
    }

    #[test]
    fn read_of_anything_does_not_panic(bytes: Vec<u8>, cut in 0_usize..4000) {
        prop_assert_eq!(kallsyms::read(&bytes), None);
        let symbols: Vec<(u64, u8, String)> =
            (0..1000).map(|n| (BASE + n, b'T', format!("name_{n}"))).collect();
        let whole = tables(&symbols, Layout::After, false, true);
        let _ = kallsyms::read(&whole[..whole.len() - cut.min(whole.len())]);
    }
}
