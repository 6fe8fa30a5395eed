//! `fwdlab bench`: benchmarks of the laboratory itself.

pub(crate) mod fib;
pub(crate) mod route;

use crate::error::CliError;
use crate::exit::Exit;
use crate::signal::Stop;
use crate::state_dir;
use crate::terminal::{self, DOUBT, HEADING, styled, wrap};
use crate::value_enum;
use anyhow::Result;
use clap::ValueEnum;
use fwdlab_bench::probe::{Cable, Privilege};
use fwdlab_bench::testbed::netns::Netns;
use fwdlab_bench::{BenchError, Observer, cpu};
use fwdlab_model::plan::{INET6_FRAME_MIN, Trial};
use fwdlab_model::settings::{self, Arrangement, Family, Settings};
use fwdlab_model::spec::kind::{FRAME_MAX, FRAME_MIN};
use fwdlab_model::units::format_pps;
use fwdlab_netio::affinity;
use fwdlab_results::stats::summary::median;
use serde_json::{Value, json};

/// Identity of the first round's packets; each round has its own.
const FIRST_RUN_ID: u32 = 0x6265_6e00;

/// Parts of the laboratory to benchmark.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Measure sender and receiver without a DUT between them
    Sender(Arguments),
    /// Measure the forwarding tables of the software router
    Fib(fib::Arguments),
    /// Measure the packet rate through the software router
    Route(route::Arguments),
}

/// Measure the rates of this machine's sender and receiver without a DUT: the ceiling of every
/// result.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab bench sender
  fwdlab bench sender --engine all --family inet6
  fwdlab bench sender --arrangement closed --senders 2 --json")]
pub(crate) struct Arguments {
    /// Address family
    #[arg(long, value_parser = value_enum::any::<Family>(), default_value_t = Family::Inet)]
    family: Family,
    /// Frame size in bytes, with FCS [default: 64, for inet6 84]
    #[arg(long, value_name = "BYTES", value_parser = frame_size)]
    frame_size: Option<u16>,
    /// Send engine
    #[arg(long, value_enum, default_value_t = Engine::Auto)]
    engine: Engine,
    /// Length of a round's window, in seconds
    #[arg(long, default_value_t = 1.0, value_name = "S", value_parser = seconds)]
    seconds: f64,
    /// Number of rounds
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Write the send time into every packet
    #[arg(long)]
    timestamps: bool,
    /// Assignment of CPUs to sender and receiver
    #[arg(long, value_parser = value_enum::any::<Arrangement>(), default_value_t = Arrangement::Open)]
    arrangement: Arrangement,
    /// Number of sending threads, one CPU each
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    senders: u16,
    /// Print JSON; with `--engine all`, a list
    #[arg(long)]
    json: bool,
}

/// Send engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// The fastest one that works
    Auto,
    /// XDP live frames
    Xdp,
    /// AF_XDP socket
    Xsk,
    /// AF_PACKET socket
    Packet,
    /// All that work
    All,
}

fn frame_size(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(bytes) if (FRAME_MIN..=FRAME_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(format!("a number from {FRAME_MIN} to {FRAME_MAX}")),
    }
}

/// Parses the length of a window: at most a minute, since longer ones add no information.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number from 0.1 to 60".to_owned()),
    }
}

/// Measures and prints the ceilings.
///
/// # Errors
/// If this machine can't send packets, or loses that ability.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let settings = settings_of(arguments)?;
    let paths = state_dir::paths()?;
    let privilege = Privilege::obtain();
    let stop = Stop::on_signals()?;
    let mut measured = Vec::new();
    for &engine in arguments.engine.candidates() {
        match Netns::open(&privilege, &paths, engine, Cable::Veth) {
            Ok(testbed) => measured.push(measure(arguments, &settings, &testbed, &stop)?),
            Err(error @ BenchError::Environment { .. }) if arguments.engine == Engine::All => {
                terminal::warn(&error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
    }
    if measured.is_empty() {
        return Ok(Exit::Environment);
    }
    if arguments.json {
        let values: Vec<Value> = measured.iter().map(Measured::json).collect();
        match values.as_slice() {
            [one] if arguments.engine != Engine::All => terminal::print_json(one)?,
            _ => terminal::print_json(&values.into())?,
        }
    } else {
        let text: Vec<String> =
            measured.iter().map(|measured| measured.text(terminal::width())).collect();
        terminal::print(&text.join("\n"))?;
    }
    Ok(Exit::Done)
}

impl Engine {
    fn candidates(self) -> &'static [settings::Engine] {
        use settings::Engine as Model;
        match self {
            Engine::Auto => &[Model::Auto],
            Engine::Xdp => &[Model::Xdp],
            Engine::Xsk => &[Model::Xsk],
            Engine::Packet => &[Model::Packet],
            Engine::All => &[Model::Xdp, Model::Xsk, Model::Packet],
        }
    }
}

fn settings_of(arguments: &Arguments) -> Result<Settings> {
    let mut settings = Settings::default();
    settings.testbed.senders = arguments.senders;
    settings.testbed.arrangement = match arguments.arrangement {
        Arrangement::Open if arguments.senders > 1 => {
            let why = "the open arrangement has one sender; give --arrangement closed as well";
            return Err(CliError::Mistake(why.into()).into());
        }
        arrangement => arrangement,
    };
    // As with a DUT: one queue per sender.
    settings.dut.queues = arguments.senders;
    let traffic = &mut settings.traffic;
    let least = match arguments.family {
        Family::Inet => FRAME_MIN,
        Family::Inet6 => INET6_FRAME_MIN,
    };
    traffic.family = arguments.family;
    traffic.frame_size = arguments.frame_size.unwrap_or(least).into();
    traffic.timestamps = arguments.timestamps;
    if traffic.frame_size.least() < least {
        let why =
            format!("--frame-size: the smallest inet6 frame that can be counted is {least} bytes");
        return Err(CliError::Mistake(why).into());
    }
    Ok(settings)
}

/// Results of one engine.
struct Measured {
    engine: &'static str,
    receiver: String,
    settings: Settings,
    rates_pps: Vec<f64>,
    offered_pps: Vec<f64>,
    /// Doubts about the arrangement and the rounds.
    doubts: Vec<String>,
}

fn measure(
    arguments: &Arguments,
    settings: &Settings,
    testbed: &Netns,
    stop: &Stop,
) -> Result<Measured> {
    let cpus = affinity::allowed_cpus().map_err(BenchError::from)?;
    let (testbed_settings, queues) = (&settings.testbed, settings.dut.queues);
    let placement =
        cpu::place_all(&cpus, testbed_settings.arrangement, testbed_settings.senders, queues);
    let trial = Trial {
        warmup_ns: 200_000_000,
        duration_ns: (arguments.seconds * 1e9) as u64,
        drain_ns: 200_000_000,
        interval_ns: 100_000_000,
        slice_ns: 20_000_000,
    };
    let mut measured = Measured {
        engine: testbed.sender(settings),
        receiver: testbed.receiver().to_owned(),
        settings: settings.clone(),
        rates_pps: Vec::new(),
        offered_pps: Vec::new(),
        doubts: placement.fallback.iter().cloned().collect(),
    };
    affinity::pin_thread(&placement.control).map_err(BenchError::from)?;
    for round in 0..arguments.rounds {
        let run_id = FIRST_RUN_ID + round;
        let mut watch = Watch(stop);
        let observed = testbed.ceiling(settings, &placement, &trial, run_id, &mut watch)?;
        let per_second = |packets: u64| packets as f64 * 1e9 / observed.window_ns as f64;
        measured.rates_pps.push(per_second(observed.window.forwarded));
        measured.offered_pps.push(per_second(observed.window.offered));
        let doubts = observed.warnings.iter().map(|warning| warning.sentence());
        measured.doubts.extend(doubts.map(|doubt| format!("round {}: {doubt}", round + 1)));
    }
    affinity::pin_thread(&cpus).map_err(BenchError::from)?;
    Ok(measured)
}

/// Ends a round on the user's request.
struct Watch<'a>(&'a Stop);

impl Observer for Watch<'_> {
    fn cancelled(&self) -> bool {
        self.0.requested()
    }
}

impl Measured {
    fn json(&self) -> Value {
        let Spread { median, min, max } = Spread::of(&self.rates_pps);
        let traffic = &self.settings.traffic;
        json!({
            "engine": self.engine,
            "receiver": self.receiver,
            "family": traffic.family.name(),
            "frame_size": traffic.frame_size,
            "timestamps": traffic.timestamps,
            "arrangement": self.settings.testbed.arrangement.name(),
            "senders": self.settings.testbed.senders,
            "rates_pps": self.rates_pps,
            "offered_pps": self.offered_pps,
            "median_pps": median,
            "min_pps": min,
            "max_pps": max,
            "doubts": self.doubts,
        })
    }

    fn text(&self, width: usize) -> String {
        let (testbed, traffic) = (&self.settings.testbed, &self.settings.traffic);
        let stamps = if traffic.timestamps { ", time stamps" } else { "" };
        let mut text = wrap(
            &format!(
                "{}: {} x {} to {}, {}, {}{stamps}",
                styled("ceiling", HEADING),
                testbed.senders,
                self.engine,
                self.receiver,
                traffic.family.name(),
                traffic.frame_size
            ),
            width,
            "  ",
        );
        for (what, rates) in [("received", &self.rates_pps), ("offered", &self.offered_pps)] {
            let Spread { median, min, max } = Spread::of(rates);
            let line = format!(
                "  {what:8}  median {}  min {}  max {}",
                format_pps(median),
                format_pps(min),
                format_pps(max)
            );
            text += &wrap(&line, width, "            ");
        }
        for doubt in &self.doubts {
            text += &wrap(&format!("  {}: {doubt}", styled("doubt", DOUBT)), width, "    ");
        }
        text
    }
}

/// Median and extremes.
#[derive(Debug, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        Spread {
            median: median(values).unwrap_or(f64::NAN),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::parsed;

    fn settings(words: &[&str]) -> Result<Settings> {
        settings_of(&parsed(words)?)
    }

    #[test]
    fn settings_of_checks_the_smallest_frame_of_the_family() {
        assert_eq!(settings(&[]).unwrap().traffic.frame_size, 64.into());
        let inet6 = ["--family", "inet6"];
        assert_eq!(settings(&inet6).unwrap().traffic.frame_size, 84.into());
        let small = settings(&["--family", "inet6", "--frame-size", "64"]);
        assert!(small.unwrap_err().to_string().contains("84 bytes"));
    }

    #[test]
    fn settings_of_rejects_invalid_arguments() {
        assert!(settings(&["--senders", "2"]).is_err());
        assert!(settings(&["--senders", "2", "--arrangement", "closed"]).is_ok());
        assert!(settings(&["--seconds", "0"]).is_err());
        assert!(settings(&["--seconds", "nan"]).is_err());
        assert!(settings(&["--rounds", "0"]).is_err());
        assert!(settings(&["--frame-size", "1519"]).is_err());
    }

    #[test]
    fn spread_has_median_and_extremes() {
        let spread = Spread::of(&[3.0, 1.0, 2.0, 10.0]);
        assert_eq!(spread, Spread { median: 2.5, min: 1.0, max: 10.0 });
    }

    #[test]
    fn text_fits_a_narrow_terminal() {
        let measured = Measured {
            engine: "XDP live frames",
            receiver: "generic XDP program".into(),
            settings: Settings::default(),
            rates_pps: vec![3.1e6, 3.2e6],
            offered_pps: vec![3.1e6, 3.2e6],
            doubts: vec!["2 of 3 senders: this machine has no more CPUs".into()],
        };
        let text = anstream::adapter::strip_str(&measured.text(40)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert_eq!(measured.json()["median_pps"], 3.15e6);
    }
}
