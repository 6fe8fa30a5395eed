//! `fwdlab flamegraph`: flame graphs as SVG files.

use super::profile::{NamedProfile, packets};
use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal;
use fwdlab_results::profile::draw::{self, Look, Side};
use fwdlab_results::profile::{self, Filter, FilteredProfile, KeptPart};
use fwdlab_results::report::{self, ReportFile};
use std::path::{Path, PathBuf};

/// Draw flame graphs of CPU time, from a profile in any common format.
///
/// FILE is the text of perf script, pmcstat -G, DTrace or bpftrace, folded stacks, a published
/// flame graph, or a variant's profile in a store (DIR:VARIANT); - is standard input. The output is
/// one SVG file that needs nothing else: click to zoom, Ctrl-F to search. With a second file the
/// difference is drawn: the width is the cost in OTHER; red costs more than in FILE, blue less.
/// Give the number of packets forwarded during each profile to compare costs per packet: otherwise
/// shares are drawn, and a faster variant looks hotter in every function that did not get faster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perf script | fwdlab flamegraph - --out forwarding.svg
  fwdlab flamegraph published.svg --icicle --out again.svg
  fwdlab flamegraph before.txt after.txt --packets 81e6 --packets-other 97e6
  fwdlab flamegraph results/firewalls:none results/firewalls:stateful
  fwdlab flamegraph perf.txt --keep-idle --json | jq .summary.idle_share")]
pub(crate) struct Arguments {
    /// A profile, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A second profile to compare with FILE
    #[arg(value_name = "OTHER")]
    other: Option<PathBuf>,
    /// Output file [default: the name of FILE (OTHER), ending in .flame.svg]
    #[arg(long, short, value_name = "FILE.svg", visible_alias = "output")]
    out: Option<PathBuf>,
    /// Draw roots at the top
    #[arg(long)]
    icicle: bool,
    /// Title of the graph [default: the files' names]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Packets forwarded during FILE
    #[arg(long, value_name = "N", value_parser = packets, requires = "other", requires = "packets_other")]
    packets: Option<f64>,
    /// Packets forwarded during OTHER
    #[arg(long, value_name = "M", value_parser = packets, requires = "packets")]
    packets_other: Option<f64>,
    /// Include idle CPUs and the harness (profiler, sender, receiver)
    #[arg(long)]
    keep_idle: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Draws the graph.
///
/// # Errors
/// Files that are not profiles, or a graph that can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let profiles = NamedProfile::read_all(&arguments.file, arguments.other.as_deref())?;
    let divide = |named: &NamedProfile| {
        FilteredProfile::of(&named.profile, &Filter::default(), arguments.keep_idle)
    };
    let divided: Vec<FilteredProfile> = profiles.iter().map(divide).collect();
    for (named, divided) in profiles.iter().zip(&divided) {
        if matches!(divided.kept, KeptPart::Flat(_)) {
            let what = format!(
                "{}: {} has no stacks to draw; `fwdlab profile` shows its functions",
                named.name, divided.summary.format
            );
            return Err(CliError::Mistake(what).into());
        }
        for note in divided.summary.notes() {
            terminal::warn(&format!("{}: {note}", named.name));
        }
    }
    let svg = match (profiles.as_slice(), divided.as_slice()) {
        ([named, other], [before, after]) => {
            difference(arguments, [named, other], [before, after])?
        }
        _ => single(arguments, &profiles[0], &divided[0])?,
    };
    let path = arguments.out.clone().unwrap_or_else(|| default_path(profiles.last()));
    write(&path, svg)?;
    if arguments.json {
        let mut value = serde_json::json!({
            "version": 1, "file": path, "summary": divided[0].summary,
        });
        if let Some(other) = divided.get(1) {
            value["other"] = serde_json::to_value(&other.summary)?;
        }
        terminal::print_json(&value)?;
    } else {
        let lines: Vec<String> = divided.iter().map(one_line).collect();
        terminal::print(&format!("{}\n{}", path.display(), lines.join("\n")))?;
    }
    Ok(Exit::Done)
}

fn single(
    arguments: &Arguments,
    named: &NamedProfile,
    divided: &FilteredProfile,
) -> anyhow::Result<String> {
    let look = Look {
        title: arguments.title.clone().unwrap_or_else(|| named.name.clone()),
        subtitle: divided.summary.shares(arguments.keep_idle),
        unit: divided.summary.unit.clone(),
        is_icicle: arguments.icicle,
    };
    draw::flame_graph(&divided.kept.to_stacks(), &look).map_err(|error| {
        CliError::Mistake(format!("{}: {error}{}", named.name, keep(arguments))).into()
    })
}

fn difference(
    arguments: &Arguments,
    [named, other]: [&NamedProfile; 2],
    [before, after]: [&FilteredProfile; 2],
) -> anyhow::Result<String> {
    let packets = [arguments.packets.or(named.packets), arguments.packets_other.or(other.packets)];
    let is_per_packet = packets.iter().all(Option::is_some);
    let sides = [(named.name.as_str(), &before.summary), (other.name.as_str(), &after.summary)];
    let remark = profile::comparable(sides[0], sides[1], is_per_packet)
        .map_err(|error| CliError::Mistake(error.to_string()))?;
    if let Some(remark) = remark {
        terminal::warn(&remark);
    }
    let (kept, scale) = ([before.kept.to_stacks(), after.kept.to_stacks()], "per packet");
    let (weights, scale) = match packets.into() {
        (Some(packets), Some(others)) => ([packets, others], scale),
        // A share of the work, since numbers of packets are missing.
        _ => ([before.kept.total(), after.kept.total()], "as shares of the work, not per packet"),
    };
    let unit = before.summary.unit.clone();
    let look = Look {
        title: arguments
            .title
            .clone()
            .unwrap_or_else(|| format!("{} less {}, {scale}", other.name, named.name)),
        subtitle: if arguments.title.is_some() { scale.to_owned() } else { String::new() },
        unit,
        is_icicle: arguments.icicle,
    };
    let [a, b] = &kept;
    let side = |stacks, weight: f64| Side { stacks, per_count: 1.0 / weight };
    let per_packet = scale == "per packet";
    let drawn = draw::difference(side(a, weights[0]), side(b, weights[1]), per_packet, &look);
    drawn.map_err(|error| {
        let names = format!("{} and {}", named.name, other.name);
        CliError::Mistake(format!("{names}: {error}{}", keep(arguments))).into()
    })
}

/// Hint for the case that nothing is left to draw.
fn keep(arguments: &Arguments) -> &'static str {
    if arguments.keep_idle { "" } else { " (with --keep-idle also idle CPUs and the harness)" }
}

/// `41 % of the 1234 samples are work; ip_rcv 12 %, ...`.
fn one_line(divided: &FilteredProfile) -> String {
    let summary = &divided.summary;
    let whole = divided.kept.total();
    let top: Vec<String> = summary
        .top
        .iter()
        .map(|function| format!("{} {:.1} %", function.name, 100.0 * function.own / whole))
        .collect();
    format!(
        "{} {}, {:.1} % of them work: {}",
        summary.total,
        summary.unit,
        100.0 * summary.work_share,
        top.join(", ")
    )
}

/// Default path of the output: `perf.flame.svg` next to `perf.txt`, `flamegraph.svg` in the working
/// directory for standard input. Never a file that was read.
fn default_path(named: Option<&NamedProfile>) -> PathBuf {
    match named.filter(|named| named.path != Path::new("-")) {
        Some(named) => named.path.with_extension("flame.svg"),
        None => PathBuf::from("flamegraph.svg"),
    }
}

fn write(path: &Path, svg: String) -> anyhow::Result<()> {
    let Some(name) = path.file_name() else {
        let what = format!("{} is no name of a file; give --out FILE.svg", path.display());
        return Err(CliError::Mistake(what).into());
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let file = ReportFile { name: name.to_string_lossy().into_owned(), bytes: svg.into_bytes() };
    report::write_files(directory.unwrap_or(Path::new(".")), [file])?;
    Ok(())
}
