//! Progress of a submission: stored runs, and jobs in the queue.

use super::queue::{Queued, Slurm};
use super::record::Record;
use super::{ExperimentDirectory, store_of};
use crate::shard::Shard;
use anyhow::Result;
use fwdlab_results::store::Store;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// State of a submission at one moment.
#[derive(Debug)]
pub(super) struct Status {
    /// Number of stored runs.
    pub(super) stored: usize,
    /// Number of runs missing from each share, from the first share on.
    missing: Vec<usize>,
    /// Its jobs in the queue.
    pub(super) jobs: Vec<Queued>,
}

impl Status {
    /// Reads the queue first and the stores afterwards: a job that ends between the two then counts
    /// as complete, not as lost.
    ///
    /// # Errors
    /// If the queue can't be read.
    pub(super) fn of(
        place: &ExperimentDirectory<'_>,
        record: &Record,
        slurm: &Slurm,
    ) -> Result<Status> {
        let jobs = slurm.queued(&record.jobs)?;
        let of = record.shares;
        let merged = Store::open_read_only(&place.store());
        if let Ok(runs) = merged.and_then(|store| store.recorded_runs()) {
            return Ok(Status { stored: runs.len(), missing: vec![0; of as usize], jobs });
        }
        let mut stored = 0;
        let mut missing = Vec::new();
        for number in 1..=of {
            let share = Shard { number, of };
            // A share that was not started has no store, or one without a plan.
            let runs = Store::open_read_only(&store_of(place, share))
                .and_then(|store| store.recorded_runs())
                .map_or(0, |runs| runs.len());
            stored += runs;
            missing.push(share.runs(place.plan).saturating_sub(runs));
        }
        Ok(Status { stored, missing, jobs })
    }

    /// Incomplete shares.
    pub(super) fn lacking(&self) -> Vec<u32> {
        let numbered = (1..).zip(&self.missing);
        numbered.filter(|(_, missing)| **missing > 0).map(|(number, _)| number).collect()
    }

    /// Incomplete shares that are not in the queue.
    fn lost(&self) -> Vec<u32> {
        let numbers = self.jobs.iter().filter_map(|job| job.id.split_once('_')?.1.parse().ok());
        let queued: Vec<u32> = numbers.collect();
        self.lacking().into_iter().filter(|number| !queued.contains(number)).collect()
    }

    /// The status as text.
    pub(super) fn text(
        &self,
        place: &ExperimentDirectory<'_>,
        record: &Record,
        again: &str,
    ) -> String {
        let (shares, lacking) = (record.shares as usize, self.lacking().len());
        let planned = place.plan.runs.len();
        let mut text = format!(
            "{}: {} of {planned} runs are stored, {} of {shares} shares are complete\n",
            place.plan.name,
            self.stored,
            shares - lacking
        );
        let mut groups: BTreeMap<(&str, &str), (usize, Vec<&str>)> = BTreeMap::new();
        for job in &self.jobs {
            let why = if job.node.is_empty() { job.reason.as_str() } else { "" };
            let group = groups.entry((&job.state, why)).or_default();
            group.0 += 1;
            if !job.node.is_empty() && !group.1.contains(&job.node.as_str()) {
                group.1.push(&job.node);
            }
        }
        for ((state, why), (jobs, nodes)) in &groups {
            let state = state.to_lowercase();
            let nodes = match nodes.len() {
                0 => String::new(),
                1..=8 => format!(" on {}", nodes.join(", ")),
                n => format!(" on {n} machines"),
            };
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            let s = if *jobs == 1 { "" } else { "s" };
            text += &format!("  {jobs} job{s} {state}{nodes}{why}\n");
        }
        let is_merged = place.store().exists();
        match (self.lost().len(), self.jobs.is_empty()) {
            (0, true) if is_merged => {
                text += &format!("  merged: {}\n", place.store().display());
            }
            (0, true) => text += &format!("  its merge is in no queue; go on with: {again}\n"),
            (0, false) => {}
            (lost, _) => {
                let s = if lost == 1 { "" } else { "s" };
                let are = if lost == 1 { "is" } else { "are" };
                text += &format!(
                    "  {lost} share{s} {are} not complete and in no queue (their logs: {}); go on \
                     with: {again}\n",
                    place.shares().display()
                );
            }
        }
        text
    }

    /// The status as JSON.
    pub(super) fn json(&self, place: &ExperimentDirectory<'_>, record: &Record) -> Value {
        let jobs: Vec<Value> = self
            .jobs
            .iter()
            .map(|job| {
                json!({
                    "id": job.id, "state": job.state, "node": job.node, "reason": job.reason,
                })
            })
            .collect();
        json!({
            "plan": record.plan,
            "runs": { "stored": self.stored, "planned": place.plan.runs.len() },
            "shares": {
                "all": record.shares,
                "complete": record.shares as usize - self.lacking().len(),
                "lost": self.lost(),
            },
            "jobs": jobs,
            "merged": place.store().exists(),
        })
    }
}
