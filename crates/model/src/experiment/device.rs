//! Which settings go with which device and testbed. A setting without effect is a
//! fault, not a trifle: as a factor it would compare a device with itself.

use super::{Experiment, VARIANTS_MAX};
use crate::diagnostic::Diagnostic;
use crate::settings::{DutKind, Firewall, Settings, TestbedKind};
use crate::spec::{Setting, Spec};
use std::ops::Range;
use toml::Spanned;

/// What settings need in order to have an effect.
struct Need {
    /// Their keys.
    keys: &'static [&'static str],
    /// Whether a variant has it. True also where another need says what is wrong.
    met: fn(&Settings) -> bool,
    /// What is wrong without it, after the setting's name.
    otherwise: &'static str,
    /// What to do.
    help: &'static str,
}

static NEEDS: [Need; 5] = [
    Need {
        keys: &[
            "fib",
            "locking",
            "path",
            "state",
            "state_limit",
            "entropy_harvest",
            "port",
            "routes_file",
        ],
        met: is_router,
        otherwise: "is a setting of the router",
        help: "write kind = \"router\" in [dut], or beside it in the level",
    },
    Need {
        keys: &["offloads", "bind_queues", "napi", "rps", "sysctl"],
        met: |settings| !is_router(settings),
        otherwise: "is a setting of the Linux kernel, which does not forward here",
        help: "leave it out, or write kind = \"linux\" in [dut], or beside it in the level",
    },
    Need {
        keys: &["state", "state_limit"],
        // What a ruleset of the user's keeps is not known here.
        met: |settings| {
            !is_router(settings)
                || matches!(settings.dut.firewall, Firewall::Stateful | Firewall::Ruleset { .. })
        },
        otherwise: "has no effect without a stateful firewall",
        help: "write firewall = \"stateful\" in [dut], or beside it in the level",
    },
    Need {
        keys: &["port", "engine"],
        met: |settings| !is_router(settings) || settings.testbed.kind != TestbedKind::Memory,
        otherwise: "has no effect on packets in memory: there are no sockets",
        help: "leave it out, or write kind = \"netns\" in [testbed]",
    },
    Need {
        keys: &["routes"],
        met: |settings| !is_router(settings) || settings.dut.router.routes_file.is_none(),
        otherwise: "has no effect beside `routes_file`",
        help: "leave one of the two out",
    },
];

fn is_router(settings: &Settings) -> bool {
    settings.dut.kind == DutKind::Router
}

/// Every setting has an effect, and the testbed has the device.
pub(super) fn judge(spec: &Spec, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let levels = spec.factors.iter().map(|factor| factor.levels.len());
    if spec.device_faulty || levels.fold(1, usize::saturating_mul) > VARIANTS_MAX {
        return;
    }
    let variants: Vec<Variant> = experiment
        .combinations()
        .into_iter()
        .map(|levels| Variant { settings: settings_of(experiment, &levels), levels })
        .collect();
    // A level that could not be read may be the one that gives a setting its effect.
    let complete = !spec.factors_incomplete && spec.factors.iter().all(|f| !f.incomplete);
    for setting in spec.settings.iter().filter(|_| complete) {
        if let Some(need) = unmet(setting, |met| !variants.iter().any(|v| met(&v.settings))) {
            faults.push(without_effect(setting, need));
        }
    }
    for (factor, written) in spec.factors.iter().enumerate() {
        // Once for each factor is enough: what one level lacks, the others do too.
        let mut told: Vec<String> = Vec::new();
        for (level, written) in written.levels.iter().enumerate() {
            let own = || variants.iter().filter(move |variant| variant.levels[factor] == level);
            for setting in &written.settings {
                let name = setting.get_ref().name();
                let need = unmet(setting, |met| own().any(|variant| !met(&variant.settings)));
                let Some(need) = need.filter(|_| !told.contains(&name)) else { continue };
                let fault = without_effect(setting, need);
                faults.push(match own().any(|variant| (need.met)(&variant.settings)) {
                    true => fault
                        .label("in some variants with this level nothing heeds it")
                        .help("put what belongs together into the levels of one factor"),
                    false => fault,
                });
                told.push(name);
            }
        }
    }
    devices(spec, &variants, faults);
}

/// One combination of levels and what comes of it.
struct Variant {
    levels: Vec<usize>,
    settings: Settings,
}

fn settings_of(experiment: &Experiment, levels: &[usize]) -> Settings {
    let mut settings = experiment.base.clone();
    for (factor, &level) in experiment.factors.iter().zip(levels) {
        factor.settings[level].iter().for_each(|setting| setting.apply(&mut settings));
    }
    settings
}

/// The first need of a setting that the variants lack, as `lacked` finds it.
fn unmet(
    setting: &Spanned<Setting>,
    lacked: impl Fn(fn(&Settings) -> bool) -> bool,
) -> Option<&'static Need> {
    let key = setting.get_ref().key();
    NEEDS.iter().find(|need| need.keys.contains(&key) && lacked(need.met))
}

fn without_effect(setting: &Spanned<Setting>, need: &Need) -> Diagnostic {
    let message = format!("`{}` {}", setting.get_ref().name(), need.otherwise);
    Diagnostic::new(setting.span(), message).help(need.help)
}

/// No variant wants a kernel to forward what never leaves memory.
fn devices(spec: &Spec, variants: &[Variant], faults: &mut Vec<Diagnostic>) {
    let Some(testbed) = spec.kind.as_ref().filter(|kind| *kind.get_ref() == TestbedKind::Memory)
    else {
        return;
    };
    let is_kind = |setting: &&Spanned<Setting>| setting.get_ref().key() == "kind";
    let mut told: Vec<Range<usize>> = Vec::new();
    for variant in variants.iter().filter(|variant| !is_router(&variant.settings)) {
        let laid = spec
            .factors
            .iter()
            .zip(&variant.levels)
            .flat_map(|(factor, &level)| &factor.levels[level].settings);
        let written = laid.chain(&spec.settings).find(is_kind);
        let place = written.map_or(testbed.span(), Spanned::span);
        if told.contains(&place) {
            continue;
        }
        let message = "no Linux kernel forwards packets in memory";
        let mut fault = Diagnostic::new(place.clone(), message)
            .help("write kind = \"router\" in [dut], or kind = \"netns\" in [testbed]");
        if place != testbed.span() {
            fault = fault.context(testbed.span(), "the testbed");
        }
        faults.push(fault);
        told.push(place);
    }
}
