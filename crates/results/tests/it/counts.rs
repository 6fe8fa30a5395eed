//! Exact counts: from records of emulated machines to verdicts, tables and all forms.

use crate::golden::{golden, picture};
use crate::support::{Fabricated, counted, file, firewall, invocation, plan, report};
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::{ExecutedStacks, Misses};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{Plan, RunRecord};
use fwdlab_results::compare::{Question, compare};
use fwdlab_results::counts::{CountVerdict, Exact, NOT_TIME};
use fwdlab_results::document::FORMS;
use fwdlab_results::history::Collector;
use fwdlab_results::report::analysis::Outcome;
use fwdlab_results::report::{Analysis, Pictures, document, show_json, summary_text};
use fwdlab_results::store::Store;

fn vm_plan(blocks: u32) -> Plan {
    let mut factor = firewall();
    factor.levels.truncate(2);
    let plan = plan(TestbedKind::Vm, vec![factor], vec![Some(0)], blocks);
    assert_eq!(plan.metric(), RunMetric::Instructions);
    plan
}

/// Record of a variant's run: an additional rule costs more in the chain, and `scatter` applies per
/// block.
fn record(plan: &Plan, index: u32, scatter: f64) -> RunRecord {
    let planned = &plan.runs[index as usize];
    let (has_rule, block) = (planned.variants[0] == 1, f64::from(planned.block));
    let slab = 210.0 + scatter * block;
    let bursts = [slab, slab + 4.0, slab];
    let tick: &[f64] = &[3.0, 2.5, 3.5];
    let mut functions: Vec<Fabricated<'_>> = vec![
        ("ip_forward", &[126.0, 126.0, 126.0], false),
        ("ip_rcv_core", &[130.0, 130.0, 130.0], false),
        ("virtnet_poll", &[310.5, 310.5, 310.5], false),
        ("kmem_cache_alloc", &bursts, false),
        ("fib_table_lookup", &[98.0, 98.0, 98.0], false),
        // Mostly background in one run, so excluded from totals.
        ("tick_sched_timer", tick, index == 0),
    ];
    if has_rule {
        functions.push(("nft_do_chain", &[191.0, 191.0, 191.0], false));
        functions.push(("nf_hook_slow", &[37.0, 37.25, 37.0], false));
        functions[0].1 = &[149.0, 149.0, 149.0];
        functions[4].1 = &[98.125, 98.125, 98.125];
    }
    counted(plan, index, &functions)
}

fn fill(store: &mut Store, plan: &Plan, records: impl IntoIterator<Item = RunRecord>) {
    store.adopt_plan(plan, "version = 1\n").unwrap();
    store.begin_invocation(&invocation(TestbedKind::Vm)).unwrap();
    records.into_iter().for_each(|record| store.insert_run(&record).unwrap());
}

fn store(plan: &Plan, scatter: f64) -> Store {
    let mut store = Store::memory().unwrap();
    fill(&mut store, plan, (0..plan.runs.len() as u32).map(|run| record(plan, run, scatter)));
    store
}

fn exact(analysis: &Analysis) -> &Exact {
    let Outcome::Counted(exact) = &analysis.core.comparisons[0].outcome else {
        panic!("{:?}", analysis.core.comparisons)
    };
    exact
}

#[test]
fn effects_of_counts_show_the_range_over_runs() {
    let files = report(&store(&vm_plan(3), 4.0));
    let effects = file(&files, "effects.svg");
    assert!(effects.contains("change of the instructions per packet"), "{effects}");
    assert!(effects.contains("the range over all pairs of runs"), "{effects}");
    picture("counts/effects", &effects);
}

#[test]
fn report_of_counts_matches_golden_files() {
    let store = store(&vm_plan(3), 0.02);
    let analysis = Analysis::of_store(&store).unwrap();
    let (graph, order) = ("<svg/>".to_owned(), "<svg/>".to_owned());
    let document =
        document(&analysis, &Pictures { graph: graph.into(), order: order.into(), effects: None });
    for form in FORMS {
        golden(&format!("counts/report.{}", form.name), &(form.render)(&document, 100).unwrap());
    }
    golden("counts/summary.txt", &summary_text(&analysis, 100));
    let files = report(&store);
    golden("counts/runs.csv", &file(&files, "runs.csv"));
    golden("counts/gnuplot.data", &file(&files, "gnuplot.data"));
    golden("counts/stateless.instructions", &file(&files, "stateless.instructions"));
    golden("counts/show.json", &format!("{:#}\n", show_json(&analysis).unwrap()));
}

#[test]
fn report_of_counts_contains_no_rates() {
    let files = report(&store(&vm_plan(3), 0.02));
    for name in ["README.md", "results.json", "runs.csv", "graph.svg", "index.html"] {
        let text = file(&files, name);
        for wrong in ["pps<", " pps", "kpps", "packets per second", "faster", "slower", "Welch"] {
            assert!(!text.contains(wrong), "{name}: {wrong}");
        }
    }
    assert!(file(&files, "graph.svg").contains("executed (instructions per packet)"));
    assert!(file(&files, "README.md").contains(NOT_TIME));
    assert!(file(&files, "instructions-stateless.svg").contains("nft_do_chain"));
    let comparison = file(&files, "instructions-stateless-against-none.svg");
    assert!(comparison.contains("nft_do_chain"), "{comparison}");
}

/// Adds call stacks and misses in modelled caches, as a real run has them.
fn with_calls_and_caches(mut record: RunRecord) -> RunRecord {
    let executed = record.trial.executed.as_mut().expect("counts");
    let of = |name: &str, root: &str, caller: &str| {
        let function = executed.functions.iter().find(|function| function.name == name);
        let instructions = function.map_or(0.0, |function| 1000.0 * function.bursts[0]);
        format!("{root};{caller};{name} {instructions:.0}\n")
    };
    let mut folded = of("ip_forward", "asm_common_interrupt", "ip_rcv");
    folded += &of("fib_table_lookup", "asm_common_interrupt", "ip_route_input_slow");
    folded += &of("tick_sched_timer", "asm_sysvec_apic_timer_interrupt", "hrtimer_interrupt");
    if executed.functions.iter().any(|function| function.name == "nft_do_chain") {
        folded += &of("nft_do_chain", "asm_common_interrupt", "nf_hook_slow");
    }
    executed.stacks = Some(ExecutedStacks { folded, unknown_share: 0.0125, unaccounted: 0 });
    executed.caches = "L1I 32 KiB 8-way, L1D 32 KiB 8-way, L2 1 MiB 16-way".into();
    for function in &mut executed.functions {
        let data = if function.name == "fib_table_lookup" { 4.5 } else { 0.25 };
        function.misses = Some(Misses { references: 30.0, code: 1.5, data, last: 0.125 });
    }
    record
}

#[test]
fn report_draws_call_stacks_and_modelled_cache_misses() {
    let plan = vm_plan(3);
    let mut store = Store::memory().unwrap();
    let records = (0..plan.runs.len() as u32).map(|run| record(&plan, run, 0.0));
    fill(&mut store, &plan, records.map(with_calls_and_caches));
    let files = report(&store);
    let none = file(&files, "calls-none.svg");
    // A function that is background in one run is not drawn.
    assert!(none.contains("ip_route_input_slow") && !none.contains("hrtimer_interrupt"), "{none}");
    assert!(!none.contains("nft_do_chain"), "{none}");
    assert!(file(&files, "calls-stateless.svg").contains("nft_do_chain"));
    let comparison = file(&files, "calls-stateless-against-none.svg");
    assert!(
        comparison.contains("nft_do_chain") && comparison.contains("ip_forward"),
        "{comparison}"
    );
    let page = file(&files, "README.md") + &file(&files, "PROFILES.md");
    for words in [
        "[Flame graph of calls](calls-none.svg)",
        "Callers are unknown of 1.25 % of the instructions",
        "[Differential flame graph of calls](calls-stateless-against-none.svg)",
        "Misses in modelled caches",
        "Misses are those of a model, of no machine",
        "L2 1 MiB 16-way",
    ] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    let results: serde_json::Value = serde_json::from_str(&file(&files, "results.json")).unwrap();
    let caches = &results["counts"]["variants"][0]["caches"];
    // Five functions, one of which has more misses; background functions are excluded.
    assert_eq!(caches["total"]["data"], 4.5 + 4.0 * 0.25, "{caches:#}");
    assert_eq!(caches["functions"][0]["name"], "fib_table_lookup");
    // If one run lacks stacks and caches, the variant and the report have neither.
    let mut store = Store::memory().unwrap();
    let records = (0..plan.runs.len() as u32).map(|run| match record(&plan, run, 0.0) {
        first if run == 0 => first,
        other => with_calls_and_caches(other),
    });
    fill(&mut store, &plan, records);
    let variant = plan.runs[0].variants[0];
    let analysis = Analysis::of_store(&store).unwrap();
    let found = &analysis.counts.as_ref().expect("counts").variants[variant];
    assert!(found.calls.is_none() && found.caches.is_none());
}

#[test]
fn exact_difference_is_reported_by_function() {
    let analysis = Analysis::of_store(&store(&vm_plan(3), 0.0)).unwrap();
    let exact = exact(&analysis);
    assert_eq!(exact.verdict, CountVerdict::More);
    assert_eq!((exact.baseline, exact.difference), (874.5, 251.0));
    assert_eq!(exact.total_difference, 251.125);
    assert_eq!((exact.low, exact.high), (251.125, 251.125));
    assert_eq!((exact.n_a, exact.n_b, exact.bursts), (3, 3, 3));
    assert_eq!(exact.runs_within, Some(0.0));
    let found = exact.functions.as_ref().unwrap();
    let named: Vec<(&str, f64)> =
        found.differing.iter().map(|f| (f.name.as_str(), f.difference)).collect();
    assert_eq!(named, [("nft_do_chain", 191.0), ("nf_hook_slow", 37.0), ("ip_forward", 23.0)]);
    assert_eq!((found.others, found.others_sum), (1, 0.125));
    assert_eq!(found.differing[0].atomics, 19.1);
    let background = |name: &str| {
        let functions = &analysis.counts.as_ref().unwrap().variants[0].functions;
        functions.iter().all(|function| function.name != name)
    };
    assert!(background("tick_sched_timer") && !background("ip_forward"));
}

#[test]
fn equal_counts_are_equivalent_and_scatter_is_reported() {
    let plan = vm_plan(2);
    let same = |run: u32, slab: f64| {
        let slab = [slab; 3];
        counted(&plan, run, &[("ip_forward", &[126.0; 3], false), ("slab", &slab, false)])
    };
    let of = |slabs: [f64; 4]| {
        let mut store = Store::memory().unwrap();
        fill(&mut store, &plan, (0..4).map(|run| same(run, slabs[run as usize])));
        Analysis::of_store(&store).unwrap()
    };
    let equal = of([50.0; 4]);
    assert_eq!(exact(&equal).verdict, CountVerdict::Equivalent);
    assert!(exact(&equal).sentence.contains("agree within 0 %"), "{}", exact(&equal).sentence);
    // Runs of both variants scatter by 5 % of the total.
    let first = plan.runs.iter().map(|run| (run.variants[0], run.block));
    let mut slabs = [0.0; 4];
    for (run, (variant, block)) in first.enumerate() {
        slabs[run] = 50.0 + 10.0 * f64::from(block) + variant as f64;
    }
    let loud = of(slabs);
    assert_eq!(exact(&loud).verdict, CountVerdict::Inconclusive);
    let why = "inconclusive: slab scatters by 10.0 instructions per packet between runs";
    assert_eq!(exact(&loud).shown, why);
}

#[test]
fn single_runs_show_a_difference_without_a_verdict() {
    let analysis = Analysis::of_store(&store(&vm_plan(1), 0.0)).unwrap();
    let exact = exact(&analysis);
    assert_eq!((exact.verdict, exact.difference), (CountVerdict::Inconclusive, 251.0));
    assert!(exact.shown.ends_with("one run each: nothing says how well it repeats"));
    assert_eq!(exact.functions.as_ref().unwrap().differing.len(), 3);
}

#[test]
fn run_without_counts_is_left_out_with_a_note() {
    let plan = vm_plan(2);
    let mut records: Vec<RunRecord> = (0..4).map(|run| record(&plan, run, 0.0)).collect();
    records[1].trial.executed = None;
    let mut store = Store::memory().unwrap();
    fill(&mut store, &plan, records);
    let analysis = Analysis::of_store(&store).unwrap();
    assert!(analysis.core.notes.iter().any(|note| note.contains("no counts of instructions")));
    assert_eq!(exact(&analysis).verdict, CountVerdict::Inconclusive);
}

#[test]
fn compare_accepts_counts_and_rejects_mixing_with_rates() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let plan = vm_plan(2);
    for (name, scatter) in [("old", 0.0), ("new", 1.0)] {
        let mut store = Store::open(&place(name).join("run.sqlite")).unwrap();
        fill(&mut store, &plan, (0..4).map(|run| record(&plan, run, scatter)));
        fwdlab_results::report::write(&store, &place(name).join("report")).unwrap();
    }
    let compare_files = |arguments: &[String]| {
        compare(&Question { arguments: arguments.to_vec(), ..Question::default() })
    };
    let path = |name: &str| place(name).display().to_string();
    let results = compare_files(&[path("old/run.sqlite"), path("new/run.sqlite")]).unwrap();
    assert_eq!(results.unit, "instructions per packet");
    let Outcome::Counted(exact) = &results.comparisons[0].outcome else { panic!("{results:?}") };
    assert_eq!((exact.verdict, exact.total_difference), (CountVerdict::Equivalent, 0.5));
    assert_eq!(exact.functions.as_ref().unwrap().scattering[0].name, "kmem_cache_alloc");
    for form in FORMS {
        let text = (form.render)(&results.document(), 100).unwrap();
        assert!(text.contains("instructions"), "{}: {text}", form.name);
        assert!(!text.contains("packets per second"), "{}: {text}", form.name);
    }
    let lists = [path("old/report/none.instructions"), path("old/report/stateless.instructions")];
    let results = compare_files(&lists).unwrap();
    let Outcome::Counted(exact) = &results.comparisons[0].outcome else { panic!("{results:?}") };
    // Totals only: each run's total may include the timer's functions.
    assert_eq!((exact.verdict, exact.difference), (CountVerdict::More, 254.125));
    let table = compare_files(&[path("old/report/runs.csv")]).unwrap();
    let Outcome::Counted(exact) = &table.comparisons[0].outcome else { panic!("{table:?}") };
    assert_eq!((exact.verdict, exact.difference), (CountVerdict::More, 254.125));

    let rates = place("rates.pps");
    std::fs::write(&rates, "# fwdlab 1; testbed: vm; simulated: no; figure: mean\n874\n875\n")
        .unwrap();
    let error = compare_files(&[lists[0].clone(), rates.display().to_string()]).unwrap_err();
    assert!(error.to_string().contains("different figures stand for a run"), "{error}");
    // A history contains rates only.
    let mut history = Collector::new();
    history.add_store(&place("old").join("run.sqlite")).unwrap();
    let debug = format!("{history:?}");
    assert!(debug.contains("instructions per packet, which are no rates"), "{debug}");
}
