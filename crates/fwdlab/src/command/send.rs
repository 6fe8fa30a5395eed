//! `fwdlab send`: the sender alone, started by hand or as an agent.

use crate::error::CliError;
use crate::exit::Exit;
use crate::signal::Stop;
use crate::value_enum;
use anyhow::{Context, Result};
use fwdlab_bench::agent::protocol::SendOrder;
use fwdlab_bench::agent::{open, serve_send};
use fwdlab_model::lab::Mac;
use fwdlab_model::settings::Engine;
use fwdlab_model::units::format_pps;
use fwdlab_netio::Sender;
use fwdlab_packet::{Family, Flows, Stream, Template};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between checks for the end.
const TICK: Duration = Duration::from_millis(20);
/// Maximum number of flows that a stamp can distinguish.
const FLOWS_MAX: u64 = 1 << 24;
/// Interval between lines of output.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time limit of a manual start: none, Ctrl-C ends it.
const UNLIMITED_NS: u64 = u64::MAX;

/// Arguments of `fwdlab send`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab send --interface eth1 --to 00:07:43:2e:e4:70
  fwdlab send --interface eth1 --to 00:07:43:2e:e4:70 --rate 1Mpps --seconds 10
  fwdlab send --interface eth1 --to 00:07:43:2e:e4:70 --family inet6 --flows 20x100
  fwdlab send --interface eth1 --to 00:07:43:2e:e4:70 --cpus 2,3 --engine packet --json")]
pub(crate) struct Arguments {
    /// Interface to send through
    #[arg(long, value_name = "NAME", required_unless_present = "control")]
    interface: Option<String>,
    /// Destination MAC of the frames: the next router's, or the receiver's
    #[arg(long, value_name = "MAC", required_unless_present = "control")]
    to: Option<Mac>,
    /// Source MAC of the frames [default: the interface's]
    #[arg(long, value_name = "MAC")]
    from: Option<Mac>,
    /// Identity of the run; the receiver counts packets of its own run
    #[arg(long, value_name = "N", default_value_t = 1)]
    run_id: u32,
    /// Address family
    #[arg(long, value_parser = value_enum::any::<Family>(), default_value_t = Family::Inet)]
    family: Family,
    /// Frame size in bytes, with FCS [default: 64, for inet6 84]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(64..=1518), alias = "size")]
    frame_size: Option<u16>,
    /// Number of source and destination addresses
    #[arg(long, value_name = "SxD", default_value = "1x1", value_parser = flows)]
    flows: Flows,
    /// Rate in packets per second, e.g. 20000, 20kpps or 1.5Mpps [default: maximum]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,
    /// End after this number of seconds [default: at Ctrl-C]
    #[arg(long, value_name = "N", value_parser = seconds)]
    seconds: Option<Duration>,
    /// CPU of each sending thread [default: one thread on the last CPU]
    #[arg(long, value_name = "CPU,...", value_delimiter = ',')]
    cpus: Vec<u16>,
    /// Send engine
    #[arg(long, value_parser = value_enum::any::<Engine>(), default_value_t = Engine::Auto)]
    engine: Engine,
    /// Write the send time into every packet
    #[arg(long)]
    timestamps: bool,
    /// Write lines of JSON
    #[arg(long)]
    json: bool,
    /// Act as an agent: read commands as lines of JSON from standard input, and answer each with a
    /// line. Ends with the input, or at the time that the command specifies
    #[arg(long, conflicts_with_all = ["interface", "to", "from", "seconds", "json"])]
    control: bool,
}

/// Parses sources and destinations, such as `20x100`.
pub(super) fn flows(text: &str) -> Result<Flows, String> {
    let numbers = text.split_once('x').and_then(|(sources, destinations)| {
        Some(Flows { sources: sources.parse().ok()?, destinations: destinations.parse().ok()? })
    });
    let most = fwdlab_packet::address::MAX_ADDRESSES;
    numbers
        .filter(|flows| (1..=most).contains(&flows.sources))
        .filter(|flows| (1..=most).contains(&flows.destinations))
        .filter(|flows| u64::from(flows.sources) * u64::from(flows.destinations) <= FLOWS_MAX)
        .ok_or_else(|| "two numbers: sources x destinations, e.g. 20x100".into())
}

pub(super) fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("pps").unwrap_or(text).trim_end();
    let (number, factor) = match number.strip_suffix(['k', 'M', 'G']) {
        None => (number, 1.0),
        Some(short) if number.ends_with('k') => (short, 1e3),
        Some(short) if number.ends_with('M') => (short, 1e6),
        Some(short) => (short, 1e9),
    };
    let rate = number.trim_end().parse::<f64>().ok().map(|number| number * factor);
    rate.filter(|rate| *rate > 0.0 && rate.is_finite())
        .ok_or_else(|| "packets a second above 0, e.g. 20000, 20kpps or 1.5Mpps".into())
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|duration| *duration >= Duration::from_millis(10))
        .ok_or_else(|| "a number of at least 0.01".into())
}

/// Sends and prints rates until the end.
///
/// # Errors
/// Mistakes in the arguments, and unmet requirements of the environment.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let stop = Stop::on_signals().context("listening for signals")?;
    let (Some(interface), Some(to)) = (&arguments.interface, arguments.to) else {
        let output = &mut io::stdout().lock();
        serve_send::serve(io::stdin(), output, &|| stop.requested(), open::senders)?;
        return Ok(Exit::Done);
    };
    let order = order(arguments, interface, to)?;
    let (senders, facts) = open::senders(&order)?;
    say(arguments.json, &json!({ "facts": facts }), &format!("{}\n", spoken(&facts)))?;
    senders.iter().for_each(|sender| sender.start());
    let count = || senders.iter().map(|sender| sender.sent().iter().sum::<u64>()).sum();
    let took = every_second(arguments.seconds, &stop, &mut |at, took| {
        let (packets, pps) = took.since(count());
        let line = json!({ "seconds": at, "packets": packets, "pps": pps });
        say(arguments.json, &line, &format!("{at:6.1} s  sent {}\n", format_pps(pps)))
    })?;
    let missed: u64 = senders.iter().map(|sender| sender.missed()).sum();
    let packets = halt(senders)?;
    let pps = packets as f64 / took.as_secs_f64();
    let seconds = took.as_secs_f64();
    let total = json!({ "total": true, "seconds": seconds, "packets": packets, "pps": pps, "missed": missed });
    let mut text = format!("sent {packets} packets in {seconds:.2} s: {}\n", format_pps(pps));
    if missed > 0 {
        text += &format!("given up because the sender was late: {missed}\n");
    }
    say(arguments.json, &total, &text)?;
    Ok(Exit::Done)
}

fn order(arguments: &Arguments, interface: &str, to: Mac) -> Result<SendOrder> {
    let source_mac = match arguments.from {
        Some(Mac(mac)) => mac,
        None => open::mac_of(interface)?,
    };
    let family = arguments.family;
    let smallest = Template::smallest_frame(family);
    if arguments.frame_size.is_some_and(|size| size < smallest) {
        let what =
            format!("--frame-size: the smallest frame of {} has {smallest} bytes", family.name());
        return Err(CliError::Mistake(what).into());
    }
    Ok(SendOrder {
        interface: interface.to_owned(),
        source_mac,
        next_hop_mac: to.0,
        stream: Stream::new(family, arguments.frame_size.unwrap_or(smallest), arguments.flows),
        run_id: arguments.run_id,
        first_number: 0,
        rate_pps: arguments.rate,
        limit: None,
        first_flow: 0,
        timestamps: arguments.timestamps,
        engine: arguments.engine,
        cpus: arguments.cpus.clone(),
        at_most_ns: UNLIMITED_NS,
    })
}

/// Stops all senders, even if one of them fails; returns the number of packets sent.
fn halt(senders: Vec<Box<dyn Sender>>) -> Result<u64> {
    let sent: Vec<_> = senders.into_iter().map(Sender::halt).collect();
    let mut total = 0;
    for packets in sent {
        total += packets?.iter().sum::<u64>();
    }
    Ok(total)
}

/// Computes increments of a counter between calls.
pub(super) struct RateCounter {
    at: Instant,
    counted: u64,
}

impl RateCounter {
    /// Returns the increment since the last call, and its rate per second.
    pub(super) fn since(&mut self, counted: u64) -> (u64, f64) {
        let now = Instant::now();
        let packets = counted.saturating_sub(self.counted);
        let pps = packets as f64 / (now - self.at).as_secs_f64().max(1e-9);
        *self = RateCounter { at: now, counted };
        (packets, pps)
    }
}

/// Calls `show` once per second with the elapsed seconds, until the time limit or until the user
/// stops; returns the elapsed time.
pub(super) fn every_second(
    limit: Option<Duration>,
    stop: &Stop,
    show: &mut dyn FnMut(f64, &mut RateCounter) -> Result<()>,
) -> Result<Duration> {
    let begin = Instant::now();
    let (mut next, mut since) = (INTERVAL, RateCounter { at: begin, counted: 0 });
    while !stop.requested() && limit.is_none_or(|limit| begin.elapsed() < limit) {
        let left = limit.map_or(TICK, |limit| limit.saturating_sub(begin.elapsed()));
        thread::sleep(TICK.min(left));
        if begin.elapsed() >= next {
            show(begin.elapsed().as_secs_f64(), &mut since)?;
            next += INTERVAL;
        }
    }
    Ok(begin.elapsed())
}

/// Prints a value as a line of JSON, or a text.
pub(super) fn say(json: bool, value: &Value, text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    match json {
        true => writeln!(out, "{value}")?,
        false => write!(out, "{text}")?,
    }
    out.flush()?;
    Ok(())
}

/// Formats facts as one line.
pub(super) fn spoken(facts: &std::collections::BTreeMap<String, String>) -> String {
    let facts: Vec<String> = facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    facts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_flows_and_seconds_parse_valid_text_only() {
        for (text, pps) in
            [("20000", 2e4), ("20kpps", 2e4), ("1.5M", 1.5e6), ("1 Gpps", 1e9), ("7pps", 7.0)]
        {
            assert_eq!(rate(text), Ok(pps), "{text}");
        }
        for text in ["0", "-1", "fast", "1m", "", "infpps", "NaN", "M"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert_eq!(flows("20x100"), Ok(Flows { sources: 20, destinations: 100 }));
        assert!(
            ["20", "0x1", "1x0", "x", "1x1x1", "9999x9999"].iter().all(|text| flows(text).is_err())
        );
        assert!(seconds("0.5").is_ok() && seconds("0").is_err() && seconds("1e400").is_err());
    }

    #[test]
    fn since_returns_increment_and_rate() {
        let mut since = RateCounter { at: Instant::now() - Duration::from_secs(1), counted: 1000 };
        let (packets, pps) = since.since(3000);
        assert!(packets == 2000 && (1500.0..=2000.0).contains(&pps), "{packets} {pps}");
        assert_eq!(since.since(3000).0, 0);
    }
}
