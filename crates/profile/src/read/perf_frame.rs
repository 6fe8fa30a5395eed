//! Lines of a stack in the text of `perf script`; bpftrace's `kstack(perf)` has the same frames.
//!
//! Frames have the form `address symbol+offset (object)`, where offset and object may be missing.
//! With `-F +srcline` or `-F +srccode`, each frame is followed by its place in the source.

use crate::name::normal;
use std::borrow::Cow;

/// Symbol of a frame; if unknown, a placeholder with the object's name. `None` for other lines.
pub(super) fn frame(line: &str) -> Option<Cow<'_, str>> {
    let line = line.trim();
    let (address, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim_start();
    // DTrace's distributions have a number and a bar.
    if !is_address(address, 1) || rest.starts_with('|') {
        return None;
    }
    let (symbol, object) = match rest.rfind(" (") {
        Some(at) if rest.ends_with(')') => (rest[..at].trim_end(), &rest[at + 2..rest.len() - 1]),
        _ => (rest, ""),
    };
    // An inlined function has its own symbol, not an object.
    if !symbol.is_empty() && symbol != "[unknown]" {
        return Some(Cow::Borrowed(normal(symbol)));
    }
    match object.rsplit('/').next() {
        None | Some("" | "[unknown]") => Some(Cow::Borrowed("[unknown]")),
        Some(name) => Some(Cow::Owned(format!("[unknown {}]", name.trim_matches(['[', ']'])))),
    }
}

/// Frame in the text behind a header, and true if the text also has data. With `-F +addr`, and by
/// default for `perf mem`, the address of the data precedes the frame, possibly with a symbol and an
/// object; `data_src` and `weight` follow it. `phys_addr` and `data_page_size` are behind the frame.
///
/// perf prints data as columns of 16 characters, and a blank before the column of the frame.
pub(super) fn without_data(text: &str) -> (&str, bool) {
    const WIDTH: usize = 16;
    let blanks = |at: usize| at - text[..at].trim_end().len();
    // Blanks may be lost, but the address of a frame follows another one or an object directly.
    let is_behind_data = |at: usize| {
        let before = text[..at].trim_end();
        blanks(at) == 1 && (is_address(before, 1) || before.ends_with(')'))
    };
    // Each word is a slice of the text, so the pointer difference is its offset.
    let words =
        text.split_whitespace().map(|word| (word.as_ptr().addr() - text.as_ptr().addr(), word));
    let mut addresses = words.filter(|(_, word)| is_address(word, 1));
    if addresses.next().is_none_or(|(at, _)| at > 0) {
        return (text, false);
    }
    let (mut start, mut end) = (0, text.len());
    for (at, word) in addresses {
        let width = blanks(at) + word.len();
        if width == WIDTH + 1 || (word.len() >= 8 && is_behind_data(at)) {
            (start, end) = (at, text.len());
        } else if width == WIDTH && end == text.len() {
            end = at;
        }
    }
    (text[start..end].trim_end(), end - start < text.len())
}

/// Returns true for a frame without indentation, as perf of Linux 3.2 prints it: a long address,
/// a symbol and an object.
pub(super) fn is_unindented(line: &str) -> bool {
    let mut words = line.split_whitespace();
    !line.starts_with(char::is_whitespace)
        && words.next().is_some_and(|address| is_address(address, 8))
        && words.next().is_some()
        && line.trim_end().ends_with(')')
        && line.contains(" (")
}

/// Returns true for a frame indented as perf prints it.
pub(super) fn is_indented(line: &str) -> bool {
    let indented = line.starts_with('\t') || line.starts_with("        ");
    // Excludes DTrace's CPU and probe columns: addresses are longer.
    let is_long = line.split_whitespace().next().is_some_and(|word| is_address(word, 4));
    indented && is_long && frame(line).is_some()
}

/// Returns true if a word is a hexadecimal number of at least `digits` digits.
pub(super) fn is_address(word: &str, digits: usize) -> bool {
    word.len() >= digits && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns true for the place of a frame in the source: `  ip_input.c:540`,
/// `  ip_input.c:540 (discriminator 2)`, `  libc-2.33.so[27b25]`, `  ip_rcv+91`, `|540   code();`.
pub(super) fn is_source(line: &str) -> bool {
    let text = line.trim();
    if text.starts_with('|') {
        return true;
    }
    let text = text.split_once(" (discriminator ").map_or(text, |(place, _)| place);
    let ends = |separator: char, is_digit: fn(&u8) -> bool| {
        text.trim_end_matches(']').rsplit_once(separator).is_some_and(|(place, number)| {
            let number = number.strip_prefix("0x").unwrap_or(number);
            !place.is_empty() && !number.is_empty() && number.bytes().all(|b| is_digit(&b))
        })
    };
    line.starts_with(char::is_whitespace)
        && !text.contains(char::is_whitespace)
        && (ends(':', u8::is_ascii_digit)
            || ends('+', u8::is_ascii_digit)
            || (text.ends_with(']') && ends('[', u8::is_ascii_hexdigit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_reads_symbols_and_placeholders() {
        for (line, symbol) in [
            ("\tffff81a0 ip_rcv+0x5b ([kernel.kallsyms])", Some("ip_rcv")),
            ("  7ffc0001 [unknown] (/usr/bin/my proc)", Some("[unknown my proc]")),
            ("  7ffc0002 std::map<int, (anon)>::at (inlined)", Some("std::map<int, (anon)>::at")),
            ("  9ca3", Some("[unknown]")),
            ("            1024 |@@@@          10", None),
            ("  ip_input.c:540", None),
            ("", None),
        ] {
            assert_eq!(frame(line).as_deref(), symbol, "{line}");
        }
    }

    #[test]
    fn without_data_finds_the_frame_between_data() {
        for (before, frame, behind) in [
            ("", "7fbb f+0x1 (x)", ""),
            ("", "ffff81a0 std::map<int, (anon)>::at (inlined)", ""),
            ("", "9ca3", ""),
            ("", "prev_comm=sh prev_pid=9 ==> next_comm=idle", ""),
            ("55664dcf55c0 __progname+0x0 (/bin/ls) ", "ffffffff817554ea elf_load (k)", ""),
            ("7f971a571b70 _start+0x0 (/ld.so)     ", "7f971a571b70 _start+0x0 (/ld.so)", ""),
            ("0 ", "ffffffff815f65b5 tlb_gather_mmu+0x5 (k)", "               0 N/A"),
            (
                "ffff9e2f1 [unknown] ([unknown])         5080021 |OP LOAD|LVL L1 hit|N/A            \
                 34 ",
                "ffffffff817554ea dead ([kernel.kallsyms])",
                "      1234567890 4K",
            ),
            ("7ffe05f34699 add+0x1 (/a b)             ", "401a f (/a)", ""),
        ] {
            let text = format!("{before}{frame}{behind}");
            let has_data = !before.is_empty() || !behind.is_empty();
            assert_eq!(without_data(&text), (frame, has_data), "{text}");
        }
    }

    #[test]
    fn is_unindented_requires_address_symbol_and_object() {
        assert!(is_unindented("ffffffff81000a00 vfs_write ([kernel.kallsyms])"));
        for line in ["java 19983 cycles:", "deadbeef 12 (x) 3", "beef f (x)", " ffffffff81 f (x)"] {
            assert!(!is_unindented(line), "{line}");
        }
    }

    #[test]
    fn is_source_accepts_forms_of_perf() {
        for line in [
            "  ip_input.c:540",
            "  ??:0",
            "  dev.c:6600 (discriminator 2)",
            "  libc-2.33.so[27b25]",
            "  [kernel.kallsyms][ffffffff814f9302]",
            "  ip_rcv+91",
            "|540        return x;",
        ] {
            assert!(is_source(line), "{line}");
        }
        for line in ["ip_input.c:540", "  what is this", "  note:", "  junk", "  a b:5"] {
            assert!(!is_source(line), "{line}");
        }
    }
}
