//! Reports: golden files of the text, and properties of all stores.

use crate::golden::golden;
use crate::support::{
    alternation_plan, family, file, fill, firewall, full_store, plan, queues, record, report,
    routed, store, truth,
};
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::{Arrivals, Checked};
use fwdlab_model::settings::{
    DutKind, FibAlgorithm, Firewall, FirewallProgram, GeneratorKind, Reboot, Revision, Settings,
    TestbedKind,
};
use fwdlab_model::units::FrameSize;
use fwdlab_model::warning::CheckedSample;
use fwdlab_model::{Plan, Warning};
use fwdlab_results::report::analysis::Outcome;
use fwdlab_results::report::{
    Analysis, ReportError, ReportFile, files, show_json, summary_text, write,
};
use fwdlab_results::stats::{Method, Verdict};
use fwdlab_results::store::Store;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// Firewalls in both address families, with a baseline per family.
fn netns_plan() -> Plan {
    plan(TestbedKind::Netns, vec![firewall(), family()], vec![Some(0), None], 5)
}

#[test]
fn report_of_blocks_matches_golden_files() {
    let files = report(&full_store(&netns_plan()));
    let text = "README.md DETAILS.md effects.svg results.json runs.csv gnuplot.data";
    for name in text.split(' ').chain(["environment.json", "stateful-inet6.pps"]) {
        golden(&format!("report/netns.{name}"), &file(&files, name));
    }
}

#[test]
fn report_of_alternation_matches_golden_file() {
    let files = report(&full_store(&alternation_plan(TestbedKind::Netns, 4)));
    golden("report/alternation.README.md", &file(&files, "README.md"));
}

#[test]
fn report_of_unfinished_simulation_matches_golden_file() {
    let plan = plan(TestbedKind::Sim, vec![queues()], vec![Some(0)], 3);
    let files = report(&store(&plan, 0..5));
    golden("report/sim.README.md", &file(&files, "README.md"));
}

#[test]
fn summary_text_matches_golden_files() {
    let analysis = Analysis::of_store(&full_store(&netns_plan())).unwrap();
    for width in [40, 100] {
        let text = summary_text(&analysis, width);
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= width, "{longest} columns in:\n{text}");
        golden(&format!("report/netns.summary.{width}.txt"), &text);
    }
}

#[test]
fn report_is_deterministic() {
    let directory = tempfile::tempdir().unwrap();
    let plan = netns_plan();
    let path = directory.path().join("run.sqlite");
    fill(&mut Store::open(&path).unwrap(), &plan, (0..30).rev());
    let mut reports = Vec::new();
    for name in ["first", "second"] {
        let report = directory.path().join(name);
        let store = Store::open_read_only(&path).unwrap();
        write(&store, &report).unwrap();
        // Again over the existing files.
        write(&store, &report).unwrap();
        reports.push(read_all(&report));
    }
    assert_eq!(reports[0], reports[1]);
    let names: Vec<&str> = reports[0].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "DETAILS.md",
            "README.md",
            "effects.svg",
            "environment.json",
            "gnuplot.data",
            "graph.png",
            "graph.svg",
            "index.html",
            "none-inet.pps",
            "none-inet6.pps",
            "results.json",
            "runs.csv",
            "stateful-inet.pps",
            "stateful-inet6.pps",
            "stateless-inet.pps",
            "stateless-inet6.pps",
        ]
    );
}

#[test]
fn analysis_compares_the_corrected_rate() {
    let on = |kind| plan(kind, vec![firewall()], vec![Some(0)], 3);
    let netns = Analysis::of_store(&full_store(&on(TestbedKind::Netns))).unwrap();
    assert_eq!(netns.core.figure, RunMetric::Corrected);
    // Stolen time is subtracted from the device's time, and p90 is additional.
    let first = &netns.core.variants[0];
    assert!(first.values.iter().zip(&first.means).all(|(rate, mean)| rate > mean), "{first:?}");
    assert_ne!(first.values, first.p90s);
    let sim = Analysis::of_store(&full_store(&on(TestbedKind::Sim))).unwrap();
    assert_eq!(sim.core.figure, RunMetric::Corrected);
    let run = &record(&on(TestbedKind::Sim), sim.core.runs[0].run);
    let mean = run.trial.window.forwarded as f64 / 2.0;
    assert_eq!(sim.core.runs[0].mean_pps, Some(mean));
}

#[test]
fn alternation_compares_valid_slices() {
    let plan = alternation_plan(TestbedKind::Netns, 4);
    let mut store = store(&plan, []);
    for run in 0..4 {
        let mut record = record(&plan, run);
        // Invalid samples must not count.
        for sample in record.trial.samples.iter_mut().filter(|sample| !sample.valid) {
            sample.forwarded = 1_000_000_000;
        }
        store.insert_run(&record).unwrap();
    }
    let analysis = Analysis::of_store(&store).unwrap();
    assert_eq!(analysis.core.figure, RunMetric::Slices);
    assert_eq!(analysis.core.variants[1].values.len(), 4, "one figure per stream");
    let Outcome::Compared(answer) = &analysis.core.comparisons[0].outcome else {
        panic!("{:?}", analysis.core.comparisons)
    };
    let comparison = &answer.comparison;
    assert_eq!((comparison.method, comparison.blocks), (Method::Alternation, 4));
    assert!((comparison.ratio / 0.95 - 1.0).abs() < 0.02, "{comparison:?}");
}

#[test]
fn verdicts_agree_with_the_fabricated_rates() {
    let plan = netns_plan();
    let analysis = Analysis::of_store(&full_store(&plan)).unwrap();
    assert_eq!(analysis.core.comparisons.len(), 4, "two firewalls in two families");
    for compared in &analysis.core.comparisons {
        let Outcome::Compared(answer) = &compared.outcome else { panic!("{compared:?}") };
        let comparison = &answer.comparison;
        let ratio =
            truth(&plan.variants[compared.variant]) / truth(&plan.variants[compared.baseline]);
        assert!((comparison.ratio / ratio - 1.0).abs() < 0.02, "{compared:?}");
        assert_eq!(comparison.family, 4);
        assert_eq!(answer.verdict, Verdict::Worse);
    }
}

#[test]
fn ministat_blocks_contain_seven_sets_including_the_reference() {
    let mut many = queues();
    many.levels = (1..=9)
        .map(|n| {
            let mut level = many.levels[0].clone();
            level.label = n.to_string();
            level
        })
        .collect();
    let plan = plan(TestbedKind::Netns, vec![many], vec![Some(0)], 3);
    let analysis = Analysis::of_store(&full_store(&plan)).unwrap();
    let files: Vec<Vec<String>> = analysis.ministat.iter().map(|b| b.files.clone()).collect();
    let names = |levels: &[u32]| levels.iter().map(|n| format!("{n}.pps")).collect::<Vec<_>>();
    assert_eq!(files, [names(&[1, 2, 3, 4, 5, 6, 7]), names(&[1, 8, 9])]);
    assert_eq!(analysis.ministat[1].title, "queues, part 2 of 2");
}

#[test]
fn ministat_block_requires_its_reference() {
    let plan = plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 3);
    let missing_run = plan.runs.iter().find(|run| run.variants == [0]).unwrap().index;
    let analysis = Analysis::of_store(&store(&plan, (0..9).filter(|&i| i != missing_run))).unwrap();
    assert_eq!(analysis.ministat[0].text, "");
    assert_eq!(analysis.ministat[0].notes, ["fewer runs than the 3 of ministat: none (2)"]);
}

#[test]
fn ministat_blocks_compare_each_factor_within_the_others() {
    let plan = plan(TestbedKind::Netns, vec![firewall(), family()], vec![Some(0), Some(0)], 3);
    let analysis = Analysis::of_store(&full_store(&plan)).unwrap();
    let titles: Vec<&str> = analysis.ministat.iter().map(|block| block.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "firewall (family = inet)",
            "firewall (family = inet6)",
            "family (firewall = none)",
            "family (firewall = stateless)",
            "family (firewall = stateful)",
        ]
    );
}

#[test]
fn report_of_virtual_testbed_has_its_caption_everywhere() {
    for (kind, words) in [
        (TestbedKind::Sim, "SIMULATED"),
        (TestbedKind::Netns, "virtual testbed; not comparable with hardware"),
        (TestbedKind::Memory, "no kernel forwarded them; not comparable with hardware"),
        (TestbedKind::Ssh, "below a hypervisor; not comparable with hardware"),
    ] {
        let store = full_store(&plan(kind, vec![firewall()], vec![Some(0)], 3));
        let files = report(&store);
        for name in ["README.md", "index.html", "results.json", "graph.svg"] {
            assert!(file(&files, name).contains(words), "{name} doesn't say {words}");
        }
        assert!(summary_text(&Analysis::of_store(&store).unwrap(), 200).contains(words));
    }
}

#[test]
fn setup_of_a_router_lists_its_own_settings() {
    let mut plan = routed(plan(TestbedKind::Memory, vec![firewall()], vec![Some(0)], 3));
    for (variant, fib) in plan.variants.iter_mut().zip([FibAlgorithm::Radix, FibAlgorithm::Poptrie])
    {
        variant.settings.dut.router.fib = fib;
    }
    let plan = plan.sealed();
    let setup = |plan: &Plan| Analysis::of_store(&full_store(plan)).unwrap().core.setup.join("\n");
    let listed = setup(&plan);
    for line in [
        "Testbed: packets in memory of this machine",
        "Device under test: fwdlab's own router\n",
        "Router, forwarding table: radix, poptrie and auto (varied)\n",
        "Router, locking of lookups: lockless\n",
        "Router, path of packets: fast\n",
        "Router, table of states: sharded\n",
        "Router, most states: 2097152\n",
        "Router, harvesting of entropy: disabled\n",
        "ICMP redirect: disabled\n",
    ] {
        assert!(listed.contains(line), "{line} is not in\n{listed}");
    }
    for word in ["offloads", "sysctl", "CPU arrangement", "Router, ports"] {
        assert!(!listed.contains(word), "{word} is in\n{listed}");
    }

    // With a kernel among the devices, each line applies only to devices with the setting.
    let mut mixed = plan;
    mixed.base.testbed.kind = TestbedKind::Netns;
    for variant in &mut mixed.variants {
        variant.settings.testbed.kind = TestbedKind::Netns;
    }
    mixed.variants[0].settings.dut.kind = DutKind::Linux;
    let listed = setup(&mixed.sealed());
    for line in [
        "Device under test: the Linux kernel and fwdlab's own router (varied)\n",
        "Router, forwarding table: poptrie and auto (varied)\n",
        "Router, ports: auto\n",
        "Receive and segmentation offloads: disabled\n",
    ] {
        assert!(listed.contains(line), "{line} is not in\n{listed}");
    }
}

#[test]
fn setup_lists_settings_of_hosts() {
    let mut plan = plan(TestbedKind::Ssh, vec![firewall()], vec![Some(0)], 3);
    for (index, variant) in plan.variants.iter_mut().enumerate() {
        let Settings { testbed, dut, traffic } = &mut variant.settings;
        testbed.kind = TestbedKind::Ssh;
        dut.kind = DutKind::Freebsd;
        traffic.generator = GeneratorKind::PktGen;
        traffic.generator_options = vec!["-w".into(), "4".into()];
        dut.firewall = Firewall::Stateful;
        dut.remote.firewall_program = FirewallProgram::Ipfw;
        dut.remote.reboot = Reboot::Always;
        dut.remote.harvest_mask = (index == 1).then_some(351);
        dut.remote.loader.insert("hw.cxgbe.nrxq10g".into(), "4".into());
        dut.remote.revision = Some(Revision {
            install: vec!["make installkernel".into()],
            verify: "uname -v".into(),
            expect: format!("r28747{}", index + 7),
            ..Revision::default()
        });
    }
    let listed = Analysis::of_store(&full_store(&plan.sealed())).unwrap().core.setup.join("\n");
    for line in [
        "Testbed: hosts of a laboratory, reached over ssh\n",
        "Traffic generator: pkt-gen with `-w 4`\n",
        "Device under test: the FreeBSD kernel\n",
        "Revision of the device under test: installed by `make installkernel`, `uname -v` says r287477",
        "Mask of harvested entropy: as found",
        "Reboot of the device: before every run\n",
        "Program of the firewall: ipfw\n",
        "loader.conf hw.cxgbe.nrxq10g = 4\n",
    ] {
        assert!(listed.contains(line), "{line} is not in\n{listed}");
    }
    for word in ["CPU arrangement", "rc.conf", "Files laid over", "Interrupts bound"] {
        assert!(!listed.contains(word), "{word} is in\n{listed}");
    }
}

#[test]
fn page_loads_nothing_from_outside() {
    let page = file(&report(&full_store(&netns_plan())), "index.html");
    for outside in ["http-equiv", "<link", "src=", "@import", "url(http", "fetch(", "import("] {
        assert!(!page.contains(outside), "{outside}");
    }
    // One script, the page's own, at its end.
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.ends_with("</script>\n</body>\n</html>\n"));
    assert!(page.contains("<svg"));
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
}

#[test]
fn labels_are_escaped_in_every_file() {
    let mut factor = firewall();
    factor.levels[1].label = "<script>alert(1)</script>|*x*".into();
    let mut plan = plan(TestbedKind::Netns, vec![factor], vec![Some(0)], 3);
    plan.title = "a <b> & \"c\" | d".into();
    let files = report(&full_store(&plan));
    let page = file(&files, "index.html");
    assert!(!page.contains("<script>alert") && page.matches("<script").count() == 1);
    let readme = file(&files, "README.md");
    let outside_code: String = readme.split("```").step_by(2).collect();
    assert!(outside_code.contains("\\<script\\>") && !outside_code.contains("|*x*"), "{readme}");
    assert!(files.iter().any(|file| file.name == "script-alert-1-script-x.pps"));
    assert!(!file(&files, "graph.svg").contains("<script"));
}

#[test]
fn warnings_appear_in_every_form() {
    let plan = netns_plan();
    let mut store = store(&plan, 1..30);
    let mut doubtful = record(&plan, 0);
    doubtful.warnings = vec![Warning::NotConserved { offered: 10, forwarded: 11 }];
    store.insert_run(&doubtful).unwrap();
    let analysis = Analysis::of_store(&store).unwrap();
    assert!(analysis.has_fatal_warning());
    assert_eq!(analysis.core.warnings[0].kind, "not-conserved", "what breaks trust comes first");
    let contents = store.contents().unwrap();
    let files = files(&contents, &analysis).unwrap();
    for name in ["README.md", "index.html", "results.json"] {
        assert!(file(&files, name).contains("11 packets arrived of 10 sent"), "{name}");
    }
    assert!(summary_text(&analysis, 72).contains("NOT TO BE TRUSTED"));
    let json = show_json(&analysis).unwrap();
    let variant = doubtful.variants[0];
    assert_eq!(json["variants"][variant]["warnings"][0]["kind"], "not-conserved");
}

#[test]
fn arrivals_are_reported_in_a_line_or_a_table() {
    let plan = netns_plan();
    let checked = |found: &dyn Fn(u32, &mut Arrivals)| {
        let mut store = store(&plan, []);
        for run in 0..30 {
            let mut record = record(&plan, run);
            record.trial.arrivals.checked = Checked::Packets { payload_one_in: 16 };
            found(run, &mut record.trial.arrivals);
            store.insert_run(&record).unwrap();
        }
        report(&store)
    };
    let clean = checked(&|_, _| {});
    let summary_line = "one in 16): none damaged, none twice, none out of order.";
    for name in ["DETAILS.md", "index.html"] {
        assert!(file(&clean, name).contains(summary_line), "{name}");
        assert!(!file(&clean, name).contains("what is wrong with them"), "{name}");
    }
    let spoilt = checked(&|run, arrivals| {
        if run == 3 {
            arrivals.damaged = 12;
            arrivals.faults = [("ttl".to_owned(), 9), ("payload".to_owned(), 3)].into();
            arrivals.duplicates = 5;
        }
    });
    for name in ["DETAILS.md", "index.html", "results.json"] {
        assert!(file(&spoilt, name).contains("9 x ttl, 3 x payload"), "{name}");
    }
    let readme = file(&spoilt, "DETAILS.md");
    assert!(!readme.contains("none damaged"), "{readme}");
    assert_eq!(readme.matches("9 x ttl").count(), 1, "one variant: {readme}");
    // A sample is reported with its size, and with the uncertainty of the damage.
    let sampled = |damaged: u64| {
        checked(&move |_, arrivals| {
            let (first, one_in) = (65_536, 4);
            let (checked, of) = (100_000, 203_392);
            arrivals.sample = Some(CheckedSample { first, one_in, checked, of, damaged });
            arrivals.damaged = damaged;
        })
    };
    let size = "3000000 of 6101760 packets were checked (the first 65536 and one in 4)";
    // On pages, numbers are joined to their units.
    let page_text = |files: &[ReportFile], name: &str| file(files, name).replace('\u{a0}', " ");
    for name in ["DETAILS.md", "index.html"] {
        let clean = sampled(0);
        assert!(page_text(&clean, name).contains(size), "{name}");
        assert!(page_text(&clean, name).contains("one in 4): none damaged, none twice"), "{name}");
        let spoilt = sampled(1000);
        assert!(page_text(&spoilt, name).contains(size), "{name}");
        // 5,000 of 500,000 in each variant; runs without scatter have no interval.
        let share = "1.000 % of the 500000 packets checked arrived damaged; of the";
        assert!(page_text(&spoilt, name).contains(share), "{name}: {}", page_text(&spoilt, name));
    }
}

#[test]
fn show_json_has_the_documented_fields() {
    let analysis = Analysis::of_store(&full_store(&netns_plan())).unwrap();
    let json = show_json(&analysis).unwrap();
    let variants = json["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 6);
    let keys: Vec<&String> = variants[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["label", "max", "median", "min", "settings", "values", "warnings"]);
    assert_eq!(variants[3]["settings"]["firewall"], "stateless");
    assert_eq!(variants[3]["settings"]["family"], "inet6");
    assert_eq!(variants[0]["values"].as_array().unwrap().len(), 5);
    let median = variants[0]["median"].as_f64().unwrap();
    assert!((0.9e6..1.1e6).contains(&median), "{median} is packets per second");
}

#[test]
fn store_without_runs_has_a_report() {
    let plan = netns_plan();
    let store = store(&plan, []);
    let files = report(&store);
    assert!(file(&files, "README.md").contains("0 of 30 runs"));
    let json = show_json(&Analysis::of_store(&store).unwrap()).unwrap();
    assert!(json["variants"][0]["median"].is_null());
    assert!(!files.iter().any(|file| file.name.ends_with(".pps")));
}

#[test]
fn runs_without_valid_samples_are_left_out_with_a_note() {
    let plan = plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 3);
    let mut store = store(&plan, 1..9);
    let mut empty = record(&plan, 0);
    empty.trial.samples.iter_mut().for_each(|sample| sample.valid = false);
    store.insert_run(&empty).unwrap();
    let analysis = Analysis::of_store(&store).unwrap();
    assert_eq!(analysis.core.variants[empty.variants[0]].values.len(), 2);
    assert!(
        analysis.core.notes.iter().any(|note| note.contains("run 0")),
        "{:?}",
        analysis.core.notes
    );
}

#[test]
fn setup_lists_all_values_of_a_varied_setting() {
    let mut plan = plan(TestbedKind::Netns, vec![queues()], vec![Some(0)], 2);
    for variant in &mut plan.variants {
        variant.settings.traffic.frame_size = FrameSize::of(128);
    }
    let setup = Analysis::of_store(&full_store(&plan)).unwrap().core.setup.join("\n");
    assert!(setup.contains("1, 2, 4 and 8 (varied)"), "{setup}");
    assert!(setup.contains("128 bytes") && !setup.contains("128 bytes (varied)"), "{setup}");
    assert!(setup.contains("2000 (20 x 100)") && setup.contains("7.00 Mpps offered"), "{setup}");
}

#[test]
fn write_reports_an_unwritable_directory() {
    let store = full_store(&plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 3));
    let error = write(&store, Path::new("/proc/self/report")).unwrap_err();
    assert!(matches!(error, ReportError::Write { .. }), "{error}");
    assert!(error.to_string().contains("/proc/self/report"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A report exists for any recorded subset of an experiment.
    #[test]
    fn any_subset_of_runs_has_a_report(recorded in prop::collection::vec(any::<bool>(), 30)) {
        let plan = netns_plan();
        let which = (0..30).filter(|&i| recorded[i as usize]);
        let contents = store(&plan, which).contents().unwrap();
        let analysis = Analysis::of(&contents);
        let counted: usize = analysis.core.variants.iter().map(|v| v.values.len()).sum();
        prop_assert_eq!(counted, contents.runs.len());
        prop_assert!(!summary_text(&analysis, 40).is_empty());
        prop_assert!(show_json(&analysis).unwrap()["variants"].as_array().unwrap().len() == 6);
    }
}

fn read_all(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path: PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect();
    all.sort();
    all
}
