//! Metrics of an Open Traffic Generator (OpenAPI model of open-traffic-generator/models).

use super::{refused, without_runs};
use crate::error::CliError;
use fwdlab_results::report::Analysis;
use fwdlab_results::store::Contents;
use serde_json::{Value, json};
use std::path::Path;

/// A flow per run that counts.
pub(super) fn flow_metrics(
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
        return Err(without_runs(path));
    }
    Ok(metrics)
}
