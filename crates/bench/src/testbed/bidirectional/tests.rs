use super::*;
use crate::testbed::sim::Sim;
use crate::{NoopObserver, Runner, Task};
use fwdlab_model::Plan;
use fwdlab_model::record::{Counter, MethodTrial, RunRecord};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::warning::Warning;
use proptest::prelude::*;

/// A device of 1 Mpps forth and of `reverse` as much back, without noise.
fn run(reverse: f64, more: &str) -> (Plan, RunRecord) {
    let text = format!(
        "version = 1\n[testbed]\nkind = \"sim\"\n[testbed.sim]\ncapacity = \"1Mpps\"\n\
         noise = 0.0\njitter = 0.0\nceiling = \"4Mpps\"\nreverse = {reverse}\n\
         [traffic]\ndirections = \"both\"\n{more}"
    );
    let plan = fwdlab_model::load("x.toml", &text, &|_| Err("no files".into()))
        .unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    let mut runner = Runner::new(Box::new(Sim::new(Vec::new())));
    let record = runner.run(task, &mut NoopObserver).expect("a record");
    (plan, record)
}

/// Packets per second forth and back.
fn rates(record: &RunRecord) -> (f64, f64) {
    let trial = &record.trial;
    let reverse = trial.arrivals.reverse.as_ref().expect("a reverse direction").window;
    let forth = trial.window.without(reverse);
    let pps = |counts: Counts| counts.forwarded as f64 * 1e9 / trial.window_ns as f64;
    (pps(forth), pps(reverse))
}

#[test]
fn each_direction_has_the_rate_of_its_own_and_the_sum_is_the_result() {
    for reverse in [0.0, 0.5, 1.0] {
        let (_, record) = run(reverse, "");
        let (forth, back) = rates(&record);
        assert!((forth - 1e6).abs() < 1e3 && (back - 1e6 * reverse).abs() < 1e3, "{forth} {back}");
        let all = record.trial.window.forwarded as f64 * 1e9 / record.trial.window_ns as f64;
        assert!((all - forth - back).abs() < 2.0, "{all}");
        let offered = record.trial.window.offered as f64 * 1e9 / record.trial.window_ns as f64;
        assert!((offered - 8e6).abs() < 1e3, "both senders at their ceiling: {offered}");
    }
}

#[test]
fn a_load_is_that_of_each_direction_and_what_is_lost_is_lost_in_its_own() {
    let (_, record) = run(0.5, "rate = \"800kpps\"\n");
    let trial = &record.trial;
    let reverse = trial.arrivals.reverse.as_ref().expect("a reverse direction");
    let forth = trial.window.without(reverse.window);
    assert_eq!(forth.lost(), 0, "{forth:?}");
    let ratio = reverse.window.loss_ratio();
    assert!((ratio - 0.375).abs() < 0.001, "500 of 800 thousand a second pass: {ratio}");
    assert_eq!(trial.window.lost(), reverse.window.lost());
    let intended = 2.0 * 800e3 * trial.window_ns as f64 / 1e9;
    assert_eq!(trial.intended, Some(intended.round() as u64));
    assert_eq!(trial.total.lost(), reverse.total.lost());
    let places = record.facts.iter().filter(|(name, _)| name.starts_with("lost: "));
    let lost: i64 = places.filter_map(|(_, packets)| packets.parse::<i64>().ok()).sum();
    assert_eq!(lost, trial.total.lost(), "every lost packet has a place: {:?}", record.facts);
    let mismatch = |warning: &Warning| matches!(warning, Warning::CounterMismatch { .. });
    assert!(!record.warnings.iter().any(mismatch), "{:?}", record.warnings);
    let agrees = |counter: &Counter| counter.expected == Some(counter.delta());
    assert!(!trial.counters.is_empty() && trial.counters.iter().all(agrees), "{trial:?}");
}

#[test]
fn a_search_finds_where_the_slower_direction_begins_to_lose() {
    let method = "[method]\nkind = \"mlrsearch\"\ngoals = [\"ndr\"]\n";
    for (reverse, expected) in [(0.5, 1e6), (1.0, 2e6)] {
        let (_, record) = run(reverse, method);
        let trials = record.method.expect("trials").trials;
        let lossless = |trial: &&MethodTrial| trial.offered == trial.forwarded && !trial.is_short();
        let found = trials.iter().filter(lossless).map(|trial| trial.load).max().unwrap_or(0);
        let found = found as f64;
        assert!(found <= expected * 1.001 && found > expected * 0.98, "{found} of {expected}");
        for trial in &trials {
            let reverse = trial.reverse.expect("its part");
            let all = Counts { offered: trial.offered, forwarded: trial.forwarded };
            let forth = all.without(reverse);
            let sent = forth.offered.abs_diff(reverse.offered);
            assert!(sent <= 2, "each gets half of the load: {trial:?}");
            if trial.load as f64 <= 1.99e6 {
                assert_eq!(forth.lost(), 0, "forth it is fast enough: {trial:?}");
            }
        }
    }
}

#[test]
fn what_one_sender_lacks_the_other_does_not_make_up_for() {
    let short = |offered, reverse| MethodTrial {
        load: 1000,
        window_ns: 1_000_000_000,
        offered,
        forwarded: offered,
        reverse: Some(Counts { offered: reverse, forwarded: reverse }),
        ..MethodTrial::default()
    };
    assert!(!short(1000, 500).is_short());
    assert!(short(1000, 490).is_short() && short(1000, 510).is_short());
    assert!(short(900, 450).is_short());
    // One packet of each may lie on the other side of the window's edge.
    let few = |offered, reverse| MethodTrial { load: 100, ..short(offered, reverse) };
    assert!(!few(99, 50).is_short() && !few(98, 49).is_short());
    assert!(few(98, 50).is_short() && few(97, 49).is_short());
}

fn snapshots() -> impl Strategy<Value = Snapshot> {
    let count = 0..1u64 << 40;
    let phases = prop::array::uniform4(count.clone());
    (phases.clone(), phases, prop::array::uniform7(count)).prop_map(|(sent, received, of)| {
        Snapshot {
            sent,
            received,
            damaged: of[0],
            foreign: of[1],
            unstamped: of[2],
            other_frames: of[3],
            receiver_dropped: of[4],
            missed: of[5],
            flood: Counts { offered: of[6], forwarded: of[6] / 2 },
        }
    })
}

proptest! {
    #[test]
    fn a_sum_less_one_direction_is_the_other(forth in snapshots(), back in snapshots()) {
        let all = sum(forth, back);
        for phase in 0..PHASES {
            let counts = |of: Snapshot| {
                Counts { offered: of.sent[phase], forwarded: of.received[phase] }
            };
            prop_assert_eq!(counts(all).without(counts(back)), counts(forth));
            prop_assert_eq!(counts(all).lost(), counts(forth).lost() + counts(back).lost());
        }
        prop_assert_eq!(all.others(), forth.others() + back.others());
        prop_assert_eq!(all.damaged, forth.damaged + back.damaged);
        prop_assert_eq!(all.receiver_dropped, forth.receiver_dropped + back.receiver_dropped);
    }

    #[test]
    fn faults_of_both_directions_are_all_named(a in 1..1000u64, b in 1..1000u64) {
        let found = |fault: &str, damaged| Arrivals {
            damaged,
            faults: [(fault.to_owned(), damaged), ("length".to_owned(), 1)].into(),
            ..Arrivals::default()
        };
        let reverse = Reverse { arrivals: found("checksum", b), ..Reverse::default() };
        let all = together(found("ttl", a), reverse.clone());
        prop_assert_eq!(all.damaged, a + b);
        let expected = [("ttl", a), ("checksum", b), ("length", 2)];
        prop_assert_eq!(all.faults, expected.map(|(name, n)| (name.to_owned(), n)).into());
        prop_assert_eq!(all.reverse, Some(Box::new(reverse)));
    }
}

/// A plan that was read elsewhere, or whose variants differ: each testbed refuses what it can't
/// send before anything is set up, and says what to write.
#[test]
fn a_testbed_that_sends_one_way_refuses_both_when_it_is_opened() {
    let text = "version = 1\n[testbed]\nkind = \"sim\"\n[traffic]\ndirections = \"both\"\n\
                [design]\nblocks = 1\n";
    let plan = fwdlab_model::load("x.toml", text, &|_| Err("no files".into()))
        .unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let paths = crate::testbed::Paths::default();
    let opened = |plan: &Plan| {
        let privilege = crate::probe::Privilege::None { why: "a test".into() };
        crate::testbed::choose(plan, &privilege, &paths).map(drop)
    };
    assert!(opened(&plan).is_ok());
    for kind in [TestbedKind::Ssh, TestbedKind::Vm] {
        let mut plan = plan.clone();
        plan.base.testbed.kind = kind;
        plan.variants[0].settings.testbed.kind = kind;
        let said = opened(&plan).expect_err("refused").to_string();
        for wanted in ["variant all", "`directions`", "kind = \"netns\" or \"memory\""] {
            assert!(said.contains(wanted), "{wanted} in {said}");
        }
    }
}
