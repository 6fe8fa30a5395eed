//! `fwdlab lab leases`, `free` and `mark`: leases and health of a laboratory's hosts.

use super::{CommonArguments, load};
use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal;
use anyhow::Result;
use fwdlab_bench::host::SshSettings;
use fwdlab_bench::lab::ssh_settings;
use fwdlab_bench::lease::{self, FreeResult, HostLease, State};
use fwdlab_model::Lab;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;
use std::path::Path;

/// Arguments of `fwdlab lab leases`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exits with 0 when every host could be queried, with 3 when one could not.

\
                        Examples:
  fwdlab lab leases lab.toml
  fwdlab lab leases lab.toml \
                        --json | jq '.hosts[] | select(.state == \"held\") | .holder.owner'")]
pub(crate) struct Leases {
    #[command(flatten)]
    common: CommonArguments,
}

/// Arguments of `fwdlab lab free`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exits with 0 when the hosts are free, with 3 when one is not.

Examples:
  fwdlab lab free lab.toml
  fwdlab lab free lab.toml dut --force")]
pub(crate) struct Free {
    #[command(flatten)]
    common: CommonArguments,
    /// Host to free [default: all hosts]
    #[arg(value_name = "HOST")]
    host: Option<String>,
    /// Also end leases in use: their measurements end with an error
    #[arg(long)]
    force: bool,
}

/// Arguments of `fwdlab lab mark`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab lab mark lab.toml dut sick 'its second port loses frames'
  fwdlab lab mark lab.toml dut well")]
pub(crate) struct Mark {
    #[command(flatten)]
    common: CommonArguments,
    /// The host
    #[arg(value_name = "HOST")]
    host: String,
    /// Health of the host
    #[arg(value_name = "HEALTH")]
    health: Health,
    /// Reason why it is sick
    #[arg(value_name = "WHY", required_if_eq("health", "sick"))]
    why: Option<String>,
}

/// The health of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Health {
    /// The host is used again
    Well,
    /// The host is not used
    Sick,
}

fn open(file: &Path) -> Result<(Lab, SshSettings)> {
    let lab = load(file)?;
    let settings = ssh_settings(&lab, file.parent().unwrap_or(Path::new("")));
    Ok((lab, settings))
}

/// Shows the leases.
///
/// # Errors
/// Errors in the file, and standard output that can't be written.
pub(super) fn leases(arguments: &Leases) -> Result<Exit> {
    let (lab, settings) = open(&arguments.common.file)?;
    let hosts = lease::survey(&lab, &settings);
    match arguments.common.json {
        true => terminal::print_json(&json!({ "lab": lab.name, "hosts": hosts }))?,
        false => terminal::print(&text(&hosts, &TimeZone::system()))?,
    }
    let all = hosts.iter().all(|host| host.state != State::Unknown);
    Ok(if all { Exit::Done } else { Exit::Environment })
}

/// Formats one paragraph per host: it fits every width, and reasons are long.
fn text(hosts: &[HostLease], zone: &TimeZone) -> String {
    let width = hosts.iter().map(|host| host.host.len()).max().unwrap_or(0);
    let mut out = String::new();
    for host in hosts {
        let state = match (&host.state, &host.holder, host.until_s) {
            (State::Free, ..) => "free".to_owned(),
            (State::Unknown, ..) => {
                format!("unknown: {}", host.trouble.as_deref().unwrap_or_default())
            }
            (state, Some(holder), Some(until_s)) => {
                let (owner, since) = (lease::named(&holder.owner), at(holder.since_s, zone));
                let (until, left) = (at(until_s, zone), holder.left_s.ceil());
                match state {
                    State::Held => format!(
                        "held by {owner}, since {since}, until {until} ({left} s) unless renewed"
                    ),
                    _ if left > 0.0 => {
                        format!("left by {owner}, which has ended: the next one takes it")
                    }
                    // The holder may be alive but delayed.
                    _ => format!("left by {owner}, whose lease is over: the next one takes it"),
                }
            }
            _ => String::new(),
        };
        out += &format!("{:width$}  {state}\n", host.host);
        if let Some(mark) = &host.sick {
            let (by, when) = (&mark.by, at(mark.at_s, zone));
            out += &format!("{:width$}  sick, marked by {by} at {when}: {}\n", "", mark.why);
        }
    }
    out
}

/// Formats a time of a host's clock in the local time zone.
fn at(seconds: i64, zone: &TimeZone) -> String {
    let time = Timestamp::from_second(seconds).unwrap_or_default();
    time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Ends leases.
///
/// # Errors
/// Errors in the file, an unknown host, and standard output that can't be written.
pub(super) fn free(arguments: &Free) -> Result<Exit> {
    let (lab, settings) = open(&arguments.common.file)?;
    let freed = lease::free(&lab, &settings, arguments.host.as_deref(), arguments.force)?;
    match arguments.common.json {
        true => terminal::print_json(&json!({ "lab": lab.name, "hosts": freed }))?,
        false => {
            let line = |FreeResult { host, said, .. }: &FreeResult| format!("{host}: {said}\n");
            terminal::print(&freed.iter().map(line).collect::<String>())?;
        }
    }
    Ok(if freed.iter().all(|host| host.is_free) { Exit::Done } else { Exit::Environment })
}

/// Marks a host as sick or well.
///
/// # Errors
/// Errors in the file, an unknown host, or no host that stores the mark.
pub(super) fn mark(arguments: &Mark) -> Result<Exit> {
    let CommonArguments { file, json } = &arguments.common;
    let (lab, settings) = open(file)?;
    let (host, why) = (&arguments.host, arguments.why.as_deref());
    let is_sick = arguments.health == Health::Sick;
    if !is_sick && why.is_some() {
        return Err(CliError::Mistake("a host that is well needs no reason".into()).into());
    }
    let why = is_sick.then(|| why.unwrap_or_default());
    let kept = lease::mark(&lab, &settings, host, why)?;
    if *json {
        let health = if is_sick { "sick" } else { "well" };
        let value = json!({ "lab": lab.name, "host": host, "health": health, "kept_on": kept });
        terminal::print_json(&value)?;
        return Ok(Exit::Done);
    }
    terminal::print(&match is_sick {
        false => format!("{host} is well: it is taken again"),
        true => format!(
            "{host} is marked sick, on {}: it is not taken until `fwdlab lab mark {} {host} well`",
            kept.join(" and "),
            file.display()
        ),
    })?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_bench::lease::{Holder, Mark};

    #[test]
    fn text_describes_each_lease_state() {
        let holder = |left_s| Holder {
            owner: "ann@desk:12-34:boot-1".into(),
            left_s,
            length_s: 300.0,
            since_s: 1_795_660_000,
        };
        let lease = |host: &str, state, holder: Option<Holder>| HostLease {
            host: host.into(),
            state,
            until_s: holder.as_ref().map(|_| 1_795_660_300),
            holder,
            sick: None,
            trouble: (state == State::Unknown).then(|| "no route".to_owned()),
        };
        let mut hosts = [
            lease("a", State::Free, None),
            lease("bee", State::Held, Some(holder(12.2))),
            lease("c", State::Dead, Some(holder(0.0))),
            lease("cc", State::Dead, Some(holder(7.0))),
            lease("d", State::Unknown, None),
        ];
        hosts[0].sick = Some(Mark {
            name: "sick".into(),
            at_s: 1_795_660_000,
            by: "ann@desk".into(),
            why: "it smells".into(),
        });
        assert_eq!(
            text(&hosts, &TimeZone::UTC),
            "a    free\n     sick, marked by ann@desk at 2026-11-26 02:26:40: it smells\nbee  \
             held by ann@desk, process 12, since 2026-11-26 02:26:40, until 2026-11-26 02:31:40 \
             (13 s) unless renewed\nc    left by ann@desk, process 12, whose lease is over: the \
             next one takes it\ncc   left by ann@desk, process 12, which has ended: the next one \
             takes it\nd    unknown: no route\n"
        );
    }
}
