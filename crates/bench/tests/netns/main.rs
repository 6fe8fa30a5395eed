//! Real packets through this machine's kernel: conservation, verification, and restored settings.
//! Rates are not tested here; they depend on the machine.

mod failures;

use fwdlab_bench::probe::Privilege;
use fwdlab_bench::testbed::Paths;
use fwdlab_bench::{NoopObserver, Observer, Runner, Task};
use fwdlab_model::Plan;
use fwdlab_model::record::queues::{self, Direction, QueuePackets};
use fwdlab_model::record::{Arrivals, Checked, Counter, DrainEnd, ReceiverPlace, TrialRecord};
use fwdlab_model::warning::Warning;
use fwdlab_netio::affinity;
use fwdlab_packet::Flows;
use fwdlab_packet::rss::queues_of_flows;
use fwdlab_packet::{Family, Stream, Template};
use std::sync::Mutex;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const PHASES: &str = r#"
[trial]
warmup = "40ms"
duration = "120ms"
drain = "200ms"
interval = "20ms"
[design]
blocks = 1
"#;

fn plan(text: &str) -> Plan {
    let text =
        format!("version = 1\ntitle = \"test\"\n[testbed]\nkind = \"netns\"\n{text}{PHASES}");
    fwdlab_model::load("test.toml", &text, &|_| Err("no files".into()))
        .unwrap_or_else(|faults| panic!("{}", faults.render(false)))
}

fn state() -> Paths {
    let state = std::env::temp_dir().join(format!("fwdlab-test-{}", std::process::id()));
    // These tests start no router.
    Paths { cache: state.clone(), state, ..Paths::default() }
}

fn open(plan: &Plan) -> Option<Runner> {
    // Only a separate process can enter a user namespace, not a test thread.
    let privilege = match fwdlab_netio::userns::is_root() {
        true => Privilege::Root,
        false => Privilege::None { why: "tests run as an ordinary user".into() },
    };
    match Runner::open(plan, &privilege, &state()) {
        Ok(testbed) => Some(testbed),
        Err(error) => {
            fwdlab_testdata::skip(&format!("no real packets here: {error}"));
            None
        }
    }
}

fn namespaces() -> Vec<String> {
    let prefix = format!("fwdlab-{}-", std::process::id());
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&prefix))
        .collect()
}

#[test]
fn every_variant_conserves_packets_and_cleans_up() {
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan(
        r#"
[[factor]]
name = "family"
levels = ["inet", "inet6"]
[[factor]]
name = "firewall"
levels = ["none", "stateless", "stateful", "rules:20"]
"#,
    );
    let Some(mut testbed) = open(&plan) else { return };
    for run in &plan.runs {
        let task = Task { plan: &plan, run, ceiling_pps: None };
        let record = testbed.run(task, &mut NoopObserver).expect("a run");
        let label = &plan.variants[run.variants[0]].label;
        let trial = &record.trial;
        assert!(trial.window.forwarded > 100, "{label}: {:?}", trial.window);
        assert!(trial.window.forwarded <= trial.window.offered, "{label}");
        assert!(trial.total.forwarded <= trial.total.offered, "{label}");
        assert_eq!(trial.foreign, 0, "{label}");
        arrived_well(trial, label);
        assert_eq!(record.run_id, plan.run_id(run.index));
        let fatal: Vec<&Warning> = record.warnings.iter().filter(|w| w.is_fatal()).collect();
        assert!(fatal.is_empty(), "{label}: {fatal:?}");
        let compared: Vec<_> = trial.counters.iter().filter(|c| c.expected.is_some()).collect();
        assert_eq!(compared.len(), 2, "{label}: {:?}", trial.counters);
        for counter in compared {
            // Exact to the packet: packets that the DUT originates are counted separately.
            assert_eq!(Some(counter.delta()), counter.expected, "{label}: {counter:?}");
        }
        assert_eq!(record.facts["d0 queues"], "1");
        assert!(!trial.samples.is_empty() && !trial.cpus.is_empty());
        assert_eq!(namespaces(), Vec::<String>::new(), "{label}");
    }
}

/// Packets flow in both directions simultaneously, and each direction is counted intact and once.
#[test]
fn both_directions_are_forwarded_and_counted_separately() {
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan(
        r#"
[traffic]
directions = "both"
rate = "20kpps"
[[factor]]
name = "family"
levels = ["inet", "inet6"]
[[factor]]
name = "firewall"
levels = ["none", "stateful"]
"#,
    );
    let Some(mut testbed) = open(&plan) else { return };
    for run in &plan.runs {
        let task = Task { plan: &plan, run, ceiling_pps: None };
        let record = testbed.run(task, &mut NoopObserver).expect("a run");
        let label = &plan.variants[run.variants[0]].label;
        let trial = &record.trial;
        let reverse = trial.arrivals.reverse.as_deref().expect("a reverse direction");
        let forth = trial.window.without(reverse.window);
        for (direction, counts) in [("forth", forth), ("back", reverse.window)] {
            // A busy machine may lose some, but a surplus of one direction must not hide a loss in
            // the other.
            assert!(counts.forwarded > 50, "{label}, {direction}: {counts:?}");
            assert!(counts.forwarded <= counts.offered, "{label}, {direction}: {counts:?}");
        }
        arrived_well(trial, label);
        let Arrivals { damaged, duplicates, .. } = reverse.arrivals;
        assert_eq!((damaged, duplicates, trial.foreign), (0, 0, 0), "{label}: {reverse:?}");
        let fatal: Vec<&Warning> = record.warnings.iter().filter(|w| w.is_fatal()).collect();
        assert!(fatal.is_empty(), "{label}: {fatal:?}");
        let compared: Vec<_> = trial.counters.iter().filter(|c| c.expected.is_some()).collect();
        assert_eq!(compared.len(), 2, "{label}: {:?}", trial.counters);
        for counter in compared {
            assert!(counter.name.starts_with("d0 + d1 "), "{label}: {counter:?}");
            assert_eq!(Some(counter.delta()), counter.expected, "{label}: {counter:?}");
        }
        // The kernel's own counters agree for each direction.
        let delta =
            |name: &str| trial.counters.iter().find(|c| c.name == name).map_or(0, Counter::delta);
        let forwarded = trial.total.without(reverse.total).forwarded;
        assert!(delta("d1 tx_packets") >= forwarded && delta("d0 tx_packets") > 50, "{label}");
        assert!(delta("d0 tx_packets") >= reverse.total.forwarded, "{label}: {trial:?}");
        assert_eq!(namespaces(), Vec::<String>::new(), "{label}");
    }
}

/// A device with a fault in the reverse direction only: the fault is reported for that direction.
#[test]
fn fault_in_the_reverse_direction_is_reported_there() {
    let _guard = ONE_AT_A_TIME.lock();
    let ruleset = "table ip wrong {\n\tchain forward {\n\
                   \t\ttype filter hook forward priority 0; policy accept;\n\
                   \t\tip saddr 198.19.0.0/16 ip ttl set 9\n\t}\n}\n";
    let text = format!(
        "version = 1\n[testbed]\nkind = \"netns\"\n[dut]\nfirewall = \"wrong.nft\"\n\
         [traffic]\ndirections = \"both\"\nrate = \"20kpps\"\n{PHASES}"
    );
    let plan = fwdlab_model::load("test.toml", &text, &|_| Ok(ruleset.into()))
        .unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let Some(mut testbed) = open(&plan) else { return };
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    let record = testbed.run(task, &mut NoopObserver).expect("a run");
    let all = &record.trial.arrivals;
    let reverse = all.reverse.as_deref().expect("a reverse direction");
    let faults: Vec<&str> = reverse.arrivals.faults.keys().map(String::as_str).collect();
    assert_eq!(faults, ["ttl"], "{reverse:?}");
    assert!(reverse.arrivals.damaged > 50 && reverse.total.forwarded == 0, "{reverse:?}");
    assert_eq!(all.damaged, reverse.arrivals.damaged, "nothing is wrong forth");
    let forth = record.trial.total.without(reverse.total);
    assert!(forth.forwarded > 50, "{forth:?}");
    let is_reported =
        record.warnings.iter().map(Warning::sentence).any(|text| text.contains("ttl"));
    assert!(is_reported, "{:?}", record.warnings);
}

/// A mix of sizes passes the device completely with every engine, and the received bytes match the
/// sent ones.
#[test]
fn every_engine_sends_and_counts_mixed_sizes() {
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan(
        r#"
[traffic]
frame_size = "imix"
rate = "20kpps"
[[factor]]
name = "family"
levels = ["inet", "inet6"]
[[factor]]
name = "engine"
levels = ["xdp", "xsk", "packet"]
"#,
    );
    let Some(mut testbed) = open(&plan) else { return };
    for run in &plan.runs {
        let task = Task { plan: &plan, run, ceiling_pps: None };
        let record = testbed.run(task, &mut NoopObserver).expect("a run");
        let (trial, variant) = (&record.trial, &plan.variants[run.variants[0]]);
        let label = &variant.label;
        let Arrivals { damaged, duplicates, .. } = trial.arrivals;
        assert_eq!((damaged, duplicates), (0, 0), "{label}: {:?}", trial.arrivals);
        assert!(trial.window.forwarded > 100, "{label}: {:?}", trial.window);
        // Whole sequences and parts of two, and losses of a busy machine.
        let size = variant.settings.traffic.frame_size;
        let mean = size.mean() - 4.0;
        let bytes = trial.arrivals.bytes_in_window as f64;
        let expected = trial.window.forwarded as f64 * mean;
        let unknown = 2 * size.sizes().len() as i64 + trial.window.lost();
        let tolerance = f64::from(size.most()) * unknown as f64;
        assert!(
            (bytes - expected).abs() < tolerance,
            "{label}: {bytes} bytes, {expected} expected"
        );
    }
}

/// The threads that count and free the frames run on other CPUs than the device, and the run time
/// of the device's threads is known.
#[test]
fn receiver_uses_no_cpu_time_of_the_device() {
    let _guard = ONE_AT_A_TIME.lock();
    if affinity::allowed_cpus().expect("affinity").len() < 2 {
        return fwdlab_testdata::skip("only one CPU here");
    }
    let plan = plan("[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n");
    let Some(mut testbed) = open(&plan) else { return };
    for run in &plan.runs {
        let task = Task { plan: &plan, run, ceiling_pps: None };
        let record = testbed.run(task, &mut NoopObserver).expect("a run");
        let device = &record.trial.device;
        if device.receiver == ReceiverPlace::Within {
            // Not permitted here, and reported.
            let is_reported = |w: &Warning| matches!(w, Warning::ReceiverOnDevice { share: None });
            assert!(record.warnings.iter().any(is_reported), "{:?}", record.warnings);
            return fwdlab_testdata::skip("kernel threads can't be placed here");
        }
        let elsewhere = [ReceiverPlace::Sender, ReceiverPlace::Own];
        assert!(elsewhere.contains(&device.receiver), "{device:?}");
        let dut = &record.facts["dut CPUs"];
        let polls_there = device.receiver_cpus.iter().any(|cpu| dut.contains(&cpu.to_string()));
        assert!(!device.receiver_cpus.is_empty() && !polls_there, "{device:?} and {dut}");
        assert!(device.ran_ns > Some(0) && device.receiver_ns > Some(0), "{device:?}");
        assert_eq!(device.receiver_share(), Some(0.0));
        let is_doubt = |w: &Warning| matches!(w, Warning::ReceiverOnDevice { .. });
        assert!(!record.warnings.iter().any(is_doubt), "{:?}", record.warnings);
        assert!(record.facts["r0 polling"].contains("threads on CPUs"), "{:?}", record.facts);
    }
}

/// Checks that a forwarding kernel changed no packet in any other way.
fn arrived_well(trial: &TrialRecord, label: &str) {
    let Arrivals { checked, damaged, duplicates, reordered, flows, .. } = &trial.arrivals;
    assert_eq!(*checked, Checked::Packets { payload_one_in: 1 }, "{label}");
    assert_eq!((*damaged, *duplicates, *reordered), (0, 0, 0), "{label}: {:?}", trial.arrivals);
    let flows = flows.expect("flows are followed");
    assert!(flows.seen > 0 && !flows.lacking, "{label}: {flows:?}");
    // Packets missing before the last arrival were lost.
    assert!(flows.missing as i64 <= trial.total.lost(), "{label}: {flows:?}");
}

#[test]
fn closed_arrangement_uses_all_queues() {
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan(
        r#"arrangement = "closed"
senders = 2
[[factor]]
name = "queues"
levels = [1, 2, 4]
[[factor]]
name = "bind_queues"
levels = [false, true]
"#,
    );
    let Some(mut testbed) = open(&plan) else { return };
    for run in &plan.runs {
        let task = Task { plan: &plan, run, ceiling_pps: None };
        let record = testbed.run(task, &mut NoopObserver).expect("a run");
        assert!(record.trial.window.forwarded > 100);
        assert_eq!(record.facts["arrangement"], "closed");
        arrived_well(&record.trial, &record.facts["d1 queues"]);
        let queues = plan.variants[run.variants[0]].settings.dut.queues;
        assert_eq!(record.facts["d0 queues"], queues.to_string());
        let received = received(&record.trial.counters);
        assert_eq!((received.packets.len(), received.used()), (queues.into(), queues.into()));
    }
}

/// Returns the packets of the DUT's receive queues.
fn received(counters: &[Counter]) -> QueuePackets {
    let mut all = queues::of_counters(counters).into_iter();
    let queue = all.find(|q| (q.interface.as_str(), q.direction) == ("d0", Direction::Receive));
    queue.expect("packets by queue")
}

#[test]
fn every_queue_receives_its_share_of_flows() {
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan(
        r#"
[[factor]]
name = "queues"
levels = [1, 2, 4]
[traffic]
rate = "20kpps"
flows = { sources = 5, destinations = 8 }
"#,
    );
    let Some(mut testbed) = open(&plan) else { return };
    for run in &plan.runs {
        let task = Task { plan: &plan, run, ceiling_pps: None };
        let record = testbed.run(task, &mut NoopObserver).expect("a run");
        let queues = plan.variants[run.variants[0]].settings.dut.queues;
        let flows = Flows { sources: 5, destinations: 8 };
        let template = Template::new(&Stream::new(Family::Inet, 64, flows), 1, [2; 6], [4; 6]);
        let expected = queues_of_flows(&template, queues);
        let arrived = received(&record.trial.counters);
        let total: u64 = arrived.packets.iter().sum();
        assert_eq!((arrived.packets.len(), total > 1000), (queues.into(), true), "{arrived:?}");
        for (queue, &packets) in (0..).zip(&arrived.packets) {
            // Flows are sent in turn, so each round gives a queue one packet of each of its flows.
            // The ring has room for all late packets.
            let flows_of_queue =
                expected.iter().filter(|&&flow_queue| flow_queue == queue).count() as u64;
            let fair = total * flows_of_queue / 40;
            assert!(
                flows_of_queue > 0
                    && packets.abs_diff(fair) <= 40 + record.trial.total.lost().unsigned_abs(),
                "{queues}: {arrived:?}, {expected:?}"
            );
        }
        assert_eq!(record.facts["sender"], "AF_XDP", "of one queue as well");
        // The kernel chooses the transmit queue of a flow.
        let is_idle = |w: &Warning| matches!(w, Warning::IdleQueues { direction, .. } if direction == "receive");
        assert!(!record.warnings.iter().any(is_idle), "{:?}", record.warnings);
        assert_eq!(record.trial.opening.flows_received, Some(40));
    }
}

#[test]
fn idle_queues_are_refused_or_cause_a_warning() {
    let _guard = ONE_AT_A_TIME.lock();
    let text = |arrangement: &str| {
        format!("arrangement = \"{arrangement}\"\nengine = \"xdp\"\n[dut]\nqueues = 4\n")
    };
    let privilege = match fwdlab_netio::userns::is_root() {
        true => Privilege::Root,
        false => Privilege::None { why: "tests run as an ordinary user".into() },
    };
    let closed = plan(&text("closed"));
    let Some(mut testbed) = open(&closed) else { return };
    let task = Task { plan: &closed, run: &closed.runs[0], ceiling_pps: None };
    let record = testbed.run(task, &mut NoopObserver).expect("a run");
    let idle = |w: &Warning| match w {
        Warning::IdleQueues { direction, idle, .. } => direction == "receive" && idle.len() == 3,
        _ => false,
    };
    assert!(record.warnings.iter().any(idle), "{:?}", record.warnings);
    drop(testbed);
    let refused = Runner::open(&plan(&text("open")), &privilege, &state());
    // On many CPUs the only sender still reaches one of four queues.
    let error = refused.err().expect("refused").to_string();
    assert!(error.contains("queues = 4") && error.contains("next step"), "{error}");
}

/// Shapes the DUT's output to 50 frames per second, so that it holds back the others.
struct Shaper {
    done: bool,
}

impl Observer for Shaper {
    fn step(&mut self, name: &str) {
        if name != "arming" {
            return;
        }
        let dut = namespaces().into_iter().find(|name| name.ends_with("-d")).expect("the DUT's");
        let tbf = ["rate", "24kbit", "burst", "200", "latency", "60s"];
        let tc = ["ip", "netns", "exec", &dut, "tc", "qdisc", "add", "dev", "d1", "root", "tbf"];
        let shaped = std::process::Command::new("ip").args(&tc[1..]).args(tbf).output();
        self.done = shaped.is_ok_and(|output| output.status.success());
    }
}

#[test]
fn device_that_delays_packets_loses_none() {
    let _guard = ONE_AT_A_TIME.lock();
    let mut plan =
        plan("[traffic]\nrate = \"500pps\"\nflows = { sources = 1, destinations = 1 }\n");
    plan.trial.drain_ns = 60_000_000_000;
    let Some(mut testbed) = open(&plan) else { return };
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    let mut shaper = Shaper { done: false };
    let record = testbed.run(task, &mut shaper).expect("a run");
    if !shaper.done {
        return fwdlab_testdata::skip("no shaper here (tc(8), CONFIG_NET_SCH_TBF)");
    }
    // Twenty milliseconds between two packets: silence must not end the drain.
    let trial = record.trial;
    assert_eq!((trial.total.lost(), trial.opening.drained), (0, Some(DrainEnd::Accounted)));
    assert!(trial.total.forwarded > 20 && trial.drain_ns > 200_000_000, "{trial:?}");
}

#[test]
fn small_state_table_causes_a_warning() {
    let _guard = ONE_AT_A_TIME.lock();
    // The device makes room for the flows before it sets the sysctls.
    let plan = plan(
        r#"
[dut]
firewall = "stateful"
sysctl = { "net.netfilter.nf_conntrack_max" = 500 }
[traffic]
flows = { sources = 10, destinations = 100 }
"#,
    );
    let Some(mut testbed) = open(&plan) else { return };
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    let record = testbed.run(task, &mut NoopObserver).expect("a run");
    let opening = &record.trial.opening;
    assert!(opening.states.is_some_and(|states| states < 1000), "{opening:?}");
    let early =
        |w: &Warning| matches!(w, Warning::OpenedEarly { there, flows: 1000, .. } if *there < 1000);
    assert!(record.warnings.iter().any(early), "{:?}", record.warnings);
}

#[test]
fn machine_wide_sysctl_is_restored() {
    const PATH: &str = "/proc/sys/net/core/netdev_budget";
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan("[dut]\nsysctl = { \"net.core.netdev_budget\" = 299 }\n");
    let Some(mut testbed) = open(&plan) else { return };
    let before = std::fs::read_to_string(PATH).expect("budget");
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    let record = testbed.run(task, &mut NoopObserver).expect("a run");
    assert_eq!(record.facts["sysctl net.core.netdev_budget"], "299");
    assert_eq!(std::fs::read_to_string(PATH).expect("budget"), before);
}

#[test]
fn levels_switch_while_traffic_flows() {
    let _guard = ONE_AT_A_TIME.lock();
    let mut plan = plan(
        r#"
[[factor]]
name = "firewall"
levels = ["none", "rules:200"]
"#,
    );
    plan.design.alternate_ns = Some(1_000_000_000); // time to load rules on a busy machine
    plan.design.settle_ns = 50_000_000;
    plan.trial.slice_ns = 5_000_000;
    plan.trial.duration_ns = 4_000_000_000;
    plan.runs.truncate(1);
    plan.runs[0].variants = vec![0, 1, 1, 0];
    let Some(mut testbed) = open(&plan) else { return };
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    let record = testbed.run(task, &mut NoopObserver).expect("a stream");
    let variants: std::collections::BTreeSet<usize> =
        record.trial.samples.iter().filter(|s| s.valid).map(|s| s.variant).collect();
    assert_eq!(variants.into_iter().collect::<Vec<_>>(), [0, 1]);
    assert!(record.trial.window.forwarded <= record.trial.window.offered);
    assert_eq!(namespaces(), Vec::<String>::new());
}

#[test]
fn unknown_sysctl_is_refused_by_name() {
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan("[dut]\nsysctl = { \"net.ipv4.no_such_thing\" = 1 }\n");
    let Some(mut testbed) = open(&plan) else { return };
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    let error = testbed.run(task, &mut NoopObserver).expect_err("refused").to_string();
    assert!(error.contains("net.ipv4.no_such_thing"), "{error}");
    assert_eq!(namespaces(), Vec::<String>::new());
}
