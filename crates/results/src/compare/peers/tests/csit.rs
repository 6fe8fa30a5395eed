//! CSIT.

use super::*;
use serde_json::{Value, json};

fn case(name: &str, result: &Value) -> Value {
    json!({
        "version": "1.5.1", "test_id": name, "test_name_short": "ethip4-ip4base",
        "dut_type": "VPP", "dut_version": "24.06", "passed": true, "message": "", "result": result,
    })
}

fn mrr(trials: &[f64]) -> Value {
    let rate = json!({ "values": trials, "avg": 1.0, "stdev": 0.0, "unit": "pps" });
    json!({ "type": "mrr", "receive_rate": { "rate": rate } })
}

fn ndrpdr(ndr: f64, pdr: f64) -> Value {
    let bound = |value: f64| {
        json!({ "lower": { "rate": { "value": value, "unit": "pps" },
                           "bandwidth": { "value": value * 672.0, "unit": "bps" } } })
    };
    json!({ "type": "ndrpdr", "ndr": bound(ndr), "pdr": bound(pdr) })
}

fn lines(cases: &[Value]) -> String {
    cases.iter().map(|case| format!("{case}\n")).collect()
}

#[test]
fn trials_of_mrr_are_the_runs() {
    let input = usual(&lines(&[case("a.b", &mrr(&[9e6, 9.1e6, 8.9e6]))])).unwrap();
    assert_eq!(input.variants[0].values(), [9e6, 9.1e6, 8.9e6]);
    let note = "dir/a.out: CSIT, 3 runs of `a.b`, packets per second received (MRR)";
    assert_eq!(input.notes[0], note);
    let two = lines(&[case("a.b", &mrr(&[9e6])), case("a.b", &mrr(&[9.1e6]))]);
    assert_eq!(values(&two), [9e6, 9.1e6]);
}

#[test]
fn search_results_need_a_choice_of_the_bound() {
    let text = lines(&[case("a", &ndrpdr(9e6, 10e6)), case("a", &ndrpdr(9.2e6, 10.2e6))]);
    let refused = error(&text);
    assert!(refused.contains("`a` has an NDR and a PDR; give --column ndr or --column pdr"));
    let ndr = chosen(&text, column("ndr")).unwrap();
    assert_eq!(ndr.variants[0].values(), [9e6, 9.2e6]);
    let pdr = chosen(&text, column("pdr")).unwrap();
    assert_eq!(pdr.variants[0].values(), [10e6, 10.2e6]);
    assert!(pdr.notes[0].ends_with("packets per second (PDR, lower bound)"), "{:?}", pdr.notes);
    let unknown = chosen(&text, column("mrr")).unwrap_err();
    assert!(unknown.contains("--column with one of ndr, pdr"), "{unknown}");
}

#[test]
fn other_results_have_one_value() {
    let soak = json!({
        "type": "soak",
        "critical_rate": { "lower": { "rate": { "value": 5e6, "unit": "pps" } },
                           "upper": { "rate": { "value": 6e6, "unit": "pps" } } },
    });
    let reconf = json!({
        "type": "reconf", "aggregate_rate": { "rate": { "value": 1e6, "unit": "pps" } },
        "loss": { "packet": { "value": 20, "unit": "packets" }, "time": { "value": 0.5, "unit": "s" } },
    });
    let hoststack = json!({
        "type": "hoststack", "bandwidth": { "value": 9e9, "unit": "bps" },
        "rate": { "value": 1000, "unit": "cps" },
    });
    for (result, column, value, title) in [
        (&soak, None, 5e6, "packets per second (critical rate, lower bound)"),
        (&reconf, None, 0.5, "seconds lost"),
        (&hoststack, None, 9e9, "bits per second of goodput"),
        (&hoststack, Some("rate"), 1000.0, "connections/s"),
    ] {
        let text = lines(&[case("a", result), case("a", result)]);
        let input = chosen(&text, Choice { column, ..Choice::default() }).unwrap();
        assert_eq!(input.variants[0].values(), [value, value]);
        assert!(input.notes[0].ends_with(title), "{:?}", input.notes);
        let less_is_better = title.starts_with("seconds");
        let peer = input.peer.unwrap();
        assert_eq!(peer.benchmarks[0].quantity.is_smaller_better(), less_is_better);
    }
}

#[test]
fn failed_and_unknown_cases_are_left_out_and_counted() {
    let mut failed = case("a", &mrr(&[1.0, 2.0]));
    failed["passed"] = false.into();
    failed["message"] = "no link".into();
    let good = case("a", &mrr(&[9e6, 9.1e6, 9.2e6]));
    let unknown = case("a", &json!({ "type": "unknown" }));
    let text = lines(&[failed.clone(), good.clone(), unknown]);
    let input = usual(&text).unwrap();
    assert_eq!(input.variants[0].values(), [9e6, 9.1e6, 9.2e6]);
    let expected = "dir/a.out: left out: 2 test cases that failed, 1 test cases of type unknown";
    assert_eq!(input.notes[1], expected);
    assert_eq!(counted(&reading(&text)), 2 + 3 + 1);
    let text = lines(&[failed.clone(), failed.clone(), good.clone()]);
    let most = error(&text);
    let expected = "most of the file would be left out: 4 test cases that failed, with 3 read; \
                    measure again";
    assert!(most.contains(expected), "{most}");
    // Cases of another benchmark do not count.
    let other = lines(&[case("b", &mrr(&[1e6, 2e6]))]);
    let input = chosen(&(text + &other), only("b")).unwrap();
    assert_eq!(input.variants[0].values(), [1e6, 2e6]);
    let none = error(&lines(&[failed]));
    assert!(none.contains("no run of CSIT is usable (2 test cases that failed)"), "{none}");
    let several = lines(&[good.clone(), case("b", &mrr(&[1e6, 2e6]))]);
    let refused = compared([&several, &several], &Question::default()).unwrap_err();
    assert_eq!(refused, "old: it has 2 benchmarks; give --only with one of `a`, `b`");
    let whole = lines(std::slice::from_ref(&good));
    assert!(error(&whole[..whole.len() / 2]).contains("ends within JSON value 1"));
    let mut odd = good;
    odd["result"]["receive_rate"]["rate"]["unit"] = "kpps".into();
    assert!(error(&lines(&[odd])).contains("`a` is in the unknown unit `kpps`"));
    let mixed = error(&format!("{whole}{{\"results\": []}}"));
    assert!(mixed.contains("a JSON value that is no test case of CSIT"), "{mixed}");
}
