//! Command line of the program; one file per command.

#[cfg(target_os = "linux")]
pub(crate) mod ab;
#[cfg(target_os = "linux")]
pub(crate) mod bench;
#[cfg(target_os = "linux")]
pub(crate) mod bisect;
pub(crate) mod compare;
pub(crate) mod completions;
#[cfg(target_os = "linux")]
pub(crate) mod count;
#[cfg(target_os = "linux")]
mod counted_guest;
#[cfg(target_os = "linux")]
pub(crate) mod datasheet;
#[cfg(target_os = "linux")]
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod flamegraph;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod import_lab;
#[cfg(target_os = "linux")]
pub(crate) mod kernels;
#[cfg(target_os = "linux")]
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod ministat;
pub(crate) mod new;
#[cfg(target_os = "linux")]
pub(crate) mod otg;
pub(crate) mod plan;
#[cfg(target_os = "linux")]
pub(crate) mod prices;
pub(crate) mod profile;
#[cfg(target_os = "linux")]
pub(crate) mod receive;
pub(crate) mod report;
#[cfg(target_os = "linux")]
pub(crate) mod review;
#[cfg(target_os = "linux")]
pub(crate) mod route;
#[cfg(target_os = "linux")]
pub(crate) mod run;
pub(crate) mod schema;
#[cfg(target_os = "linux")]
pub(crate) mod search;
#[cfg(target_os = "linux")]
pub(crate) mod selftest;
#[cfg(target_os = "linux")]
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod show;
mod stored_profile;
#[cfg(target_os = "linux")]
pub(crate) mod submit;

#[cfg(test)]
mod documented;

use crate::exit::{self, Exit};
use crate::terminal::Color;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
#[cfg(not(target_os = "linux"))]
use std::ffi::OsString;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

#[cfg(target_os = "linux")]
const EXAMPLES: &str = "\
Examples:
  fwdlab doctor                              what can this machine do?
  fwdlab plan experiments/demo.toml          what would be done, how long?
  fwdlab run experiments/demo.toml           do it; the report is in results/demo
  fwdlab show results/demo --json            the figures, for programs
  fwdlab search experiments/demo.toml        at which rates is nothing lost?
  fwdlab compare before.pps after.pps        did anything change?";
/// Examples for systems on which fwdlab only evaluates stored results.
#[cfg(not(target_os = "linux"))]
const EXAMPLES: &str = "\
Examples:
  fwdlab import netbenches                   the archive's sets, into results/archive
  fwdlab report results/archive              a report beside each of them
  fwdlab show results/demo --json            the figures of a Linux machine, for programs
  fwdlab history results                     what changed over revisions?
  fwdlab plan experiments/demo.toml          what would be done, how long?
  fwdlab compare before.pps after.pps        did anything change?";

/// Help on the options that every command takes; only the program's own help prints it.
const OF_ALL: &str = "Options of every command:
  --color <WHEN>  auto (on a terminal, unless \
                      NO_COLOR, CLICOLOR or CLICOLOR_FORCE override it),
                  always \
                      or never";

/// A laboratory for packet-forwarding performance.
///
/// An experiment file specifies what to test, with which traffic and how often. fwdlab builds the
/// testbed, sends the traffic, counts packets, decides with statistics whether anything changed,
/// and writes a report.
#[derive(Debug, Parser)]
#[command(
    name = "fwdlab",
    version = crate::VERSION,
    styles = STYLES,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = format!("{OF_ALL}\n\n{EXAMPLES}"),
    after_long_help = format!("{OF_ALL}\n\n{EXAMPLES}\n\n{}", exit::TABLE),
)]
pub(crate) struct Arguments {
    /// Use of colours. Every command takes this option; only the program's own help lists it.
    #[arg(long, global = true, hide = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    /// The command to execute.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(target_os = "linux")]
    /// Run an experiment and write its report
    Run(run::Arguments),
    #[cfg(target_os = "linux")]
    /// Submit an experiment to the queue of a cluster (Slurm), share by share
    Submit(submit::Arguments),
    /// Merge the stores of a plan's shares
    Merge(merge::Arguments),
    #[cfg(target_os = "linux")]
    /// Compare commands without an experiment file: does one change the forwarding rate?
    Ab(ab::Arguments),
    #[cfg(target_os = "linux")]
    /// Measure a device and print its data sheet: rates, throughput, latency, firewall, queues
    Datasheet(datasheet::Arguments),
    /// Write a commented experiment file for a question
    New(new::Arguments),
    /// Show what an experiment would do, and how long it takes
    Plan(plan::Arguments),
    /// Rebuild the report of stored runs
    Report(report::Arguments),
    /// Show the results of stored runs
    Show(show::Arguments),
    /// Compare variants of files and stores
    Compare(compare::Arguments),
    /// Show a configuration's results over revisions, and detect changes
    History(history::Arguments),
    /// Export stores as tables, for SQL queries over many of them
    Export(export::Arguments),
    #[cfg(target_os = "linux")]
    /// Find the revision that changed the rate, run by run
    Bisect(bisect::Arguments),
    /// Show stores and the running experiment in a browser
    Serve(serve::Arguments),
    /// Import results of the FreeBSD netbenches harness into stores
    Import(import::Arguments),
    /// Create a laboratory from a configuration of bench-lab.sh
    ImportLab(import_lab::Arguments),
    #[cfg(target_os = "linux")]
    /// Search for the highest rates within the tolerated packet loss
    Search(search::Arguments),
    #[cfg(target_os = "linux")]
    /// Count the instructions that a kernel executes per packet, by function
    Count(count::Arguments),
    #[cfg(target_os = "linux")]
    /// Count what features cost in a kernel: rules, NAT, tunnels, queueing disciplines
    Prices(prices::Arguments),
    #[cfg(target_os = "linux")]
    /// Find which builds or commits of a kernel changed forwarding
    Review(review::Arguments),
    #[cfg(target_os = "linux")]
    /// List and fetch kernels for guests
    Kernels(kernels::Arguments),
    /// Show which functions use CPU time
    Profile(profile::Arguments),
    /// Draw flame graphs of CPU time
    Flamegraph(flamegraph::Arguments),
    #[cfg(target_os = "linux")]
    /// Forward packets: the software router
    ///
    /// Forwards between interfaces, files or rings in memory, until Ctrl-C. The configuration is a
    /// TOML file: workers, forwarding table, firewall, interfaces, routes, neighbours. Every
    /// incoming packet is counted as forwarded, as dropped for a named reason, or as handed to the
    /// slow path.
    Route(route::Arguments),
    #[cfg(target_os = "linux")]
    /// Send traffic through an interface
    ///
    /// UDP over IPv4 or IPv6 between the benchmark's own addresses (198.18.0.0/15, 2001:2::/48);
    /// each packet contains run, flow and sequence number. `fwdlab receive` counts the packets at
    /// the far end. Needs root, or CAP_NET_RAW for AF_PACKET.
    Send(send::Arguments),
    #[cfg(target_os = "linux")]
    /// Count the traffic that arrives at an interface
    ///
    /// The XDP program consumes all packets of the interface while it is attached: use an interface
    /// that nothing else needs. The interface is not promiscuous: packets must be addressed to its
    /// MAC.
    Receive(receive::Arguments),
    #[cfg(target_os = "linux")]
    /// Serve the Open Traffic Generator API with fwdlab's sender and receiver
    Otg(otg::Arguments),
    #[cfg(target_os = "linux")]
    /// Draw and check a laboratory of several machines
    #[command(subcommand)]
    Lab(lab::Command),
    #[cfg(target_os = "linux")]
    /// Report what this machine can measure, and what to install
    Doctor(doctor::Arguments),
    #[cfg(target_os = "linux")]
    /// Benchmark parts of the laboratory itself
    #[command(subcommand)]
    Bench(bench::Command),
    /// Compare files of numbers as ministat(1) does
    Ministat(ministat::Arguments),
    #[cfg(target_os = "linux")]
    /// Measure the laboratory's own error rates
    Selftest(selftest::Arguments),
    /// Print completions for a shell
    Completions(completions::Arguments),
    /// Print the JSON Schema of experiment files
    Schema(schema::Arguments),
    /// Write the manual pages
    Man(man::Arguments),
    /// A word that is not a command on this system.
    #[cfg(not(target_os = "linux"))]
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

impl Command {
    /// True if `git bisect run` reads the exit code.
    pub(crate) fn is_for_git(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Command::Run(arguments) => arguments.is_for_git(),
            Command::Compare(arguments) => arguments.is_for_git(),
            _ => false,
        }
    }
}

/// Executes a command.
///
/// # Errors
/// Any error of the command; [`crate::exit`] maps it to an exit code.
pub(crate) fn execute(command: Command) -> anyhow::Result<Exit> {
    match command {
        #[cfg(target_os = "linux")]
        Command::Run(arguments) => run::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Submit(arguments) => submit::execute(&arguments),
        Command::Merge(arguments) => merge::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Ab(arguments) => ab::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Datasheet(arguments) => datasheet::execute(&arguments),
        Command::New(arguments) => new::execute(&arguments),
        Command::Plan(arguments) => plan::execute(&arguments),
        Command::Report(arguments) => report::execute(&arguments),
        Command::Show(arguments) => show::execute(&arguments),
        Command::Compare(arguments) => compare::execute(&arguments),
        Command::History(arguments) => history::execute(&arguments),
        Command::Export(arguments) => export::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Bisect(arguments) => bisect::execute(&arguments),
        Command::Serve(arguments) => serve::execute(&arguments),
        Command::Import(arguments) => import::execute(&arguments),
        Command::ImportLab(arguments) => import_lab::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Search(arguments) => search::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Count(arguments) => count::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Prices(arguments) => prices::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Review(arguments) => review::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Kernels(arguments) => kernels::execute(&arguments),
        Command::Profile(arguments) => profile::execute(&arguments),
        Command::Flamegraph(arguments) => flamegraph::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Route(arguments) => route::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Send(arguments) => send::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Receive(arguments) => receive::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Otg(arguments) => otg::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Lab(command) => lab::execute(&command),
        #[cfg(target_os = "linux")]
        Command::Doctor(arguments) => doctor::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Bench(bench::Command::Sender(arguments)) => bench::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Bench(bench::Command::Fib(arguments)) => bench::fib::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Bench(bench::Command::Route(arguments)) => bench::route::execute(&arguments),
        Command::Ministat(arguments) => ministat::execute(&arguments),
        Command::Completions(arguments) => completions::execute(&arguments),
        #[cfg(target_os = "linux")]
        Command::Selftest(arguments) => selftest::execute(&arguments),
        Command::Schema(_) => schema::execute(),
        Command::Man(arguments) => man::execute(&arguments),
        #[cfg(not(target_os = "linux"))]
        Command::Other(words) => Err(no_command_here(&words).into()),
    }
}

/// The error for a command that this system lacks: testbeds need Linux (namespaces, XDP, /proc);
/// evaluating stored results does not.
#[cfg(not(target_os = "linux"))]
fn no_command_here(words: &[OsString]) -> crate::error::CliError {
    let name = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let why = match name.as_ref() {
        "ab" | "bench" | "bisect" | "count" | "datasheet" | "doctor" | "kernels" | "lab"
        | "otg" | "prices" | "receive" | "review" | "route" | "run" | "search" | "selftest"
        | "send" | "submit" => {
            "it measures, which needs Linux\n  next step: run it on a Linux machine, which reaches \
             others over ssh; `fwdlab show` and `fwdlab report` read here what it stores"
        }
        _ => "there is no such command\n  next step: see `fwdlab --help`",
    };
    crate::error::CliError::Mistake(format!("fwdlab {name}: {why}"))
}

/// Parses the arguments of one command.
#[cfg(test)]
fn parsed<A: clap::Args>(words: &[&str]) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("command").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_definition_is_valid() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn global_options_appear_only_in_main_help() {
        let mut whole = Arguments::command();
        assert!(whole.render_long_help().to_string().contains("--color"));
        whole.build();
        for name in ["run", "plan", "show"] {
            let command = whole.find_subcommand_mut(name).unwrap();
            let help = command.render_long_help().to_string();
            assert!(!help.contains("--color"), "{help}");
        }
        let parsed = Arguments::try_parse_from(["fwdlab", "show", "x", "--color", "never"]);
        assert_eq!(parsed.unwrap().color, Color::Never);
        // `--help` of a command needs no value for hidden options.
        let help = Arguments::try_parse_from(["fwdlab", "plan", "--help"]).unwrap_err();
        assert_eq!(help.kind(), clap::error::ErrorKind::DisplayHelp);
    }
}
