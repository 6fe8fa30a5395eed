//! Fabricates plans and records: small, seeded, and equal on every machine.
//!
//! The plan is built by hand, so that these tests depend only on the store and the report. The
//! numbers follow their own model (capacity by variant, normal noise between runs, jitter within
//! runs), without a clock.

#![allow(dead_code, reason = "each test binary uses a part")]

use fwdlab_model::plan::{Adjust, Change, Compare, Design, Factor, Level, Trial};
use fwdlab_model::record::{
    Counter, Counts, CpuTime, Environment, Executed, ExecutedFunction, Sample, TrialRecord,
};
use fwdlab_model::settings::{
    Arrangement, CommandSettings, DutKind, DutSettings, Engine, Family, Firewall, Flows,
    GeneratorKind, Hooks, Napi, Rate, RemoteSettings, RouterSettings, SimSettings, SimTable,
    TestbedKind, TestbedSettings, TrafficSettings, VmSettings,
};
use fwdlab_model::units::FrameSize;
use fwdlab_model::{Calibration, Plan, PlannedRun, RunRecord, Settings, Variant, Warning};
use fwdlab_results::report::{Analysis, ReportFile, files};
use fwdlab_results::store::{Invocation, Store};
use std::collections::BTreeMap;

/// Splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
    /// Nearly normal in exact arithmetic: the sum of twelve uniform numbers.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// Base settings.
pub(crate) fn base(kind: TestbedKind) -> Settings {
    Settings {
        testbed: TestbedSettings {
            kind,
            arrangement: Arrangement::Open,
            senders: 1,
            engine: Engine::Auto,
            lab: None,
            vm: VmSettings::default(),
            sim: SimSettings {
                reverse: 1.0,
                link_speed_bps: None,
                capacity_pps: 1e6,
                noise: 0.01,
                drift: 0.0,
                phi: 0.9,
                jitter: 0.02,
                loss: 0.0,
                buffer: 0,
                ceiling_pps: 4e6,
                table: SimTable::default(),
                effect: BTreeMap::new(),
                realtime: false,
                contamination: 0.0,
                contamination_depth: 0.04,
            },
        },
        dut: DutSettings {
            kind: DutKind::Linux,
            routes: 2,
            firewall: Firewall::None,
            nat: fwdlab_model::settings::Nat::None,
            nat_address: None,
            nat_port: None,
            icmp_redirect: false,
            offloads: false,
            queues: 1,
            bind_queues: false,
            napi: Napi::Auto,
            rps: String::new(),
            sysctl: BTreeMap::from([("net.ipv4.ip_early_demux".to_owned(), "0".to_owned())]),
            router: RouterSettings::default(),
            remote: RemoteSettings::default(),
            command: CommandSettings::default(),
            hooks: Hooks::default(),
        },
        traffic: TrafficSettings {
            family: Family::Inet,
            frame_size: FrameSize::of(64),
            flows: Flows { sources: 20, destinations: 100 },
            rate: Rate::Max,
            timestamps: false,
            directions: fwdlab_model::settings::Directions::One,
            checks: fwdlab_model::settings::Checks::Auto,
            generator: GeneratorKind::Fwdlab,
            generator_server: String::new(),
            generator_options: Vec::new(),
        },
    }
}

/// Factor of the fabricated experiments: the firewall.
pub(crate) fn firewall() -> Factor {
    let level = |label: &str| Level {
        label: label.to_owned(),
        number: None,
        changes: vec![Change { setting: "firewall".into(), value: label.into(), live: true }],
        build_of: None,
    };
    Factor {
        name: "firewall".into(),
        levels: vec![level("none"), level("stateless"), level("stateful")],
    }
}

/// Numeric factor: queues.
pub(crate) fn queues() -> Factor {
    let level = |n: u16| Level {
        label: n.to_string(),
        number: Some(f64::from(n)),
        changes: vec![Change { setting: "queues".into(), value: n.to_string(), live: false }],
        build_of: None,
    };
    Factor { name: "queues".into(), levels: [1, 2, 4, 8].map(level).to_vec() }
}

/// Makes fwdlab's own router the device of every variant.
pub(crate) fn routed(mut plan: Plan) -> Plan {
    plan.base.dut.kind = DutKind::Router;
    plan.variants.iter_mut().for_each(|variant| variant.settings.dut.kind = DutKind::Router);
    plan.sealed()
}

/// Factor: address family.
pub(crate) fn family() -> Factor {
    let level = |label: &str| Level {
        label: label.to_owned(),
        number: None,
        changes: vec![Change { setting: "family".into(), value: label.into(), live: true }],
        build_of: None,
    };
    Factor { name: "family".into(), levels: vec![level("inet"), level("inet6")] }
}

/// A plan of randomised blocks; `baseline` as in [`Compare::baseline`].
pub(crate) fn plan(
    kind: TestbedKind,
    factors: Vec<Factor>,
    baseline: Vec<Option<usize>>,
    blocks: u32,
) -> Plan {
    let base = base(kind);
    let variants = variants(&factors, &base);
    let mut random = Random(1);
    let mut runs = Vec::new();
    for block in 0..blocks {
        let mut order: Vec<usize> = (0..variants.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, (random.next() % (i as u64 + 1)) as usize);
        }
        for variant in order {
            runs.push(PlannedRun { index: runs.len() as u32, block, variants: vec![variant] });
        }
    }
    let design =
        Design { blocks, seed: 1, alternate_ns: None, settle_ns: 0, stop: None, sequential: false };
    assemble(factors, variants, runs, base, design, baseline)
}

/// A plan of alternation streams over one factor, in the order A B B A.
pub(crate) fn alternation_plan(kind: TestbedKind, streams: u32) -> Plan {
    let base = base(kind);
    let mut factor = firewall();
    factor.levels.truncate(2);
    let factors = vec![factor];
    let variants = variants(&factors, &base);
    let runs = (0..streams)
        .map(|index| PlannedRun { index, block: index, variants: vec![0, 1, 1, 0] })
        .collect();
    let design = Design {
        blocks: streams,
        seed: 1,
        alternate_ns: Some(250_000_000),
        settle_ns: 50_000_000,
        stop: None,
        sequential: false,
    };
    let mut plan = assemble(factors, variants, runs, base, design, vec![Some(0)]);
    plan.trial.duration_ns = 4_000_000_000;
    plan
}

fn assemble(
    factors: Vec<Factor>,
    variants: Vec<Variant>,
    runs: Vec<PlannedRun>,
    base: Settings,
    design: Design,
    baseline: Vec<Option<usize>>,
) -> Plan {
    let mut plan = Plan {
        method: None,
        name: "fabricated".into(),
        title: "Impact of the firewall on forwarding performance".into(),
        version: 1,
        factors,
        variants,
        runs,
        trial: Trial {
            warmup_ns: 500_000_000,
            duration_ns: 2_000_000_000,
            drain_ns: 1_000_000_000,
            interval_ns: 100_000_000,
            slice_ns: 50_000_000,
        },
        design,
        compare: Compare {
            baseline,
            confidence: 95.0,
            margin: 0.02,
            figure: None,
            adjust: Adjust::Holm,
        },
        base,
        notes: Vec::new(),
        hash: String::new(),
        profile: None,
    };
    let text = serde_json::to_string(&plan).expect("a plan is JSON");
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    plan.hash = format!("{hash:016x}");
    plan
}

fn variants(factors: &[Factor], base: &Settings) -> Vec<Variant> {
    let mut combinations: Vec<Vec<usize>> = vec![Vec::new()];
    for factor in factors {
        combinations = combinations
            .iter()
            .flat_map(|levels| {
                (0..factor.levels.len()).map(move |level| [levels.as_slice(), &[level]].concat())
            })
            .collect();
    }
    combinations
        .into_iter()
        .enumerate()
        .map(|(index, levels)| {
            let labels: Vec<&str> =
                levels.iter().zip(factors).map(|(&l, f)| f.levels[l].label.as_str()).collect();
            let mut settings = base.clone();
            for (label, factor) in labels.iter().zip(factors) {
                match (factor.name.as_str(), *label) {
                    ("firewall", "stateless") => settings.dut.firewall = Firewall::Stateless,
                    ("firewall", "stateful") => settings.dut.firewall = Firewall::Stateful,
                    ("queues", n) => settings.dut.queues = n.parse().expect("a number"),
                    ("frame_size", n) => {
                        settings.traffic.frame_size = FrameSize::of(n.parse().expect("bytes"));
                    }
                    ("family", "inet6") => settings.traffic.family = Family::Inet6,
                    _ => {}
                }
            }
            let label = if labels.is_empty() { "all".to_owned() } else { labels.join(", ") };
            Variant { index, label, levels, settings }
        })
        .collect()
}

/// Capacity of a variant in packets per second: the true value of the fabricated data.
pub(crate) fn truth(variant: &Variant) -> f64 {
    let firewall = match variant.settings.dut.firewall {
        Firewall::Stateless => 0.95,
        Firewall::Stateful => 0.80,
        _ => 1.0,
    };
    let family = if variant.settings.traffic.family == Family::Inet6 { 0.9 } else { 1.0 };
    1e6 * firewall * family * f64::from(variant.settings.dut.queues).powf(0.7)
}

/// Record of run `index` of `plan`, a pure function of both.
pub(crate) fn record(plan: &Plan, index: u32) -> RunRecord {
    let planned = &plan.runs[index as usize];
    let mut random = Random(u64::from(index).wrapping_mul(7919) + 17);
    let noise = 1.0 + 0.01 * random.normal();
    let slice_ns = plan.trial.slice_ns;
    let count = plan.trial.duration_ns / slice_ns;
    let per_slice = plan.design.alternate_ns.map(|ns| ns / slice_ns);
    let samples: Vec<Sample> = (0..count)
        .map(|i| {
            let slice = per_slice.map_or(0, |n| i / n);
            let variant = planned.variants[slice as usize % planned.variants.len()];
            let settled = per_slice.is_none_or(|n| (i % n) * slice_ns >= plan.design.settle_ns);
            let jitter = 1.0 + 0.02 * random.normal();
            let pps = truth(&plan.variants[variant]) * noise * jitter;
            let forwarded = (pps * slice_ns as f64 / 1e9) as u64;
            Sample {
                at_ns: i * slice_ns,
                duration_ns: slice_ns,
                offered: 350_000 + random.next() % 100,
                forwarded,
                stolen_ns: if i % 13 == 5 { 10_000_000 } else { 0 },
                variant,
                slice: slice as u32,
                valid: settled,
                ..Sample::default()
            }
        })
        .collect();
    let window = Counts {
        offered: samples.iter().map(|s| s.offered).sum(),
        forwarded: samples.iter().map(|s| s.forwarded).sum(),
    };
    let total =
        Counts { offered: window.offered + 3_500_000, forwarded: window.forwarded + 500_000 };
    let received = Counter {
        name: "d1 tx_packets".into(),
        before: 1000 * u64::from(index),
        after: 1000 * u64::from(index) + total.forwarded,
        expected: Some(total.forwarded),
    };
    let mut warnings = Vec::new();
    if index % 5 == 3 {
        warnings.push(Warning::CpuContended { cpu: 1, stolen: 0.031, user: 0.0, waited: None });
    }
    if index == 4 {
        warnings.push(Warning::FlowsMissing { seen: 1999, sent: 2000 });
    }
    // One CPU of the sender, and one of the device per queue.
    let sender = CpuTime {
        cpu: 0,
        role: "sender".into(),
        user_ns: 1_000_000,
        system_ns: 1_989_000_000,
        softirq_ns: 0,
        idle_ns: 0,
        stolen_ns: 10_000_000,
    };
    let dut = |cpu| CpuTime {
        cpu,
        role: "dut".into(),
        user_ns: 0,
        system_ns: 10_000_000,
        softirq_ns: 1_960_000_000,
        idle_ns: 0,
        stolen_ns: 30_000_000,
    };
    let queues = plan.variants[plan.runs[index as usize].variants[0]].settings.dut.queues;
    let cpus = std::iter::once(sender).chain((1..=queues.max(1)).map(dut)).collect();
    RunRecord {
        method: None,
        run: index,
        block: planned.block,
        variants: planned.variants.clone(),
        run_id: 0x0100_0000 + index,
        started_at: format!("2024-03-05T10:{:02}:{:02}Z", index / 12, index % 12 * 5),
        trial: TrialRecord {
            window_ns: plan.trial.duration_ns,
            intended: None,
            window,
            total,
            foreign: 0,
            unstamped: 3,
            flows_seen: Some(2000),
            drain_ns: 20_000_000,
            samples,
            counters: vec![received],
            cpus,
            ..TrialRecord::default()
        },
        facts: BTreeMap::from([
            ("engine".to_owned(), "xdp".to_owned()),
            ("napi".to_owned(), "threaded".to_owned()),
        ]),
        warnings,
        overhead_ns: vec![("set up".into(), 120_000_000), ("configure".into(), 30_000_000)],
    }
}

/// Name of a function, its instructions per packet in each burst, and whether it is background.
pub(crate) type Fabricated<'a> = (&'a str, &'a [f64], bool);

/// Record of run `index` on an emulated machine that counts these functions. A tenth of each
/// function's instructions are atomic, and each instruction moves half a byte on average.
pub(crate) fn counted(plan: &Plan, index: u32, functions: &[Fabricated<'_>]) -> RunRecord {
    let mut record = record(plan, index);
    let packets = vec![5120; functions.iter().map(|f| f.1.len()).max().unwrap_or(0)];
    let total = Counts { offered: packets.iter().sum(), forwarded: packets.iter().sum() };
    let functions = functions.iter().map(|&(name, bursts, is_background)| ExecutedFunction {
        name: name.into(),
        bursts: bursts.to_vec(),
        atomics: bursts[0] / 10.0,
        bytes: bursts[0] / 2.0,
        // Timers also run in the idle device.
        idle: if name.contains("timer") { bursts[0] / 3.0 } else { 0.0 },
        is_background,
        misses: None,
    });
    let executed = Executed {
        packets,
        batch: 32,
        scattered: (0, 480),
        background: 41.5,
        functions: functions.collect(),
        ..Executed::default()
    };
    record.trial = TrialRecord {
        window_ns: record.trial.window_ns,
        window: total,
        total,
        executed: Some(executed),
        ..TrialRecord::default()
    };
    record.warnings.clear();
    record.facts = BTreeMap::from([("accel".to_owned(), "tcg".to_owned())]);
    record
}

/// Invocation of the fabricated stores.
pub(crate) fn invocation(kind: TestbedKind) -> Invocation {
    let simulated = kind == TestbedKind::Sim;
    let section = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    };
    let mut cpu: BTreeMap<String, String> =
        section(&[("model", "Example CPU @ 2.60GHz"), ("count", "2")]);
    if kind == TestbedKind::Ssh {
        cpu.insert("hypervisor".into(), "yes".into());
    }
    Invocation {
        started_at: "2024-03-05T10:00:00Z".into(),
        fwdlab_version: "0.1.0 (0123abcd)".into(),
        testbed: kind,
        testbed_reason: "the experiment asks for it".into(),
        simulated,
        bed: None,
        environment: Environment(BTreeMap::from([
            ("cpu".to_owned(), cpu),
            ("kernel".to_owned(), section(&[("release", "6.1.0"), ("cmdline", "quiet")])),
        ])),
    }
}

/// A store with a plan, an invocation, two calibrations and the runs of `which`.
pub(crate) fn store(plan: &Plan, which: impl IntoIterator<Item = u32>) -> Store {
    let mut store = Store::memory().expect("memory");
    fill(&mut store, plan, which);
    store
}

/// A store with all runs of the plan.
pub(crate) fn full_store(plan: &Plan) -> Store {
    store(plan, 0..plan.runs.len() as u32)
}

/// Adopts the plan, begins an invocation and records the runs of `which`.
pub(crate) fn fill(store: &mut Store, plan: &Plan, which: impl IntoIterator<Item = u32>) {
    store.adopt_plan(plan, "version = 1\n").expect("the plan is adopted");
    store.begin_invocation(&invocation(plan.base.testbed.kind)).expect("an invocation begins");
    for (family, frame_size) in [("inet", 64), ("inet6", 84)] {
        let calibration = Calibration {
            testbed: "netns, open, xdp, 1 sender".into(),
            family: family.into(),
            frame_size: FrameSize::of(frame_size),
            rates_pps: vec![7_100_000.25, 7_120_000.5, 7_090_000.125],
            measured_at: "2024-03-05T10:00:01Z".into(),
        };
        store.insert_calibration(&calibration).expect("a calibration is kept");
    }
    for run in which {
        store.insert_run(&record(plan, run)).expect("a run is kept");
    }
}

/// All files of a store's report.
pub(crate) fn report(store: &Store) -> Vec<ReportFile> {
    let contents = store.contents().unwrap();
    files(&contents, &Analysis::of(&contents)).unwrap()
}

/// Contents of one of the files as text.
pub(crate) fn file(files: &[ReportFile], name: &str) -> String {
    let file = files.iter().find(|file| file.name == name).unwrap_or_else(|| panic!("no {name}"));
    String::from_utf8(file.bytes.clone()).unwrap()
}
