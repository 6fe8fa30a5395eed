//! Events of a running experiment: one JSON object per line, appended to `live.jsonl` next to the
//! store.
//!
//! Viewers read the file. The measuring process does not know whether anyone does, so a viewer
//! cannot change a result.

use crate::stores::LIVE;
use fwdlab_bench::Live;
use fwdlab_model::{Plan, PlannedRun, RunRecord};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two recorded rates: a day of them takes some megabytes.
const RATES: Duration = Duration::from_millis(500);

/// Writes events. A failed write stops nothing: the store is what counts.
pub(crate) struct Events {
    file: Option<File>,
    /// Time at which the last rate was written.
    rated: Option<Instant>,
}

impl Events {
    /// Discards all events.
    pub(crate) fn none() -> Events {
        Events { file: None, rated: None }
    }

    /// Creates the file in `directory`, replacing the file of the previous session.
    pub(crate) fn create(directory: &Path) -> Events {
        // A reader of the old file keeps it, and notices that there is a new one of this name.
        let path = directory.join(LIVE);
        let _ = std::fs::remove_file(&path);
        Events { file: File::create(path).ok(), rated: None }
    }

    fn write(&mut self, event: &str, mut fields: Value) {
        let Some(file) = &mut self.file else { return };
        let now = jiff::Timestamp::now().as_millisecond();
        fields["event"] = event.into();
        fields["at_ms"] = now.into();
        // A single write, so that a reader never sees half a line followed by the next one.
        if file.write_all(format!("{fields}\n").as_bytes()).is_err() {
            self.file = None;
        }
    }

    /// The session begins; `done` of `total` runs are already stored.
    pub(crate) fn begin(&mut self, plan: &Plan, done: usize, total: usize) {
        let fields = json!({
            "pid": std::process::id(), "title": plan.title, "hash": plan.hash,
            "runs": total, "done": done, "blocks": plan.design.blocks,
        });
        self.write("begin", fields);
    }

    /// A stage other than a run begins: a calibration, a profile.
    pub(crate) fn stage(&mut self, stage: &str, label: &str) {
        self.write("stage", json!({ "stage": stage, "label": label }));
    }

    /// A run begins.
    pub(crate) fn run(&mut self, run: &PlannedRun, stage: &str, label: &str) {
        self.write("run", json!({ "run": run.index, "stage": stage, "label": label }));
    }

    /// The current step.
    pub(crate) fn step(&mut self, step: &str) {
        self.write("step", json!({ "step": step }));
    }

    /// Rates of one interval of the traffic in packets per second, some of them per second.
    pub(crate) fn rates(&mut self, live: &Live, label: &str) {
        if self.rated.is_some_and(|at| at.elapsed() < RATES) {
            return;
        }
        self.rated = Some(Instant::now());
        let fields = json!({
            "offered_pps": live.offered_pps.round(), "forwarded_pps": live.forwarded_pps.round(),
            "label": label,
        });
        self.write("rates", fields);
    }

    /// A trial of a method has ended.
    pub(crate) fn trial(&mut self, text: &str) {
        self.write("trial", json!({ "said": text }));
    }

    /// A run is stored; `value` is its number in the report, `figure` the same as text.
    pub(crate) fn done(&mut self, record: &RunRecord, value: Option<f64>, figure: &str) {
        self.write("done", done(record, value, figure));
    }

    /// A note that appears once.
    pub(crate) fn note(&mut self, text: &str) {
        self.write("note", json!({ "text": text }));
    }

    /// The session has ended; the store contains the outcome.
    pub(crate) fn end(&mut self) {
        self.write("end", json!({}));
        self.file = None;
    }
}

/// Fields of a stored run, for the event file and for the page that follows it.
pub(crate) fn done(record: &RunRecord, value: Option<f64>, figure: &str) -> Value {
    let doubts: Vec<String> = record.warnings.iter().map(|w| w.sentence()).collect();
    let seconds = record.trial.window_ns.max(1) as f64 / 1e9;
    let pps = (record.trial.window.forwarded as f64 / seconds).round();
    json!({
        "run": record.run, "figure": figure, "value": value, "forwarded_pps": pps,
        "doubts": doubts,
    })
}
