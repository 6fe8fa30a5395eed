//! Document of a plan: set-up, factors, comparisons, power analysis, order of runs.

use super::history::History;
use super::power;
use crate::missing;
use crate::profiling;
use crate::terminal::duration;
use fwdlab_model::Plan;
use fwdlab_model::plan::{Adjust, Change, Estimate, Factor, PlannedRun};
use fwdlab_model::settings::{DutKind, Firewall, GeneratorKind, Rate, Settings, TestbedKind};
use fwdlab_model::spec::Setting;
use fwdlab_model::spec::keys::Owner;
use fwdlab_model::words;
use fwdlab_results::document::table::{Cell, Table};
use fwdlab_results::document::{Block, Data, DetailLevel, Document};

/// Version of a plan's JSON output.
const VERSION: u32 = 1;
/// Settings that the line about the traffic contains.
const TRAFFIC_KEYS: [&str; 7] =
    ["family", "flows", "frame_size", "rate", "generator", "generator_server", "generator_options"];

/// Settings for commands before and after runs.
const AROUND: [&str; 6] = ["setup", "teardown", "install", "image", "verify", "expect"];

/// The plan with its power analysis; a terminal shows the order of runs only if `orders` is set.
/// `missing` are files that the plan names and that do not exist, `lacking` are other unmet
/// requirements.
pub(super) fn document<'a>(
    plan: &Plan,
    history: &History,
    (missing, lacking): (&[String], &[String]),
    orders: bool,
    data: &'a dyn Data,
) -> Document<'a> {
    let mut blocks = vec![Block::pairs(&overview(plan, &history.estimate(plan)))];
    if !missing.is_empty() {
        let next_step = format!("next step: {}", missing::next_step(plan));
        let listed = vec![Block::list(missing), Block::text(&next_step)];
        blocks.push(Block::section("files that do not exist", listed));
    }
    blocks.extend((0..plan.factors.len()).map(|factor| levels(plan, factor)));
    blocks.push(comparisons(plan));
    blocks.extend(power::section(plan, history));
    if !lacking.is_empty() {
        blocks.push(Block::section("lacking on this machine", vec![Block::list(lacking)]));
    }
    let order = order(plan);
    match orders {
        true => blocks.push(order),
        false => {
            blocks.push(Block::Where(DetailLevel::All, vec![order]));
            let text = "The order of runs is random, and follows from the seed: --order shows it.";
            blocks.push(Block::Where(DetailLevel::Terminal, vec![Block::text(text)]));
        }
    }
    if !plan.notes.is_empty() {
        blocks.push(Block::section("notes", vec![Block::list(&plan.notes)]));
    }
    Document { title: plan.title.clone(), conclusion: Vec::new(), blocks, data, version: VERSION }
}

fn overview(plan: &Plan, estimate: &Estimate) -> Vec<(&'static str, String)> {
    let (testbed, trial, design) = (&plan.base.testbed, &plan.trial, &plan.design);
    let kind = match testbed.kind {
        TestbedKind::Auto => "auto (fwdlab doctor shows which)".to_owned(),
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
    let most = if design.stop.is_some() { "up to " } else { "" };
    let runs = match estimate.run_ns {
        0 => format!("{most}{}", estimate.runs),
        run_ns => format!(
            "{most}{}, about {}{} each, {} in all{}",
            estimate.runs,
            duration(run_ns),
            estimate.or_more(),
            duration(estimate.total_ns),
            match testbed.kind {
                TestbedKind::Ssh => ", reboots not counted",
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
    let base = base_settings(plan);
    let base = Some(("base", base)).filter(|(_, base)| !base.is_empty());
    let traffic = [("device", device(plan)), ("traffic", traffic(plan))];
    rows.splice(2..2, traffic.into_iter().chain(base));
    if let Some(profile) = &plan.profile {
        if profile.sampling_hz > 0 {
            rows.push(("sampled", format!("windows of the runs, at {} Hz", profile.sampling_hz)));
        }
        if profile.starts > 0 {
            let runs = usize::from(profile.starts) * plan.variants.len();
            rows.push(("profiles", profiling::extent(plan, runs)));
        }
    }
    rows
}

/// Names of the devices that forward in any variant.
fn device(plan: &Plan) -> String {
    let has = |kind: &DutKind| plan.variants.iter().any(|v| v.settings.dut.kind == *kind);
    let kinds = DutKind::ALL.iter().filter(|kind| has(kind)).map(|kind| kind.row().words);
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    let is_simulated = plan.base.testbed.kind == TestbedKind::Sim;
    if is_simulated { format!("a model of {kinds}") } else { kinds }
}

/// Settings of the base that differ from the defaults, and all of the router's if it forwards. Not
/// included are settings that levels change or that the traffic line contains.
fn base_settings(plan: &Plan) -> String {
    let base = &plan.base;
    let is_router = plan.variants.iter().any(|v| v.settings.dut.kind == DutKind::Router);
    let keeps_states = matches!(base.dut.firewall, Firewall::Stateful | Firewall::Ruleset { .. });
    let default = Settings::default().all();
    let is_shown = |setting: &Setting| match (setting.key(), setting.row().owner) {
        (key, _) if TRAFFIC_KEYS.contains(&key) || key == "kind" => false,
        ("state" | "state_limit", _) => is_router && keeps_states,
        ("port", _) => is_router && base.testbed.kind != TestbedKind::Memory,
        (_, Owner::Router) => is_router,
        _ => !default.contains(setting),
    };
    let settings = base.all().into_iter().filter(is_shown);
    settings
        .map(|setting| format!("{} {}", setting.name(), setting.value()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Traffic of the base, and its generator unless that is fwdlab.
fn traffic(plan: &Plan) -> String {
    let traffic = &plan.base.traffic;
    let (flows, family, size) = (traffic.flows, traffic.family.name(), traffic.frame_size);
    let rate = match traffic.rate {
        Rate::Max => "at the maximum offered load".to_owned(),
        rate => format!("at {rate}"),
    };
    let mut text = format!("{family}, flows {flows}, frames of {size}, {rate}");
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

fn levels(plan: &Plan, factor: usize) -> Block {
    let Factor { name, levels } = &plan.factors[factor];
    let changes = |level: usize| -> String {
        let differences = plan.differences(factor, level);
        let build =
            levels[level].build_of.as_ref().map(|revision| format!("a build of {revision}"));
        let changes = differences.iter().map(|difference| {
            let Change { setting, value, .. } = &difference.change;
            let base = match &difference.base {
                _ if difference.is_same() => "as the base".to_owned(),
                Some(base) => format!("base: {base}"),
                // Commands of the user around a run have no value that a device could have by
                // itself.
                None if AROUND.contains(&setting.as_str()) => "base: none".to_owned(),
                None => "base: as found".to_owned(),
            };
            format!("{setting} = {value} ({base})")
        });
        let changes: Vec<String> = build.into_iter().chain(changes).collect();
        if changes.is_empty() { "nothing changed".to_owned() } else { changes.join(", ") }
    };
    let rows: Vec<(String, String)> =
        levels.iter().enumerate().map(|(at, level)| (level.label.clone(), changes(at))).collect();
    let table = Table::of(&rows)
        .words("level", |(label, _)| Cell::text(label))
        .words("", |(_, changes)| Cell::text(changes))
        .keys(&["changes"])
        .hidden("factor", |_| Cell::text(name))
        .set(|table| (table.name, table.in_words) = (Some("levels"), true));
    Block::section(format!("factor {name}"), vec![table.block()])
}

fn comparisons(plan: &Plan) -> Block {
    let pairs: Vec<(String, String)> = (0..plan.variants.len())
        .filter_map(|variant| {
            let baseline = plan.baseline_of(variant)?;
            Some((plan.revision_label(variant), plan.revision_label(baseline)))
        })
        .collect();
    if pairs.is_empty() {
        let nothing = "nothing to compare: every variant is a baseline";
        return Block::section("comparisons", vec![Block::text(nothing)]);
    }
    let adjusted = match plan.compare.adjust {
        Adjust::Holm => "",
        Adjust::BenjaminiHochberg => " (Benjamini-Hochberg)",
    };
    let title = format!(
        "comparisons at {} % confidence{adjusted}, equivalent within {} %",
        plan.compare.confidence,
        (plan.compare.margin * 1e6).round() / 1e4
    );
    let table = Table::of(&pairs)
        .words("variant", |(variant, _)| Cell::text(variant))
        .words("against", |(_, baseline)| Cell::text(baseline))
        .keys(&["baseline"])
        .set(|table| table.name = Some("planned_comparisons"));
    Block::section(title, vec![table.block()])
}

fn order(plan: &Plan) -> Block {
    let what = if plan.design.alternate_ns.is_some() { "stream" } else { "block" };
    let labels = |run: &PlannedRun| {
        let labels = run.variants.iter().map(|&variant| plan.variants[variant].label.as_str());
        labels.collect::<Vec<_>>().join(" > ")
    };
    let table = Table::of(&plan.runs)
        .numbers("run", |run| Cell::count(run.index + 1))
        .numbers(what, |run| Cell::count(run.block + 1))
        .words("variant", |run| Cell::text(labels(run)))
        .set(|table| table.name = Some("order"));
    Block::section("order of runs", vec![table.block()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_results::document::form;

    /// Renders a plan for a wide terminal.
    fn rendered(plan: &Plan) -> String {
        let history = History { stores: Vec::new(), unused: Vec::new(), outlook: None };
        form::text::render(&document(plan, &history, (&[], &[]), false, &()), 300)
    }

    #[test]
    fn document_shows_no_base_for_commands_around_runs() {
        let file = "version = 1\n[testbed]\nkind = \"netns\"\n[[factor]]\nname = \"offload\"\n\
                    levels = [\"x\", { label = \"on\", setup = [\"ethtool -K d0 gro on\"] }, \
                    { label = \"s\", sysctl = { \"net.ipv4.conf.all.rp_filter\" = 1 } }]\n"
            .replace("\"x\"", "{ label = \"off\" }");
        let plan = fwdlab_model::load("x.toml", &file, &|_| Err("no files".into())).unwrap();
        let shown = rendered(&plan);
        assert!(shown.contains("on: setup = ethtool -K d0 gro on (base: none)"), "{shown}");
        assert!(shown.contains("rp_filter = 1 (base: as found)"), "{shown}");
    }

    #[test]
    fn document_shows_the_stopping_rule() {
        let shown = |more: &str| {
            let file = format!(
                "version = 1\n[testbed]\nkind = \"sim\"\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n{more}"
            );
            let plan = fwdlab_model::load("x.toml", &file, &|_| Err("no files".into())).unwrap();
            rendered(&plan)
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
    fn document_shows_settings_that_affect_the_router() {
        let shown = |more: &str| {
            let file = format!("version = 1\n{more}");
            let plan = fwdlab_model::load("x.toml", &file, &|_| Err("no files".into())).unwrap();
            rendered(&plan)
        };
        assert!(shown("").contains("device: the Linux kernel\n"));
        let ruleset = shown("[dut]\nqueues = 2\nfirewall = \"stateful\"\n");
        assert!(ruleset.contains("base: firewall stateful, queues 2\n"), "{ruleset}");
        let memory = shown("[testbed]\nkind = \"memory\"\n[dut]\nkind = \"router\"\n");
        assert!(memory.contains("memory: no kernel forwards the packets\n"), "{memory}");
        let device = "device: fwdlab's own router\n";
        assert!(memory.contains(device), "{memory}");
        let base = "base: fib auto, locking lockless, path fast, entropy_harvest false\n";
        assert!(memory.contains(base), "{memory}");
        let mixed = shown(
            "[dut]\nfirewall = \"stateful\"\n[[factor]]\nname = \"kind\"\nlevels = [\"linux\", \"router\"]\n",
        );
        assert!(mixed.contains("the Linux kernel, fwdlab's own router\n"), "{mixed}");
        assert!(mixed.contains("state sharded, state_limit 2097152"), "{mixed}");
        assert!(mixed.contains("port auto\n"), "{mixed}");
    }
}
