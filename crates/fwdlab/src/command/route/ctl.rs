//! `fwdlab route ctl`: commands a running router through its socket.

use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal;
use anyhow::Result;
use fwdlab_model::router::RouterStats;
use fwdlab_routerd::commands::error_of;
use fwdlab_routerd::commands::view::{
    InterfaceRow, Killed, NeighbourRow, RouteRow, Routes, Rule, StateRow, States, Table,
};
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time to wait for an answer: the router answers when no other task is running.
const PATIENCE: Duration = Duration::from_secs(20);

/// Arguments of `fwdlab route ctl`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab route ctl /run/router.sock show neighbours
  fwdlab route ctl /run/router.sock show route 203.0.113.7
  fwdlab route ctl /run/router.sock show states from 198.18.0.0/16 limit 20
  fwdlab route ctl /run/router.sock kill states from 198.18.0.7
  fwdlab route ctl /run/router.sock set eth1 addresses 198.18.0.1/24 2001:2::1/64
  fwdlab route ctl /run/router.sock --json show rules")]
pub(crate) struct Arguments {
    /// The socket of the router, see `fwdlab route --socket`
    #[arg(value_name = "SOCKET")]
    socket: PathBuf,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show a table of the router
    #[command(subcommand)]
    Show(Show),
    /// Forget learnt MACs, or all states
    #[command(subcommand)]
    Flush(Flush),
    /// Remove states of connections
    #[command(subcommand)]
    Kill(Kill),
    /// Change an interface; `route add` is undone, as by a reload
    Set {
        /// The interface
        interface: String,
        /// The key
        #[arg(value_parser = ["addresses"])]
        key: String,
        /// All its addresses with prefix lengths
        values: Vec<String>,
    },
    /// Change a route: `add PREFIX via NEXT-HOP` or `delete PREFIX`
    Route {
        /// The change
        #[arg(required = true, value_name = "WORD")]
        words: Vec<String>,
    },
}

#[derive(Debug, clap::Subcommand)]
enum Show {
    /// Neighbours with MAC and state (RFC 4861)
    Neighbours {
        /// Of one interface
        interface: Option<String>,
    },
    /// States of connections
    States {
        /// `from PREFIX`, `to PREFIX`, `limit NUMBER` (1000)
        #[arg(value_name = "WORD")]
        words: Vec<String>,
    },
    /// Route to an address, with its next hops
    Route {
        /// The address
        address: IpAddr,
    },
    /// Firewall rules, with packets and bytes
    Rules,
    /// Interfaces, with addresses and frames
    Interfaces,
    /// All counters
    Counters,
}

#[derive(Debug, clap::Subcommand)]
enum Flush {
    /// Forget learnt MACs
    Neighbours {
        /// Of an interface, or of an address
        #[arg(value_name = "INTERFACE|ADDRESS")]
        what: Option<String>,
    },
    /// Remove all states
    States,
}

#[derive(Debug, clap::Subcommand)]
enum Kill {
    /// Remove the states of connections between these addresses
    States {
        /// `from PREFIX`, `to PREFIX`, or both: initiator and responder
        #[arg(required = true, value_name = "WORD")]
        words: Vec<String>,
    },
}

/// Sends a command and prints the answer.
///
/// # Errors
/// If no router answers, or if it refuses the command.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let Arguments { socket, json, command } = arguments;
    let answer = query(socket, &line(command)?)?;
    if let Some(error) = error_of(&answer) {
        return Err(CliError::Mistake(format!(
            "{error}\n  next step: fwdlab route ctl SOCKET --help"
        ))
        .into());
    }
    let text = if *json { answer } else { text(command, &answer)? };
    if !text.is_empty() {
        terminal::print(&text)?;
    }
    Ok(Exit::Done)
}

/// The command as a line of the router's protocol.
fn line(command: &Command) -> Result<String> {
    let optional = |word: &Option<String>| -> String {
        word.as_ref().map(|word| format!(" {word}")).unwrap_or_default()
    };
    let text = match command {
        Command::Show(Show::Neighbours { interface }) => {
            format!("show neighbours{}", optional(interface))
        }
        Command::Show(Show::States { words }) => format!("show states {}", words.join(" ")),
        Command::Show(Show::Route { address }) => format!("show route {address}"),
        Command::Show(Show::Rules) => "show rules".into(),
        Command::Show(Show::Interfaces) => "show interfaces".into(),
        Command::Show(Show::Counters) => "show counters".into(),
        Command::Flush(Flush::Neighbours { what }) => {
            format!("flush neighbours{}", optional(what))
        }
        Command::Flush(Flush::States) => "flush states".into(),
        Command::Kill(Kill::States { words }) => format!("kill states {}", words.join(" ")),
        Command::Set { interface, key, values } => {
            format!("set {interface} {key} {}", values.join(" "))
        }
        Command::Route { words } => format!("route {}", words.join(" ")),
    };
    if text.contains('\n') {
        return Err(CliError::Mistake("a command is one line".into()).into());
    }
    Ok(text)
}

/// Sends a line and returns the answer.
fn query(socket: &Path, line: &str) -> Result<String> {
    let failed = |error: std::io::Error| {
        let shown = socket.display();
        CliError::Environment(format!(
            "router at {shown}: {error}\n  next step: fwdlab route FILE --socket {shown}"
        ))
    };
    let exchange = || -> std::io::Result<String> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        writeln!(stream, "{line}")?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        match answer.is_empty() {
            true => Err(std::io::ErrorKind::UnexpectedEof.into()),
            false => Ok(answer.trim_end().to_owned()),
        }
    };
    Ok(exchange().map_err(failed)?)
}

/// The answer for readers.
fn text(command: &Command, answer: &str) -> Result<String> {
    Ok(match command {
        Command::Show(Show::Neighbours { .. }) => neighbours(&read(answer)?),
        Command::Show(Show::States { .. }) => states(&read(answer)?),
        Command::Show(Show::Route { .. }) => routes(&read(answer)?),
        Command::Show(Show::Rules) => rules(&read(answer)?),
        Command::Show(Show::Interfaces) => interfaces(&read(answer)?),
        Command::Show(Show::Counters) => super::table(&read::<RouterStats>(answer)?),
        Command::Kill(_) => format!("{} states removed", read::<Killed>(answer)?.killed),
        Command::Flush(_) | Command::Set { .. } | Command::Route { .. } => String::new(),
    })
}

fn read<T: DeserializeOwned>(answer: &str) -> Result<T> {
    Ok(serde_json::from_str(answer)?)
}

/// Lines of columns; columns of numbers are aligned to the right.
fn columns(heading: &[&str], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain([heading[at].len()]).max().unwrap_or(0)
    };
    let is_number = |at: usize| {
        let mut cells = rows.iter().filter_map(|row| row.get(at));
        cells.all(|cell| cell == "-" || cell.parse::<f64>().is_ok())
    };
    let shape: Vec<(usize, bool)> =
        (0..heading.len()).map(|at| (width(at), is_number(at))).collect();
    let mut text = padded(heading, &shape);
    for row in rows {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        text += &padded(&cells, &shape);
    }
    text
}

/// A line of cells; `shape` has the width of each column, and true for numbers.
fn padded(cells: &[&str], shape: &[(usize, bool)]) -> String {
    let padded = cells.iter().zip(shape).map(|(cell, &(width, is_number))| match is_number {
        true => format!("{cell:>width$}"),
        false => format!("{cell:width$}"),
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
}

/// The text of a value, or a dash.
fn or_dash<T: ToString>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(|| "-".to_owned(), T::to_string)
}

fn neighbours(table: &Table<NeighbourRow>) -> String {
    let row = |row: &NeighbourRow| {
        let (mac, answered) = (or_dash(&row.mac), or_dash(&row.answered_seconds));
        vec![row.interface.clone(), row.address.to_string(), mac, row.state.clone(), answered]
    };
    let heading = ["interface", "address", "MAC", "state", "answered (s)"];
    columns(&heading, &table.rows.iter().map(row).collect::<Vec<_>>())
}

fn states(states: &States) -> String {
    let end = |address: IpAddr, port: u16| match address {
        IpAddr::V4(address) => format!("{address}:{port}"),
        IpAddr::V6(address) => format!("[{address}]:{port}"),
    };
    let row = |row: &StateRow| {
        let protocol = match row.protocol {
            1 => "icmp".to_owned(),
            6 => "tcp".to_owned(),
            17 => "udp".to_owned(),
            58 => "icmp6".to_owned(),
            number => number.to_string(),
        };
        let [out, back] = row.packets;
        let [out_bytes, back_bytes] = row.bytes;
        vec![
            protocol,
            end(row.source, row.source_port),
            end(row.destination, row.destination_port),
            row.phase.clone(),
            row.idle_seconds.to_string(),
            out.to_string(),
            back.to_string(),
            out_bytes.to_string(),
            back_bytes.to_string(),
        ]
    };
    let heading =
        ["protocol", "from", "to", "phase", "idle (s)", "packets", "back", "bytes", "back"];
    let rows: Vec<_> = states.rows.iter().map(row).collect();
    let shown = rows.len() as u64;
    let more = match shown < states.total {
        true => format!("{shown} of {} states; `limit NUMBER` shows more\n", states.total),
        false => String::new(),
    };
    columns(&heading, &rows) + &more
}

fn routes(routes: &Routes) -> String {
    let Routes { address, prefix, via, source, rows } = routes;
    let Some(via) = via else { return format!("{address}: no route\n") };
    let prefix = prefix.as_ref().map(|prefix| format!("{prefix} ")).unwrap_or_default();
    let source = source.as_ref().map(|source| format!(" ({source})")).unwrap_or_default();
    let head = format!("{address}: {prefix}{via}{source}\n");
    let row = |row: &RouteRow| {
        let carrier = match row.has_carrier {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        };
        vec![
            or_dash(&row.interface),
            or_dash(&row.next_hop),
            row.weight.to_string(),
            carrier.to_owned(),
            or_dash(&row.mac),
            or_dash(&row.state),
        ]
    };
    let heading = ["interface", "next hop", "weight", "carrier", "MAC", "state"];
    let rows: Vec<_> = rows.iter().map(row).collect();
    if rows.is_empty() { head } else { head + &columns(&heading, &rows) }
}

fn rules(table: &Table<Rule>) -> String {
    let row = |row: &Rule| {
        let (packets, bytes) = (row.packets.to_string(), row.bytes.to_string());
        vec![or_dash(&row.line), packets, bytes, row.rule.clone()]
    };
    columns(&["line", "packets", "bytes", "rule"], &table.rows.iter().map(row).collect::<Vec<_>>())
}

fn interfaces(table: &Table<InterfaceRow>) -> String {
    let row = |row: &InterfaceRow| -> Vec<String> {
        let counts = [row.received, row.sent, row.lost, row.missed].map(|count| count.to_string());
        let head = [row.name.clone(), row.state.clone(), row.mac.clone(), row.mtu.to_string()];
        head.into_iter().chain(counts).chain([row.addresses.join(" ")]).collect()
    };
    let heading =
        ["interface", "state", "MAC", "MTU", "received", "sent", "lost", "missed", "addresses"];
    columns(&heading, &table.rows.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::parsed;

    fn line_of(words: &str) -> String {
        let words: Vec<&str> = ["s"].into_iter().chain(words.split(' ')).collect();
        let arguments: Arguments = parsed(&words).expect("a command");
        line(&arguments.command).expect("one line")
    }

    #[test]
    fn commands_become_lines() {
        for words in [
            "show neighbours eth1",
            "show states from 10.0.0.0/8 limit 5",
            "show route 2001:db8::1",
            "show rules",
            "flush neighbours 10.0.0.1",
            "flush states",
            "kill states from 10.0.0.1 to 10.0.0.2",
            "set eth1 addresses 10.0.0.1/24",
            "route add 10.0.0.0/8 via 10.1.0.2",
        ] {
            assert_eq!(line_of(words), words);
        }
        assert!(parsed::<Arguments>(&["s", "set", "eth1", "mtu", "9000"]).is_err());
        assert!(parsed::<Arguments>(&["s", "kill", "states"]).is_err());
    }

    #[test]
    fn tables_align_numbers_to_the_right() {
        let rows =
            vec![vec!["a".to_owned(), "-".to_owned()], vec!["bb".to_owned(), "12345".to_owned()]];
        assert_eq!(columns(&["x", "y"], &rows), "x       y\na       -\nbb  12345\n");
    }
}
