//! `fwdlab doctor`: capabilities of this machine.

use crate::exit::Exit;
use crate::state_dir;
use crate::terminal::{self, BAD, GOOD, HEADING, styled, wrap};
use fwdlab_bench::Runner;
use fwdlab_bench::journal::Journal;
use fwdlab_bench::probe::{self, Privilege, Probe};
use fwdlab_bench::testbed::Choice;
use fwdlab_vm::machine::{self, Accel};
use fwdlab_vm::{VmError, probe as guest};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Try everything that measurements need on this machine, and report what to install or allow where
/// it fails, and what makes results scatter.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exits with 0 when real packets can be sent here, with 3 when only a simulated
device is left.

Examples:
  fwdlab doctor
  sudo fwdlab doctor
  fwdlab doctor --json | jq '.probes[] | select(.works | not)'")]
pub(crate) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Tries everything and prints the results.
///
/// # Errors
/// If standard output can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let paths = state_dir::paths()?;
    let privilege = Privilege::obtain();
    let journal = Journal::open(&paths.state);
    let mut probes =
        probe::everything(&privilege, journal.as_ref().map_err(|error| error.to_string()));
    probes.extend(guests());
    // The testbed takes the lock itself.
    drop(journal);
    let choice_for = |experiment: &str| -> anyhow::Result<Choice> {
        let any = fwdlab_model::load("any.toml", experiment, &|_| Ok(Vec::new()))?;
        Ok(Runner::open(&any, &privilege, &paths)?.choice().clone())
    };
    let quiet = probe::quietness();
    let choice = &choice_for("version = 1")?;
    let router = &choice_for("version = 1\n[dut]\nkind = \"router\"")?;
    if arguments.json {
        terminal::print_json(&json!({
            "probes": probes,
            "quiet": quiet,
            "testbed": json_of(choice),
            "router_testbed": json_of(router),
        }))?;
    } else {
        terminal::print(&text(&probes, &quiet, choice, router, terminal::width()))?;
    }
    Ok(if choice.simulated { Exit::Environment } else { Exit::Done })
}

/// Kinds of guests on this machine: executed by the CPU itself, emulated, and counted.
fn guests() -> Vec<Probe> {
    let took = |took: Duration| format!("a small guest booted within {} ms", took.as_millis());
    let executes = |name: &str, accel| {
        guest_probe(name, |directory, _| Ok(took(guest::executes(accel, directory)?)))
    };
    vec![
        executes("guests executed by KVM", Accel::Kvm),
        executes("guests emulated (TCG)", Accel::Tcg),
        guest_probe("guests that are counted (plugins of TCG)", |_, cache| guest::counting(cache)),
    ]
}

/// Probes one kind of guest: `attempt` gets a directory for its files, and the cache.
fn guest_probe(name: &str, attempt: impl FnOnce(&Path, &Path) -> Result<String, VmError>) -> Probe {
    let tried = state_dir::cache().and_then(|cache| {
        let directory = machine::directory(&std::env::temp_dir(), 0)?;
        let tried = attempt(&directory, &cache);
        // The next start removes the remains.
        let _ = std::fs::remove_dir_all(&directory);
        Ok(tried?)
    });
    let name = name.to_owned();
    match tried {
        Ok(detail) => Probe { name, works: true, detail, next: String::new() },
        Err(error) => {
            let text = error.to_string();
            let (detail, next) = text.split_once("\n  next step: ").unwrap_or((&text, ""));
            Probe { name, works: false, detail: detail.into(), next: next.into() }
        }
    }
}

fn json_of(choice: &Choice) -> Value {
    json!({
        "kind": choice.kind,
        "simulated": choice.simulated,
        "reasons": choice.reasons,
    })
}

fn text(
    probes: &[Probe],
    quiet: &[Probe],
    kernel: &Choice,
    router: &Choice,
    width: usize,
) -> String {
    let mut out = String::new();
    for probe in probes {
        out += &line(probe, width);
    }
    let _ = writeln!(out, "\n{}", styled("what makes figures wander here", HEADING));
    for probe in quiet {
        out += &line(probe, width);
    }
    let devices = [("the kernel", kernel), ("the router", router)];
    for (device, choice) in devices {
        let heading = format!("testbed = \"auto\" takes, for {device}");
        let _ = writeln!(out, "\n{}", styled(&heading, HEADING));
        out += &wrap(choice.kind.name(), width, "");
        for reason in &choice.reasons {
            for line in reason.lines() {
                out += &wrap(&format!("  {}", line.trim_start()), width, "    ");
            }
        }
    }
    out
}

/// Formats a probe, with the next step if it failed.
pub(super) fn line(probe: &Probe, width: usize) -> String {
    let mark = if probe.works { styled("ok", GOOD) } else { styled("no", BAD) };
    let mut out = wrap(&format!("{mark}  {}: {}", probe.name, probe.detail), width, "    ");
    if !probe.next.is_empty() {
        out += &wrap(&format!("    next step: {}", probe.next), width, "      ");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_shows_next_steps_on_a_narrow_terminal() {
        let probe = |works, next: &str| Probe {
            name: "program nft".into(),
            works,
            detail: "the program nft is missing".into(),
            next: next.into(),
        };
        let choice = Choice {
            kind: fwdlab_model::settings::TestbedKind::Sim,
            simulated: true,
            reasons: vec!["no real packets on this machine: some reason of many words".into()],
        };
        let text = text(
            &[probe(false, "apt-get install nftables"), probe(true, "")],
            &[probe(false, "cpupower frequency-set -g performance")],
            &choice,
            &choice,
            40,
        );
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(plain.contains("next step: apt-get install"), "{plain}");
        assert!(plain.lines().all(|line| line.chars().count() <= 40), "{plain}");
    }
}
