//! MoonGen and libmoon.

use super::*;
use proptest::prelude::*;

const PLAIN: &str = "\
[INFO]  Initializing DPDK
[Device: id=0] TX: 14.90 Mpps, 7629 Mbit/s (10013 Mbit/s with framing)
[Device: id=1] RX: 14.10 Mpps, 7219 Mbit/s (9475 Mbit/s with framing)
[Device: id=1] RX: 14.20 Mpps, 7270 Mbit/s (9542 Mbit/s with framing)
[Device: id=0] TX: 14.88 (StdDev 0.01) Mpps, 7619 (StdDev 3) Mbit/s (10000 Mbit/s with framing), \
total 44640000 packets with 2856960000 bytes (incl. CRC)
[Device: id=1] RX: 14.20 (StdDev 0.02) Mpps, 7270 (StdDev 5) Mbit/s (9542 Mbit/s with framing), \
total 42600000 packets with 2726400000 bytes (incl. CRC)
";

/// Text in the colours of a terminal.
fn coloured(text: &str) -> String {
    text.replace("] RX:", "] \u{1b}[1;36mRX\u{1b}[0m:")
        .replace("] TX:", "] \u{1b}[1;34mTX\u{1b}[0m:")
}

#[test]
fn last_line_of_a_counter_is_the_run() {
    for text in [PLAIN.repeat(2), coloured(PLAIN).repeat(2)] {
        let input = usual(&text).unwrap();
        assert_eq!(input.variants[0].values(), [14.2e6, 14.2e6]);
        let expected = [
            "dir/a.out: MoonGen, 2 runs of `Device: id=1 RX` (6 seconds), packets per second \
             received",
            "dir/a.out: --only also selects `Device: id=0 TX`",
        ];
        assert_eq!(input.notes, expected);
    }
    let sent = chosen(&PLAIN.repeat(2), only("Device: id=0 TX")).unwrap();
    assert_eq!(sent.variants[0].values(), [14.88e6, 14.88e6]);
    let bits = chosen(&PLAIN.repeat(2), column("bits")).unwrap();
    assert_eq!(bits.variants[0].values(), [7270e6, 7270e6]);
    let one = error(PLAIN);
    assert!(one.contains("(3 seconds are parts of runs, not runs)"), "{one}");
}

#[test]
fn unfinished_text_is_refused() {
    let text = PLAIN.repeat(2);
    let within = error(&text[..text.len() - 30]);
    assert!(within.contains("dir/a.out:12: the file ends within a line"), "{within}");
    let lines: Vec<&str> = text.lines().collect();
    let open = error(&(lines[..lines.len() - 1].join("\n") + "\n"));
    assert!(open.contains("the run of `Device: id=1 RX` has no last line"), "{open}");
    let short = PLAIN.replace("14.20 (StdDev 0.02)", "nan (StdDev nan)");
    let input = usual(&(short.clone() + &PLAIN.repeat(2))).unwrap();
    assert_eq!(input.variants[0].values().len(), 2);
    assert!(input.notes[1].contains("1 runs that were too short for an average"));
    // Too short runs of sending counters are no runs of the receiving one.
    let nan = short.replace("14.88 (StdDev 0.01)", "nan (StdDev nan)");
    assert_eq!(values(&(nan.repeat(2) + &PLAIN.repeat(2))), [14.2e6, 14.2e6]);
    let refused = error(&(nan.repeat(3) + &PLAIN.repeat(2)));
    assert!(refused.contains("left out: 3 runs that were too short for an average, with 2 read"));
    let other = PLAIN.replace("id=1] RX", "id=2] RX");
    let refused = compared([&(text.clone() + &other.repeat(2)), &text], &Question::default());
    assert!(refused.unwrap_err().contains("old: it has 2 benchmarks"));
}

/// Lines of a run in CSV: the seconds, and their average without the first one.
fn csv(rates: &[f64]) -> String {
    let average = rates[1..].iter().sum::<f64>() / (rates.len() - 1) as f64;
    let row = |(at, rate): (usize, &f64)| {
        format!("{at},Device: id=1,rx,{rate},1,2,{},{}\n", (at + 1) * 1000, (at + 1) * 64000)
    };
    let all: String = rates.iter().chain([&average]).enumerate().map(row).collect();
    format!("Time,Device,Direction,PacketRate,Mbit,MbitWithFraming,TotalPackets,TotalBytes\n{all}")
}

#[test]
fn last_line_of_a_csv_is_the_average() {
    let text = csv(&[1.0, 2.0, 4.0]) + &csv(&[9.0, 2.5, 3.5]);
    let input = usual(&text).unwrap();
    assert_eq!(input.variants[0].values(), [3e6, 3e6]);
    assert!(
        input.notes[0].contains("2 runs of `Device: id=1 RX` (6 seconds)"),
        "{:?}",
        input.notes
    );
    // Without a second header, the counters start again.
    let appended = text.clone() + csv(&[1.0, 2.0]).split_once('\n').unwrap().1;
    assert_eq!(values(&appended), [3e6, 3e6, 2e6]);
    let whole: Vec<&str> = text.lines().collect();
    let cut = error(&(whole[..whole.len() - 1].join("\n") + "\n"));
    assert!(cut.contains("has not the average of its seconds"), "{cut}");
    assert!(error(text.trim_end()).contains("the file ends within a line"));
    assert!(error(&text.replace(",4,", ",x,")).contains("dir/a.out:4: `x` is not a number"));
    assert!(error(&text.replace(",4,", ",")).contains("7 fields instead of 8"));
}

proptest! {
    #[test]
    fn read_and_left_out_runs_are_all_that_were_written(
        runs in prop::collection::vec(prop::option::of(1..1000u32), 1..20)
    ) {
        let line = |rate: &Option<u32>| match rate {
            Some(rate) => format!("[a] RX: {rate}.25 (StdDev 0.02) Mpps, 1 (StdDev 0) Mbit/s (\n"),
            None => "[a] RX: -nan (StdDev -nan) Mpps, nan (StdDev nan) Mbit/s (\n".to_owned(),
        };
        let text: String = runs.iter().map(line).collect();
        prop_assert_eq!(counted(&reading(&text)), runs.len());
    }
}
