//! Change points compared with ruptures 1.1.10, series by series. Cases and expected results are in
//! `oracles/change_points.json`, made by `oracles/make_change_points.py`.

use fwdlab_results::stats::change_points::least_cost;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    logs: Vec<f64>,
    scale: f64,
    penalty: f64,
    change_points: Vec<usize>,
}

#[test]
fn least_cost_agrees_with_ruptures() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("oracles/change_points.json")).unwrap();
    assert_eq!(cases.len(), 20);
    for case in cases {
        let (change_points, scale, penalty) = least_cost(&case.logs).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-10 * b.abs();
        assert!(near(scale, case.scale), "{}: scale {scale}", case.name);
        assert!(near(penalty, case.penalty), "{}: penalty {penalty}", case.name);
        assert_eq!(change_points, case.change_points, "{}", case.name);
    }
}
