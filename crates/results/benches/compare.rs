//! Time of comparing 1,000 variants of 20 runs each, from text and from a store, without reading
//! files.

#[path = "../tests/it/support/mod.rs"]
mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use fwdlab_model::Plan;
use fwdlab_model::plan::{Level, RunMetric};
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::compare::{Question, compare_store, compare_texts};
use fwdlab_results::document::form::{json, text};
use std::fmt::Write as _;
use std::hint::black_box;
use support::{Random, full_store, plan, queues};

const VARIANTS: usize = 1000;
const BLOCKS: usize = 20;

/// One value per run, with noise of 1 % around 1 Mpps.
fn rates(seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    (0..BLOCKS).map(|_| 1e6 * (1.0 + 0.01 * random.normal())).collect()
}

fn lists() -> Vec<(String, String)> {
    let list = |variant: usize| {
        let lines: Vec<String> = rates(variant as u64).iter().map(f64::to_string).collect();
        (format!("v{variant}.pps"), lines.join("\n"))
    };
    (0..VARIANTS).map(list).collect()
}

fn table() -> Vec<(String, String)> {
    let mut text = String::from("run,block,variant,value_pps\n");
    for variant in 0..VARIANTS {
        for (block, pps) in rates(variant as u64).into_iter().enumerate() {
            let run = block * VARIANTS + variant;
            let _ = writeln!(text, "{run},{block},v{variant},{pps:.1}");
        }
    }
    vec![("runs.csv".to_owned(), text)]
}

fn many(figure: RunMetric) -> Plan {
    let mut factor = queues();
    let level = |variant: usize| Level {
        label: format!("v{variant}"),
        number: None,
        changes: Vec::new(),
        build_of: None,
    };
    factor.name = "many".into();
    factor.levels = (0..VARIANTS).map(level).collect();
    let mut plan = plan(TestbedKind::Netns, vec![factor], vec![Some(0)], BLOCKS as u32);
    plan.compare.figure = Some(figure);
    plan
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("1000 variants of 20 runs");
    group.sample_size(10);
    let of_lists = Question::default();
    let lists = lists();
    group.bench_function("lists", |b| b.iter(|| compare_texts(&of_lists, black_box(&lists))));
    let of_table = Question { baseline: Some("v0".to_owned()), ..Question::default() };
    let table = table();
    group.bench_function("table", |b| b.iter(|| compare_texts(&of_table, black_box(&table))));
    for (name, figure) in [("store, mean", RunMetric::Mean), ("store, p90", RunMetric::P90)] {
        let store = full_store(&many(figure));
        let question = Question::default();
        group.bench_function(name, |b| b.iter(|| compare_store(&question, black_box(&store))));
    }
    let results = compare_texts(&of_table, &table).expect("an answer");
    group.bench_function("text", |b| {
        b.iter(|| text::lines(&black_box(&results).document(), 100, text::Detail::Brief))
    });
    group.bench_function("JSON", |b| b.iter(|| json::value(&black_box(&results).document())));
}

criterion_group!(compare, benches);
criterion_main!(compare);
