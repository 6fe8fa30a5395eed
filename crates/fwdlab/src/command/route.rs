//! `fwdlab route`: the software router as a standalone program.

mod control;
mod ctl;
mod socket;

use crate::error::CliError;
use crate::exit::Exit;
use crate::signal::{Hangup, Stop};
use crate::terminal;
use anyhow::{Context, Result};
use fwdlab_model::router::{RouterSetup, RouterStats};
use fwdlab_model::units::format_pps;
use fwdlab_netio::files;
use fwdlab_packet::forwarding::Class;
use fwdlab_routerd::{Running, metrics};
use socket::{Socket, SocketArguments};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between checks whether the router has ended.
const TICK: Duration = Duration::from_millis(50);

/// Interval between updates of the file of counters.
const METRICS: Duration = Duration::from_secs(1);

/// Arguments of `fwdlab route`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  fwdlab route router.toml
  fwdlab route router.toml --socket /run/router.sock
  fwdlab route ctl /run/router.sock show neighbours
  fwdlab route router.toml --stats 1
  fwdlab route router.toml --seconds 10 --json
  fwdlab route router.toml --check

A set-up:
  fib = \"auto\"
  routes = [\"198.19.0.0/16 via 198.19.0.2\", \"198.18.0.0/16 via 198.18.0.2\"]
  [[interface]]
  name = \"eth1\"
  addresses = [\"198.18.0.1/24\"]
  [[interface]]
  name = \"eth2\"
  addresses = [\"198.19.0.1/24\"]
  [[interface]]
  name = \"eth2.100\"
  vlan = 100
  parent = \"eth2\"
  addresses = [\"198.51.100.1/24\"]
  [[neighbour]]
  address = \"198.19.0.2\"
  mac = \"02:00:00:00:00:02\"")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The configuration
    #[arg(value_name = "FILE", required_unless_present = "control")]
    file: Option<PathBuf>,
    /// Show the counters at this interval
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds)]
    stats: Option<Duration>,
    /// End after this number of seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Write counters as lines of JSON
    #[arg(long)]
    json: bool,
    /// Write the counters to this file every second, in Prometheus' text format
    #[arg(long, value_name = "FILE", conflicts_with_all = ["control", "check"])]
    metrics: Option<PathBuf>,
    /// Build the router, print its properties, and start nothing
    #[arg(long)]
    check: bool,
    /// Read the configuration (one line of JSON) from standard input, then the commands `stats`,
    /// `route add PREFIX via NEXT-HOP`, `route delete PREFIX`, `forget` (all states of the
    /// firewall), `reload SET-UP` or `stop`; answer each with the counters as a line of JSON
    #[arg(long, conflicts_with_all = ["file", "stats", "seconds", "check"])]
    control: bool,
    #[command(flatten)]
    socket: SocketArguments,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Look into a running router, and change it
    Ctl(ctl::Arguments),
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "this is no number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| *duration >= Duration::from_millis(10))
        .ok_or_else(|| "a time of at least 0.01 seconds".to_owned())
}

/// Runs the router.
///
/// # Errors
/// Mistakes in the configuration, unmet requirements of the environment, and the permanent loss of
/// a port.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    if let Some(Command::Ctl(arguments)) = &arguments.command {
        return ctl::execute(arguments);
    }
    let stop = Stop::on_signals().context("listening for signals")?;
    match &arguments.file {
        Some(file) => from_file(arguments, file, &stop),
        None => control::serve(&stop),
    }
}

fn from_file(arguments: &Arguments, file: &Path, stop: &Stop) -> Result<Exit> {
    // From the beginning: a process that rewrites the file need not know how far the router has
    // started.
    let hangup = Hangup::on_signal().context("listening for signals")?;
    let setup = parse(file, fs::read_to_string(file))?;
    if arguments.check {
        let (facts, warnings) = Running::check(&setup)?;
        for (name, value) in facts {
            println!("{name}: {value}");
        }
        for warning in warnings {
            println!("warning: {warning}");
        }
        return Ok(Exit::Done);
    }
    let socket = Socket::open(&arguments.socket)?;
    // Metrics are written to a temporary file of the same directory, which is then renamed.
    let folder = arguments.metrics.as_deref().and_then(Path::parent);
    let folder = folder.map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
    let written: Vec<&Path> = folder.filter(|path| path.is_dir()).into_iter().collect();
    let mut running = Running::start(&setup, &written)?;
    running.notes().iter().for_each(|note| terminal::note(note));
    let begin = Instant::now();
    let mut last = running.stats();
    let (mut shown_at, mut written_at) = (begin, None::<Instant>);
    let (mut output, mut metrics) = (Retried::new("standard output"), Retried::new("counters"));
    if !arguments.json {
        terminal::note(&format!("forwarding with {} worker(s); Ctrl-C ends", setup.workers));
    }
    while !stop.requested() && !running.has_ended() {
        match &socket {
            Some(socket) => socket.answer(&mut running, TICK),
            None => thread::sleep(TICK),
        }
        running.news().iter().for_each(|news| terminal::note(news));
        if hangup.take() {
            // A pipe could stop this thread, which follows signals.
            let setup = parse(file, files::read_regular(file));
            let reloaded = setup.and_then(|setup| running.reload(&setup));
            terminal::note(&match &reloaded {
                Ok(_) => format!("continues with {}", file.display()),
                Err(error) => format!("continues as before: {error:#}"),
            });
            reloaded.ok().flatten().iter().for_each(|late| terminal::note(late));
        }
        if arguments.seconds.is_some_and(|limit| begin.elapsed() >= limit) {
            break;
        }
        if arguments.stats.is_some_and(|interval| shown_at.elapsed() >= interval) {
            let now = running.stats();
            output.note(show(arguments.json, &now, Some(&last)));
            (last, shown_at) = (now, Instant::now());
        }
        if let Some(path) = &arguments.metrics
            && written_at.is_none_or(|at| at.elapsed() >= METRICS)
        {
            metrics.note(metrics::write(path, &running.stats()));
            written_at = Some(Instant::now());
        }
    }
    // The counters of a router that ended with an error are shown as well.
    let ended = running.stop();
    if let Some(path) = &arguments.metrics {
        metrics.note(metrics::write(path, &running.stats()));
    }
    [output, metrics].iter().for_each(Retried::conclude);
    show(arguments.json, &running.stats(), None)?;
    ended?;
    running.check_captures()?;
    Ok(Exit::Done)
}

/// Output that may fail while the router forwards: reported once, counted, tried again.
struct Retried {
    what: &'static str,
    failures: u64,
}

impl Retried {
    fn new(what: &'static str) -> Retried {
        Retried { what, failures: 0 }
    }

    fn note(&mut self, done: Result<()>) {
        let Err(error) = done else { return };
        if self.failures == 0 {
            let what = self.what;
            terminal::note(&format!("{what}: {error:#}; the router continues and tries again"));
        }
        self.failures += 1;
    }

    /// Prints the number of failures after the first one.
    fn conclude(&self) {
        if self.failures > 1 {
            terminal::note(&format!("{}: {} attempts failed", self.what, self.failures));
        }
    }
}

/// Parses the text of a configuration file.
fn parse(file: &Path, text: io::Result<String>) -> Result<RouterSetup> {
    let shown = file.display();
    let text = text.map_err(|error| CliError::Mistake(format!("{shown}: {error}")))?;
    toml_of(&text, &shown.to_string())
}

/// Parses a configuration; faults have line and column.
fn toml_of(text: &str, file: &str) -> Result<RouterSetup> {
    toml::from_str(text).map_err(|error| {
        let fault = error.to_string();
        CliError::Mistake(format!("{file}: {}", fault.trim_end())).into()
    })
}

/// Prints counters: as rates since `last`, or as totals if that is `None`.
fn show(json: bool, stats: &RouterStats, last: Option<&RouterStats>) -> Result<()> {
    let mut out = anstream::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(stats)?)?;
    } else {
        write!(out, "{}", last.map_or_else(|| table(stats), |last| rates(stats, last)))?;
    }
    out.flush()?;
    Ok(())
}

/// One line with the rates since `last`.
fn rates(stats: &RouterStats, last: &RouterStats) -> String {
    let seconds = stats.at_ns.saturating_sub(last.at_ns).max(1) as f64 / 1e9;
    let rate = |now: u64, before: u64| format_pps(now.saturating_sub(before) as f64 / seconds);
    let mut line = format!(
        "received {}  forwarded {}",
        rate(stats.received, last.received),
        rate(stats.forwarded, last.forwarded)
    );
    for (name, packets, _) in
        stats.counters.iter().filter(|(_, _, class)| *class != Class::Forwarded)
    {
        let before = last.count(name);
        if *packets > before {
            line += &format!("  {name} {}", rate(*packets, before));
        }
    }
    line.push('\n');
    line
}

/// All counters, and the sum that they add up to.
fn table(stats: &RouterStats) -> String {
    let mut rows: Vec<(String, u64)> = vec![("received".into(), stats.received)];
    rows.extend(stats.counters.iter().map(|(name, packets, _)| (format!("  {name}"), *packets)));
    rows.extend(stats.missed.iter().map(|(name, packets)| (format!("missed at {name}"), *packets)));
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, packets) in rows {
        text += &format!("{name:width$}  {packets:>15}\n");
    }
    text += &format!(
        "received {} = forwarded {} + dropped {} + slow path {}\n",
        stats.received, stats.forwarded, stats.dropped, stats.slow
    );
    for (name, value) in &stats.facts {
        text += &format!("{name}: {value}\n");
    }
    for warning in &stats.warnings {
        text += &format!("warning: {warning}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_rates_show_all_counters() {
        let counters = vec![
            ("forwarded".into(), 900, Class::Forwarded),
            ("ipv4_checksum".into(), 100, Class::Dropped),
        ];
        let missed = vec![("d0".into(), 7)];
        let (received, forwarded, dropped) = (1000, 900, 100);
        let now = RouterStats {
            at_ns: 2_000_000_000,
            received,
            forwarded,
            dropped,
            counters,
            missed,
            ..RouterStats::default()
        };
        assert_eq!(
            table(&now),
            "received                    1000\n\
             \x20 forwarded                  900\n\
             \x20 ipv4_checksum              100\n\
             missed at d0                   7\n\
             received 1000 = forwarded 900 + dropped 100 + slow path 0\n"
        );
        let before = RouterStats { at_ns: 1_000_000_000, ..RouterStats::default() };
        let line = rates(&now, &before);
        assert!(line.contains("received 1") && line.contains("ipv4_checksum 100"), "{line}");
    }

    #[test]
    fn toml_of_reports_the_line_of_a_fault() {
        let error = toml_of("workers = 1\nfib = \"tree\"\n", "r.toml").expect_err("a fault");
        let text = error.to_string();
        assert!(text.contains("r.toml") && text.contains("line 2"), "{text}");
    }

    #[test]
    fn seconds_accepts_times_of_at_least_ten_milliseconds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(seconds("0").is_err() && seconds("x").is_err() && seconds("-1").is_err());
    }
}
