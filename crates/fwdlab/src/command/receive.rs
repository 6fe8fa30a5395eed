//! `fwdlab receive`: the receiver alone, started by hand or as an agent.

use super::send::{every_second, flows, say, seconds, spoken};
use crate::exit::Exit;
use crate::signal::Stop;
use crate::value_enum;
use anyhow::{Context, Result};
use fwdlab_bench::agent::protocol::{ReceiveOrder, Received};
use fwdlab_bench::agent::{open, serve_receive};
use fwdlab_model::settings::Engine;
use fwdlab_model::units::format_pps;
use fwdlab_packet::Flows;
use serde_json::json;
use std::io;
use std::time::Duration;

/// Arguments of `fwdlab receive`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab receive --interface eth2
  fwdlab receive --interface eth2 --run-id 7 --flows 20x100 --seconds 10
  fwdlab receive --interface eth2 --engine packet --json")]
pub(crate) struct Arguments {
    /// Interface to receive from
    #[arg(long, value_name = "NAME", required_unless_present = "control")]
    interface: Option<String>,
    /// Identity of the run whose packets count; packets of other runs are counted separately
    #[arg(long, value_name = "N", default_value_t = 1)]
    run_id: u32,
    /// Sources and destinations of the sender, to count the flows that arrive
    #[arg(long, value_name = "SxD", value_parser = flows)]
    flows: Option<Flows>,
    /// End after this number of seconds [default: at Ctrl-C]
    #[arg(long, value_name = "N", value_parser = seconds)]
    seconds: Option<Duration>,
    /// CPUs of the receiving thread, if the engine has one [default: any]
    #[arg(long, value_name = "CPU,...", value_delimiter = ',')]
    cpus: Vec<u16>,
    /// Receive engine
    #[arg(long, value_parser = value_enum::some(&[Engine::Auto, Engine::Packet]), default_value_t = Engine::Auto)]
    engine: Engine,
    /// Write lines of JSON
    #[arg(long)]
    json: bool,
    /// Act as an agent: read commands as lines of JSON from standard input, and answer each with a
    /// line. Ends with the input, or at the time that the command specifies
    #[arg(long, conflicts_with_all = ["interface", "flows", "seconds", "json"])]
    control: bool,
}

/// Receives and prints counts until the end.
///
/// # Errors
/// Unmet requirements of the environment.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let stop = Stop::on_signals().context("listening for signals")?;
    let Some(interface) = &arguments.interface else {
        let output = &mut io::stdout().lock();
        serve_receive::serve(io::stdin(), output, &|| stop.requested(), open::receiver)?;
        return Ok(Exit::Done);
    };
    let (receiver, facts, checked) = open::receiver(&ReceiveOrder {
        interface: interface.clone(),
        run_id: arguments.run_id,
        flows: arguments.flows.map_or(0, Flows::count),
        expected: None,
        engine: arguments.engine,
        cpus: arguments.cpus.clone(),
        at_most_ns: u64::MAX,
    })?;
    say(arguments.json, &json!({ "facts": facts }), &format!("{}\n", spoken(&facts)))?;
    let took = every_second(arguments.seconds, &stop, &mut |at, took| {
        let received = serve_receive::count(receiver.as_ref(), checked, false);
        let (packets, pps) = took.since(received.packets.iter().sum());
        let others = received.foreign + received.unstamped;
        let line = json!({ "seconds": at, "packets": packets, "pps": pps, "others": others });
        let text = format!("{at:6.1} s  received {}, others so far {others}\n", format_pps(pps));
        say(arguments.json, &line, &text)
    })?;
    let received = serve_receive::count(receiver.as_ref(), checked, true);
    drop(receiver);
    let seconds = took.as_secs_f64();
    let mut line = serde_json::to_value(&received)?;
    line["total"] = true.into();
    line["seconds"] = seconds.into();
    say(arguments.json, &line, &text(&received, seconds))?;
    Ok(Exit::Done)
}

/// The totals as text.
fn text(received: &Received, seconds: f64) -> String {
    let packets: u64 = received.packets.iter().sum();
    let mut text = format!("received {packets} packets of the run in {seconds:.2} s\n");
    for (name, count) in [
        ("flows", received.flows.map(u64::from)),
        ("of other runs", Some(received.foreign).filter(|&count| count > 0)),
        ("without stamp", Some(received.unstamped).filter(|&count| count > 0)),
        ("lost by the receiver itself", Some(received.dropped).filter(|&count| count > 0)),
    ] {
        if let Some(count) = count {
            text += &format!("{name}: {count}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_lists_foreign_packets_and_drops() {
        let received = Received { packets: [1, 2, 3, 0], flows: Some(4), ..Received::default() };
        let good = "received 6 packets of the run in 1.50 s\nflows: 4\n";
        assert_eq!(text(&received, 1.5), good);
        let bad = Received { foreign: 9, dropped: 8, ..received };
        let named = "of other runs: 9\nlost by the receiver itself: 8\n";
        assert_eq!(text(&bad, 1.5), format!("{good}{named}"));
    }
}
