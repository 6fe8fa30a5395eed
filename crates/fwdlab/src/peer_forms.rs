//! Results of a store in the forms of other tools: CSIT's test cases, metrics of an Open Traffic
//! Generator.

use crate::error::CliError;
use fwdlab_model::RunRecord;
use fwdlab_model::settings::DutKind;
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::{RunResult, VariantResult};
use fwdlab_results::store::{Contents, Invocation};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::path::Path;

/// Version of CSIT's model (`resources/model_schema/test_case.schema.yaml` of FDio/csit).
const CSIT: &str = "1.5.1";

/// A form of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PeerForm {
    /// Test cases of FD.io CSIT: one per variant, its runs as trials of an MRR test
    Csit,
    /// Metrics of an Open Traffic Generator: one flow per run
    Otg,
}

impl PeerForm {
    /// Writes the results of several stores as one JSON value.
    ///
    /// # Errors
    /// A mistake if a store has no results in this form.
    pub(crate) fn write(self, stores: &[(&Path, Contents, Analysis)]) -> Result<Value, CliError> {
        let of = match self {
            PeerForm::Csit => test_cases,
            PeerForm::Otg => flow_metrics,
        };
        let mut all = Vec::new();
        for (path, contents, analysis) in stores {
            all.extend(of(path, contents, analysis)?);
        }
        Ok(match self {
            PeerForm::Csit => Value::Array(all),
            PeerForm::Otg => json!({ "choice": "flow_metrics", "flow_metrics": all }),
        })
    }
}

fn refused(path: &Path, why: &str, next: &str) -> CliError {
    CliError::Mistake(format!("{}: {why}\n  next step: {next}", path.display()))
}

/// A test case per variant with runs that count.
fn test_cases(
    path: &Path,
    contents: &Contents,
    analysis: &Analysis,
) -> Result<Vec<Value>, CliError> {
    let core = &analysis.core;
    if analysis.method.is_some() || !core.figure.is_rate() {
        let next = "export an experiment whose runs measure a rate, or use --parquet";
        return Err(refused(path, "CSIT has no form for this method's results", next));
    }
    if core.runs.iter().any(|run| run.intended_pps.is_some()) {
        let why = "MRR is the rate at the maximum load, and these runs have another load";
        return Err(refused(path, why, "export it with --format otg or --parquet"));
    }
    let cases = core.variants.iter().filter_map(|variant| {
        let counts =
            |run: &&RunResult| run.variant == variant.index && run.absence(core.figure).is_none();
        let runs: Vec<&RunResult> = core.runs.iter().filter(counts).collect();
        test_case(contents, analysis, variant, &runs)
    });
    let cases: Vec<Value> = cases.collect();
    if cases.is_empty() {
        return Err(refused(path, "no run counts", "measure runs, or see `fwdlab show`"));
    }
    Ok(cases)
}

/// `None` without runs.
fn test_case(
    contents: &Contents,
    analysis: &Analysis,
    variant: &VariantResult,
    runs: &[&RunResult],
) -> Option<Value> {
    let core = &analysis.core;
    let values: Vec<f64> = runs.iter().filter_map(|run| run.value_pps).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    // Of the population, as CSIT's jumpavg computes it.
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt();
    let records: Vec<&RunRecord> = runs
        .iter()
        .filter_map(|run| contents.runs.iter().find(|record| record.run == run.run))
        .collect();
    let starts = records.iter().filter_map(|record| record.started_at.parse::<Timestamp>().ok());
    let start = starts.min()?;
    let ends = records.iter().filter_map(|record| end(record));
    let end = ends.max()?;
    let settings = &contents.plan.variants.get(variant.index)?.settings;
    let invocation = contents.invocations.first().map(|stored| &stored.invocation)?;
    let size = variant.frame_size.map_or_else(|| "unknown".to_owned(), |size| format!("{size}b"));
    let short = identifier(&variant.label);
    let mut tags: Vec<String> = vec!["MRR".to_owned(), size.to_uppercase()];
    tags.extend(variant.settings.iter().map(|(factor, level)| format!("{factor}={level}")));
    tags.extend(invocation.simulated.then(|| "SIMULATED".to_owned()));
    let kind: DutKind = settings.dut.kind;
    Some(json!({
        "version": CSIT,
        "test_id": format!("{}.{short}", identifier(&core.name)),
        "test_name_long": format!("{}-{}-{short}", identifier(&core.name), identifier(&size)),
        "test_name_short": format!("{}-{short}", identifier(&core.name)),
        "test_type": "mrr",
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
        "result": { "type": "mrr", "receive_rate": { "rate": {
            "unit": "pps", "values": values, "avg": mean, "stdev": deviation,
        } } },
    }))
}

/// End of a run: its start, with its window and all other recorded time.
fn end(record: &RunRecord) -> Option<Timestamp> {
    let overhead: u64 = record.overhead_ns.iter().map(|(_, time)| time).sum();
    let nanoseconds = record.trial.window_ns + record.trial.drain_ns + overhead;
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

/// A flow per run that counts.
fn flow_metrics(
    path: &Path,
    contents: &Contents,
    analysis: &Analysis,
) -> Result<Vec<Value>, CliError> {
    let core = &analysis.core;
    if analysis.method.is_some() || !core.figure.is_rate() || core.alternation {
        let why = "only runs of one trial each are flows";
        return Err(refused(path, why, "use --parquet"));
    }
    let metrics =
        core.runs.iter().filter(|run| run.absence(core.figure).is_none()).filter_map(|run| {
            let record = contents.runs.iter().find(|record| record.run == run.run)?;
            let size =
                core.variants.iter().find(|variant| variant.index == run.variant)?.frame_size;
            let window = &record.trial.window;
            let mut metric = json!({
                "name": format!("{}: {}, run {}", core.name, run.label, run.run + 1),
                "port_tx": "sender",
                "port_rx": "receiver",
                "transmit": "stopped",
                // The API writes 64-bit numbers as text.
                "frames_tx": window.offered.to_string(),
                "frames_rx": window.forwarded.to_string(),
                "frames_tx_rate": run.offered_pps,
                "frames_rx_rate": run.mean_pps,
                "loss": 100.0 * run.loss_ratio().unwrap_or_default(),
            });
            // Frames of a mix have no common number of bytes.
            if let Some(size) = size.filter(|size| !size.is_mix()) {
                let bytes = u64::from(size.most());
                metric["bytes_tx"] = (window.offered * bytes).to_string().into();
                metric["bytes_rx"] = (window.forwarded * bytes).to_string().into();
            }
            Some(metric)
        });
    let metrics: Vec<Value> = metrics.collect();
    if metrics.is_empty() {
        return Err(refused(path, "no run counts", "measure runs, or see `fwdlab show`"));
    }
    Ok(metrics)
}
