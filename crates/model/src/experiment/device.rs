//! Compatibility of settings with device and testbed. A setting without effect is a fault: as a
//! factor it would compare a device with itself.
//!
//! A simulated device may represent any other: it can rehearse an experiment for a laboratory.

use super::{Experiment, VARIANTS_MAX};
use crate::diagnostic::Diagnostic;
use crate::settings::{
    Checks, DutKind, Firewall, FirewallProgram, ForwardingPath, GeneratorKind, Reboot, Revision,
    RouterPort, Settings, TestbedKind,
};
use crate::spec::keys::Owner;
use crate::spec::{Setting, Spec};
use std::ops::Range;
use toml::Spanned;

/// A condition for settings to have an effect.
struct Need {
    /// Keys of the settings; empty for a condition on all settings of an owner.
    keys: &'static [&'static str],
    /// True if a variant meets it. Also true if another condition reports the fault.
    met: fn(&Settings) -> bool,
    /// Fault if it is not met, following the setting's name.
    otherwise: &'static str,
    /// Next step.
    help: &'static str,
}

/// Returns the condition for settings of an owner; `None` if they always apply.
fn need_of(owner: Owner) -> Option<&'static Need> {
    Some(match owner {
        Owner::Any => return None,
        Owner::Router => &Need {
            keys: &[],
            met: is_router,
            otherwise: "is a setting of the router",
            help: "write kind = \"router\" in [dut], or beside it in the level",
        },
        Owner::Command => &Need {
            keys: &[],
            met: is_command,
            otherwise: "is a setting of a program that is started by commands",
            help: "write kind = \"command\" in [dut], or beside it in the level",
        },
        Owner::Linux => &Need {
            keys: &[],
            met: |settings| settings.dut.kind == DutKind::Linux,
            otherwise: "is a setting of the Linux kernel, which does not forward here",
            help: "leave it out, or write kind = \"linux\" in [dut], or beside it in the level",
        },
        Owner::Kernel => &Need {
            keys: &[],
            met: |settings| !is_router(settings) && !is_command(settings),
            otherwise: "is a setting of a kernel, and none forwards here",
            help: "leave it out, or write kind = \"linux\" in [dut], or beside it in the level",
        },
        Owner::Freebsd => &Need {
            keys: &[],
            met: is_freebsd,
            otherwise: "is a setting of FreeBSD",
            help: "write kind = \"freebsd\" in [dut], or beside it in the level",
        },
        Owner::Host => &Need {
            keys: &[],
            met: |settings| {
                (has_hosts(settings) || is_vm(settings))
                    && !is_router(settings)
                    && !is_command(settings)
            },
            otherwise: "is a setting of a laboratory's DUT",
            help: "write kind = \"ssh\" and lab = \"lab.toml\" in [testbed]",
        },
        Owner::Generator => &Need {
            keys: &[],
            met: |settings| {
                has_hosts(settings)
                    || (is_ours(settings)
                        && settings.traffic.generator_server.is_empty()
                        && settings.traffic.generator_options.is_empty())
            },
            otherwise: "is a setting of a laboratory: elsewhere fwdlab itself sends and counts",
            help: "write kind = \"ssh\" and lab = \"lab.toml\" in [testbed]",
        },
        Owner::Vm => &Need {
            keys: &[],
            met: |settings| is_vm(settings) || settings.testbed.kind == TestbedKind::Sim,
            otherwise: "is a setting of a virtual machine",
            help: "write kind = \"vm\" in [testbed]",
        },
    })
}

/// Conditions of single settings in addition to their owner's.
static NEEDS: &[Need] = &[
    Need {
        keys: &["rate", "timestamps", "senders", "engine", "arrangement"],
        met: |settings| !is_counted(settings),
        otherwise: "has no effect where packets come in lockstep, so that their instructions can \
                    be counted",
        help: "leave it out, or write figure = \"mean\" in [compare]: a rate over taps, as root",
    },
    Need {
        keys: &["calls", "caches"],
        met: |settings| !is_vm(settings) || is_counted(settings),
        otherwise: "has no effect where a rate is measured: nothing is counted",
        help: "leave it out, or leave `figure` out to count instructions",
    },
    Need {
        keys: &["batch"],
        met: |settings| !is_vm(settings) || is_counted(settings),
        otherwise: "has no effect where a rate is measured: nothing waits until packets are there",
        help: "leave it out, or leave `figure` out to count instructions",
    },
    Need {
        keys: &["ready", "stop", "statistics", "counters", "rewrites"],
        met: |settings| !settings.dut.command.start.is_empty(),
        otherwise: "has no effect without `start`",
        help: "write start = [\"PROGRAM\", \"ARGUMENT\"] beside it",
    },
    Need {
        keys: &["counters"],
        met: |settings| !settings.dut.command.statistics.is_empty(),
        otherwise: "has no effect without `statistics`, whose output is searched",
        help: "write statistics = [\"PROGRAM\", \"ARGUMENT\"] beside it",
    },
    Need {
        keys: &["routes", "firewall", "icmp_redirect"],
        met: |settings| !is_command(settings),
        otherwise: "says nothing to a program that is started by commands",
        help: "write it into the arguments of `start`, or into a file that they name",
    },
    Need {
        keys: &["nat_address", "nat_port"],
        met: |settings| settings.dut.nat.is_of_destinations(),
        otherwise: "has no effect unless destinations are translated",
        help: "write nat = \"destination\" or \"both\" next to it",
    },
    Need {
        keys: &["firewall_program"],
        met: |settings| match settings.dut.remote.firewall_program {
            FirewallProgram::Auto => true,
            FirewallProgram::Nft | FirewallProgram::Iptables => !is_freebsd(settings),
            FirewallProgram::Ipfw | FirewallProgram::Pf | FirewallProgram::Ipf => {
                is_freebsd(settings)
            }
        },
        otherwise: "names a program that the DUT's system does not have",
        help: "Linux has \"nft\" and \"iptables\", FreeBSD \"ipfw\", \"pf\" and \"ipf\"",
    },
    Need {
        keys: &["firewall_program"],
        met: |settings| {
            settings.dut.remote.firewall_program == FirewallProgram::Auto
                || settings.dut.firewall != Firewall::None
        },
        otherwise: "has no effect without a firewall",
        help: "write e.g. firewall = \"stateful\" in [dut], or beside it in the level",
    },
    Need {
        keys: &["loader", "install", "image"],
        met: |settings| settings.dut.remote.reboot != Reboot::Never,
        otherwise: "takes effect after a reboot only, and `reboot` is \"never\"",
        help: "write reboot = \"needed\" in [dut], or leave it out",
    },
    Need {
        keys: &["setup", "teardown"],
        met: |settings| settings.testbed.kind != TestbedKind::Memory,
        otherwise: "needs a machine or a namespace to run in, and a router in memory has none",
        help: "write kind = \"netns\" in [testbed]",
    },
    Need {
        keys: &["verify"],
        met: |settings| {
            let is_installed = (has_hosts(settings) || is_vm(settings))
                && !is_router(settings)
                && !is_command(settings);
            is_installed || !settings.dut.hooks.setup.is_empty()
        },
        otherwise: "reads back what a laboratory's DUT runs, or what `setup` did, and here is neither",
        help: "write setup = [\"COMMAND\"] beside it, or kind = \"ssh\" and lab = \"lab.toml\" in \
               [testbed]",
    },
    Need {
        keys: &["image"],
        met: |settings| revision(settings).is_none_or(|revision| !revision.upgrade.is_empty()),
        otherwise: "has no effect without `upgrade`, the command that reads it",
        help: "write upgrade = \"...\" beside it",
    },
    Need {
        keys: &["upgrade"],
        met: |settings| revision(settings).is_none_or(|revision| revision.image.is_some()),
        otherwise: "has no effect without `image`, which it reads",
        help: "write image = \"...\" beside it; commands that need none stand in `install`",
    },
    Need {
        keys: &["expect"],
        met: |settings| revision(settings).is_none_or(|revision| !revision.verify.is_empty()),
        otherwise: "has no effect without `verify`, whose output is searched for it",
        help: "write e.g. verify = \"uname -v\" in [dut], or beside it",
    },
    Need {
        keys: &["engine", "timestamps"],
        met: is_ours,
        otherwise: "is a setting of fwdlab's own sender, which does not send here",
        help: "leave it out, or remove `generator` from [traffic]",
    },
    Need {
        keys: &["frame_size"],
        met: |settings| {
            !settings.traffic.frame_size.is_mix() || (is_ours(settings) && !is_vm(settings))
        },
        otherwise: "can be a mix where fwdlab's own senders and receivers are at both ends of a \
                    device that is timed, which they are not here",
        help: "name one size, or a list of them: each is measured by itself",
    },
    Need {
        keys: &["checks"],
        met: |settings| {
            let is_in_kernel = is_ours(settings)
                && !is_counted(settings)
                && settings.testbed.kind != TestbedKind::Memory;
            settings.traffic.checks != Checks::Sample || is_in_kernel
        },
        otherwise: "needs packets of fwdlab's own and a receiver in the kernel, which there is \
                    none of here",
        help: "leave it out",
    },
    Need {
        keys: &["generator_server"],
        met: |settings| {
            settings.traffic.generator_server.is_empty()
                || matches!(settings.traffic.generator, GeneratorKind::Trex | GeneratorKind::Otg)
        },
        otherwise: "has no effect: this generator is no server",
        help: "leave it out, or write generator = \"trex\" or \"otg\" in [traffic]",
    },
    Need {
        keys: &["generator_options"],
        met: |settings| {
            settings.traffic.generator_options.is_empty()
                || settings.traffic.generator != GeneratorKind::Fwdlab
        },
        otherwise: "has no effect on fwdlab's own sender",
        help: "leave it out, or write e.g. generator = \"pkt-gen\" in [traffic]",
    },
    Need {
        keys: &["state", "state_limit"],
        // The states kept by a user's ruleset are not known here.
        met: |settings| {
            !is_router(settings)
                || matches!(settings.dut.firewall, Firewall::Stateful | Firewall::Ruleset { .. })
        },
        otherwise: "has no effect without a stateful firewall",
        help: "write firewall = \"stateful\" in [dut], or beside it in the level",
    },
    Need {
        keys: &["path"],
        met: |settings| {
            let router = &settings.dut.router;
            router.path != ForwardingPath::Xdp
                || !is_router(settings)
                || (settings.testbed.kind != TestbedKind::Memory
                    && router.port != RouterPort::Packet
                    && !router.entropy_harvest)
        },
        otherwise: "= \"xdp\" has no effect without AF_XDP ports, or while every packet is \
                    harvested",
        help: "write kind = \"netns\" in [testbed], and leave `port` and `entropy_harvest` out",
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

fn is_command(settings: &Settings) -> bool {
    settings.dut.kind == DutKind::Command
}

fn is_freebsd(settings: &Settings) -> bool {
    settings.dut.kind == DutKind::Freebsd
}

/// True for a laboratory, and for a simulated device in its place.
fn has_hosts(settings: &Settings) -> bool {
    matches!(settings.testbed.kind, TestbedKind::Ssh | TestbedKind::Sim)
}

fn is_vm(settings: &Settings) -> bool {
    settings.testbed.kind == TestbedKind::Vm
}

/// True for a virtual machine whose instructions are counted, in lockstep.
fn is_counted(settings: &Settings) -> bool {
    is_vm(settings) && !settings.testbed.vm.is_timed
}

/// True if fwdlab sends and counts.
fn is_ours(settings: &Settings) -> bool {
    settings.traffic.generator == GeneratorKind::Fwdlab
}

fn revision(settings: &Settings) -> Option<&Revision> {
    settings.dut.remote.revision.as_ref()
}

/// Checks that every setting has an effect, and that the testbed has the device.
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
        // Once per factor is enough: the other levels lack the same.
        let mut reported: Vec<String> = Vec::new();
        for (level, written) in written.levels.iter().enumerate() {
            let of_level =
                || variants.iter().filter(move |variant| variant.levels[factor] == level);
            for setting in &written.settings {
                let name = setting.get_ref().name();
                let need = unmet(setting, |met| of_level().any(|variant| !met(&variant.settings)));
                let Some(need) = need.filter(|_| !reported.contains(&name)) else { continue };
                let fault = without_effect(setting, need);
                faults.push(match of_level().any(|variant| (need.met)(&variant.settings)) {
                    true => fault
                        .label("in some variants with this level nothing heeds it")
                        .help("put what belongs together into the levels of one factor"),
                    false => fault,
                });
                reported.push(name);
            }
        }
    }
    devices(spec, &variants, faults);
}

/// A combination of levels and its settings.
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

/// Returns the first condition of a setting that the variants do not meet, according to `lacked`.
fn unmet(
    setting: &Spanned<Setting>,
    lacked: impl Fn(fn(&Settings) -> bool) -> bool,
) -> Option<&'static Need> {
    let row = setting.get_ref().row();
    let of_key = NEEDS.iter().filter(|need| need.keys.contains(&row.name));
    need_of(row.owner).into_iter().chain(of_key).find(|need| lacked(need.met))
}

fn without_effect(setting: &Spanned<Setting>, need: &Need) -> Diagnostic {
    let message = format!("`{}` {}", setting.get_ref().name(), need.otherwise);
    Diagnostic::new(setting.span(), message).help(need.help)
}

/// Checks that no variant requires a device that its testbed does not have, or traffic that it
/// cannot send.
fn devices(spec: &Spec, variants: &[Variant], faults: &mut Vec<Diagnostic>) {
    let testbed = spec.kind.as_ref().map(Spanned::span);
    let mut reported: Vec<Range<usize>> = Vec::new();
    for variant in variants {
        let settings = &variant.settings;
        let lacks = [
            ("kind", settings.lacks_device()),
            ("directions", settings.lacks_direction()),
            ("nat", settings.lacks_translator()),
            (
                if settings.dut.nat_address.is_some() { "nat_address" } else { "nat" },
                settings.lacks_target(),
            ),
        ];
        for (key, lacking) in lacks {
            let Some((message, help)) = lacking else { continue };
            let is_it = |setting: &&Spanned<Setting>| setting.get_ref().key() == key;
            let laid = spec
                .factors
                .iter()
                .zip(&variant.levels)
                .flat_map(|(factor, &level)| &factor.levels[level].settings);
            let written = laid.chain(&spec.settings).find(is_it).map(Spanned::span);
            let place = written.or(testbed.clone()).unwrap_or(0..0);
            if reported.contains(&place) {
                continue;
            }
            let mut fault = Diagnostic::new(place.clone(), message).help(help);
            if let Some(testbed) = testbed.clone().filter(|testbed| *testbed != place) {
                fault = fault.context(testbed, "the testbed");
            }
            faults.push(fault);
            reported.push(place);
        }
    }
}
