//! Interpretation of an experiment file: base settings, factors, phases, design and comparison,
//! checked together. All other code may rely on the result.
//!
//! Single values are checked when they are read ([`crate::spec`]).

mod builds;
mod check;
mod compare;
mod device;
mod laboratory;
mod machine;
mod method;
mod stopping;

use crate::design::{Change, Compare, Design, Factor, Level, Method, Trial};
use crate::diagnostic::Diagnostic;
use crate::profile::ProfilePlan;
use crate::settings::Settings;
use crate::spec::{Setting, Spec};
use toml::Spanned;

/// A valid experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Short name: the file's stem.
    pub name: String,
    /// Title of the report.
    pub title: String,
    /// Version of the file's format.
    pub version: u32,
    /// Settings of the base, as in the file.
    pub base: Settings,
    /// The factors in the order of the file.
    pub factors: Vec<ExperimentFactor>,
    /// Phases of a trial.
    pub trial: Trial,
    /// Design.
    pub design: Design,
    /// Baselines and criteria of the comparisons.
    pub compare: Compare,
    /// Measurements in each run in addition to its own trial, if any.
    pub method: Option<Method>,
    /// Profiling of each variant, if any.
    pub profile: Option<ProfilePlan>,
}

/// A factor, and the settings of each of its levels.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentFactor {
    /// Factor as in the plan.
    pub factor: Factor,
    /// The settings of each level.
    pub settings: Vec<Vec<Setting>>,
}

/// Maximum number of variants of an experiment; more is a mistake.
pub const VARIANTS_MAX: usize = 4096;
/// Maximum number of runs of an experiment.
pub const RUNS_MAX: usize = 1_000_000;

impl Experiment {
    /// Interprets a parsed file. `path` names the file; its stem names the experiment.
    ///
    /// Returns the experiment and every fault; it is valid only without faults.
    pub fn new(path: &str, spec: &Spec) -> (Experiment, Vec<Diagnostic>) {
        let mut faults = Vec::new();
        let name = stem(path);
        let factors: Vec<ExperimentFactor> = spec.factors.iter().map(meaning_of).collect();
        let experiment = Experiment {
            title: spec.title.clone().unwrap_or_else(|| name.clone()),
            name,
            version: 1,
            base: base_of(spec),
            trial: trial_of(spec),
            design: design_of(spec),
            method: method::method_of(spec),
            compare: compare::compare_of(spec, &mut faults),
            profile: profile_of(spec, None),
            factors,
        };
        check::factors(spec, &mut faults);
        check::size(spec, &experiment, &mut faults);
        check::trial(spec, &experiment.trial, &mut faults);
        check::alternation(spec, &experiment, &mut faults);
        compare::figure(spec, &experiment, &mut faults);
        stopping::judge(spec, &experiment, &mut faults);
        builds::judge(spec, &mut faults);
        check::effects(spec, &experiment, &mut faults);
        check::variants(spec, &experiment, &mut faults);
        laboratory::judge(spec, &mut faults);
        method::judge(spec, &experiment, &mut faults);
        machine::judge(spec, &experiment, &mut faults);
        device::judge(spec, &experiment, &mut faults);
        (experiment, faults)
    }

    /// Restricts a factor to two levels, the first of which is the baseline.
    pub fn of_pair(mut self, factor: usize, pair: [usize; 2]) -> Experiment {
        let narrowed = &mut self.factors[factor];
        narrowed.factor.levels = pair.map(|level| narrowed.factor.levels[level].clone()).into();
        narrowed.settings = pair.map(|level| narrowed.settings[level].clone()).into();
        self.compare.baseline[factor] = Some(0);
        self
    }

    /// Returns every combination of levels: the index of the level for each factor. The last factor
    /// changes fastest.
    pub fn combinations(&self) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for factor in &self.factors {
            let levels = factor.settings.len();
            all = all
                .into_iter()
                .flat_map(|head| {
                    (0..levels).map(move |level| {
                        let mut combination = head.clone();
                        combination.push(level);
                        combination
                    })
                })
                .collect();
        }
        all
    }
}

/// Returns the file name without folders and without its last extension.
fn stem(path: &str) -> String {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = file.strip_suffix(".toml").unwrap_or(file);
    if stem.is_empty() { "experiment".to_owned() } else { stem.to_owned() }
}

fn base_of(spec: &Spec) -> Settings {
    let mut base = Settings::default();
    for setting in &spec.settings {
        setting.get_ref().apply(&mut base);
    }
    base.testbed.kind = value_or(&spec.kind, base.testbed.kind);
    base.testbed.vm.is_timed = machine::is_timed(spec);
    base.testbed.lab = spec.lab.as_ref().map(|lab| lab.get_ref().clone());
    base.testbed.sim = spec.sim.clone();
    base.testbed.sim.effect =
        spec.effects.iter().map(|(name, factor)| (name.get_ref().clone(), *factor)).collect();
    base
}

fn meaning_of(spec: &crate::spec::FactorSpec) -> ExperimentFactor {
    let levels = spec.levels.iter().map(|level| Level {
        label: level.label.get_ref().clone(),
        number: level.number,
        changes: level.settings.iter().map(|setting| change_of(setting.get_ref())).collect(),
        build_of: level.build_of.as_ref().map(|revision| revision.get_ref().clone()),
    });
    let settings = spec
        .levels
        .iter()
        .map(|level| level.settings.iter().map(|setting| setting.get_ref().clone()).collect());
    ExperimentFactor {
        factor: Factor { name: spec.name.get_ref().clone(), levels: levels.collect() },
        settings: settings.collect(),
    }
}

fn change_of(setting: &Setting) -> Change {
    Change { setting: setting.name(), value: setting.value(), live: setting.is_live() }
}

fn trial_of(spec: &Spec) -> Trial {
    Trial {
        warmup_ns: value_or(&spec.trial.warmup, 300_000_000),
        duration_ns: value_or(&spec.trial.duration, 1_000_000_000),
        drain_ns: value_or(&spec.trial.drain, 200_000_000),
        interval_ns: value_or(&spec.trial.interval, 100_000_000),
        slice_ns: value_or(&spec.trial.slice, 20_000_000),
    }
}

fn design_of(spec: &Spec) -> Design {
    let stop = spec.design.stop.as_ref().map(|spanned| *spanned.get_ref());
    Design {
        blocks: match stop {
            Some(stop) => value_or(&spec.design.max_blocks, stop.default_blocks()),
            None => value_or(&spec.design.blocks, 5),
        },
        seed: value_or(&spec.design.seed, 1),
        alternate_ns: spec.design.alternate.as_ref().map(|spanned| *spanned.get_ref()),
        settle_ns: value_or(&spec.design.settle, 40_000_000),
        stop,
        sequential: false,
    }
}

/// Returns the profile plan: `requested` decides, else `cpu`, else the presence of a `[profile]`
/// table.
pub fn profile_of(spec: &Spec, requested: Option<bool>) -> Option<ProfilePlan> {
    let written = &spec.profile;
    let requested = requested.or(written.cpu).unwrap_or(written.present);
    let default = ProfilePlan::default();
    requested.then(|| ProfilePlan {
        sampling_hz: written.sampling_hz.unwrap_or(default.sampling_hz),
        duration_ns: written.duration_ns.unwrap_or(default.duration_ns),
        windows: written.windows.unwrap_or(default.windows),
        starts: written.starts.unwrap_or(u16::from(written.rate.is_some())),
        rate: written.rate,
        frequency_hz: written.frequency_hz.unwrap_or(default.frequency_hz),
        event: written.event.unwrap_or(default.event),
        call_graph: written.call_graph.unwrap_or(default.call_graph),
        icicle: written.icicle.unwrap_or(default.icicle),
        subsystems: written.subsystems.clone(),
    })
}

fn value_or<T: Copy>(written: &Option<Spanned<T>>, default: T) -> T {
    written.as_ref().map_or(default, |spanned| *spanned.get_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiment_name_is_the_file_stem() {
        assert_eq!(stem("experiments/demo.toml"), "demo");
        assert_eq!(stem("demo"), "demo");
        assert_eq!(stem("a.b.toml"), "a.b");
        assert_eq!(stem("x/.toml"), "experiment");
    }
}
