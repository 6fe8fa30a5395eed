//! The readers of profiles and the functions that use their results never panic. Splitting and
//! drawing neither loses nor adds samples. Every line of folded stacks is read or counted as left
//! out, and so is every sample of `perf script`.

#![no_main]

use fwdlab_results::profile::draw::{Look, flame_graph};
use fwdlab_results::profile::functions::{SortKey, neighbours_in_stacks};
use fwdlab_results::profile::{
    Filter, FilteredProfile, Format, KeptPart, Profile, Subsystems, document, read,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(profile) = read(bytes) else { return };
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match profile.format {
        Format::Folded => every_line_is_counted(text, &profile),
        Format::PerfScript => every_sample_is_counted(text, &profile),
        _ => {}
    }
    let divided = FilteredProfile::of(&profile, &Filter::default(), false);
    let _ = document::summary(&divided.summary, "fuzz");
    let _ = document::functions(&divided, SortKey::Total, 9);
    if let KeptPart::Stacks(kept) = &divided.kept {
        let _ = flame_graph(kept, &Look::default());
        let _ = Subsystems::default().of_stacks(kept);
        for function in divided.kept.functions(SortKey::Own).iter().take(3) {
            assert!(neighbours_in_stacks(kept, &function.name).is_some());
        }
        let split = Filter::default().split(&profile.stacks().expect("there are stacks"));
        assert_eq!(split.work.total(), kept.total());
    }
});

/// Counts lines and their last numbers without the reader's code.
fn every_line_is_counted(text: &str, profile: &Profile) {
    let (mut lines, mut counted, mut total) = (0, 0, 0_u64);
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        lines += 1;
        let words: Vec<&str> = line.split_whitespace().collect();
        let last = words.last().copied().unwrap_or_default();
        let is_number = last.starts_with(|c: char| c.is_ascii_digit())
            && last.chars().all(|c| c.is_ascii_digit() || c == '.');
        if line.starts_with(char::is_whitespace) || words.len() < 2 || !is_number {
            continue;
        }
        let Ok(count) = last.parse::<u64>() else { return };
        counted += 1;
        total = total.saturating_add(count);
    }
    assert_eq!(counted + profile.unknown.count, lines);
    assert_eq!(profile.stacks().expect("there are stacks").total(), total);
}

/// Samples that were read or left out have a header or a stack, so a line each.
fn every_sample_is_counted(text: &str, profile: &Profile) {
    let left_out = profile.left_out.iter().filter(|part| part.kind.starts_with("samples of "));
    let left_out: u64 = left_out.map(|part| part.count).sum();
    let samples = profile.samples().expect("there are samples") as u64 + left_out;
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(samples > 0 && samples + profile.unknown.count as u64 <= lines as u64);
    // The usual header is recognised without the reader's code: `[003] 12.345678:`.
    let is_header = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.windows(2).any(|pair| {
            let cpu = pair[0].strip_prefix('[').and_then(|cpu| cpu.strip_suffix(']'));
            let time = pair[1].strip_suffix(':').and_then(|time| time.split_once('.'));
            cpu.is_some_and(|cpu| cpu.parse::<u8>().is_ok())
                && time.is_some_and(|(seconds, fraction)| {
                    seconds.parse::<u32>().is_ok()
                        && fraction.len() == 6
                        && fraction.bytes().all(|byte| byte.is_ascii_digit())
                })
        })
    };
    let is_plain = |line: &&str| !line.starts_with(['\t', '#']) && !line.contains("PERF_RECORD_");
    let headers = text.lines().filter(is_plain).filter(is_header).count() as u64;
    assert!(samples >= headers, "{samples} samples of {headers} headers");
}
