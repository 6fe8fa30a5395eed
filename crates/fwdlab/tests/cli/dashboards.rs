//! Formats of other programs' dashboards: Bencher, github-action-benchmark.

use crate::support::{INSTANT, Lab};
use serde_json::Value;

#[test]
fn dashboard_formats_contain_each_variant() {
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml", "--out", "stores/a"]).expect(0);
    let json = |arguments: &[&str]| -> Value {
        let text = lab.fwdlab(arguments).expect(0).stdout;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let shown = json(&["show", "stores/a", "--format", "bencher"]);
    for variant in ["none", "stateful"] {
        let rate = &shown[variant]["forwarding-rate"];
        let [low, value, high] =
            ["lower_value", "value", "upper_value"].map(|key| rate[key].as_f64().expect(key));
        assert!(low <= value && value <= high, "{shown:#}");
    }
    let compared = json(&["compare", "stores/a", "--format", "bencher"]);
    assert_eq!(compared["stateful"], shown["stateful"], "{compared:#}");
    let charts = json(&["show", "stores/a", "--format", "github-action-benchmark"]);
    assert_eq!(charts[0]["name"], "none: forwarding-rate", "{charts:#}");
    assert_eq!(charts[0]["value"], shown["none"]["forwarding-rate"]["value"], "{charts:#}");
}

#[test]
fn single_document_formats_refuse_several_stores() {
    let lab = Lab::new(INSTANT);
    for store in ["stores/a", "stores/b"] {
        lab.fwdlab(&["run", "x.toml", "--out", store]).expect(0);
    }
    for form in ["junit", "bencher", "github-action-benchmark", "openmetrics"] {
        let refused = lab.fwdlab(&["show", "stores", "--full", "--format", form]).expect(2);
        assert!(refused.stderr.contains("stores contains 2 stores"), "{}", refused.stderr);
        assert!(refused.stderr.contains("next step: name one of them"), "{}", refused.stderr);
    }
}

#[test]
fn loss_within_the_margin_passes_in_every_format() {
    let lab = Lab::new("");
    lab.write("before.pps", "1000000\n1000100\n999900\n1000050\n");
    // Significantly slower by 1 %, within the margin of 2 %; and by 5 %.
    for (after, code, ktap, junit) in [
        ("990000\n990100\n989900\n990050\n", 0, "\nok 1 after against before\n", "failures=\"0\""),
        ("950000\n950100\n949900\n950050\n", 1, "\nnot ok 1 after", "failures=\"1\""),
    ] {
        lab.write("after.pps", after);
        for (form, expected) in [("ktap", ktap), ("junit", junit)] {
            let compare = ["compare", "before.pps", "after.pps", "--fail-on", "worse", "--format"];
            let text = lab.fwdlab(&[&compare[..], &[form]].concat()).expect(code).stdout;
            assert!(text.contains(expected), "{form}: {text}");
        }
    }
}
