//! The set-up as the list at the top of a report, one line per item.
//!
//! A varied setting shows all its values, whatever the name of its factor.

mod laboratory;
mod router;
mod rows;

use super::Testbed;
use crate::facts::revision;
use crate::format::{listed, seconds};
use crate::stats::summary::median;
use crate::store::{Contents, Import};
use fwdlab_model::Settings;
use fwdlab_model::record::Environment;
use fwdlab_model::settings::{Arrangement, Directions, DutKind, Nat, Rate, TestbedKind};
use fwdlab_model::units::format_pps;

/// Returns all lines, from the machine to the design.
pub(super) fn lines(contents: &Contents, testbed: &Testbed) -> Vec<String> {
    if let Some(import) = &contents.import {
        return imported(contents, import);
    }
    let mut lines: Vec<String> = revision_line(contents).into_iter().collect();
    lines.push(testbed_line(testbed));
    lines.extend(machine(contents));
    if testbed.kind == Some(TestbedKind::Vm) {
        for name in ["kernel", "disk", "cpus", "memory", "nic"] {
            lines.extend(rows::lines(contents, name));
        }
    }
    if matches!(testbed.kind, None | Some(TestbedKind::Netns | TestbedKind::Archive)) {
        lines.push(varied(contents, "CPU arrangement: ", |s| arrangement(s.testbed.arrangement)));
    }
    lines.extend(facts(contents));
    lines.push(varied(contents, "Flows of UDP packets: ", |s| s.traffic.flows.to_string()));
    lines.push(varied(contents, "Address family: ", |s| s.traffic.family.name().to_owned()));
    lines.push(varied(contents, "Frame size with FCS: ", |s| s.traffic.frame_size.to_string()));
    lines.extend(is_any(contents, is_both).then(|| {
        let of = |s: &Settings| match is_both(s) {
            true => "both at once; rates are the sum of both, a load in the file belongs to each",
            false => "one",
        };
        varied(contents, "Directions: ", |s| of(s).to_owned())
    }));
    match contents.plan.metric().is_rate() {
        true => lines.push(load(contents)),
        false => lines.extend(rows::lines(contents, "batch")),
    }
    lines.extend(loss(contents, contents.plan.metric().is_rate()));
    lines.extend(laboratory::generator(contents));
    lines.extend(router::device(contents));
    lines.extend(rows::lines(contents, "queues"));
    lines.push(varied(contents, "Static routes: ", routes));
    lines.push(varied(contents, "Firewall: ", |s| s.dut.firewall.to_string()));
    lines.extend(router::lines(contents));
    lines.extend(laboratory::lines(contents));
    lines.extend(translation(contents, "Addresses: "));
    for name in ["offloads", "icmp_redirect", "sysctl"] {
        lines.extend(rows::lines(contents, name));
    }
    lines.push(design(contents));
    lines
}

fn is_both(settings: &Settings) -> bool {
    settings.traffic.directions == Directions::Both
}

/// Returns the set-up in three lines, for readers who don't know it: machine, traffic, design.
pub(super) fn brief(contents: &Contents, testbed: &Testbed) -> Vec<String> {
    if let Some(import) = &contents.import {
        return imported(contents, import).into_iter().take(3).collect();
    }
    let kind = testbed_line(testbed).trim_start_matches("Testbed: ").to_owned();
    let machine: Vec<String> =
        revision_line(contents).into_iter().chain([kind]).chain(machine(contents)).collect();
    let rate = varied(contents, "", |s| match s.traffic.rate {
        Rate::Max => "maximum offered load".to_owned(),
        rate => rate.to_string(),
    });
    let directions = varied(contents, "", |s| match is_both(s) {
        true => "both directions".to_owned(),
        false => "one direction".to_owned(),
    });
    let traffic = [
        varied(contents, "", |s| format!("{} flows", s.traffic.flows)),
        varied(contents, "", |s| s.traffic.family.name().to_owned()),
        varied(contents, "", |s| format!("frames of {}", s.traffic.frame_size)),
        rate,
    ];
    let directions = is_any(contents, is_both).then_some(directions);
    let traffic = traffic.into_iter().chain(directions).chain(translation(contents, "addresses "));
    let traffic: Vec<String> = traffic.collect();
    vec![machine.join("; "), traffic.join(", "), design(contents)]
}

/// Describes the addresses along the path; `None` if no variant translates any.
fn translation(contents: &Contents, name: &str) -> Option<String> {
    let is_translated = |settings: &Settings| settings.dut.nat != Nat::None;
    is_any(contents, is_translated).then(|| varied(contents, name, Settings::translation))
}

/// The measured revision, as given by the user.
fn revision_line(contents: &Contents) -> Option<String> {
    let mut environments = contents.invocations.iter().map(|stored| &stored.invocation.environment);
    Some(format!("Revision: {}", environments.find_map(revision)?))
}

/// Returns the lines of an imported experiment: contents of its logs, configurations and text,
/// without settings that they don't contain.
fn imported(contents: &Contents, import: &Import) -> Vec<String> {
    let about = &import.about;
    let place = [&about.machine, &about.interface, &about.topic, &about.label];
    let place: Vec<&str> =
        place.iter().map(|part| part.as_str()).filter(|part| !part.is_empty()).collect();
    let mut lines = vec![format!("Imported from the netbenches archive: {}", place.join(" / "))];
    lines.extend(about.setup.iter().cloned());
    lines.push(varied(contents, "Flows that the senders ask for: ", |s| {
        s.traffic.flows.to_string()
    }));
    lines.push(varied(contents, "Address family: ", |s| s.traffic.family.name().to_owned()));
    lines.push(varied(contents, "Frame size with FCS: ", |s| s.traffic.frame_size.to_string()));
    let plan = &contents.plan;
    let (variants, runs) = (plan.variants.len(), plan.runs.len());
    lines.push(format!(
        "{runs} runs of {variants} variants, variant by variant, each of about {}",
        seconds(plan.trial.duration_ns)
    ));
    lines
}

fn testbed_line(testbed: &Testbed) -> String {
    let kind = match testbed.kind {
        Some(TestbedKind::Netns) => "Linux network namespaces joined by veth pairs",
        Some(TestbedKind::Memory) => {
            "packets in memory of this machine, between a generator, the router and a sink; no \
             kernel forwarded them"
        }
        Some(TestbedKind::Ssh) => "hosts of a laboratory, reached over ssh",
        // The first sentence of the caption.
        Some(TestbedKind::Vm) if testbed.caption.starts_with("emulated") => {
            testbed.caption.split_once(". ").map_or(&*testbed.caption, |(first, _)| first)
        }
        Some(TestbedKind::Vm) => "virtual machine (QEMU, KVM) of this machine",
        Some(TestbedKind::Sim) => "simulated device",
        // Runs never record these kinds, and imports don't have this line.
        Some(kind @ (TestbedKind::Auto | TestbedKind::Archive)) => kind.name(),
        None => "none was used yet",
    };
    format!("Testbed: {kind}")
}

/// Returns CPU and kernel of the invocation that recorded the first run.
fn machine(contents: &Contents) -> Vec<String> {
    let used = contents.run_invocations.first();
    let Some(stored) = contents
        .invocations
        .iter()
        .find(|stored| Some(&stored.id) == used)
        .or(contents.invocations.last())
    else {
        return Vec::new();
    };
    // The machine that computes a simulation does not affect its results.
    if stored.invocation.testbed == TestbedKind::Sim {
        return Vec::new();
    }
    let environment = &stored.invocation.environment;
    let mut lines = Vec::new();
    // With several machines, the device under test's.
    let of = match stored.invocation.testbed {
        TestbedKind::Ssh => "DUT, ",
        TestbedKind::Vm => "machine that QEMU ran on, ",
        _ => "",
    };
    if let Some(model) = value(environment, "cpu", "model") {
        let count = value(environment, "cpu", "count")
            .map(|count| format!(", {count} CPUs"))
            .unwrap_or_default();
        lines.push(format!("{of}CPU: {model}{count}"));
    }
    if let Some(release) = value(environment, "kernel", "release") {
        lines.push(format!("{of}Kernel: {release}"));
    }
    lines
}

fn value<'a>(environment: &'a Environment, section: &str, name: &str) -> Option<&'a str> {
    environment.0.get(section)?.get(name).map(String::as_str)
}

/// Returns facts that are equal in all runs (e.g. the sender in use).
fn facts(contents: &Contents) -> Vec<String> {
    let Some(first) = contents.runs.first() else {
        return Vec::new();
    };
    let common: Vec<String> = first
        .facts
        .iter()
        .filter(|(name, value)| {
            contents.runs.iter().all(|run| run.facts.get(*name) == Some(*value))
        })
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    if common.is_empty() {
        return Vec::new();
    }
    vec![format!("As read back in every run: {}", common.join(", "))]
}

/// Formats the measured load, with the intended one.
fn load(contents: &Contents) -> String {
    let rates: Vec<f64> = contents
        .runs
        .iter()
        .filter(|run| run.trial.window_ns > 0)
        .map(|run| run.trial.window.offered as f64 * 1e9 / run.trial.window_ns as f64)
        .collect();
    let intended = varied(contents, "", |s| match s.traffic.rate {
        Rate::Max => "as fast as the sender can".to_owned(),
        rate => rate.to_string(),
    });
    match median(&rates) {
        Some(offered) => {
            let offered = format_pps(offered);
            let all = &contents.plan.variants;
            let kind = match all.iter().all(|variant| variant.settings.traffic.rate == Rate::Max) {
                true => {
                    ". What is forwarded then is the forwarding rate at maximum offered load \
                     (FRMOL, RFC 2285), not the throughput of RFC 1242"
                }
                false => "",
            };
            format!(
                "Traffic load: {offered} offered (median of the runs as measured; intended: \
                 {intended}){kind}"
            )
        }
        None => format!("Traffic load intended: {intended}"),
    }
}

/// Formats the loss in the windows: as counted, not as expected from arrangement and rate.
fn loss(contents: &Contents, is_loaded: bool) -> Option<String> {
    let runs = contents.runs.iter().filter(|run| run.trial.window.offered > 0);
    let lost: Vec<f64> = runs.map(|run| run.trial.window.loss_ratio()).collect();
    Some(format!("Packets lost in the windows, as counted: {}", loss_of(&lost, is_loaded)?))
}

/// Formats the loss ratios of runs of a loaded device or of one in lockstep; `None` without runs.
fn loss_of(lost: &[f64], is_loaded: bool) -> Option<String> {
    let with_loss = lost.iter().filter(|ratio| **ratio > 0.0).count();
    let most = lost.iter().copied().fold(0.0, f64::max);
    let least = lost.iter().copied().reduce(f64::min)?;
    let runs = lost.len();
    Some(match with_loss {
        0 if !is_loaded => format!("none in any of {runs} runs"),
        0 => format!("none in any of {runs} runs: the device under test was never overloaded"),
        _ => format!(
            "in {with_loss} of {runs} runs, {} to {} of those offered",
            percent(least),
            percent(most)
        ),
    })
}

/// Formats a percentage such that zero and small losses remain distinct.
fn percent(ratio: f64) -> String {
    match 100.0 * ratio {
        zero if zero <= 0.0 => "0 %".to_owned(),
        little if little < 0.01 => "less than 0.01 %".to_owned(),
        share => format!("{share:.2} %"),
    }
}

fn arrangement(arrangement: Arrangement) -> String {
    match arrangement {
        Arrangement::Open => "open (sender and device under test on CPUs of their own)",
        Arrangement::Closed => "closed (each CPU sends, forwards and counts its own packets)",
    }
    .to_owned()
}

fn enabled(on: bool) -> String {
    if on { "enabled" } else { "disabled" }.to_owned()
}

fn routes(settings: &Settings) -> String {
    match &settings.dut.router.routes_file {
        Some(file) if settings.dut.kind == DutKind::Router => format!("from {}", file.file),
        _ => settings.dut.routes.to_string(),
    }
}

fn design(contents: &Contents) -> String {
    let plan = &contents.plan;
    let (trial, design) = (&plan.trial, &plan.design);
    match design.alternate_ns {
        Some(slice_ns) => format!(
            "{} streams of {} after {} of warm-up, levels switched every {} in the order A B B A, \
             seed {}",
            design.blocks,
            seconds(trial.duration_ns),
            seconds(trial.warmup_ns),
            seconds(slice_ns),
            design.seed
        ),
        None if !plan.metric().is_rate() => format!(
            "randomised complete blocks: {}, one trial in lockstep per run, seed {}",
            design.extent(),
            design.seed
        ),
        None => format!(
            "randomised complete blocks: {}, one trial of {} after {} of warm-up per run{}, seed {}",
            design.extent(),
            seconds(trial.duration_ns),
            seconds(trial.warmup_ns),
            plan.method.as_ref().map_or(String::new(), |method| format!(", {}", method.words())),
            design.seed
        ),
    }
}

/// Formats a line with all values of a setting in the plan's variants.
fn varied(contents: &Contents, name: &str, describe: impl Fn(&Settings) -> String) -> String {
    varied_of(contents, |_| true, name, describe)
}

/// As [`varied`], for the variants that have the setting.
fn varied_of(
    contents: &Contents,
    has: impl Fn(&Settings) -> bool,
    name: &str,
    describe: impl Fn(&Settings) -> String,
) -> String {
    let mut values: Vec<String> = Vec::new();
    let settings = contents.plan.variants.iter().map(|variant| &variant.settings);
    for settings in settings.filter(|settings| has(settings)) {
        let value = describe(settings);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let mark = if values.len() > 1 { " (varied)" } else { "" };
    format!("{name}{}{mark}", listed(&values))
}

/// Returns true if any variant matches.
fn is_any(contents: &Contents, has: impl Fn(&Settings) -> bool) -> bool {
    contents.plan.variants.iter().any(|variant| has(&variant.settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_line_reports_counted_loss() {
        assert_eq!(loss_of(&[], true), None);
        let line = |lost: &[f64]| loss_of(lost, true).unwrap_or_default();
        assert!(line(&[0.0; 8]).starts_with("none in any of 8 runs"));
        let most = line(&[0.69, 0.5, 0.695]);
        assert_eq!(most, "in 3 of 3 runs, 50.00 % to 69.50 % of those offered");
        // One lost packet is reported as loss, not as 0.00 %.
        let one = line(&[0.0, 1e-7, 0.0]);
        assert_eq!(one, "in 1 of 3 runs, 0 % to less than 0.01 % of those offered");
    }

    #[test]
    fn testbed_line_names_each_kind() {
        // The compiler checks that each kind has a line.
        for (kind, word) in [
            (TestbedKind::Netns, "namespaces"),
            (TestbedKind::Memory, "no kernel forwarded them"),
            (TestbedKind::Ssh, "hosts of a laboratory"),
            (TestbedKind::Sim, "simulated"),
            (TestbedKind::Vm, "QEMU"),
        ] {
            let testbed = Testbed {
                kind: Some(kind),
                reason: String::new(),
                simulated: kind == TestbedKind::Sim,
                caption: String::new(),
            };
            let line = testbed_line(&testbed);
            assert!(line.contains(word), "{line}");
        }
    }
}
