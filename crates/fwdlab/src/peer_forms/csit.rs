//! Test cases of FD.io CSIT (`resources/model_schema/test_case.schema.yaml` of FDio/csit): MRR for
//! rates at the maximum load, NDRPDR for searches with both goals.
//!
//! CSIT's soak test estimates a critical rate; fwdlab's soak method measures the loss at one load,
//! for which CSIT has no form.

use super::{refused, without_runs};
use crate::error::CliError;
use fwdlab_model::RunRecord;
use fwdlab_model::design::MethodKind;
use fwdlab_model::settings::DutKind;
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::{RunResult, VariantResult};
use fwdlab_results::report::sections::{Method, MethodRun};
use fwdlab_results::store::{Contents, Invocation};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::path::Path;

/// Version of CSIT's model.
const VERSION: &str = "1.5.1";
/// Loss ratios of the goals NDR and PDR.
const LOSS_RATIOS: [f64; 2] = [0.0, 0.005];

/// Returns the test cases of a store.
///
/// # Errors
/// A mistake if its results have no form in CSIT.
pub(super) fn test_cases(
    path: &Path,
    contents: &Contents,
    analysis: &Analysis,
) -> Result<Vec<Value>, CliError> {
    let cases = match &analysis.method {
        None => mrr(path, contents, analysis)?,
        Some(method) => ndrpdr(path, contents, analysis, method)?,
    };
    match cases.is_empty() {
        true => Err(without_runs(path)),
        false => Ok(cases),
    }
}

/// Returns a test case per variant with runs that count.
fn mrr(path: &Path, contents: &Contents, analysis: &Analysis) -> Result<Vec<Value>, CliError> {
    let core = &analysis.core;
    if !core.figure.is_rate() {
        let next = "export an experiment whose runs measure a rate, or use --parquet";
        return Err(refused(path, "CSIT has no form for these results", next));
    }
    if core.runs.iter().any(|run| run.intended_pps.is_some()) {
        let why = "MRR is the rate at the maximum load, and these runs have another load";
        return Err(refused(path, why, "export it with --format otg or --parquet"));
    }
    let cases = core.variants.iter().filter_map(|variant| {
        let counts =
            |run: &&RunResult| run.variant == variant.index && run.absence(core.figure).is_none();
        let runs: Vec<&RunResult> = core.runs.iter().filter(counts).collect();
        let values: Vec<f64> = runs.iter().filter_map(|run| run.value_pps).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        // Of the population, as CSIT's jumpavg computes it.
        let squares = values.iter().map(|value| (value - mean).powi(2));
        let deviation = (squares.sum::<f64>() / n).sqrt();
        let rate = json!({ "unit": "pps", "values": values, "avg": mean, "stdev": deviation });
        let result = json!({ "type": "mrr", "receive_rate": { "rate": rate } });
        let runs: Vec<u32> = runs.iter().map(|run| run.run).collect();
        test_case((contents, analysis), variant, &runs, result)
    });
    Ok(cases.collect())
}

/// Returns a test case per search: an NDRPDR test of CSIT has the result of one search.
fn ndrpdr(
    path: &Path,
    contents: &Contents,
    analysis: &Analysis,
    method: &Method,
) -> Result<Vec<Value>, CliError> {
    let has = |ratio: f64| method.goals.iter().position(|goal| goal.loss_ratio == ratio);
    let ([Some(ndr), Some(pdr)], MethodKind::Mlrsearch) = (LOSS_RATIOS.map(has), method.kind)
    else {
        let why = "CSIT has forms for packet rates at the maximum load, and for searches with goals of \
                   no loss and of 0.5 % loss";
        let next = "search with goals = [\"ndr\", \"pdr\"], or use --parquet";
        return Err(refused(path, why, next));
    };
    let result = |run: &MethodRun| {
        // CSIT's lower bound is the conditional throughput; its upper bound is always missing.
        let [ndr, pdr] = [ndr, pdr].map(|goal| {
            let found = run.found.get(goal).filter(|found| found.has_rate())?;
            Some(json!({ "lower": { "rate": { "unit": "pps", "value": found.throughput? } } }))
        });
        Some(json!({ "type": "ndrpdr", "ndr": ndr?, "pdr": pdr? }))
    };
    let cases = method.runs.iter().filter_map(|run| {
        let variant = analysis.core.variants.iter().find(|one| one.index == run.variant)?;
        test_case((contents, analysis), variant, &[run.run], result(run)?)
    });
    let cases: Vec<Value> = cases.collect();
    if cases.is_empty() && !method.runs.is_empty() {
        let why = "no search found both rates";
        return Err(refused(path, why, "see `fwdlab show` for the reasons"));
    }
    Ok(cases)
}

/// Returns a test case with a result of the given runs; `None` if the store lacks their times.
fn test_case(
    (contents, analysis): (&Contents, &Analysis),
    variant: &VariantResult,
    runs: &[u32],
    result: Value,
) -> Option<Value> {
    let core = &analysis.core;
    let test_type = result["type"].as_str()?;
    let of = |run: &u32| contents.runs.iter().find(|record| record.run == *run);
    let records: Vec<&RunRecord> = runs.iter().filter_map(of).collect();
    let starts = records.iter().filter_map(|record| record.started_at.parse::<Timestamp>().ok());
    let start = starts.min()?;
    let ends = records.iter().filter_map(|record| end(record));
    let end = ends.max()?;
    let settings = &contents.plan.variants.get(variant.index)?.settings;
    let invocation = contents.invocations.first().map(|stored| &stored.invocation)?;
    // In CSIT's names: 64b, imix.
    let size = variant.frame_size.map_or_else(
        || "unknown".to_owned(),
        |size| size.one().map_or_else(|| size.text(), |bytes| format!("{bytes}b")),
    );
    let short = identifier(&variant.label);
    let mut tags: Vec<String> = vec![test_type.to_uppercase(), size.to_uppercase()];
    tags.extend(variant.settings.iter().map(|(factor, level)| format!("{factor}={level}")));
    tags.extend(invocation.simulated.then(|| "SIMULATED".to_owned()));
    let kind: DutKind = settings.dut.kind;
    Some(json!({
        "version": VERSION,
        "test_id": format!("{}.{short}", identifier(&core.name)),
        "test_name_long": format!("{}-{}-{short}", identifier(&core.name), identifier(&size)),
        "test_name_short": format!("{}-{short}", identifier(&core.name)),
        "test_type": test_type,
        "test_documentation": core.testbed.caption,
        "tags": tags,
        "dut_type": kind.name(),
        "dut_version": dut_version(invocation),
        "tg_type": "fwdlab",
        "tg_version": invocation.fwdlab_version,
        "hosts": [invocation.bed.clone().unwrap_or_else(|| host(invocation))],
        "start_time": start.to_string(),
        "end_time": end.to_string(),
        "duration": end.duration_since(start).as_secs_f64(),
        "passed": true,
        "message": "",
        "telemetry": [],
        "result": result,
    }))
}

/// Returns the end of a run: its start, with its window and all other recorded time.
fn end(record: &RunRecord) -> Option<Timestamp> {
    let trials = record.method.iter().flat_map(|method| &method.trials);
    let searched = trials.map(|trial| trial.at_ns + trial.window_ns).max().unwrap_or_default();
    let other = match record.overhead_ns.is_empty() {
        // Of a simulated run only the trials are known.
        true => searched,
        false => record.overhead_ns.iter().map(|(_, time)| time).sum(),
    };
    let nanoseconds = record.trial.window_ns + record.trial.drain_ns + other;
    let start: Timestamp = record.started_at.parse().ok()?;
    start.checked_add(SignedDuration::from_nanos(i64::try_from(nanoseconds).ok()?)).ok()
}

fn fact<'a>(invocation: &'a Invocation, section: &str, name: &str) -> Option<&'a str> {
    let found = invocation.environment.0.get(section)?.get(name)?;
    Some(found.as_str()).filter(|text| !text.is_empty())
}

fn dut_version(invocation: &Invocation) -> &str {
    let simulated = if invocation.simulated { Some("simulated") } else { None };
    simulated.or_else(|| fact(invocation, "kernel", "release")).unwrap_or("unknown")
}

fn host(invocation: &Invocation) -> String {
    fact(invocation, "cpu", "model").unwrap_or("unknown").to_owned()
}

/// A text in lower case without blanks, of at least three characters.
fn identifier(text: &str) -> String {
    let text = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join("_");
    format!("{text:_<3}")
}
