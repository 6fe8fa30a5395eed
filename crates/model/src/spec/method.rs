//! `[method]` in the file.

use super::keys;
use super::keys::value::Reader;
use super::section::Section;
use crate::design::{MethodKind, SuiteTest};
use toml::Spanned;

/// `[method]`; `None` for keys that are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MethodSpec {
    /// `kind`.
    pub kind: Option<Spanned<MethodKind>>,
    /// `goals`.
    pub goals: Option<Spanned<Vec<Spanned<String>>>>,
    /// `[[method.goal]]`.
    pub goal: Vec<Spanned<GoalSpec>>,
    /// `min_load`, packets per second.
    pub min_load: Option<Spanned<f64>>,
    /// `max_load`, packets per second.
    pub max_load: Option<Spanned<f64>>,
    /// `max_trials`.
    pub max_trials: Option<Spanned<u32>>,
    /// `max_time`, in nanoseconds.
    pub max_time: Option<Spanned<u64>>,
    /// `step`, as a ratio.
    pub step: Option<Spanned<f64>>,
    /// `tests`.
    pub tests: Option<Spanned<Vec<Spanned<SuiteTest>>>>,
    /// `shares`, as ratios.
    pub shares: Option<Spanned<Vec<Spanned<f64>>>>,
    /// `repeats`.
    pub repeats: Option<Spanned<u32>>,
    /// `max_frames`.
    pub max_frames: Option<Spanned<u64>>,
    /// `overload`, in nanoseconds.
    pub overload: Option<Spanned<u64>>,
    /// True if a value could not be read: checks that depend on it are skipped.
    pub faulty: bool,
}

/// `[[method.goal]]`; durations in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GoalSpec {
    /// `name`.
    pub name: String,
    /// `loss_ratio`.
    pub loss_ratio: Option<f64>,
    /// `exceed_ratio`.
    pub exceed_ratio: Option<f64>,
    /// `initial_trial`.
    pub initial_ns: Option<u64>,
    /// `final_trial`.
    pub final_ns: Option<u64>,
    /// `duration_sum`.
    pub sum_ns: Option<u64>,
    /// `width`, as a ratio.
    pub width: Option<f64>,
}

impl Reader<'_> {
    pub(super) fn method(&mut self, top: &Section) -> MethodSpec {
        let method = self.table(top, &keys::METHOD);
        let faults = self.faults.len();
        let mut spec = MethodSpec {
            kind: method.read_spanned("kind", |key, node| self.word(key, node)),
            goals: method.read_spanned("goals", |key, node| {
                self.list(key, node, |reader, key, node| reader.word(key, node))
            }),
            min_load: method.read_spanned("min_load", |key, node| self.packet_rate(key, node)),
            max_load: method.read_spanned("max_load", |key, node| self.packet_rate(key, node)),
            max_trials: method.read_spanned("max_trials", |key, node| self.integer(key, node)),
            max_time: method.read_spanned("max_time", |key, node| self.duration_ns(key, node)),
            step: method.read_spanned("step", |key, node| self.percent(key, node)),
            tests: method.read_spanned("tests", |key, node| {
                self.list(key, node, |reader, key, node| reader.word(key, node))
            }),
            shares: method.read_spanned("shares", |key, node| {
                self.list(key, node, |reader, key, node| reader.percent(key, node))
            }),
            repeats: method.read_spanned("repeats", |key, node| self.integer(key, node)),
            max_frames: method.read_spanned("max_frames", |key, node| self.integer(key, node)),
            overload: method.read_spanned("overload", |key, node| self.duration_ns(key, node)),
            ..MethodSpec::default()
        };
        for goal in self.tables(&method, &keys::GOAL).into_iter().flatten().flatten() {
            let Some(name) =
                self.required(&goal, "name", |reader, key, node| reader.name(key, node))
            else {
                continue;
            };
            let place = name.span();
            let read = GoalSpec {
                name: name.into_inner(),
                loss_ratio: goal.read("loss_ratio", |key, node| self.number(key, node)),
                exceed_ratio: goal.read("exceed_ratio", |key, node| self.number(key, node)),
                initial_ns: goal.read("initial_trial", |key, node| self.duration_ns(key, node)),
                final_ns: goal.read("final_trial", |key, node| self.duration_ns(key, node)),
                sum_ns: goal.read("duration_sum", |key, node| self.duration_ns(key, node)),
                width: goal.read("width", |key, node| self.percent(key, node)),
            };
            spec.goal.push(Spanned::new(place, read));
        }
        spec.faulty = self.faults.len() > faults;
        spec
    }
}
