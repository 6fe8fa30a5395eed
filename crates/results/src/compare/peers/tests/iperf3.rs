//! iperf3.

use super::*;
use serde_json::{Value, json};

/// A test whose sums are `bytes * 8 / 10 s`.
fn test(protocol: &str, streams: u32, bytes: u64) -> Value {
    let sum = |bytes: u64, sender: bool| {
        json!({
            "start": 0, "end": 10.0, "seconds": 10.0, "bytes": bytes,
            "bits_per_second": bytes as f64 * 8.0 / 10.0, "sender": sender,
        })
    };
    let second = |bits: f64| json!({ "streams": [], "sum": { "bits_per_second": bits } });
    json!({
        "start": {
            "connected": [], "version": "iperf 3.16",
            "test_start": {
                "protocol": protocol, "num_streams": streams, "blksize": 131072, "duration": 10,
                "reverse": 0,
            },
        },
        "intervals": [second(5.0), second(7.0)],
        "end": {
            "streams": [], "sum_sent": sum(bytes + 1000, true), "sum_received": sum(bytes, false),
        },
    })
}

fn appended(tests: &[Value]) -> String {
    tests.iter().map(|test| format!("{test:#}\n")).collect()
}

#[test]
fn each_test_is_a_run_by_its_received_sum() {
    let tests = [11_750_000_000, 11_800_000_000, 11_700_000_000];
    let tests: Vec<Value> = tests.iter().map(|bytes| test("TCP", 1, *bytes)).collect();
    // 11.75 GB in 10 s are 9.4 Gbit/s.
    let expected = [9.4e9, 9.44e9, 9.36e9];
    for text in [appended(&tests), Value::from(tests.clone()).to_string()] {
        let input = usual(&text).unwrap();
        assert_eq!(input.variants[0].values(), expected);
        let note = "dir/a.out: iperf3, 3 runs of `TCP` (6 intervals), bits per second received";
        assert_eq!(input.notes, [note]);
    }
    let sent = chosen(&appended(&tests), column("sent")).unwrap();
    assert_eq!(sent.variants[0].values()[0], 9.4e9 + 800.0);
    let none = chosen(&appended(&tests), column("sum")).unwrap_err();
    assert!(none.contains("`end.sum.bits_per_second`; give --column with one of received, sent"));
    let unknown = chosen(&appended(&tests), column("rtt")).unwrap_err();
    assert!(unknown.contains("no column `rtt`; give --column with one of received, sent, sum"));
}

#[test]
fn larger_rates_are_better() {
    let text = |bytes: [u64; 4]| appended(&bytes.map(|bytes| test("UDP", 1, bytes)));
    let (old, new) = ([1000, 1001, 999, 1000], [2000, 2002, 1998, 2000]);
    let results = compared([&text(old), &text(new)], &Question::default()).unwrap();
    assert_eq!(results.unit, "bit/s");
    let text = text_of(&results);
    assert!(text.contains("+100") && text.contains("better"), "{text}");
    assert!(text.contains("All in bits per second."), "{text}");
}

#[test]
fn events_of_a_stream_are_tests() {
    let test = test("TCP", 1, 1_000_000);
    let event = |event: &str, data: &Value| json!({ "event": event, "data": data }).to_string();
    let one = [
        event("start", &test["start"]),
        event("interval", &test["intervals"][0]),
        event("end", &test["end"]),
    ];
    let text = [one.join("\n"), one.join("\n")].join("\n");
    assert_eq!(values(&text), [800_000.0, 800_000.0]);
    let cut = one[..2].join("\n");
    let cut = error(&format!("{text}\n{cut}\n"));
    assert!(cut.contains("a test without its end"), "{cut}");
}

#[test]
fn report_behind_the_events_of_its_test_is_no_run() {
    let event = |event: &str, data: &Value| json!({ "event": event, "data": data }).to_string();
    let run = |cookie: &str, bytes: u64| {
        let mut test = test("TCP", 1, bytes);
        test["start"]["cookie"] = cookie.into();
        let [start, end] = ["start", "end"].map(|name| event(name, &test[name]));
        format!("{start}\n{end}\n{test:#}\n")
    };
    let text = run("a7x", 1_000_000) + &run("b2y", 1_000_000);
    let input = usual(&text).unwrap();
    assert_eq!(input.variants[0].values(), [800_000.0, 800_000.0]);
    let note = "dir/a.out: left out: 2 reports of tests that were read already";
    assert_eq!(input.notes[1], note);
    let one = error(&run("a7x", 1_000_000));
    assert!(one.contains("one run of TCP of iperf3 does not show the scatter"), "{one}");
}

#[test]
fn both_directions_need_a_choice() {
    let mut both = test("TCP", 1, 1_000_000);
    both["end"]["sum_received_bidir_reverse"] = both["end"]["sum_received"].clone();
    both["end"]["sum_received_bidir_reverse"]["bits_per_second"] = 5.0.into();
    let text = appended(&[both.clone(), both]);
    let refused = compared([&text, &text], &Question::default()).unwrap_err();
    let names = "`TCP, from the client`, `TCP, from the server`";
    assert_eq!(refused, format!("old: it has 2 benchmarks; give --only with one of {names}"));
    let back = chosen(&text, only("TCP, from the server")).unwrap();
    assert_eq!(back.variants[0].values(), [5.0, 5.0]);
}

#[test]
fn other_benchmarks_are_not_compared() {
    let of = |protocol: &str, streams: u32| {
        appended(&[test(protocol, streams, 1000), test(protocol, streams, 1010)])
    };
    let refused = compared([&of("TCP", 1), &of("UDP", 1)], &Question::default()).unwrap_err();
    assert!(refused.starts_with("old (TCP) and new (UDP) are different benchmarks"), "{refused}");
    let refused = compared([&of("TCP", 1), &of("TCP", 4)], &Question::default()).unwrap_err();
    assert!(refused.contains("old (TCP) and new (TCP, 4 streams) are different"), "{refused}");
    let mixed = of("TCP", 1) + &of("TCP", 4);
    let refused = compared([&mixed, &of("TCP", 1)], &Question::default()).unwrap_err();
    assert!(refused.starts_with("old: it has 2 benchmarks"), "{refused}");
}

#[test]
fn failed_tests_are_left_out_and_counted() {
    let good = test("TCP", 1, 1000);
    let failed = json!({
        "start": { "connected": [] }, "intervals": [], "end": {},
        "error": "unable to connect to server: Connection refused",
    });
    let text = appended(&[good.clone(), failed.clone(), good.clone()]);
    let input = usual(&text).unwrap();
    assert_eq!(input.variants[0].values().len(), 2);
    assert_eq!(input.notes[1], "dir/a.out: left out: 1 tests that failed");
    assert_eq!(counted(&reading(&text)), 3);
    let refused = error(&appended(&[failed]));
    assert!(refused.contains("no run of iperf3 is usable (1 tests that failed)"), "{refused}");
    let one = error(&appended(std::slice::from_ref(&good)));
    assert!(one.contains("scatter (2 intervals are parts of runs, not runs)"), "{one}");
    let whole = appended(&[good.clone(), good]);
    let cut = error(&whole[..whole.len() - 20]);
    assert!(cut.contains("the file ends within JSON value 2"), "{cut}");
}
