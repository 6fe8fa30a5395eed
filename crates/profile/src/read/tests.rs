//! Tests over all formats.

use super::*;
use proptest::prelude::*;

#[test]
fn read_rejects_other_text_and_binaries() {
    for text in ["", "\n\n", "1000000\n1010000\n", "# a comment\n", "version = \"x\"\n"] {
        assert_eq!(read(text.as_bytes()), Err(ProfileError::Unrecognised), "{text:?}");
    }
    let binary = read(b"PERFILE2\0\0").unwrap_err().to_string();
    assert!(binary.contains("perf script -i FILE"), "{binary}");
    assert!(matches!(read(b"a;b 0\n"), Err(ProfileError::Empty { format: Format::Folded })));
}

#[test]
fn read_rejects_mixed_formats_with_the_line() {
    let perf = "sh 1 [000] 2.5:  1 cycles: \n\t  ffff81 ip_rcv+0x1 ([kernel])\n\n";
    let folded = "a;b 1\na;c 2\n";
    let error = read(format!("{perf}{folded}").as_bytes()).unwrap_err();
    assert_eq!(error.line(), Some(4));
    assert!(error.to_string().contains("line 4: looks like folded stacks"), "{error}");
    let error = read(format!("{folded}{perf}").as_bytes()).unwrap_err();
    assert_eq!(error.line(), Some(3));
}

proptest! {
    #[test]
    fn read_never_panics_on_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn read_never_panics_on_pieces_of_profiles(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12),
        junk in "\\PC{0,6}",
    ) {
        let text = pieces.join("") + &junk;
        let profile = read(text.as_bytes());
        if let Some(stacks) = profile.as_ref().ok().and_then(Profile::stacks) {
            prop_assert!(stacks.total() > 0);
            // The result survives writing and reading again, below an extra root, because the
            // pieces may make a root look like anything.
            let folded: String =
                stacks.folded().lines().map(|line| format!("r;{line}\n")).collect();
            let again = read(folded.as_bytes()).unwrap();
            prop_assert_eq!(again.stacks().unwrap().total(), stacks.total());
        }
    }
}

const PIECES: &[&str] = &[
    "a;b 3\n",
    "a;b",
    " 12",
    "sh 1 [000] 2.5:  1 cycles: ",
    "\n",
    "\t  ffff81 f+0x1 (k)\n",
    "@ EVENT [4 samples]\n\n",
    "50.00%  [2]   f @ /k\n",
    " 100.0%  [2]    g\n",
    "@[\n",
    "    f+1\n",
    "]: 7\n",
    ", sh]: 5\n",
    "@[sh]: 3\n",
    "              kernel`f+0x1\n",
    "              9\n",
    "flat profile:\n",
    " 10.0  12.00 12.00   3  4.0 5.0  f [1]\n",
    "call graph profile:\n",
    "[1]   80.2 10.00  2.00  3  f [1]\n",
    "   1.00  2.00  3/3  g [2]\n",
    "-----\n",
    "<svg ",
    "<g><title>f (10 samples, 5%)</title>",
    "<rect x=\"1\" y=\"2\" width=\"3\" height=\"4\"/>",
    "<rect x=\"1%\" y=\"2\" width=\"3%\" fg:x=\"1\" fg:w=\"9\"",
    "</g>",
    "&#x110000;",
    "&amp;",
    "%",
    ";",
    "\u{fffd}",
];

/// A small file of each format.
const FIXTURES: [(Format, &str); 7] = [
    (Format::Folded, "swapper;do_idle 3\nk;net_rx_action;ip_rcv 4\nk;net_rx_action 2\n"),
    (
        Format::PerfScript,
        "sh 1 [000] 2.5:  9 cycles: \n\tffff81a0 ip_rcv+0x1 ([kernel])\n\tffff81a1 main (sh)\n\n\
         sh 1 [000] 2.6:  9 cycles: \n\tffff81a0 ip_rcv+0x1 ([kernel])\n\tffff81a1 main (sh)\n\n",
    ),
    (
        Format::PmcstatGraph,
        "@ EVENT [6 samples]\n\n66.67%  [4]  ip_input @ /k\n 100.0%  [4]   netisr\n\
         33.33%  [2]  memcpy @ /k\n 100.0%  [2]   main\n",
    ),
    (
        Format::Gprof,
        "flat profile:\n time   seconds   seconds  name\n 60.0  6.00  6.00  ip_input [1]\n \
         30.0  9.00  3.00  netisr [2]\n 10.0  10.00  1.00  main [3]\n\
         index  %time    self descendents  called+self    name  index\n\
         [1]   60.0  6.00  1.00  3  ip_input [1]\n   1.00  0.00  3/3  main [3]\n-----\n",
    ),
    (
        Format::Dtrace,
        "  kernel`ip_input+0x1\n  kernel`netisr+0x2\n  5\n\n  kernel`memcpy+0x1\n  kernel`main\n  6\n",
    ),
    (
        Format::Bpftrace,
        "@[\n    ip_rcv+5\n    main+1\n, sh]: 4\n@[\n    memcpy+5\n    main+3\n, sh]: 5\n",
    ),
    (
        Format::FlameGraph,
        "<svg width=\"9\">\n\
         <g><title>all (9 samples, 100%)</title><rect x=\"0\" y=\"9\" width=\"9\" height=\"1\"/></g>\n\
         <g><title>f (9 samples, 100%)</title><rect x=\"0\" y=\"1\" width=\"9\" height=\"1\"/></g>\n\
         </svg>\n",
    ),
];

#[test]
fn fixtures_are_read_completely() {
    for (format, text) in FIXTURES {
        assert_eq!(detect::format(text), Some(format));
        assert_eq!(read(text.as_bytes()).unwrap().notes(), [""; 0], "{format}");
    }
}

#[test]
fn files_of_other_formats_are_refused_or_noted() {
    for (format, _) in FIXTURES {
        for (other, text) in FIXTURES.into_iter().filter(|(other, _)| *other != format) {
            match read_as(format, text) {
                Ok(profile) => assert!(!profile.notes().is_empty(), "{other} as {format}"),
                Err(error) => assert!(error.to_string().contains(' '), "{other} as {format}"),
            }
        }
    }
}

#[test]
fn lines_of_another_format_are_refused_anywhere() {
    for (format, text) in FIXTURES.into_iter().filter(|(format, _)| *format != Format::FlameGraph) {
        for (other, appended) in FIXTURES.into_iter().filter(|(other, _)| *other != format) {
            for whole in [format!("{text}{appended}"), format!("{text}\n\n{appended}")] {
                if let Ok(profile) = read(whole.as_bytes()) {
                    assert!(!profile.notes().is_empty(), "{other} after {format}:\n{whole}");
                }
            }
        }
    }
}

/// Lines that belong to no format.
const JUNK: [&str; 4] = ["what is this", "   some  thing", "1.2.3 x", "<!-- -->"];

#[test]
fn unknown_lines_are_noted_and_most_of_a_file_is_refused() {
    for (format, text) in FIXTURES.into_iter().filter(|(format, _)| *format != Format::FlameGraph) {
        for junk in JUNK {
            // Half of the lines, each after a line of the profile.
            let mut half = String::new();
            for line in text.lines() {
                half += &format!("{line}\n");
                half += &if line.is_empty() { String::new() } else { format!("{junk}\n") };
            }
            if let Ok(profile) = read_as(format, &half) {
                assert!(!profile.notes().is_empty(), "{format} with {junk}:\n{half}");
            }
            let most = format!("{}{text}", format!("{junk}\n").repeat(2 * text.lines().count()));
            let error = read_as(format, &most).unwrap_err();
            assert!(error.line().is_some(), "{format} with {junk}: {error}");
        }
    }
}

proptest! {
    #[test]
    fn lines_read_and_left_out_are_all_lines_of_folded_stacks(
        counts in prop::collection::vec(prop::option::of(1..1000_u64), 1..30)
    ) {
        let line = |(at, count): (usize, &Option<u64>)| match count {
            Some(count) => format!("p;f{at} {count}\n"),
            None => "no count\n".to_owned(),
        };
        let text: String = counts.iter().enumerate().map(line).collect();
        let unknown = counts.iter().filter(|count| count.is_none()).count();
        let profile = match read_as(Format::Folded, &text) {
            Ok(profile) => profile,
            Err(error) => {
                prop_assert!(2 * unknown > counts.len(), "{}", error);
                return Ok(());
            }
        };
        prop_assert!(2 * unknown <= counts.len());
        prop_assert_eq!(profile.unknown.count, unknown);
        let stacks = profile.stacks().unwrap();
        prop_assert_eq!(stacks.len() + unknown, counts.len());
        prop_assert_eq!(stacks.total(), counts.iter().flatten().sum::<u64>());
    }
}
