use super::*;
use crate::testbed::sim::Sim;
use crate::{NoopObserver, Runner, Task};
use fwdlab_model::Plan;
use fwdlab_model::record::{Counter, MethodTrial, RunRecord};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::warning::Warning;
use proptest::prelude::*;

/// Runs a device that forwards 1 Mpps, and `reverse` times that in the reverse direction, without
/// noise.
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
fn result_is_the_sum_of_both_directions() {
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
fn load_and_loss_apply_to_each_direction() {
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
fn search_finds_the_limit_of_the_slower_direction() {
    let method = "[method]\nkind = \"mlrsearch\"\ngoals = [\"ndr\"]\n";
    for (reverse, expected) in [(0.5, 1e6), (1.0, 2e6)] {
        let (_, record) = run(reverse, method);
        let trials = record.method.expect("trials").trials;
        let lossless = |trial: &&MethodTrial| trial.offered == trial.forwarded && !trial.is_short();
        let max_load = trials.iter().filter(lossless).map(|trial| trial.load).max().unwrap_or(0);
        let max_load = max_load as f64;
        assert!(
            max_load <= expected * 1.001 && max_load > expected * 0.98,
            "{max_load} of {expected}"
        );
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
fn surplus_of_one_sender_does_not_offset_the_other() {
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
    // One packet of each may be on the other side of the window's edge.
    let few = |offered, reverse| MethodTrial { load: 100, ..short(offered, reverse) };
    assert!(!few(99, 50).is_short() && !few(98, 49).is_short());
    assert!(few(98, 50).is_short() && few(97, 49).is_short());
}

fn snapshots() -> impl Strategy<Value = Snapshot> {
    let count = 0..1u64 << 40;
    let phases = prop::array::uniform4(count.clone());
    (phases.clone(), phases, prop::array::uniform7(count)).prop_map(|(sent, received, counts)| {
        Snapshot {
            sent,
            received,
            damaged: counts[0],
            foreign: counts[1],
            unstamped: counts[2],
            other_frames: counts[3],
            receiver_dropped: counts[4],
            missed: counts[5],
            flood: Counts { offered: counts[6], forwarded: counts[6] / 2 },
        }
    })
}

proptest! {
    #[test]
    fn sum_without_one_direction_equals_the_other(forth in snapshots(), back in snapshots()) {
        let all = sum(forth, back);
        for phase in 0..PHASES {
            let counts = |side: Snapshot| {
                Counts { offered: side.sent[phase], forwarded: side.received[phase] }
            };
            prop_assert_eq!(counts(all).without(counts(back)), counts(forth));
            prop_assert_eq!(counts(all).lost(), counts(forth).lost() + counts(back).lost());
        }
        prop_assert_eq!(all.others(), forth.others() + back.others());
        prop_assert_eq!(all.damaged, forth.damaged + back.damaged);
        prop_assert_eq!(all.receiver_dropped, forth.receiver_dropped + back.receiver_dropped);
    }

    #[test]
    fn sum_contains_faults_of_both_directions(a in 1..1000u64, b in 1..1000u64) {
        let arrivals = |fault: &str, damaged| Arrivals {
            damaged,
            faults: [(fault.to_owned(), damaged), ("length".to_owned(), 1)].into(),
            ..Arrivals::default()
        };
        let reverse = Reverse { arrivals: arrivals("checksum", b), ..Reverse::default() };
        let all = together(arrivals("ttl", a), reverse.clone());
        prop_assert_eq!(all.damaged, a + b);
        let expected = [("ttl", a), ("checksum", b), ("length", 2)];
        prop_assert_eq!(all.faults, expected.map(|(name, n)| (name.to_owned(), n)).into());
        prop_assert_eq!(all.reverse, Some(Box::new(reverse)));
    }
}

/// A plan that was loaded elsewhere, or whose variants differ: each testbed refuses traffic that it
/// cannot send before setting anything up, and names the alternatives.
#[test]
fn unidirectional_testbed_refuses_both_directions_when_opened() {
    let text = "version = 1\n[testbed]\nkind = \"sim\"\n[traffic]\ndirections = \"both\"\n\
                [design]\nblocks = 1\n";
    let plan = fwdlab_model::load("x.toml", text, &|_| Err("no files".into()))
        .unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let paths = crate::testbed::Paths::default();
    let open = |plan: &Plan| {
        let privilege = crate::probe::Privilege::None { why: "a test".into() };
        crate::testbed::choose(plan, &privilege, &paths).map(drop)
    };
    assert!(open(&plan).is_ok());
    for kind in [TestbedKind::Ssh, TestbedKind::Vm] {
        let mut plan = plan.clone();
        plan.base.testbed.kind = kind;
        plan.variants[0].settings.testbed.kind = kind;
        let message = open(&plan).expect_err("refused").to_string();
        for expected in ["variant all", "`directions`", "kind = \"netns\" or \"memory\""] {
            assert!(message.contains(expected), "{expected} in {message}");
        }
    }
}

/// A sender that sends the next flow at each snapshot; flows from `lost` on don't arrive.
struct OneByOne {
    sent: u64,
    /// Packets between two snapshots.
    step: u32,
    lost: u32,
    started: std::rc::Rc<std::cell::Cell<Option<u64>>>,
}

impl Traffic for OneByOne {
    fn start(&mut self) -> Result<(), BenchError> {
        self.started.set(Some(self.sent));
        Ok(())
    }
    fn set_phase(&mut self, _: Phase) {}
    fn snapshot(&mut self) -> Snapshot {
        self.sent += u64::from(self.step);
        self.started.set(Some(self.sent));
        Snapshot { sent: [self.sent, 0, 0, 0], ..Snapshot::default() }
    }
    fn stop(&mut self) -> Result<(), BenchError> {
        Ok(())
    }
    fn flows_seen(&mut self) -> Option<u32> {
        Some(self.lost.min(self.sent as u32))
    }
    fn evidence(&mut self) -> Evidence {
        Evidence::default()
    }
}

/// Packets sent forth before the first answer, if all flows but those from `lost` on arrive.
fn sent_before_answers(flows: u32, step: u32, lost: u32) -> u64 {
    let started = [const { None }; 2].map(|none| std::rc::Rc::new(std::cell::Cell::new(none)));
    let direction =
        |at: usize| Box::new(Plain(OneByOne { sent: 0, step, lost, started: started[at].clone() }));
    let mut both = Bidirectional {
        answered_flows: Some(flows),
        ..Bidirectional::new(direction(0), direction(1))
    };
    both.start().expect("no error");
    assert_eq!(started[1].get(), Some(0), "answers begin");
    started[0].get().expect("packets")
}

#[test]
fn answers_begin_after_the_last_flow_or_rounds_without_a_new_one() {
    // Longer than the second after which lost flows are not awaited any more.
    assert_eq!(sent_before_answers(400, 1, u32::MAX), 400);
    // A second has fewer snapshots, and so fewer packets, than two rounds through all flows.
    let sent = sent_before_answers(200, 1, 9);
    assert!(sent >= 9 + 2 * 200, "{sent}");
}
