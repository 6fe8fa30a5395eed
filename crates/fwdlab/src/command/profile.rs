//! `fwdlab profile`: tables of the functions that use CPU time.

use super::stored_profile;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output_format::FormArguments;
use clap::ValueEnum;
use fwdlab_model::suggest;
use fwdlab_results::document::{Block, Document};
use fwdlab_results::profile::compare::{self, Grouping, Measured};
use fwdlab_results::profile::functions::{self, Neighbours};
use fwdlab_results::profile::{
    self, Filter, FilteredProfile, KeptPart, Profile, Subsystems, document,
};
use fwdlab_results::report;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Show which functions use CPU time, and on whose behalf.
///
/// FILE is the text of perf script, pmcstat -G, gprof, DTrace or bpftrace, folded stacks, a
/// published flame graph, or a variant's profile in a store (DIR:VARIANT); - is standard input.
/// Idle CPUs and the harness (profiler, sender, receiver) are counted separately and excluded from
/// the tables. With a second file the two are compared: per packet if numbers of packets are given,
/// otherwise as shares.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perf script | fwdlab profile -
  fwdlab profile pmcstat-gprof.txt --by total --top 40
  fwdlab profile perf.txt --function fib_table_lookup     its callers and callees
  fwdlab profile perf.txt --by subsystem --subsystems mine.toml
  fwdlab profile before.txt after.txt --packets 81e6 --packets-other 97e6
  fwdlab profile results/firewalls:stateful --function nf_conntrack_in
  fwdlab profile results/firewalls:none results/firewalls:stateful
  fwdlab profile perf.txt --json | jq '.functions[0].name'

A file for --subsystems names parts of the kernel; `*` stands for any text:
  acl = [\"my_acl_*\", \"rule_match\"]")]
pub(crate) struct Arguments {
    /// A profile, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A second profile to compare with FILE
    #[arg(value_name = "OTHER")]
    other: Option<PathBuf>,
    /// Show callers and callees of this function
    #[arg(long, value_name = "NAME", conflicts_with_all = ["other", "by"])]
    function: Option<String>,
    /// Number of rows in a table
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Subject and order of the rows
    #[arg(long, value_name = "WHAT", default_value = "self")]
    by: By,
    /// File with additional patterns for subsystems
    #[arg(long, value_name = "FILE")]
    subsystems: Option<PathBuf>,
    /// Packets forwarded during FILE
    #[arg(long, value_name = "N", value_parser = packets, requires = "other", requires = "packets_other")]
    packets: Option<f64>,
    /// Packets forwarded during OTHER
    #[arg(long, value_name = "M", value_parser = packets, requires = "packets")]
    packets_other: Option<f64>,
    /// Include idle CPUs and the harness
    #[arg(long)]
    keep_idle: bool,
    #[command(flatten)]
    form: FormArguments,
}

/// Version of the JSON output.
const VERSION: u32 = 1;

/// Kinds of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Functions, by their own cost
    #[value(name = "self")]
    Own,
    /// Functions, by their cost including callees
    Total,
    /// Parts of the kernel
    Subsystem,
}

/// A profile and the name that the user gave it.
pub(super) struct NamedProfile {
    /// The file; `-` for standard input.
    pub(super) path: PathBuf,
    /// Its last component, for titles and messages.
    pub(super) name: String,
    pub(super) profile: Profile,
    /// Packets forwarded during the profile; `None` if they are not stored.
    pub(super) packets: Option<f64>,
}

impl NamedProfile {
    /// Reads one file or two.
    ///
    /// # Errors
    /// Files that can't be read or are not profiles, with file and line.
    pub(super) fn read_all(file: &Path, other: Option<&Path>) -> anyhow::Result<Vec<NamedProfile>> {
        if other == Some(file) && file == Path::new("-") {
            let what = "standard input is one profile; give the other one as a file";
            return Err(CliError::Mistake(what.to_owned()).into());
        }
        [Some(file), other].into_iter().flatten().map(NamedProfile::read).collect()
    }

    fn read(path: &Path) -> anyhow::Result<NamedProfile> {
        if let Some(stored) = stored_profile::of(path)? {
            // Files derived from it go into the current directory, under the variant's name.
            let path = PathBuf::from(format!("{}.txt", report::safe_name(&stored.label)));
            let packets = Some(stored.packets).filter(|packets| *packets > 0.0);
            return Ok(NamedProfile { path, name: stored.label, profile: stored.profile, packets });
        }
        let (shown, bytes) = match path == Path::new("-") {
            true => {
                let mut bytes = Vec::new();
                std::io::stdin().lock().read_to_end(&mut bytes)?;
                ("standard input".to_owned(), bytes)
            }
            false => (path.display().to_string(), contents(path)?),
        };
        let profile = profile::read(&bytes).map_err(|error| {
            let place = error.line().map_or(String::new(), |line| format!(":{line}"));
            CliError::Mistake(format!("{shown}{place}: {error}"))
        })?;
        let name = path.file_name().map_or(shown.clone(), |name| name.to_string_lossy().into());
        let name = if name == "-" { shown } else { name };
        Ok(NamedProfile { path: path.to_path_buf(), name, profile, packets: None })
    }
}

/// Reads a file that the user named.
fn contents(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        let what = format!("can't read {}: {error}", path.display());
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                CliError::Mistake(format!("{what}; name the text of a profile, or - ")).into()
            }
            std::io::ErrorKind::IsADirectory => {
                CliError::Mistake(format!("{what}; name one file in it")).into()
            }
            _ => CliError::Environment(format!("{what}; check its permissions")).into(),
        }
    })
}

/// Prints the tables of a profile, or the comparison of two.
///
/// # Errors
/// Files that are not profiles, or a function that a profile does not contain.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let profiles = NamedProfile::read_all(&arguments.file, arguments.other.as_deref())?;
    let filter = Filter::default();
    let divided: Vec<FilteredProfile> = profiles
        .iter()
        .map(|named| FilteredProfile::of(&named.profile, &filter, arguments.keep_idle))
        .collect();
    let table = subsystems(arguments.subsystems.as_deref())?;
    let mut output = Output { blocks: Vec::new(), data: json!({ "summary": divided[0].summary }) };
    for (named, divided) in profiles.iter().zip(&divided) {
        output.blocks.extend(document::summary(&divided.summary, &named.name));
    }
    let names: Vec<&str> = profiles.iter().map(|named| named.name.as_str()).collect();
    match divided.as_slice() {
        [before, after] => {
            output.data["other"] = serde_json::to_value(&after.summary)?;
            let given = [arguments.packets, arguments.packets_other];
            let of = |at: usize| given[at].or(profiles[at].packets);
            let packets = [of(0), of(1)];
            difference(arguments, &names, [before, after], packets, &table, &mut output)?;
        }
        _ => single(arguments, names[0], &divided[0], &table, &mut output)?,
    }
    let title = format!("Where the time goes: {}", names.join(" and "));
    let Output { blocks, data } = output;
    let (data, conclusion) = (&data, Vec::new());
    arguments.form.print(&Document { title, conclusion, blocks, data, version: VERSION })?;
    Ok(Exit::Done)
}

/// Output collected so far.
struct Output {
    /// For people.
    blocks: Vec<Block>,
    /// For programs.
    data: Value,
}

fn single(
    arguments: &Arguments,
    name: &str,
    divided: &FilteredProfile,
    table: &Subsystems,
    output: &mut Output,
) -> anyhow::Result<()> {
    let top = arguments.top;
    if let Some(function) = &arguments.function {
        let around = neighbours(divided, profile::normal(function), name)?;
        output.blocks.push(document::neighbours(&around, top));
        output.data["neighbours"] = serde_json::to_value(&around)?;
        return Ok(());
    }
    let by = match arguments.by {
        By::Own => functions::SortKey::Own,
        By::Total => functions::SortKey::Total,
        By::Subsystem => {
            let list = table.of_stacks(&divided.kept.to_stacks());
            output.blocks.push(document::subsystems(&list, divided.kept.total(), top));
            output.data["subsystems"] = serde_json::to_value(&list)?;
            return Ok(());
        }
    };
    output.blocks.push(document::functions(divided, by, top));
    // A million functions take a gigabyte as JSON.
    if arguments.form.is_json() {
        output.data["functions"] = serde_json::to_value(divided.kept.functions(by))?;
    }
    Ok(())
}

fn neighbours(divided: &FilteredProfile, function: &str, file: &str) -> anyhow::Result<Neighbours> {
    let found = match &divided.kept {
        KeptPart::Stacks(stacks) => functions::neighbours_in_stacks(stacks, function),
        KeptPart::Flat(flat) => functions::neighbours_in_flat(flat, function),
    };
    if let Some(found) = found {
        return Ok(found);
    }
    let all = divided.kept.functions(functions::SortKey::Own);
    let next = match suggest::nearest(function, all.iter().map(|function| function.name.as_str())) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => "see `--by total --top 1000` for those there are".to_owned(),
    };
    Err(CliError::Mistake(format!("{file}: there is no function `{function}`; {next}")).into())
}

fn difference(
    arguments: &Arguments,
    names: &[&str],
    divided: [&FilteredProfile; 2],
    packets: [Option<f64>; 2],
    table: &Subsystems,
    output: &mut Output,
) -> anyhow::Result<()> {
    let [before, after] = divided;
    let unit = &before.summary.unit;
    let is_per_packet = packets.iter().all(Option::is_some);
    let sides = [(names[0], &before.summary), (names[1], &after.summary)];
    let remark = profile::comparable(sides[0], sides[1], is_per_packet)
        .map_err(|error| CliError::Mistake(error.to_string()))?;
    let is_given = arguments.packets.is_some() || arguments.packets_other.is_some();
    let are_stored = !is_given && packets.iter().all(Option::is_some);
    let (packets, figures) = match packets.into() {
        (Some(a), Some(b)) if unit != "samples" => ([a, b], format!("{unit} per packet")),
        // There are few samples and many packets.
        (Some(a), Some(b)) => ([a / 1e6, b / 1e6], format!("{unit} per million packets")),
        _ => (
            divided.map(|divided| divided.kept.total() / 100.0),
            format!("percent of the {unit}; give --packets for costs per packet"),
        ),
    };
    let measured = |divided: &FilteredProfile, packets| {
        [Measured { stacks: divided.kept.to_stacks(), packets, per_count: 1.0 }]
    };
    let (grouping, what) = match arguments.by {
        By::Own => (Grouping::Own, "function (itself)"),
        By::Total => (Grouping::Total, "function (with callees)"),
        By::Subsystem => (Grouping::Subsystems(table), "subsystem"),
    };
    let [a, b] = packets;
    let mut changes = compare::compare(&measured(before, a), &measured(after, b), grouping, 95.0)
        .map_err(|error| CliError::Mistake(error.to_string()))?;
    if are_stored {
        // A single start, or all measured runs combined, is no replicate: the report has intervals.
        changes.remarks = vec!["intervals are in the report, under `Where the time goes`".into()];
    }
    changes.remarks.extend(remark);
    output.blocks.extend(document::changes(&changes, &figures, what, arguments.top));
    output.data["unit"] = figures.into();
    output.data["changes"] = serde_json::to_value(&changes)?;
    Ok(())
}

fn subsystems(path: Option<&Path>) -> anyhow::Result<Subsystems> {
    let Some(path) = path else {
        return Ok(Subsystems::default());
    };
    let bytes = contents(path)?;
    Subsystems::extended(&String::from_utf8_lossy(&bytes)).map_err(|error| {
        let what = format!("{}:{}: {error}", path.display(), error.line);
        CliError::Mistake(what).into()
    })
}

/// Parses a number of packets: `81e6`, `81000000`.
pub(super) fn packets(text: &str) -> Result<f64, String> {
    let number = text.replace('_', "").parse::<f64>();
    number
        .ok()
        .filter(|packets| packets.is_finite() && *packets >= 1.0)
        .ok_or_else(|| "a number of packets is 1 or more, e.g. 81e6".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_accepts_counts_of_one_or_more() {
        assert_eq!((packets("81e6"), packets("1_000")), (Ok(81e6), Ok(1000.0)));
        for wrong in ["", "0", "-1", "NaN", "inf", "many"] {
            assert!(packets(wrong).is_err(), "{wrong}");
        }
    }
}
