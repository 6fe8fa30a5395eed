//! `fwdlab lab`: laboratories of several machines.

use super::{doctor, schema};
use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal::{self, HEADING, styled};
use anyhow::Result;
use fwdlab_bench::lab::{HostReport, check, ssh_settings};
use fwdlab_model::Lab;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

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
    /// Not checked yet: where the cables really lead, and how much sender and receiver
    /// can do. Both need packets to be sent.
    Check(Check),
    /// Print the JSON Schema of a lab's file
    Schema(schema::OfLab),
}

/// What to draw.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab lab show lab.toml
  fwdlab lab show lab.toml --json | jq '.hosts[].name'")]
pub(crate) struct Show {
    /// The lab's file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What to check.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exits with 0 when all is fine, with 3 when something is missing, with 2 when the
file has faults.

Examples:
  fwdlab lab check lab.toml
  fwdlab lab check lab.toml --json | jq '.hosts[].probes[] | select(.works | not)'")]
pub(crate) struct Check {
    /// The lab's file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Does it.
///
/// # Errors
/// Faults of the file, and standard output that can't be written.
pub(crate) fn execute(command: &Command) -> Result<Exit> {
    match command {
        Command::Show(arguments) => show(arguments),
        Command::Check(arguments) => checked(arguments),
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
    let lab = load(&arguments.file)?;
    match arguments.json {
        true => terminal::print_json(&serde_json::to_value(&lab)?)?,
        false => terminal::print(&lab.draw())?,
    }
    Ok(Exit::Done)
}

fn checked(arguments: &Check) -> Result<Exit> {
    let lab = load(&arguments.file)?;
    let folder = arguments.file.parent().unwrap_or(Path::new(""));
    let reports = check(&lab, &ssh_settings(&lab, folder));
    let exit = exit_of(&reports);
    let fine = exit == Exit::Done;
    match arguments.json {
        true => terminal::print_json(&json!({ "lab": lab.name, "fine": fine, "hosts": reports }))?,
        false => terminal::print(&text(&reports, terminal::width()))?,
    }
    Ok(exit)
}

fn exit_of(reports: &[HostReport]) -> Exit {
    if reports.iter().all(HostReport::is_fine) { Exit::Done } else { Exit::Environment }
}

fn text(reports: &[HostReport], width: usize) -> String {
    let mut out = String::new();
    for report in reports {
        out += &format!("{}\n", styled(&report.host, HEADING));
        out.extend(report.probes.iter().map(|probe| doctor::line(probe, width)));
        out.push('\n');
    }
    let wrong = reports.iter().flat_map(|report| &report.probes).filter(|probe| !probe.works);
    let summary = match wrong.count() {
        0 => "All hosts are as the file says.".to_owned(),
        1 => "One thing is not as the file says.".to_owned(),
        wrong => format!("{wrong} things are not as the file says."),
    };
    let unchecked =
        "Not checked yet: where the cables lead, and the ceiling of sender and receiver.";
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
        let shown = anstream::adapter::strip_str(&text(&reports, 80)).to_string();
        assert_eq!(
            shown,
            "near\nok  link eth1: no signal\n\n\
             far\nno  link eth1: no signal\n    next step: check the cable\n\n\
             One thing is not as the file says. Not checked yet: where the cables lead, and\n\
             the ceiling of sender and receiver.\n"
        );
        assert!(text(&reports[..1], 80).contains("All hosts are as"));
        assert_eq!((exit_of(&reports), exit_of(&reports[..1])), (Exit::Environment, Exit::Done));
    }
}
