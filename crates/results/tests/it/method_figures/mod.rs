//! Pictures of methods with their intervals over runs, from fabricated trials in four runs.

use super::golden::picture;
use super::support::{Random, file, fill, plan, record, report};
use fwdlab_model::design::Method;
use fwdlab_model::record::{
    Connections, FloodTrial, Latency, LatencyTrial, MethodRecord, MethodTrial,
};
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::store::Store;

/// Capacity of the device, packets per second.
const CAPACITY: f64 = 1e6;
const SECOND: u64 = 1_000_000_000;

/// Picture `name` of a method; `trials` creates the trials of each run from the device's capacity,
/// which varies by 3 % between runs.
fn draw_method(
    method: Method,
    name: &str,
    runs: u32,
    trials: impl Fn(f64, &mut Random) -> Vec<MethodTrial>,
) -> String {
    let mut plan = plan(TestbedKind::Ssh, Vec::new(), Vec::new(), runs);
    plan.variants[0].label = "all".into();
    plan.method = Some(method);
    let plan = plan.sealed();
    let mut store = Store::memory().expect("memory");
    fill(&mut store, &plan, []);
    for index in 0..plan.runs.len() as u32 {
        let mut random = Random(u64::from(index) + 7);
        let capacity = CAPACITY * (1.0 + 0.03 * random.normal());
        let trials = trials(capacity, &mut random);
        let trials = (0..).zip(trials);
        let trials = trials.map(|(number, trial)| MethodTrial { at_ns: number * SECOND, ..trial });
        let mut run = record(&plan, index);
        run.method = Some(MethodRecord {
            max_load: 4_096,
            trials: trials.collect(),
            ..MethodRecord::default()
        });
        store.insert_run(&run).expect("a run is kept");
    }
    file(&report(&store), name)
}

/// A trial of one second at `load`, of which `forwarded` arrive.
fn trial(load: f64, forwarded: f64) -> MethodTrial {
    MethodTrial {
        load: load as u64,
        duration_ns: SECOND,
        window_ns: SECOND,
        offered: load as u64,
        forwarded: forwarded.min(load) as u64,
        ..MethodTrial::default()
    }
}

fn curve() -> Method {
    Method::LossCurve { step: 0.1, max_load: None }
}

/// Each run has its own loads, descending from twice its capacity.
fn falling(capacity: f64, _: &mut Random) -> Vec<MethodTrial> {
    let loads = (0..=12).map(|step| 2.0 * capacity * (1.0 - 0.05 * f64::from(step)));
    loads.map(|load| trial(load, CAPACITY)).collect()
}

#[test]
fn loss_curve_has_bars_at_each_step() {
    let drawn_of = |runs| draw_method(curve(), "curve.svg", runs, falling);
    let drawn = drawn_of(4);
    assert!(drawn.contains("each step of the load; bars: least to most"), "{drawn}");
    picture("report/methods.curve", &drawn);
    let alone = drawn_of(1);
    assert!(!alone.contains("bars:"), "{alone}");
}

#[test]
fn soak_has_bars_at_each_trial() {
    let drawn = draw_method(Method::Soak { trials: 20 }, "soak-all.svg", 4, |capacity, random| {
        let mut one = || trial(CAPACITY, capacity * (0.98 + 0.01 * random.normal()));
        (0..20).map(|_| one()).collect()
    });
    assert!(drawn.contains("the trials of one number"), "{drawn}");
    picture("report/methods.soak", &drawn);
}

#[test]
fn flood_has_bars_of_traffic_and_flood() {
    let method = Method::Flood { step: 0.25, max_load: 800_000 };
    let drawn = draw_method(method, "flood-all.svg", 4, |capacity, _| {
        let floods = (0..5).map(|step| 200_000.0 * f64::from(step));
        let flood_trials = floods.map(|flood| {
            let passes = (capacity / (500_000.0 + flood)).min(1.0);
            let forwarded = (0.9 * passes * flood) as u64;
            let offered = flood as u64;
            MethodTrial {
                flood: Some(FloodTrial { load: offered, offered, forwarded, states: None }),
                ..trial(500_000.0, passes * 500_000.0)
            }
        });
        flood_trials.collect()
    });
    assert!(drawn.contains("least to most over the runs at each flood"), "{drawn}");
    picture("report/methods.flood", &drawn);
}

#[test]
fn bursts_have_a_band_of_the_longest_burst() {
    let method = Method::BackToBack { repeats: 3, max_frames: Some(4_096) };
    let drawn = draw_method(method, "bursts-all.svg", 4, |capacity, random| {
        let mut trials = Vec::new();
        for _ in 0..3 {
            let holds = (800.0 * capacity / CAPACITY * (1.0 + 0.02 * random.normal())) as u64;
            let mut search = fwdlab_search::Longest::new(256, 4_096);
            while let Some(frames) = search.next() {
                let forwarded = frames.min(holds);
                search.record(frames, frames <= holds);
                trials.push(MethodTrial {
                    burst: Some(frames),
                    offered: frames,
                    forwarded,
                    ..trial(4.0 * CAPACITY, 0.0)
                });
            }
        }
        trials
    });
    assert!(drawn.contains("least to most of the means of 4 runs"), "{drawn}");
    picture("report/methods.bursts", &drawn);
}

#[test]
fn filled_table_has_bars_over_time() {
    let drawn = draw_method(Method::TearDown { repeats: 2 }, "filled-all.svg", 4, |capacity, _| {
        let wanted = 50_000;
        let rate = 100_000.0 * capacity / CAPACITY;
        let states = |at_ns: u64| ((rate * at_ns as f64 / 1e9) as u64).min(wanted);
        let meanwhile = (1..30).map(|look| look * 20_000_000).map(|at| (at, states(at)));
        let connections = Connections {
            wanted,
            states_before: Some(0),
            states: Some(wanted),
            meanwhile: meanwhile.collect(),
            torn_down_ns: Some(40_000_000),
            empty_ns: Some(3_000_000),
            ..Connections::default()
        };
        let filled = MethodTrial {
            window_ns: 600_000_000,
            connections: Some(connections),
            ..trial(50_000.0, 50_000.0)
        };
        vec![filled.clone(), filled]
    });
    assert!(drawn.contains("each twentieth of the time"), "{drawn}");
    picture("report/methods.filled", &drawn);
}

#[test]
fn delays_have_the_intervals_of_the_table() {
    let method = Method::Delays { shares: vec![0.1, 0.9], repeats: 1 };
    let timed = |capacity: f64, random: &mut Random| -> Vec<MethodTrial> {
        let mut of = |share: f64| {
            // Buckets rise by 0.8 % each: a tail, and runs that differ by a few percent.
            let shift = 60.0 * share - 300.0 * (capacity / CAPACITY - 1.0) + random.unit();
            let bucket = |step: u32| (500.0 + shift + 8.0 * f64::from(step)) as u16;
            let buckets =
                (0..40).map(|step| (bucket(step), (300_000.0 * 0.7f64.powi(step as i32)) as u64));
            let buckets: Vec<(u16, u64)> = buckets.filter(|(_, packets)| *packets > 0).collect();
            let packets: u64 = buckets.iter().map(|(_, packets)| packets).sum();
            let (sum_ns, min_ns, max_ns) = (20_000 * packets, 1_000, u32::MAX);
            let delays = Latency { sum_ns, min_ns, max_ns, buckets, differences: None };
            MethodTrial {
                latency: Some(LatencyTrial { share, delays }),
                ..trial(share * CAPACITY, CAPACITY)
            }
        };
        [0.1, 0.9].map(&mut of).into()
    };
    let svg = draw_method(method.clone(), "latency-all.svg", 4, timed);
    assert!(svg.contains("intervals over the runs, those of the table"), "{svg}");
    picture("report/methods.latency", &svg);
    let two = draw_method(method, "latency-all.svg", 2, timed);
    assert!(two.contains("Fewer than three runs: no intervals"), "{two}");
}
