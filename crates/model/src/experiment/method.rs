//! `[method]`: interpretation, checked together with traffic, design and testbed.

mod directions;
mod flood;
mod reset;

use super::Experiment;
use crate::design::method::TRIALS_MAX;
use crate::design::{Method, MethodKind, SearchMethod, SuiteTest};
use crate::diagnostic::Diagnostic;
use crate::settings::{GeneratorKind, Rate, Settings, TestbedKind};
use crate::spec::{GoalSpec, MethodSpec, Spec};
use fwdlab_search::{Fault, Goal, Limits, Search};
use std::ops::Range;
use toml::Spanned;

/// Step between two trials of a loss curve, as a share of the maximum load (RFC 2544, 26.3).
const STEP: f64 = 0.1;
/// Trials of a soak.
const SOAK_TRIALS: u32 = 60;

/// Searches for the longest burst (RFC 9004 requires many, RFC 2544 50).
const BURSTS: u32 = 50;
/// Repetitions of an overload or a reset (RFC 2544: "a number of times").
const REPEATS: u32 = 5;
/// Shares of the found rate at which latency is measured, as in FD.io CSIT.
const SHARES: [f64; 3] = [0.1, 0.5, 0.9];
/// Trials of the latency test of RFC 2544 (26.2).
const TIMED: u32 = 20;
/// Searches for the number of connections that a table holds.
const CAPACITIES: u32 = 1;
/// Minimum number of flows if each packet opens a connection: fewer are opened in a moment.
const CONNECTIONS_MIN: u32 = 1_000;
/// Duration of an overload (RFC 2544, 26.5).
const OVERLOAD_NS: u64 = 60_000_000_000;

/// Returns the measurements in addition to a run's own trial; `None` if there are none.
pub(super) fn method_of(spec: &Spec) -> Option<Method> {
    let written = &spec.method;
    match written.kind.as_ref()?.get_ref() {
        MethodKind::Blast | MethodKind::Fixed => None,
        MethodKind::Mlrsearch => Some(Method::Mlrsearch(search_of(written, &["ndr", "pdr"]))),
        MethodKind::LossCurve => Some(curve_of(written)),
        MethodKind::Soak => {
            Some(Method::Soak { trials: super::value_or(&written.max_trials, SOAK_TRIALS) })
        }
        MethodKind::Flood => Some(Method::Flood {
            step: super::value_or(&written.step, STEP),
            max_load: load(&written.max_load).unwrap_or(0),
        }),
        MethodKind::BackToBack => Some(bursts_of(written)),
        MethodKind::SystemRecovery => Some(recovery_of(written)),
        MethodKind::Reset => Some(reset_of(written)),
        MethodKind::Latency => {
            let parts = vec![Method::Mlrsearch(search_of(written, &["pdr"])), delays_of(written)];
            Some(Method::Latency { parts })
        }
        MethodKind::EstablishmentRate => Some(establishment_of(written)),
        MethodKind::TearDownRate => Some(tear_down_of(written)),
        MethodKind::TableCapacity => Some(capacity_of(written)),
        suite @ (MethodKind::Rfc2544 | MethodKind::Rfc9693) => {
            let is_requested = |test: &&SuiteTest| match &written.tests {
                Some(tests) => tests.get_ref().iter().any(|requested| requested.get_ref() == *test),
                None => true,
            };
            let of = |test: &SuiteTest| match test {
                SuiteTest::Throughput => Method::Mlrsearch(search_of(written, &["rfc2544"])),
                SuiteTest::Latency => {
                    let repeats = super::value_or(&written.repeats, TIMED);
                    Method::Delays { shares: vec![1.0], repeats }
                }
                SuiteTest::FrameLossRate => curve_of(written),
                SuiteTest::BackToBack => bursts_of(written),
                SuiteTest::SystemRecovery => recovery_of(written),
                SuiteTest::Reset => reset_of(written),
                SuiteTest::EstablishmentRate => establishment_of(written),
                SuiteTest::TearDownRate => tear_down_of(written),
                SuiteTest::TableCapacity => capacity_of(written),
            };
            // In the suite's order, not the file's: later tests use earlier results.
            let in_order = SuiteTest::ALL.iter().filter(|test| test.suite() == *suite);
            let parts: Vec<Method> = in_order.filter(is_requested).map(of).collect();
            Some(match suite {
                MethodKind::Rfc9693 => Method::Rfc9693 { parts },
                _ => Method::Rfc2544 { parts },
            })
        }
    }
}

fn establishment_of(written: &MethodSpec) -> Method {
    Method::Establishment(search_of(written, &["ndr"]))
}

fn tear_down_of(written: &MethodSpec) -> Method {
    Method::TearDown { repeats: super::value_or(&written.repeats, REPEATS) }
}

fn capacity_of(written: &MethodSpec) -> Method {
    Method::Capacity { repeats: super::value_or(&written.repeats, CAPACITIES) }
}

fn search_of(written: &MethodSpec, goals: &[&'static str]) -> SearchMethod {
    SearchMethod {
        min_load: load(&written.min_load),
        max_load: load(&written.max_load),
        max_trials: super::value_or(&written.max_trials, TRIALS_MAX),
        max_time_ns: super::value_or(&written.max_time, 3_600_000_000_000),
        ..SearchMethod::of(goals_of(written, goals))
    }
}

fn curve_of(written: &MethodSpec) -> Method {
    let step = super::value_or(&written.step, STEP);
    Method::LossCurve { step, max_load: load(&written.max_load) }
}

fn bursts_of(written: &MethodSpec) -> Method {
    Method::BackToBack {
        repeats: super::value_or(&written.repeats, BURSTS),
        max_frames: written.max_frames.as_ref().map(|frames| *frames.get_ref()),
    }
}

fn recovery_of(written: &MethodSpec) -> Method {
    Method::SystemRecovery {
        repeats: super::value_or(&written.repeats, REPEATS),
        overload_ns: super::value_or(&written.overload, OVERLOAD_NS),
    }
}

fn delays_of(written: &MethodSpec) -> Method {
    let shares = match &written.shares {
        Some(shares) => shares.get_ref().iter().map(|share| *share.get_ref()).collect(),
        None => SHARES.to_vec(),
    };
    Method::Delays { shares, repeats: super::value_or(&written.repeats, REPEATS) }
}

fn reset_of(written: &MethodSpec) -> Method {
    Method::Reset { repeats: super::value_or(&written.repeats, REPEATS) }
}

fn load(written: &Option<Spanned<f64>>) -> Option<u64> {
    written.as_ref().map(|load| load.get_ref().round() as u64)
}

/// Returns the goals of a search; the `usual` ones if none is given.
fn goals_of(written: &MethodSpec, usual: &[&'static str]) -> Vec<Goal> {
    let words: Vec<&str> = match &written.goals {
        Some(words) => words.get_ref().iter().map(|word| word.get_ref().as_str()).collect(),
        None if written.goal.is_empty() => usual.to_vec(),
        None => Vec::new(),
    };
    let presets = words.into_iter().filter_map(Goal::preset);
    presets.chain(written.goal.iter().map(|goal| goal_of(goal.get_ref()))).collect()
}

fn goal_of(written: &GoalSpec) -> Goal {
    let default = Goal::preset("ndr").unwrap_or_else(|| unreachable!("a preset of that name"));
    let final_ns = written.final_ns.unwrap_or(default.final_ns);
    Goal {
        name: written.name.clone(),
        loss_ratio: written.loss_ratio.unwrap_or(default.loss_ratio),
        exceed_ratio: written.exceed_ratio.unwrap_or(default.exceed_ratio),
        initial_ns: written.initial_ns.unwrap_or(default.initial_ns.min(final_ns)),
        final_ns,
        sum_ns: written.sum_ns.unwrap_or(default.sum_ns.max(final_ns)),
        width: written.width.unwrap_or(default.width),
    }
}

/// Checks that the method fits its traffic, design and testbed.
pub(super) fn judge(spec: &Spec, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let written = &spec.method;
    let Some(kind) = &written.kind else {
        return without_kind(written, faults);
    };
    unused(written, *kind.get_ref(), faults);
    rates(kind, experiment, faults);
    if experiment.method.is_none() {
        return;
    }
    if let Some(alternate) = &spec.design.alternate {
        faults.push(
            Diagnostic::new(kind.span(), "an alternation is one stream, without other trials")
                .context(alternate.span(), "the variants alternate in it")
                .help("remove `alternate`: each run is then a start of its own"),
        );
    }
    let testbed = &experiment.base.testbed;
    if testbed.kind == TestbedKind::Vm && !testbed.vm.is_timed {
        faults.push(
            Diagnostic::new(kind.span(), "where instructions are counted, time means nothing")
                .label("its trials measure rates")
                .help("leave `figure` out of [compare], or [method]"),
        );
    }
    for part in experiment.method.iter().flat_map(Method::parts) {
        match part {
            Method::Mlrsearch(search) | Method::Establishment(search) if !written.faulty => {
                searchable(written, search, kind.span(), faults);
            }
            Method::BackToBack { .. } => burstable(kind, experiment, faults),
            Method::SystemRecovery { .. } => {
                own_sender(kind, experiment, "keeps one rate as long as it sends", faults);
            }
            Method::Reset { .. } => reset::judge(written, kind, experiment, faults),
            Method::Flood { max_load, .. } if !written.faulty => {
                flood::judge(kind, *max_load, experiment, faults);
            }
            Method::Delays { shares, repeats } => {
                timeable(written, (shares, *repeats), experiment, faults);
            }
            _ => {}
        }
    }
    if experiment.method.as_ref().is_some_and(Method::opens_connections) {
        stateful(kind, experiment, faults);
    }
    directions::judge(kind, experiment, faults);
    let tests = written.tests.iter().flat_map(|tests| tests.get_ref());
    for test in tests.filter(|test| test.get_ref().suite() != *kind.get_ref()) {
        let (name, suite) = (test.get_ref().name(), test.get_ref().suite().name());
        faults.push(
            Diagnostic::new(test.span(), format!("`{name}` is a test of the suite `{suite}`"))
                .context(kind.span(), "and this is another one"),
        );
    }
    if let Some(tests) = written.tests.as_ref().filter(|tests| tests.get_ref().is_empty()) {
        faults.push(
            Diagnostic::new(tests.span(), "a suite without a test")
                .help("name some, or leave `tests` out for all"),
        );
    }
}

/// Checks that counted bursts are sent by fwdlab's own senders, into a testbed that does not block
/// them.
fn burstable(kind: &Spanned<MethodKind>, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let base = &experiment.base;
    own_sender(kind, experiment, "is not asked for counted bursts", faults);
    if base.testbed.kind == TestbedKind::Memory {
        faults.push(
            Diagnostic::new(
                kind.span(),
                "in memory the generator waits for free slots: no burst is too long",
            )
            .help("choose kind = \"netns\" in [testbed], or other `tests`"),
        );
    }
}

/// Checks that connections are opened by counted packets, each of another flow, through a device
/// that keeps states.
fn stateful(kind: &Spanned<MethodKind>, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    own_sender(kind, experiment, "is not asked for counted packets", faults);
    if experiment.base.testbed.kind == TestbedKind::Memory {
        faults.push(
            Diagnostic::new(
                kind.span(),
                "in memory the generator waits for free slots: no connection comes too fast",
            )
            .help("choose kind = \"netns\" in [testbed]"),
        );
    }
    for settings in variants(experiment) {
        let what = match settings {
            _ if !settings.dut.kind.row().tells_states => {
                "a program's table can't be looked at, nor emptied".to_owned()
            }
            _ if !settings.dut.firewall.may_keep_states() => {
                format!("firewall \"{}\" keeps no connections", settings.dut.firewall)
            }
            _ if settings.traffic.flows.count() < CONNECTIONS_MIN => format!(
                "{} flows: a trial that opens as many connections is over in a moment",
                settings.traffic.flows.count()
            ),
            _ => continue,
        };
        faults.push(Diagnostic::new(kind.span(), what).help(format!(
            "write firewall = \"stateful\" in [dut], and flows in [traffic] for the connections \
             of a trial, at least {CONNECTIONS_MIN}"
        )));
        return;
    }
}

/// Capability of fwdlab's own sender that another generator lacks.
fn own_sender(
    kind: &Spanned<MethodKind>,
    experiment: &Experiment,
    lack: &str,
    faults: &mut Vec<Diagnostic>,
) {
    let mut generators = variants(experiment).map(|settings| settings.traffic.generator);
    if let Some(generator) = generators.find(|&generator| generator != GeneratorKind::Fwdlab) {
        faults.push(
            Diagnostic::new(kind.span(), format!("`{}` {lack}", generator.name()))
                .help("leave `generator` out, or choose other `tests`"),
        );
    }
}

/// Checks that delays are measured with one clock: fwdlab's own sender writes the time into packets
/// that its receiver takes on the same machine.
fn timeable(
    written: &MethodSpec,
    (shares, repeats): (&[f64], u32),
    experiment: &Experiment,
    faults: &mut Vec<Diagnostic>,
) {
    let Some(kind) = &written.kind else { return };
    own_sender(kind, experiment, "writes no sending times", faults);
    let place = || written.shares.as_ref().map_or(kind.span(), Spanned::span);
    if shares.is_empty() {
        faults.push(
            Diagnostic::new(place(), "no load to time packets at")
                .help("name some, or leave `shares` out for 10, 50 and 90 %"),
        );
    }
    let trials = shares.len() as u64 * u64::from(repeats);
    if *kind.get_ref() == MethodKind::Latency && trials > u64::from(TRIALS_MAX) / 2 {
        faults.push(
            Diagnostic::new(place(), format!("{trials} trials, beside those of the search"))
                .help(format!("at most {} fit into a run", TRIALS_MAX / 2)),
        );
    }
}

fn without_kind(written: &MethodSpec, faults: &mut Vec<Diagnostic>) {
    for (name, place) in keys_of(written) {
        faults.push(
            Diagnostic::new(place, format!("`{name}` belongs to a method, and none is named"))
                .help("write kind = \"mlrsearch\" in [method]"),
        );
    }
}

/// Returns the keys in addition to `kind`, with their places.
fn keys_of(written: &MethodSpec) -> Vec<(&'static str, Range<usize>)> {
    fn place<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
        value.as_ref().map(Spanned::span)
    }
    let goal = written.goal.first().map(Spanned::span);
    let all = [
        ("goals", place(&written.goals)),
        ("goal", goal),
        ("min_load", place(&written.min_load)),
        ("max_load", place(&written.max_load)),
        ("max_trials", place(&written.max_trials)),
        ("max_time", place(&written.max_time)),
        ("step", place(&written.step)),
        ("tests", place(&written.tests)),
        ("shares", place(&written.shares)),
        ("repeats", place(&written.repeats)),
        ("max_frames", place(&written.max_frames)),
        ("overload", place(&written.overload)),
    ];
    all.into_iter().filter_map(|(name, place)| Some((name, place?))).collect()
}

/// Reports values without effect.
fn unused(written: &MethodSpec, kind: MethodKind, faults: &mut Vec<Diagnostic>) {
    let used: &[&str] = match kind {
        MethodKind::Blast | MethodKind::Fixed => &[],
        MethodKind::Mlrsearch => {
            &["goals", "goal", "min_load", "max_load", "max_trials", "max_time"]
        }
        MethodKind::LossCurve | MethodKind::Flood => &["step", "max_load"],
        MethodKind::Soak => &["max_trials"],
        MethodKind::BackToBack => &["repeats", "max_frames"],
        MethodKind::SystemRecovery => &["repeats", "overload"],
        MethodKind::Reset => &["repeats"],
        MethodKind::Latency => &[
            "goals",
            "goal",
            "min_load",
            "max_load",
            "max_trials",
            "max_time",
            "shares",
            "repeats",
        ],
        MethodKind::EstablishmentRate => {
            &["goals", "goal", "min_load", "max_load", "max_trials", "max_time"]
        }
        MethodKind::TearDownRate | MethodKind::TableCapacity => &["repeats"],
        MethodKind::Rfc9693 => {
            &["goals", "goal", "min_load", "max_load", "max_trials", "max_time", "tests", "repeats"]
        }
        MethodKind::Rfc2544 => &[
            "goals",
            "goal",
            "min_load",
            "max_load",
            "max_trials",
            "max_time",
            "step",
            "tests",
            "repeats",
            "max_frames",
            "overload",
        ],
    };
    for (name, place) in keys_of(written).into_iter().filter(|(name, _)| !used.contains(name)) {
        let message = format!("`{name}` has no effect on the method `{}`", kind.name());
        faults.push(Diagnostic::new(place, message).help("remove it, or choose another `kind`"));
    }
}

/// Checks the load: some methods choose it themselves, the others require it.
fn rates(kind: &Spanned<MethodKind>, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let requires_rate = [MethodKind::Fixed, MethodKind::Soak, MethodKind::Flood];
    let needs_rate = requires_rate.contains(kind.get_ref());
    let is_wrong = |settings: Settings| (settings.traffic.rate == Rate::Max) == needs_rate;
    if !variants(experiment).any(is_wrong) {
        return;
    }
    let name = kind.get_ref().name();
    faults.push(match needs_rate {
        true => Diagnostic::new(kind.span(), format!("`{name}` needs a load"))
            .help("write rate = \"100kpps\" in [traffic], for example"),
        false => Diagnostic::new(kind.span(), format!("`{name}` chooses the load itself"))
            .label("and [traffic] has a `rate`")
            .help("remove `rate`, or write kind = \"fixed\""),
    });
}

/// Returns the settings of every combination of levels.
fn variants(experiment: &Experiment) -> impl Iterator<Item = Settings> + '_ {
    experiment.combinations().into_iter().map(|levels| {
        let mut settings: Settings = experiment.base.clone();
        for (factor, &level) in experiment.factors.iter().zip(&levels) {
            factor.settings[level].iter().for_each(|setting| setting.apply(&mut settings));
        }
        settings
    })
}

/// Checks that a search for goals within limits is possible; the search itself reports each fault.
fn searchable(
    written: &MethodSpec,
    search: &SearchMethod,
    kind: Range<usize>,
    faults: &mut Vec<Diagnostic>,
) {
    let least = search.goals.iter().map(|goal| 1.0 / goal.width.max(1e-5)).fold(1.0, f64::max);
    let min_load = search.min_load.unwrap_or(least.ceil() as u64);
    let max_load = search.max_load.unwrap_or(u64::from(u32::MAX).max(min_load.saturating_mul(2)));
    let limits = Limits {
        trials: search.max_trials as usize,
        time_ns: search.max_time_ns,
        ..Limits::between(min_load, max_load)
    };
    let Err(found) = Search::new(search.goals.clone(), limits) else { return };
    for fault in found {
        let place = match &fault {
            Fault::Goal { goal, .. } | Fault::Twice(goal) => {
                let of_goal = |written: &&Spanned<GoalSpec>| written.get_ref().name == *goal;
                let custom = written.goal.iter().rfind(of_goal).map(Spanned::span);
                custom.or_else(|| written.goals.as_ref().map(Spanned::span))
            }
            Fault::Loads(_) => {
                written.min_load.as_ref().or(written.max_load.as_ref()).map(Spanned::span)
            }
            Fault::NoGoals => written.goals.as_ref().map(Spanned::span),
            Fault::Limits(_) => written.max_trials.as_ref().map(Spanned::span),
        };
        let diagnostic = Diagnostic::new(place.unwrap_or(kind.clone()), fault.to_string());
        faults.push(match fault {
            Fault::Loads(_) => {
                diagnostic.help("lower `min_load`, raise `max_load`, or leave one out")
            }
            _ => diagnostic,
        });
    }
}
