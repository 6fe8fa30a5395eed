//! The plan as text: factors, comparisons, runs in their order.

use crate::experiment::overhead_guess_ns;
use crate::profiling;
use crate::terminal::{HEADING, duration, styled, wrap};
use fwdlab_model::Plan;
use fwdlab_model::plan::Adjust;
use fwdlab_model::settings::{DutKind, Firewall, GeneratorKind, Rate, Settings, TestbedKind};
use fwdlab_model::spec::Setting;
use fwdlab_model::spec::keys::Owner;
use fwdlab_model::words;

/// Plans of more runs are folded.
const RUNS_SHOWN: usize = 60;
/// Runs shown of a folded plan, at each end.
const RUNS_AT_ENDS: usize = 20;

/// The plan, with what it will find (`outlook`) between comparisons and runs.
pub(super) fn text(plan: &Plan, outlook: &str, width: usize) -> String {
    let mut out = wrap(&styled(&plan.title, HEADING), width, "");
    for (name, value) in overview(plan) {
        out += &wrap(&format!("  {name:9} {value}"), width, "            ");
    }
    for factor in 0..plan.factors.len() {
        out.push('\n');
        out += &levels(plan, factor, width);
    }
    out.push('\n');
    out += &comparisons(plan, width);
    if !outlook.is_empty() {
        out += &format!("\n{outlook}");
    }
    out.push('\n');
    out += &order(plan, width);
    if !plan.notes.is_empty() {
        out += &format!("\n{}\n", styled("notes", HEADING));
    }
    for note in &plan.notes {
        out += &wrap(&format!("  {note}"), width, "    ");
    }
    out
}

fn overview(plan: &Plan) -> Vec<(&'static str, String)> {
    let (testbed, trial, design) = (&plan.base.testbed, &plan.trial, &plan.design);
    let kind = match testbed.kind {
        TestbedKind::Auto => "auto (fwdlab doctor says which)".to_owned(),
        TestbedKind::Netns => "netns".to_owned(),
        TestbedKind::Memory => "memory: no kernel forwards the packets".to_owned(),
        TestbedKind::Sim => "sim: no packet is real".to_owned(),
        TestbedKind::Vm if testbed.vm.is_timed => {
            "vm: a machine of QEMU, whose rate is measured over taps (as root)".to_owned()
        }
        TestbedKind::Vm => "vm: a machine of QEMU, whose instructions are counted".to_owned(),
        TestbedKind::Ssh => match &testbed.lab {
            Some(lab) => format!("ssh, laboratory {lab}"),
            None => "ssh".to_owned(),
        },
        TestbedKind::Archive => "archive: imported logs".to_owned(),
    };
    let estimate = plan.estimate(overhead_guess_ns(plan));
    let most = if design.stop.is_some() { "up to " } else { "" };
    let runs = match estimate.run_ns {
        0 => format!("{most}{}", estimate.runs),
        run_ns => format!(
            "{most}{}, about {} each, {} in all{}",
            estimate.runs,
            duration(run_ns),
            duration(estimate.total_ns),
            match testbed.kind {
                TestbedKind::Ssh => ", reboots not counted",
                TestbedKind::Vm => ", boots not counted",
                _ => "",
            }
        ),
    };
    let mut rows = vec![
        ("hash", plan.hash.clone()),
        ("testbed", kind),
        ("variants", plan.variants.len().to_string()),
        ("design", design_of(plan)),
        (
            "trial",
            format!(
                "{} of warm-up, a window of {}, up to {} of drain{}",
                duration(trial.warmup_ns),
                duration(trial.duration_ns),
                duration(trial.drain_ns),
                plan.method
                    .as_ref()
                    .map_or(String::new(), |method| format!(", {}", method.words()))
            ),
        ),
        ("runs", runs),
    ];
    let traffic = [("traffic", traffic(plan))];
    rows.splice(2..2, device(plan).map(|device| ("device", device)).into_iter().chain(traffic));
    if plan.profile.is_some() {
        let starts = plan.profile.as_ref().map_or(0, |asked| usize::from(asked.starts));
        rows.push(("then", profiling::extent(plan, starts * plan.variants.len())));
    }
    rows
}

/// What forwards where it is not the kernel alone, and what the router or the DUT of a
/// laboratory is set to in the base; what levels change stands with them.
fn device(plan: &Plan) -> Option<String> {
    if plan.base.testbed.kind == TestbedKind::Ssh {
        return Some(host(&plan.base));
    }
    let is_router = |settings: &Settings| settings.dut.kind == DutKind::Router;
    let has = |kind| plan.variants.iter().any(|variant| variant.settings.dut.kind == kind);
    let programs = DutKind::ALL.iter().filter(|kind| **kind != DutKind::Router);
    if programs.into_iter().any(|kind| kind.row().is_program && has(*kind)) {
        let there = DutKind::ALL.iter().filter(|kind| has(**kind)).map(|kind| kind.row().words);
        return Some(there.collect::<Vec<_>>().join(", "));
    }
    let routers = plan.variants.iter().filter(|variant| is_router(&variant.settings)).count();
    if routers == 0 {
        return None;
    }
    let base = &plan.base;
    let keeps_states = matches!(base.dut.firewall, Firewall::Stateful | Firewall::Ruleset { .. });
    let settings: Vec<String> = base
        .all()
        .iter()
        .filter(|setting| match setting.key() {
            "state" | "state_limit" => keeps_states,
            "port" => base.testbed.kind != TestbedKind::Memory,
            _ => setting.row().owner == Owner::Router,
        })
        .map(|setting| format!("{} {}", setting.name(), setting.value()))
        .collect();
    let settings = settings.join(", ");
    Some(match routers == plan.variants.len() {
        true => format!("fwdlab's own router: {settings}"),
        false => format!("the Linux kernel, and fwdlab's own router: {settings}"),
    })
}

/// What forwards on a host, and what only hosts have where it is not the default.
fn host(base: &Settings) -> String {
    let kernel = base.dut.kind.row().words;
    let default = Settings::default().all();
    let said: Vec<String> = base
        .all()
        .iter()
        .filter(|setting| !default.contains(setting) && is_of_hosts(setting))
        .map(|setting| format!("{} {}", setting.name(), setting.value()))
        .collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(", ")) };
    format!("{kernel}{said}")
}

fn is_of_hosts(setting: &Setting) -> bool {
    matches!(setting.row().owner, Owner::Host | Owner::Freebsd)
}

/// What is sent in the base, and by what where it is not fwdlab.
fn traffic(plan: &Plan) -> String {
    let traffic = &plan.base.traffic;
    let (flows, family, size) = (traffic.flows, traffic.family.name(), traffic.frame_size.0);
    let rate = match traffic.rate {
        Rate::Max => "at the maximum offered load".to_owned(),
        rate => format!("at {rate}"),
    };
    let mut text = format!("{family}, flows {flows}, frames of {size} bytes, {rate}");
    if traffic.generator == GeneratorKind::Fwdlab {
        return text;
    }
    text += &format!(", by {}", traffic.generator.name());
    if !traffic.generator_server.is_empty() {
        text += &format!(" at {}", traffic.generator_server);
    }
    if !traffic.generator_options.is_empty() {
        text += &format!(" with {}", words::join(&traffic.generator_options));
    }
    text
}

fn design_of(plan: &Plan) -> String {
    let (extent, seed) = (plan.design.extent(), plan.design.seed);
    match plan.design.alternate_ns {
        None => {
            let early = match plan.design.stop {
                Some(_) => "; ends early when every comparison is decided",
                None => "",
            };
            format!("{extent}, in each every variant once, in random order (seed {seed}){early}")
        }
        Some(slice_ns) => format!(
            "alternation: {extent} of traffic, levels switched every {}, the first {} \
             after each switch not counted (seed {seed})",
            duration(slice_ns),
            duration(plan.design.settle_ns)
        ),
    }
}

fn levels(plan: &Plan, factor: usize, width: usize) -> String {
    let mut out =
        format!("{}\n", styled(&format!("factor {}", plan.factors[factor].name), HEADING));
    let all = &plan.factors[factor].levels;
    let longest = all.iter().map(|level| level.label.chars().count()).max().unwrap_or(0).min(24);
    for (index, level) in all.iter().enumerate() {
        let differences = plan.differences(factor, index);
        let changes: Vec<String> = differences
            .iter()
            .map(|difference| {
                let base = match &difference.base {
                    _ if difference.is_same() => "as the base".to_owned(),
                    Some(base) => format!("base: {base}"),
                    None => "base: as found".to_owned(),
                };
                format!("{} = {} ({base})", difference.change.setting, difference.change.value)
            })
            .collect();
        let changes =
            if changes.is_empty() { "nothing changed".to_owned() } else { changes.join(", ") };
        out += &wrap(&format!("  {:longest$}  {changes}", level.label), width, "    ");
    }
    out
}

fn comparisons(plan: &Plan, width: usize) -> String {
    let pairs: Vec<(&str, &str)> = (0..plan.variants.len())
        .filter_map(|variant| {
            let baseline = plan.baseline_of(variant)?;
            Some((plan.variants[variant].label.as_str(), plan.variants[baseline].label.as_str()))
        })
        .collect();
    if pairs.is_empty() {
        return wrap("nothing to compare: every variant is a baseline", width, "  ");
    }
    let adjusted = match plan.compare.adjust {
        Adjust::Holm => "",
        Adjust::BenjaminiHochberg => " (Benjamini-Hochberg)",
    };
    let mut out = wrap(
        &format!(
            "{} at {} % confidence{adjusted}, equivalent within {} %",
            styled("comparisons", HEADING),
            plan.compare.confidence,
            (plan.compare.margin * 1e6).round() / 1e4
        ),
        width,
        "  ",
    );
    for (pair, left_out) in folded(&pairs) {
        match pair {
            Some((variant, baseline)) => {
                out += &wrap(&format!("  {variant} against {baseline}"), width, "    ");
            }
            None => out += &format!("  ... {left_out} more ...\n"),
        }
    }
    out
}

fn order(plan: &Plan, width: usize) -> String {
    let what = if plan.design.alternate_ns.is_some() { "stream" } else { "block" };
    let mut out = format!("{}\n", styled("order of runs", HEADING));
    for (run, left_out) in folded(&plan.runs) {
        let Some(run) = run else {
            out += &format!("  ... {left_out} more ...\n");
            continue;
        };
        let labels: Vec<&str> =
            run.variants.iter().map(|&variant| plan.variants[variant].label.as_str()).collect();
        let line =
            format!("  {:>3}  {what} {}  {}", run.index + 1, run.block + 1, labels.join(" > "));
        out += &wrap(&line, width, "       ");
    }
    out
}

/// The items, or those at both ends with the number of those between.
fn folded<T>(items: &[T]) -> Vec<(Option<&T>, usize)> {
    if items.len() <= RUNS_SHOWN {
        return items.iter().map(|item| (Some(item), 0)).collect();
    }
    let (head, rest) = items.split_at(RUNS_AT_ENDS);
    let (middle, tail) = rest.split_at(rest.len() - RUNS_AT_ENDS);
    let shown = |item| (Some(item), 0);
    head.iter().map(shown).chain([(None, middle.len())]).chain(tail.iter().map(shown)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_ends_early_shows() {
        let shown = |more: &str| {
            let file = format!(
                "version = 1\n[testbed]\nkind = \"sim\"\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n{more}"
            );
            let plan = fwdlab_model::load("x.toml", &file, &|_| Err("no files".into())).unwrap();
            text(&plan, "", 300)
        };
        let planned =
            shown("[design]\nstop = \"planned\"\n[compare]\nadjust = \"benjamini-hochberg\"\n");
        assert!(
            planned.contains("up to 20 blocks, at most 5 looks (O'Brien-Fleming)"),
            "{planned}"
        );
        assert!(planned.contains("up to 40\n"), "{planned}");
        assert!(planned.contains("95 % confidence (Benjamini-Hochberg)"), "{planned}");
        let open = shown("[design]\nstop = \"open\"\nmax_blocks = 8\n");
        assert!(open.contains("up to 8 blocks, a look after each (e-process)"), "{open}");
        let fixed = shown("[design]\nblocks = 8\n");
        assert!(fixed.contains("8 blocks, in each"), "{fixed}");
        assert!(!fixed.contains("up to 8") && !fixed.contains("Benjamini"), "{fixed}");
    }

    #[test]
    fn the_router_shows_with_what_matters_of_it() {
        let shown = |more: &str| {
            let file = format!("version = 1\n{more}");
            let plan = fwdlab_model::load("x.toml", &file, &|_| Err("no files".into())).unwrap();
            text(&plan, "", 300)
        };
        assert!(!shown("").contains("device"));
        let memory = shown("[testbed]\nkind = \"memory\"\n[dut]\nkind = \"router\"\n");
        assert!(memory.contains("memory: no kernel forwards the packets\n"), "{memory}");
        let device = "device    fwdlab's own router: fib auto, locking lockless, path fast, \
                      entropy_harvest false\n";
        assert!(memory.contains(device), "{memory}");
        let both = shown(
            "[dut]\nfirewall = \"stateful\"\n[[factor]]\nname = \"kind\"\nlevels = [\"linux\", \"router\"]\n",
        );
        assert!(both.contains("the Linux kernel, and fwdlab's own router: fib auto"), "{both}");
        assert!(both.contains("state sharded, state_limit 2097152"), "{both}");
        assert!(both.contains("port auto\n"), "{both}");
    }

    #[test]
    fn long_lists_are_folded() {
        let items: Vec<usize> = (0..61).collect();
        let shown = folded(&items);
        assert_eq!(shown.len(), 41);
        assert_eq!(shown[19], (Some(&19), 0));
        assert_eq!(shown[20], (None, 21));
        assert_eq!(shown[21], (Some(&41), 0));
        assert_eq!(folded(&items[..60]).len(), 60);
    }
}
