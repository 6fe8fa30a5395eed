//! `fwdlab lab`: laboratories of several machines.

mod leases;

use super::{doctor, schema};
use crate::VERSION;
use crate::error::CliError;
use crate::exit::Exit;
use crate::lease_wait::{self, once_free};
use crate::signal::Stop;
use crate::state_dir;
use crate::terminal::{self, HEADING, styled};
use anyhow::Result;
use fwdlab_bench::BenchError;
use fwdlab_bench::agent::ThisProgram;
use fwdlab_bench::lab::{HostReport, TrafficReport, check, ssh_settings, traffic};
use fwdlab_model::Lab;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Commands for a laboratory.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Draw the hosts, their interfaces and the cables between them
    ///
    /// Shows the contents of the file, without connecting to any host.
    Show(Show),
    /// Check that each host matches the file
    ///
    /// Connects to all hosts at the same time, and checks system and CPUs, the programs that a
    /// host's roles need, each interface with MAC, link and MTU, and the offset of its clock from
    /// this machine's. It changes nothing.
    ///
    /// With --traffic, it also sends packets: along each cable from its far end, to verify by the
    /// DUT's own counters that the cable is connected as in the file, and from each sender at the
    /// maximum rate for two seconds, counted by the DUT: the sender's ceiling. Senders and receiver
    /// get a copy of this program in ~/.cache/fwdlab if they lack it. During that time the hosts
    /// are leased as by `fwdlab run`, including sick ones; while another controller has a lease, no
    /// packet is sent.
    ///
    /// Not checked: the cables' direction away from the DUT (nothing is sent there), and the
    /// ceiling of the receiver.
    Check(Check),
    /// Show who holds which host, until when, and which hosts are sick
    ///
    /// Each host keeps its own lease, and its clock decides. The next controller takes a lease
    /// whose holder has ended or has not renewed it in time.
    Leases(leases::Leases),
    /// End leases that are left over
    ///
    /// These are leases of processes that have ended; with --force also leases in use, whose
    /// measurements then end with an error. The next `fwdlab run` restores changed settings.
    Free(leases::Free),
    /// Mark a host as sick, so that it is not used, or as well again
    ///
    /// `fwdlab run` itself marks a host as sick if it can't cycle the host's power or restore its
    /// settings.
    Mark(leases::Mark),
    /// Print the JSON Schema of laboratory files
    Schema(schema::OfLab),
}

/// Arguments of all commands: the laboratory, and the form of the output.
#[derive(Debug, clap::Args)]
pub(crate) struct CommonArguments {
    /// The laboratory's file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `fwdlab lab show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab lab show lab.toml
  fwdlab lab show lab.toml --json | jq '.hosts[].name'")]
pub(crate) struct Show {
    #[command(flatten)]
    common: CommonArguments,
}

/// Arguments of `fwdlab lab check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exits with 0 when all is fine, with 3 when something is missing, with 2 when the
file has faults.

Examples:
  fwdlab lab check lab.toml
  fwdlab lab check lab.toml --traffic
  fwdlab lab check lab.toml --json | jq '.hosts[].probes[] | select(.works | not)'")]
pub(crate) struct Check {
    #[command(flatten)]
    common: CommonArguments,
    /// Also send packets, to check the cables and measure the senders' ceilings
    #[arg(long)]
    traffic: bool,
    /// Maximum time to wait for hosts that another controller uses, such as 60min
    #[arg(long, value_name = "DURATION", value_parser = lease_wait::time, requires = "traffic")]
    wait: Option<Duration>,
}

/// Executes a command for a laboratory.
///
/// # Errors
/// Errors in the file, and standard output that can't be written.
pub(crate) fn execute(command: &Command) -> Result<Exit> {
    match command {
        Command::Show(arguments) => show(arguments),
        Command::Check(arguments) => check_lab(arguments),
        Command::Leases(arguments) => leases::leases(arguments),
        Command::Free(arguments) => leases::free(arguments),
        Command::Mark(arguments) => leases::mark(arguments),
        Command::Schema(_) => schema::of_lab(),
    }
}

fn load(file: &Path) -> Result<Lab> {
    let shown = file.display().to_string();
    let text =
        fs::read_to_string(file).map_err(|error| CliError::Mistake(format!("{shown}: {error}")))?;
    Ok(Lab::parse(&shown, &text)?)
}

fn show(arguments: &Show) -> Result<Exit> {
    let lab = load(&arguments.common.file)?;
    match arguments.common.json {
        true => terminal::print_json(&serde_json::to_value(&lab)?)?,
        false => terminal::print(&lab.draw())?,
    }
    Ok(Exit::Done)
}

fn check_lab(arguments: &Check) -> Result<Exit> {
    let CommonArguments { file, json } = &arguments.common;
    let lab = load(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let settings = ssh_settings(&lab, folder);
    let reports = check(&lab, &settings);
    let sent = match arguments.traffic {
        true => {
            let program = state_dir::nowhere()?.program;
            let own_program = ThisProgram { program: &program, version: VERSION };
            let stop = Stop::on_signals()?;
            let wait = arguments.wait.unwrap_or_default();
            let sent = once_free(wait, &stop, terminal::note, || {
                traffic(&lab, &settings, own_program, &|| stop.requested())
            });
            // Ctrl-C also reaches the child processes that query the hosts.
            if stop.requested() {
                return Err(BenchError::Interrupted.into());
            }
            Some(sent?)
        }
        false => None,
    };
    let exit = exit_of(&reports, sent.as_ref());
    match json {
        true => {
            let fine = exit == Exit::Done;
            let mut json = json!({ "lab": lab.name, "fine": fine, "hosts": reports });
            if let Some(sent) = &sent {
                json["traffic"] = serde_json::to_value(sent)?;
            }
            terminal::print_json(&json)?;
        }
        false => terminal::print(&text(&reports, sent.as_ref(), terminal::width()))?,
    }
    Ok(exit)
}

fn exit_of(reports: &[HostReport], sent: Option<&TrafficReport>) -> Exit {
    let fine = reports.iter().all(HostReport::is_fine) && sent.is_none_or(TrafficReport::is_fine);
    if fine { Exit::Done } else { Exit::Environment }
}

fn text(reports: &[HostReport], sent: Option<&TrafficReport>, width: usize) -> String {
    let mut out = String::new();
    for report in reports {
        out += &format!("{}\n", styled(&report.host, HEADING));
        out.extend(report.probes.iter().map(|probe| doctor::line(probe, width)));
        out.push('\n');
    }
    if let Some(sent) = sent {
        out += &format!("{}\n", styled("traffic", HEADING));
        out.extend(sent.probes().map(|probe| doctor::line(probe, width)));
        out.push('\n');
    }
    let probes = reports.iter().flat_map(|report| &report.probes);
    let wrong = probes.chain(sent.into_iter().flat_map(TrafficReport::probes));
    let summary = match wrong.filter(|probe| !probe.works).count() {
        0 => "All is as the file says.".to_owned(),
        1 => "One thing is not as the file says.".to_owned(),
        wrong => format!("{wrong} things do not match the file."),
    };
    let unchecked = match sent {
        None => {
            "Not checked without --traffic: where the cables lead, and the ceiling of the senders."
        }
        Some(_) => {
            "Not checked: the cables' direction away from the DUT, and the ceiling of the receiver."
        }
    };
    out + &terminal::wrap(&format!("{summary} {unchecked}"), width, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_bench::probe::Probe;

    #[test]
    fn text_lists_hosts_and_counts_faults() {
        let probe = |works, next: &str| Probe {
            name: "link eth1".into(),
            works,
            detail: "no signal".into(),
            next: next.into(),
        };
        let report = |host: &str, probes| HostReport { host: host.into(), probes };
        let reports = [
            report("near", vec![probe(true, "")]),
            report("far", vec![probe(false, "check the cable")]),
        ];
        let shown = anstream::adapter::strip_str(&text(&reports, None, 80)).to_string();
        assert_eq!(
            shown,
            "near\nok  link eth1: no signal\n\n\
             far\nno  link eth1: no signal\n    next step: check the cable\n\n\
             One thing is not as the file says. Not checked without --traffic: where the\n\
             cables lead, and the ceiling of the senders.\n"
        );
        assert!(text(&reports[..1], None, 80).contains("All is as"));
        let exits = [&reports[..], &reports[..1]].map(|reports| exit_of(reports, None));
        assert_eq!(exits, [Exit::Environment, Exit::Done]);
        let cable = probe(false, "change the cables");
        let sent = TrafficReport { obstacles: vec![cable], ..TrafficReport::default() };
        let shown = text(&reports[..1], Some(&sent), 80);
        assert!(shown.contains("traffic") && shown.contains("change the cables"), "{shown}");
        assert!(shown.contains("One thing") && shown.contains("direction away"), "{shown}");
        assert_eq!(exit_of(&reports[..1], Some(&sent)), Exit::Environment);
    }
}
