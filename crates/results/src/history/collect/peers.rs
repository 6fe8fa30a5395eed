//! Points from files of other tools: one file is one revision, which its name contains.
//!
//! The name is the only source of the revision: no format records the device's. Benchmarks,
//! quantities and tools are separate series.

use super::super::date::iso;
use super::super::releases;
use super::super::results::PointResult;
use super::super::revision::Revision;
use super::{Collector, Found, Key, SeriesBuilder};
use crate::compare::{BenchmarkResult, FileContents};
use crate::facts::Facts;
use std::collections::BTreeMap;
use std::path::Path;

/// Machine of a file; no format records the device under test.
const MACHINE: &str = "unknown machine";

impl Collector {
    /// Adds one point for each benchmark of a file of another tool.
    pub fn add_file(&mut self, contents: &FileContents) {
        self.files += 1;
        self.notes.extend(contents.notes.iter().cloned());
        for benchmark in &contents.benchmarks {
            self.add_benchmark(contents, benchmark);
        }
    }

    fn add_benchmark(&mut self, contents: &FileContents, benchmark: &BenchmarkResult) {
        let path = contents.path.as_path();
        let Some(summary) = benchmark.summary else {
            return self.note(path, "a value of it is not finite: left out");
        };
        let mut name = vec![contents.tool.clone()];
        name.extend(benchmark.name.clone());
        name.push(benchmark.title.clone());
        let key = Key {
            name,
            testbed: String::new(),
            figure: benchmark.title.clone(),
            levels: Vec::new(),
            settings: BTreeMap::new(),
        };
        let series = self.series.entry(key).or_insert_with(|| SeriesBuilder {
            facts: Facts::default(),
            machine: MACHINE.to_owned(),
            caption: String::new(),
            description: benchmark.title.clone(),
            quantity: benchmark.quantity.clone(),
            points: Vec::new(),
        });
        let revision = Revision::of(&stem(path));
        let made = releases::day_of(&revision.place);
        series.points.push(Found {
            made,
            measured: None,
            place: revision.place,
            point: PointResult {
                revision: revision.label,
                told_apart_by: None,
                patched: revision.patched,
                median: summary.median,
                min: summary.min,
                max: summary.max,
                n: summary.n,
                values: benchmark.values.clone(),
                date: None,
                made: made.map(iso),
                recent: i64::MIN,
                store: path.to_path_buf(),
            },
            version: String::new(),
            trial: None,
            traffic: BTreeMap::new(),
        });
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
