use super::*;
use crate::NoopObserver;
use crate::agent::fakes::{Script, Shared, Threads, nothing_received, sent_at};
use crate::agent::protocol::Answer;
use crate::trial::{self, SystemClock};
use fwdlab_model::plan::Trial;
use fwdlab_model::record::Counts;
use fwdlab_packet::{Family, Flows};
use std::time::Instant;

const MS: u64 = 1_000_000;

fn end<'a>(host: &'a dyn Host) -> End<'a> {
    let (program, interface) = ("/x/fwdlab".to_owned(), "eth1".to_owned());
    End { host, program, interface, mac: [2, 0, 0, 0, 0, 1], cpus: vec![3] }
}

fn load() -> AgentLoad {
    let stream = Stream::new(Family::Inet, 64, Flows { sources: 4, destinations: 4 });
    AgentLoad {
        stream,
        arriving: stream,
        run_id: 77,
        rate_pps: Some(3e6),
        limit: None,
        timestamps: false,
        sampled: false,
        hops: 0,
        last_mac: None,
        translated: None,
        engine: Engine::Auto,
        at_most: Duration::from_secs(60),
    }
}

fn arm<'a>(
    senders: &[&'a dyn Host],
    receiver: &'a dyn Host,
) -> Result<AgentTraffic<'a>, BenchError> {
    let senders: Vec<_> = senders.iter().map(|&host| (end(host), [2, 0, 0, 0, 0, 9])).collect();
    AgentTraffic::arm(&senders, &end(receiver), &load())
}

fn failure<T>(result: Result<T, BenchError>) -> String {
    match result {
        Ok(_) => panic!("no error"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn trial_with_agents_counts_exactly() {
    let wire = Shared::default();
    wire.lock().expect("the wire").foreign = 5; // sent before this run
    let (one, two) =
        (Threads { name: "one", wire: wire.clone() }, Threads { name: "two", wire: wire.clone() });
    let far = Threads { name: "far", wire: wire.clone() };
    let mut traffic = arm(&[&one, &two], &far).expect("armed");
    assert_eq!(traffic.facts()["sender on two"], "fake");
    assert_eq!((traffic.facts()["receiver"].as_str(), traffic.window_ns()), ("fake", None));
    let trial = Trial {
        warmup_ns: 30 * MS,
        duration_ns: 60 * MS,
        drain_ns: 50 * MS,
        interval_ns: 20 * MS,
        slice_ns: 20 * MS,
    };
    let order = trial::TrialSpec {
        trial: &trial,
        rate_pps: None,
        variant: 0,
        alternation: None,
        at_window: &mut |_| {},
        awaited: trial::OpeningConditions::default(),
        account: &mut trial::NoCounters,
    };
    let outcome =
        trial::run(&mut traffic, &SystemClock, order, &mut NoopObserver).expect("a trial");
    assert_eq!(outcome.window.offered, outcome.window.forwarded);
    assert_eq!(outcome.total.offered, outcome.total.forwarded);
    assert!(
        outcome.window.offered >= 60 && outcome.total.offered > outcome.window.offered,
        "{outcome:?}"
    );
    assert_eq!((outcome.foreign, outcome.unstamped, outcome.flows_seen), (0, 0, Some(16)));
    assert_eq!(Some(outcome.window_ns), traffic.window_ns());
    let delays = traffic.delays().expect("the receiver's");
    assert_eq!((delays.packets(), delays.sum_ns), (1, 1500));
    assert!(outcome.window_ns >= 59 * MS, "{} ns", outcome.window_ns);
    assert_eq!(wire.lock().expect("the wire").sending, 0);
}

#[test]
fn senders_share_rate_and_thread_numbers() {
    let (near, far) = (Script::ready([]), Script::ready([nothing_received()]));
    let two = [(&near, vec![1, 2]), (&near, vec![5])];
    let senders: Vec<_> =
        two.map(|(host, cpus)| (End { cpus, ..end(host as &dyn Host) }, [2, 0, 0, 0, 0, 9])).into();
    AgentTraffic::arm(&senders, &end(&far), &load()).expect("armed");
    let lines = near.told.lock().expect("told");
    let orders: Vec<SendOrder> = [&lines[1], &lines[3]]
        .map(|line| match serde_json::from_str(line) {
            Ok(Order::Send(order)) => order,
            other => panic!("{line}: {other:?}"),
        })
        .into();
    assert_eq!(orders.iter().map(|order| order.first_number).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(
        orders.iter().map(|order| order.rate_pps).collect::<Vec<_>>(),
        [Some(2e6), Some(1e6)]
    );
    assert_eq!((orders[1].next_hop_mac[5], orders[1].run_id), (9, 77));
}

#[test]
fn receiver_of_another_version_is_rejected() {
    let hello = r#"{"fwdlab":"0.0.1","protocol":9}"#.to_owned();
    let (near, far) = (Script::ready([]), Script::saying([hello]));
    let error = failure(arm(&[&near], &far));
    assert!(error.contains("the agent on far is fwdlab 0.0.1 with protocol 9"), "{error}");
    assert!(error.contains("next step: let the same fwdlab"), "{error}");
    assert!(near.told.lock().expect("told").is_empty(), "no sender before the receiver");
}

#[test]
fn receiver_that_is_never_ready_is_reported_with_its_last_output() {
    let hello = serde_json::to_string(&crate::agent::protocol::Hello::own()).expect("JSON");
    let far = Script::saying([hello]).ending("exit status: 3", "1\n2\n\n3\n4\n5\n6: no BPF\n");
    let error = failure(arm(&[], &far));
    assert!(
        error.starts_with("/x/fwdlab receive --control on far failed: it ended before"),
        "{error}"
    );
    assert!(error.ends_with("exit status: 3; 2; 3; 4; 5; 6: no BPF"), "{error}");
    // A program that is not installed prints nothing on standard output.
    let none = Script::default().ending("exit status: 127", "not found");
    assert!(failure(arm(&[], &none)).contains("not found"));
    // Other output is not an answer.
    let error = failure(arm(&[], &Script::saying(["Welcome!".into()])));
    assert!(error.contains("it says `Welcome!`, which is no answer"), "{error}");
}

#[test]
fn failure_of_an_agent_has_a_next_step() {
    let failed = Answer::Failed { what: "no interface".into(), next: "look".into() };
    let hello = serde_json::to_string(&crate::agent::protocol::Hello::own()).expect("JSON");
    let line = serde_json::to_string(&failed).expect("JSON");
    let error = failure(arm(&[], &Script::saying([hello, line])));
    assert!(error.starts_with("far: no interface (`/x/fwdlab receive"), "{error}");
    assert!(error.ends_with("next step: look"), "{error}");
}

#[test]
fn receiver_killed_during_the_trial_fails_stop() {
    let near = Script::ready((0..10).map(sent_at));
    let counted = Received { packets: [5, 0, 0, 0], ..Received::default() };
    let far = Script::ready([nothing_received(), Answer::Received(Box::new(counted))])
        .ending("signal: 9 (SIGKILL)", "");
    let mut traffic = arm(&[&near], &far).expect("armed");
    traffic.start().expect("started");
    let begin = Instant::now();
    assert_eq!(traffic.snapshot().received, [5, 0, 0, 0]);
    // From here on the receiver is dead; its counters stay unchanged.
    assert_eq!(traffic.snapshot().received, [5, 0, 0, 0]);
    traffic.set_phase(Phase::Window);
    assert_eq!(traffic.snapshot().received, [5, 0, 0, 0]);
    let error = failure(traffic.stop());
    assert!(
        error.contains("receive --control on far failed") && error.contains("SIGKILL"),
        "{error}"
    );
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert_eq!(near.told.lock().expect("told").last().expect("a line"), r#"{"order":"stop"}"#);
}

#[test]
fn receiver_killed_after_the_senders_stop_fails_finish() {
    let near = Script::ready((0..10).map(sent_at));
    let far = Script::ready((0..2).map(|_| nothing_received())).ending("signal: 9", "");
    let mut traffic = arm(&[&near], &far).expect("armed");
    traffic.start().expect("started");
    traffic.stop().expect("stopped");
    assert_eq!(traffic.snapshot(), Snapshot::default());
    assert_eq!(traffic.flows_seen(), None);
    assert!(failure(traffic.finish()).contains("signal: 9"));
}

#[test]
fn window_is_the_mean_over_the_senders_clocks() {
    // Times after ready: start, window, after, stop. The second clock started long ago.
    let one = Script::ready([0, 100_000, 400_000, 500_000].map(sent_at));
    let far_ahead = [7 << 50; 4].iter().zip([0, 0, 500_000, 500_000]);
    let two = Script::ready(far_ahead.map(|(base, ns)| sent_at(base + ns)));
    let far = Script::ready((0..9).map(|_| nothing_received()));
    let mut traffic = arm(&[&one, &two], &far).expect("armed");
    traffic.start().expect("started");
    traffic.set_phase(Phase::Window);
    assert_eq!(traffic.window_ns(), None);
    traffic.set_phase(Phase::After);
    traffic.set_phase(Phase::After); // not sent again
    assert_eq!(traffic.window_ns(), Some(400_000));
    traffic.stop().expect("stopped");
    assert_eq!(one.told.lock().expect("told").len(), 6);
}

#[test]
fn clock_jump_is_an_error() {
    for closed in [10_000 * MS, 0] {
        let near = Script::ready([5 * MS, 10 * MS, closed, closed].map(sent_at));
        let far = Script::ready((0..9).map(|_| nothing_received()));
        let mut traffic = arm(&[&near], &far).expect("armed");
        traffic.start().expect("started");
        traffic.set_phase(Phase::Window);
        traffic.set_phase(Phase::After);
        let error = failure(traffic.stop());
        assert!(
            error.contains("by the clock of far") && error.contains("one of them jumps"),
            "{error}"
        );
    }
}

#[test]
fn sender_failure_is_returned_by_stop() {
    let wire = Shared::default();
    let near = Threads { name: "near", wire: wire.clone() };
    let far = Threads { name: "far", wire: wire.clone() };
    let mut traffic = arm(&[&near], &far).expect("armed");
    traffic.start().expect("started");
    wire.lock().expect("the wire").fails = true;
    let error = failure(traffic.stop());
    assert!(error.contains("near: ") && error.contains("the link is down"), "{error}");
    assert_eq!(wire.lock().expect("the wire").sending, 0);
}

#[test]
fn counters_are_zero_before_the_start() {
    let wire = Shared::default();
    let host = Threads { name: "any", wire };
    let mut traffic = arm(&[&host], &host).expect("armed");
    let idle = traffic.snapshot();
    assert_eq!(Counts { offered: idle.sent[0], forwarded: idle.received[0] }, Counts::default());
    assert_eq!(idle, Snapshot { missed: idle.missed, ..Snapshot::default() });
}
