//! TRex.

use super::*;
use serde_json::{Value, json};

fn port(opackets: u64, ipackets: u64, tx_pps: f64, rx_pps: f64) -> Value {
    json!({
        "opackets": opackets, "ipackets": ipackets, "obytes": 0, "ibytes": 0, "oerrors": 0,
        "ierrors": 0, "tx_bps": tx_pps * 512.0, "tx_pps": tx_pps, "tx_bps_L1": 0.0,
        "tx_util": 0.0, "rx_bps": rx_pps * 512.0, "rx_pps": rx_pps, "rx_bps_L1": 0.0,
        "rx_util": 0.0,
    })
}

/// A dump of two ports, the first of which sends.
fn dump(packets: u64, rx_pps: f64) -> Value {
    json!({
        "0": port(packets, 0, 1e6, 0.0), "1": port(0, packets - 10, 0.0, rx_pps),
        "total": port(packets, packets - 10, 1e6, rx_pps),
        "global": { "cpu_util": 3.0, "queue_full": 0, "rx_pps": rx_pps },
        "flow_stats": {}, "latency": {},
    })
}

fn lines(dumps: &[Value]) -> String {
    dumps.iter().map(|dump| format!("{dump}\n")).collect()
}

#[test]
fn each_dump_is_a_run_by_the_rate_of_all_ports() {
    let text = lines(&[dump(1000, 900e3), dump(1003, 910e3), dump(999, 890e3)]);
    let input = usual(&text).unwrap();
    assert_eq!(input.variants[0].values(), [900e3, 910e3, 890e3]);
    let note = "dir/a.out: TRex, 3 runs of `all ports`, packets per second received";
    assert_eq!(input.notes[0], note);
    let one = chosen(&text, only("port 1")).unwrap();
    assert_eq!(one.variants[0].values(), [900e3, 910e3, 890e3]);
    let idle = chosen(&text, only("port 0")).unwrap_err();
    assert!(idle.contains("there is no benchmark `port 0`"), "{idle}");
    let sent = chosen(&text, column("tx_bps")).unwrap();
    assert_eq!(sent.variants[0].values(), [512e6; 3]);
    let packets = chosen(&text, column("ipackets")).unwrap();
    assert_eq!(packets.variants[0].values(), [990.0, 993.0, 989.0]);
    assert!(packets.notes[0].ends_with("packets received per run"), "{:?}", packets.notes);
}

#[test]
fn samples_of_one_run_are_refused() {
    let of = |packets: &[u64]| {
        lines(&packets.iter().map(|packets| dump(*packets, 1e6)).collect::<Vec<_>>())
    };
    for samples in [
        &[100, 200][..],
        &[60_000, 61_000, 62_010, 63_000],
        // Without traffic between two dumps, or at the end.
        &[100, 200, 200, 300],
        &[60_000, 61_000, 62_010, 62_010],
        // In the order of file names: 1, 10, 2, ...
        &[100, 1000, 200, 300],
        &[60_000, 64_020, 61_000, 62_010, 63_000],
    ] {
        let refused = error(&of(samples));
        assert!(refused.contains("the counters continue from dump to dump"), "{refused}");
        assert!(refused.contains("clear_stats()"), "{refused}");
    }
    for runs in [&[60_000, 60_010][..], &[60_000, 60_500, 60_100], &[100, 90, 120], &[60_000; 3]] {
        assert_eq!(values(&of(runs)).len(), runs.len());
    }
}

#[test]
fn unusable_dumps_are_refused() {
    let ended = lines(&[dump(1000, 0.0), dump(1001, 0.0)]);
    let refused = error(&ended);
    assert!(refused.contains("`rx_pps` is 0 at every port of dump 1"), "{refused}");
    assert_eq!(chosen(&ended, column("ipackets")).unwrap().variants[0].values(), [990.0, 991.0]);
    let whole = lines(&[dump(1000, 1e6), dump(1001, 1e6)]);
    assert!(error(&whole[..whole.len() - 9]).contains("ends within JSON value 2"));
    assert!(error(&lines(&[dump(1000, 1e6)])).contains("one run of all ports of TRex"));
    let mixed = error(&format!("{whole}{{\"iters\": [1], \"times\": [1]}}\n"));
    assert!(mixed.contains("JSON value 3 has no ports of TRex"), "{mixed}");
    let refused =
        compared([&whole, "BenchmarkA 1 2 ns/op\nBenchmarkA 1 3 ns/op\n"], &Question::default());
    assert!(refused.unwrap_err().starts_with("old (TRex) and new (go test -bench) are of"));
    let question = Question { column: Some("rx_bps".into()), ..Question::default() };
    let results = compared([&whole, &whole], &question).unwrap();
    assert_eq!(results.unit, "bit/s");
}
