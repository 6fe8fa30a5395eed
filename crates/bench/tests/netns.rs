//! Real packets through this machine's kernel: what is conserved, verified, put
//! back. Rates are not tested here; they depend on the machine.

use fwdlab_bench::probe::Privilege;
use fwdlab_bench::testbed::{self, Paths};
use fwdlab_bench::{BenchError, Observer, Task, Testbed, Unobserved};
use fwdlab_model::Plan;
use fwdlab_model::warning::Warning;
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
    // No router is started here.
    Paths { state, program: "fwdlab".into(), experiment: ".".into() }
}

fn open(plan: &Plan) -> Option<Box<dyn Testbed>> {
    // Entering a user namespace is for a process of its own, not for a test thread.
    let privilege = match fwdlab_port::userns::is_root() {
        true => Privilege::Root,
        false => Privilege::None { why: "tests run as an ordinary user".into() },
    };
    match testbed::open(plan, &privilege, &state()) {
        Ok(testbed) => Some(testbed),
        Err(error) => {
            let in_ci = std::env::var_os("FWDLAB_CI").is_some_and(|ci| ci == "1");
            assert!(!in_ci, "no real packets in CI: {error}");
            eprintln!("SKIPPED: no real packets here: {error}");
            None
        }
    }
}

fn namespaces() -> Vec<String> {
    let ours = format!("fwdlab-{}-", std::process::id());
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&ours))
        .collect()
}

#[test]
fn every_variant_conserves_its_packets_and_leaves_nothing() {
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
        let record = testbed.run(task, &mut Unobserved).expect("a run");
        let label = &plan.variants[run.variants[0]].label;
        let trial = &record.trial;
        assert!(trial.window.forwarded > 1000, "{label}: {:?}", trial.window);
        assert!(trial.window.forwarded <= trial.window.offered, "{label}");
        assert!(trial.total.forwarded <= trial.total.offered, "{label}");
        assert_eq!(trial.foreign, 0, "{label}");
        assert_eq!(record.run_id, plan.run_id(run.index));
        let fatal: Vec<&Warning> = record.warnings.iter().filter(|w| w.is_fatal()).collect();
        assert!(fatal.is_empty(), "{label}: {fatal:?}");
        let checked: Vec<_> = trial.counters.iter().filter(|c| c.expected.is_some()).collect();
        assert_eq!(checked.len(), 2, "{label}: {:?}", trial.counters);
        for counter in checked {
            let expected = counter.expected.unwrap_or(0);
            let difference = counter.delta().abs_diff(expected);
            assert!(difference <= 20 + expected / 1000, "{label}: {counter:?}");
        }
        assert_eq!(record.facts["queues"], "1");
        assert!(!trial.samples.is_empty() && !trial.cpus.is_empty());
        assert_eq!(namespaces(), Vec::<String>::new(), "{label}");
    }
}

#[test]
fn closed_arrangements_and_queues_work() {
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
        let record = testbed.run(task, &mut Unobserved).expect("a run");
        assert!(record.trial.window.forwarded > 1000);
        assert_eq!(record.facts["arrangement"], "closed");
        let queues = plan.variants[run.variants[0]].settings.dut.queues.to_string();
        assert_eq!(record.facts["queues"], queues);
    }
}

#[test]
fn a_machine_wide_sysctl_is_put_back() {
    const PATH: &str = "/proc/sys/net/core/netdev_budget";
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan("[dut]\nsysctl = { \"net.core.netdev_budget\" = 299 }\n");
    let Some(mut testbed) = open(&plan) else { return };
    let before = std::fs::read_to_string(PATH).expect("budget");
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    let record = testbed.run(task, &mut Unobserved).expect("a run");
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
    plan.design.alternate_ns = Some(40_000_000);
    plan.design.settle_ns = 10_000_000;
    plan.trial.slice_ns = 5_000_000;
    plan.trial.duration_ns = 320_000_000;
    plan.runs.truncate(1);
    plan.runs[0].variants = vec![0, 1, 1, 0];
    let Some(mut testbed) = open(&plan) else { return };
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    let record = testbed.run(task, &mut Unobserved).expect("a stream");
    let seen: std::collections::BTreeSet<usize> =
        record.trial.samples.iter().filter(|s| s.valid).map(|s| s.variant).collect();
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1]);
    assert!(record.trial.window.forwarded <= record.trial.window.offered);
    assert_eq!(namespaces(), Vec::<String>::new());
}

#[test]
fn a_cancelled_run_leaves_nothing() {
    struct Cancel;
    impl Observer for Cancel {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan("");
    let Some(mut testbed) = open(&plan) else { return };
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    assert!(matches!(testbed.run(task, &mut Cancel), Err(BenchError::Interrupted)));
    assert_eq!(namespaces(), Vec::<String>::new());
}

#[test]
fn an_unknown_sysctl_is_refused_by_name() {
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan("[dut]\nsysctl = { \"net.ipv4.no_such_thing\" = 1 }\n");
    let Some(mut testbed) = open(&plan) else { return };
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    let error = testbed.run(task, &mut Unobserved).expect_err("refused").to_string();
    assert!(error.contains("net.ipv4.no_such_thing"), "{error}");
    assert_eq!(namespaces(), Vec::<String>::new());
}
