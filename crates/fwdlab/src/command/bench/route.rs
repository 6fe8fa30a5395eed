//! `fwdlab bench route`: packets per second through the software router.

use super::{Spread, frame_size};
use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal::{self, HEADING, styled, wrap};
use crate::value_enum;
use anyhow::Result;
use fwdlab_bench::BenchError;
use fwdlab_netio::affinity;
use fwdlab_packet::forwarding::{ForwardingPath, Locking, StateTable};
use fwdlab_packet::{Family, Template};
use fwdlab_router::bench::Algorithm;
use fwdlab_router::bench::route::{
    FLOWS_MAX, Question, RouteError, RouteFigure, Variant, ratios, route,
};
use fwdlab_router::firewall::Standard;
use fwdlab_router::routes::synthesis::ROUTES_MAX;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// Measure how many packets per second the software router forwards from memory to memory: on one
/// CPU, in rounds in which the variants take turns. "whole" includes generator and sink; "router"
/// is the router alone, with frames prepared outside the timed part.
///
/// Without any of --routes, --fib, --path, --firewall, --state, --locking, --destinations and
/// --harvest, eight variants are measured: 2 routes, 1,000,000 routes, both again with a million
/// destinations, the full path, a stateless firewall, a stateful one, and a stateful one with a
/// million flows. With any of them, all combinations of the listed values are measured. The first
/// variant is the baseline.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab bench route
  fwdlab bench route --family inet6 --path fast,full --routes 2
  fwdlab bench route --routes 2,1000000 --destinations 0,1000000
  fwdlab bench route --firewall stateful --state sharded,global --flows 100000 --json")]
pub(crate) struct Arguments {
    /// Address family
    #[arg(long, value_parser = value_enum::any::<Family>(), default_value_t = Family::Inet)]
    family: Family,
    /// Frame size in bytes, with FCS [default: 64, for inet6 84]
    #[arg(long, value_name = "BYTES", value_parser = frame_size)]
    frame_size: Option<u16>,
    /// Number of flows
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(FLOWS_MAX)))]
    flows: u32,
    /// Routes in the table [default: 2,1000000]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = routes)]
    routes: Vec<usize>,
    /// Lookup algorithm [default: dir24_8, for inet6 multibit]
    #[arg(long, value_delimiter = ',', value_parser = value_enum::any::<Algorithm>())]
    fib: Vec<Algorithm>,
    /// Path through the router [default: fast]
    #[arg(long, value_delimiter = ',', value_parser = value_enum::some(&ForwardingPath::IN_PROCESS))]
    path: Vec<ForwardingPath>,
    /// Rules: none, stateless, stateful, or rules:N [default: none]
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    firewall: Vec<Standard>,
    /// Location of the states of a stateful firewall [default: sharded]
    #[arg(long, value_delimiter = ',', value_parser = value_enum::any::<StateTable>())]
    state: Vec<StateTable>,
    /// Lock of the table [default: lockless]
    #[arg(long, value_delimiter = ',', value_parser = value_enum::any::<Locking>())]
    locking: Vec<Locking>,
    /// Measure each variant also with entropy harvested from every packet
    #[arg(long)]
    harvest: bool,
    /// Number of destinations, drawn from all routes, each with its own flow; 0 is a hundred
    /// destinations of one route, with --flows [default: 0]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=i64::from(FLOWS_MAX)))]
    destinations: Vec<u32>,
    /// Rounds in which the variants take turns
    #[arg(long, default_value_t = 15, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Time for each variant over all rounds, in seconds
    #[arg(long, default_value_t = 4.0, value_name = "S", value_parser = super::seconds)]
    seconds: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn routes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(routes) if (2..=ROUTES_MAX).contains(&routes) => Ok(routes),
        _ => Err(format!("a number from 2 to {ROUTES_MAX}")),
    }
}

/// Measures, on the last CPU that the program may use.
///
/// # Errors
/// If none of the requested variants can be measured, or the router loses packets.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let question = question(arguments)?;
    let cpus = affinity::allowed_cpus().map_err(BenchError::from)?;
    let last = &cpus[cpus.len().saturating_sub(1)..];
    affinity::pin_thread(last).map_err(BenchError::from)?;
    let before = load();
    let figures = route(&question).map_err(|error| match error {
        RouteError::FrameSize { .. } => CliError::Mistake(format!("--frame-size: {error}")).into(),
        other => anyhow::Error::from(other),
    })?;
    let least = Template::smallest_frame(arguments.family);
    let frame_size = question.frame_size.unwrap_or(least);
    let (cpu, load) = (last.first().copied(), [before, load()]);
    let measured = Measured { question, frame_size, cpu, load, figures };
    affinity::pin_thread(&cpus).map_err(BenchError::from)?;
    if arguments.json {
        terminal::print_json(&measured.json())?;
    } else {
        terminal::print(&measured.text(terminal::width()))?;
    }
    Ok(Exit::Done)
}

fn question(arguments: &Arguments) -> Result<Question> {
    let variants = variants(arguments);
    if variants.is_empty() {
        let names: Vec<&str> = arguments.fib.iter().map(|fib| fib.name()).collect();
        let why = format!("{} is for the other family only", names.join(", "));
        return Err(CliError::Mistake(why).into());
    }
    Ok(Question {
        variants,
        frame_size: arguments.frame_size,
        flows: arguments.flows,
        time: Duration::from_secs_f64(arguments.seconds),
        rounds: arguments.rounds,
        seed: 1,
    })
}

/// All possible combinations, each once; values of the last option change fastest.
fn variants(arguments: &Arguments) -> Vec<Variant> {
    let Arguments { routes, fib, path, firewall, state, locking, harvest, .. } = arguments;
    let destinations = &arguments.destinations;
    let family = arguments.family;
    let plain = Variant::plain(family);
    let nothing = routes.is_empty()
        && fib.is_empty()
        && path.is_empty()
        && firewall.is_empty()
        && state.is_empty()
        && locking.is_empty()
        && destinations.is_empty()
        && !harvest;
    if nothing {
        return Variant::acceptance(family).to_vec();
    }
    let fibs: Vec<_> = fib.clone();
    // A request for states implies the firewall that keeps them.
    let firewall_default = if state.is_empty() { Standard::None } else { Standard::Stateful };
    let mut variants = vec![plain];
    variants = varied(variants, or(routes, &[2, 1_000_000]), |one, routes| one.routes = routes);
    variants = varied(variants, or(&fibs, &[plain.fib]), |one, fib| one.fib = fib);
    variants = varied(variants, or(locking, &[plain.locking]), |one, lock| one.locking = lock);
    variants = varied(variants, or(path, &[plain.path]), |one, path| one.path = path);
    let firewalls = or(firewall, std::slice::from_ref(&firewall_default));
    variants = varied(variants, firewalls, |one, firewall| one.firewall = firewall);
    variants = varied(variants, or(state, &[plain.states]), |one, states| {
        // Other firewalls keep no states.
        if one.firewall == Standard::Stateful {
            one.states = states;
        }
    });
    let harvests: &[bool] = if *harvest { &[false, true] } else { &[false] };
    variants = varied(variants, harvests, |one, harvest| one.harvest = harvest);
    variants = varied(variants, or(destinations, &[0]), |one, count| {
        one.destinations = (count > 0).then_some(count);
    });
    let mut distinct = Vec::new();
    for variant in variants {
        if variant.fib.knows(family) && !distinct.contains(&variant) {
            distinct.push(variant);
        }
    }
    distinct
}

fn or<'a, T>(requested: &'a [T], default: &'a [T]) -> &'a [T] {
    if requested.is_empty() { default } else { requested }
}

/// Combines each variant with each of the levels.
fn varied<T: Copy>(
    variants: Vec<Variant>,
    levels: &[T],
    set: impl Fn(&mut Variant, T),
) -> Vec<Variant> {
    let with = |(variant, &level): (Variant, &T)| {
        let mut changed = variant;
        set(&mut changed, level);
        changed
    };
    let pairs = variants.into_iter().flat_map(|one| levels.iter().map(move |level| (one, level)));
    pairs.map(with).collect()
}

/// Load average of the last minute, an indicator of other work on the machine.
fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// Results and their conditions.
struct Measured {
    question: Question,
    /// Bytes of a frame with FCS.
    frame_size: u16,
    cpu: Option<u16>,
    /// Load average before and after.
    load: [Option<f64>; 2],
    figures: Vec<RouteFigure>,
}

/// Packets per second, one value per round.
type Rates = fn(&RouteFigure) -> &[f64];

/// Measured rates of each variant, with their names.
const KINDS: [(&str, Rates); 2] =
    [("whole", |figure| &figure.whole_per_second), ("router", |figure| &figure.alone_per_second)];

impl Measured {
    fn text(&self, width: usize) -> String {
        let load = self.load.map(|load| load.map_or("?".into(), |load| format!("{load:.2}")));
        let cpu = self.cpu.map_or("?".into(), |cpu| cpu.to_string());
        let mut text = wrap(
            &format!(
                "{}: million packets a second, and ratio to the first; frames of {} bytes, {} flows, CPU {cpu}, load average {} before and {} after",
                styled("memory to memory", HEADING),
                self.frame_size,
                self.question.flows,
                load[0],
                load[1],
            ),
            width,
            "  ",
        );
        let Some(first) = self.figures.first() else { return text };
        for figure in &self.figures {
            text += &wrap(&format!("  {}", figure.variant.name()), width, "    ");
            for (kind, rates) in KINDS {
                let Spread { median, min, max } = Spread::of(rates(figure));
                let [median, min, max] = [median, min, max].map(|rate| rate / 1e6);
                let mut line =
                    format!("    {kind:6}  median {median:6.2}  min {min:6.2}  max {max:6.2}");
                if figure.variant != first.variant {
                    let Spread { median, min, max } =
                        Spread::of(&ratios(rates(figure), rates(first)));
                    line += &format!("  ratio {median:.3} ({min:.3} to {max:.3})");
                }
                text += &wrap(&line, width, "            ");
            }
        }
        text
    }

    fn json(&self) -> Value {
        let one = |figure: &RouteFigure| {
            let variant = &figure.variant;
            let mut value = json!({
                "name": variant.name(),
                "routes": variant.routes,
                "fib": variant.fib.name(),
                "locking": variant.locking.name(),
                "path": variant.path.name(),
                "firewall": match variant.firewall {
                    Standard::None => "none".into(),
                    Standard::Stateless => "stateless".into(),
                    Standard::Stateful => "stateful".into(),
                    Standard::Rules(count) => format!("rules:{count}"),
                },
                "state": (variant.firewall == Standard::Stateful).then(|| variant.states.name()),
                "harvest": variant.harvest,
                "destinations": variant.destinations,
                "packets": figure.packets,
            });
            for (kind, rates) in KINDS {
                let (rates, first) = (rates(figure), rates(&self.figures[0]));
                let (rate, ratio) = (Spread::of(rates), Spread::of(&ratios(rates, first)));
                value[kind] = json!({
                    "rates_pps": rates,
                    "median_pps": rate.median,
                    "min_pps": rate.min,
                    "max_pps": rate.max,
                    "median_ratio": ratio.median,
                    "min_ratio": ratio.min,
                    "max_ratio": ratio.max,
                });
            }
            value
        };
        let family = self.figures.first().map(|figure| figure.variant.family.name());
        json!({
            "family": family,
            "frame_size": self.frame_size,
            "flows": self.question.flows,
            "cpu": self.cpu,
            "load_average": self.load,
            "variants": self.figures.iter().map(one).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::parsed;

    fn names(words: &[&str]) -> Result<Vec<String>> {
        Ok(question(&parsed(words)?)?.variants.iter().map(Variant::name).collect())
    }

    #[test]
    fn question_without_options_has_the_acceptance_variants() {
        let names = names(&[]).expect("variants");
        assert_eq!(names.len(), 8);
        assert_eq!(names[1], "inet, 1000000 routes, dir24_8");
        assert_eq!(names[3], "inet, 1000000 routes, dir24_8, 1000000 destinations");
        assert_eq!(names[6], "inet, 2 routes, dir24_8, stateful sharded");
    }

    #[test]
    fn question_combines_lists_without_duplicates() {
        let two = ["--routes", "2", "--family", "inet6", "--fib", "dir24_8,multibit,poptrie"];
        assert_eq!(
            names(&two).expect("variants"),
            ["inet6, 2 routes, multibit", "inet6, 2 routes, poptrie"]
        );
        let words = ["--routes", "2", "--firewall", "none,stateful", "--state", "sharded,global"];
        let plain = "inet, 2 routes, dir24_8";
        assert_eq!(
            names(&words).expect("variants"),
            [
                plain.to_owned(),
                format!("{plain}, stateful sharded"),
                format!("{plain}, stateful global")
            ]
        );
        let harvest = names(&["--harvest", "--path", "full"]).expect("variants");
        assert_eq!(harvest.len(), 4);
        assert!(harvest[1].ends_with("full path, harvest"), "{harvest:?}");
        assert_eq!(names(&["--state", "per_worker"]).expect("variants").len(), 2);
        let met = names(&["--routes", "9", "--destinations", "0,5"]).expect("variants");
        assert_eq!(met, ["inet, 9 routes, dir24_8", "inet, 9 routes, dir24_8, 5 destinations"]);
    }

    #[test]
    fn question_rejects_invalid_values() {
        for words in [
            ["--path", "slow"],
            ["--locking", "giant"],
            ["--state", "all"],
            ["--firewall", "rules"],
            ["--fib", "multibit"],
            ["--routes", "1"],
            ["--flows", "0"],
        ] {
            assert!(names(&words).is_err(), "{words:?}");
        }
    }
}
