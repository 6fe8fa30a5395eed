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
use fwdlab_bench::agent::Own;
use fwdlab_bench::lab::{HostReport, TrafficReport, check, ssh_settings, traffic};
use fwdlab_model::Lab;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to do with a laboratory.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Draw the hosts, their interfaces and the cables between them
    ///
    /// No host is asked: this is what the file says.
    Show(Show),
    /// Ask each host whether it is as the file says
    ///
    /// All are asked at the same time: system and CPUs, the programs that a host's roles
    /// need, each interface with MAC, link and MTU, and how far its clock is from this
    /// machine's. Nothing is changed.
    ///
    /// With --traffic, packets are sent: along each cable from its far end, to see by the
    /// DUT's own counters that it leads where the file says, and from each sender as many
    /// as possible for two seconds, counted by the DUT: its ceiling. Senders and receiver
    /// get a copy of this program in ~/.cache/fwdlab where they don't have it. The hosts are
    /// leased meanwhile, as `fwdlab run` leases them, sick ones too; while another controller
    /// has one, no packet is sent.
    ///
    /// Not checked: the cables' direction away from the DUT (nothing is sent there), and
    /// how much the receiver can count.
    Check(Check),
    /// Who has which host, until when, and which are sick
    ///
    /// Each host keeps its own lease, and its clock decides. A lease whose holder has ended, or
    /// has not renewed it in time, is taken by whoever comes next.
    Leases(leases::Leases),
    /// End leases that are left over
    ///
    /// Those of processes that have ended are, with --force also those of the living: what
    /// they measure ends with an error. Settings that were changed are restored by the next
    /// `fwdlab run`.
    Free(leases::Free),
    /// Say that a host is sick, and is not to be taken, or well again
    ///
    /// A host whose power could not be cycled, or whose settings could not be restored, is
    /// marked sick by `fwdlab run` itself.
    Mark(leases::Mark),
    /// Print the JSON Schema of a lab's file
    Schema(schema::OfLab),
}

/// Which laboratory, and how the answer is printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Asked {
    /// The lab's file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What to draw.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab lab show lab.toml
  fwdlab lab show lab.toml --json | jq '.hosts[].name'")]
pub(crate) struct Show {
    #[command(flatten)]
    asked: Asked,
}

/// What to check.
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
    asked: Asked,
    /// Send packets, too: where do the cables lead, how much can the senders do?
    #[arg(long)]
    traffic: bool,
    /// Wait as long, such as 60min, for hosts that another controller has
    #[arg(long, value_name = "DURATION", value_parser = lease_wait::time, requires = "traffic")]
    wait: Option<Duration>,
}

/// Does it.
///
/// # Errors
/// Faults of the file, and standard output that can't be written.
pub(crate) fn execute(command: &Command) -> Result<Exit> {
    match command {
        Command::Show(arguments) => show(arguments),
        Command::Check(arguments) => checked(arguments),
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
    let lab = load(&arguments.asked.file)?;
    match arguments.asked.json {
        true => terminal::print_json(&serde_json::to_value(&lab)?)?,
        false => terminal::print(&lab.draw())?,
    }
    Ok(Exit::Done)
}

fn checked(arguments: &Check) -> Result<Exit> {
    let Asked { file, json } = &arguments.asked;
    let lab = load(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let settings = ssh_settings(&lab, folder);
    let reports = check(&lab, &settings);
    let sent = match arguments.traffic {
        true => {
            let program = state_dir::nowhere()?.program;
            let own = Own { program: &program, version: VERSION };
            let stop = Stop::on_signals()?;
            let wait = arguments.wait.unwrap_or_default();
            let sent = once_free(wait, &stop, terminal::note, || {
                traffic(&lab, &settings, own, &|| stop.requested())
            });
            // Ctrl-C reaches the programs that ask the hosts, too.
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
        wrong => format!("{wrong} things are not as the file says."),
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
    fn hosts_have_headings_and_what_is_wrong_is_counted() {
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
