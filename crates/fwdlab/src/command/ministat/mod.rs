//! `fwdlab ministat`: replaces ministat(1), also under that name.
//!
//! Arguments, messages and exit statuses are the original's, so clap knows this command only for
//! the sake of the help: it passes the arguments on unchanged.
//!
//! Deliberate differences: it refuses widths for which the original's behaviour is undefined, and
//! fwdlab's lists from different testbeds; `-` may be any operand; there are `--generation` and
//! `--help`. Messages for bad data are the ones of 2015 in fbsd10 too, without the text of an errno
//! that no call has set.

mod getopt;
mod request;

use crate::exit::Exit;
use fwdlab_results::label::Label;
use fwdlab_results::stats::ministat::{Generation, MinistatError, Page, ReadOptions, Set};
use request::{Request, leading_integer};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Bytes at the beginning of a file that may contain the comment on the origin of its values.
const HEAD: u64 = 4096;
/// Width if the output is not a terminal.
const DEFAULT_WIDTH: i32 = 74;

const HELP: &str = "\
Options, which end at the first file:
  -A                   no plot, but statistics and tests
  -C COLUMN            column of the values, from 1 [default: 1]
  -c CONFIDENCE        80, 90, 95, 98, 99 or 99.5 per cent [default: 95]
  -d DELIMITERS        characters that separate columns [default: blank and tab]
  -n                   statistics only: no plot, no tests
  -q                   no names of sets, no heading of the table
  -s                   a line of bars for each set
  -w WIDTH             width of the plot [default: the terminal's, or 74]
  --generation NAME    whose numbers and habits: fbsd10, debian, fbsd11.0,
                       fbsd12, fbsd14 or fbsd15 [default: fbsd14]
  --help               this text

At most seven files of a number a line; none, or `-`, is standard input. A link
named `ministat` to fwdlab is this command. Exit status: 0 done, 2 a mistake in
arguments or data (1 for a file that can't be opened, before fbsd14).

Examples:
  fwdlab ministat -s before.pps after.pps
  fwdlab ministat --generation fbsd10 -w 72 old.pps new.pps
  ln -s fwdlab /usr/local/bin/ministat";

/// Compare files of numbers as ministat(1) does, with its text, byte for byte.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = HELP)]
pub(crate) struct Arguments {
    /// Options and files in the syntax of ministat(1)
    #[arg(
        value_name = "OPTION|FILE",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        num_args = 0..
    )]
    raw: Vec<OsString>,
}

impl Arguments {
    /// Returns the arguments if a command line is for this command; clap must not see them, since
    /// it would interpret some of them itself.
    pub(crate) fn of_command_line(line: impl IntoIterator<Item = OsString>) -> Option<Arguments> {
        let mut line = line.into_iter();
        let program = line.next()?;
        let mut is_ministat = Path::new(&program).file_name() == Some(OsStr::new("ministat"));
        while !is_ministat {
            let argument = line.next()?;
            match argument.to_str() {
                Some("ministat") => is_ministat = true,
                Some("--color") => drop(line.next()),
                Some(color) if color.starts_with("--color=") => {}
                _ => return None,
            }
        }
        Some(Arguments { raw: line.collect() })
    }
}

/// Reason why there is no output.
#[derive(Debug, PartialEq)]
struct Failure {
    /// Exit status: 1 or 2.
    status: u8,
    /// Message for standard error; bytes, since it quotes names and tokens.
    message: Vec<u8>,
}

impl Failure {
    /// A failure other than wrong usage; `parts` are concatenated to a line.
    fn of(status: u8, parts: &[&[u8]]) -> Failure {
        let message = [parts.concat(), b"\n".to_vec()].concat();
        Failure { status, message }
    }

    /// A mistake in the arguments: the message, then the usage.
    fn usage(message: &str, generation: Generation) -> Failure {
        Failure::usage_of_bytes(message.as_bytes(), generation)
    }

    fn usage_of_bytes(message: &[u8], generation: Generation) -> Failure {
        Failure::of(2, &[message, b"\n", usage(generation).as_bytes()])
    }
}

/// The usage text without its final newline.
fn usage(generation: Generation) -> String {
    let quiet = generation >= Generation::Fbsd14;
    let flags = if quiet { "[-Anqs]" } else { "[-Ans]" };
    let values = "[-C column] [-c confidence] [-d delimiter(s)]";
    let options = if generation >= Generation::Fbsd15 {
        format!("{flags} {values}")
    } else {
        format!("{values} {flags}")
    };
    let mut lines = vec![
        format!("Usage: ministat {options} [-w width] [file [file ...]]"),
        "\tconfidence = {80%, 90%, 95%, 98%, 99%, 99.5%}".into(),
        "\t-A : print statistics only. suppress the graph.".into(),
        "\t-C : column number to extract (starts and defaults to 1)".into(),
        "\t-d : delimiter(s) string, default to \" \\t\"".into(),
        "\t-n : print summary statistics only, no graph/test".into(),
    ];
    if quiet {
        lines.push("\t-q : suppress printing summary-statistics headers and data-set names".into());
    }
    lines.push("\t-s : print avg/median/stddev bars on separate lines".into());
    lines.push("\t-w : width of graph/test output (default 74 or terminal width)".into());
    lines.join("\n")
}

/// Prints the output, or the failure.
///
/// # Errors
/// If standard output can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let request = match Request::parse(&arguments.raw) {
        Ok(request) => request,
        Err(failure) => return Ok(report(&failure)),
    };
    let Request::Text { mut options, width, columns, files } = request else {
        let usage = "Usage: fwdlab ministat [OPTIONS] [FILE...]";
        writeln!(
            io::stdout(),
            "Compare files of numbers as ministat(1) does.\n\n{usage}\n\n{HELP}"
        )?;
        return Ok(Exit::Done);
    };
    let width = width.unwrap_or_else(terminal_width);
    options.width = usize::try_from(width).unwrap_or(0);
    let sets = match read_all(&files, &columns) {
        Ok(sets) => sets,
        Err(failure) => return Ok(report(&failure)),
    };
    match Page::of(&sets, &options) {
        Ok(page) => {
            let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
            page.write_to(&mut out)?;
            out.flush()?;
            Ok(Exit::Done)
        }
        Err(error) => {
            let message = error.to_string();
            Ok(report(&Failure::of(2, &[b"ministat: ", message.as_bytes()])))
        }
    }
}

/// Prints a failure on standard error.
fn report(failure: &Failure) -> Exit {
    // A failure to print it has no consequences.
    let _ = io::stderr().write_all(&failure.message);
    // The exit codes are the original's, regardless of their meaning for other commands.
    if failure.status == Exit::Difference as u8 { Exit::Difference } else { Exit::Mistake }
}

/// Reads every file. From fbsd14 on, all files are opened first; before, each file is read as soon
/// as it is opened, a missing one ends with status 1, and `-` is called `<stdin>`. (The releases of
/// FreeBSD 12 changed two of these in their course; fbsd12 has their numbers, with the earlier
/// behaviour.)
fn read_all(files: &[OsString], columns: &ReadOptions) -> Result<Vec<Set>, Failure> {
    check_labels(files)?;
    let standard_input = [OsString::from("<stdin>")];
    if files.is_empty() {
        let set = read(Input { name: &standard_input[0], source: None }, columns)?;
        return Ok(vec![set]);
    }
    if columns.generation < Generation::Fbsd14 {
        let stdin_name = &standard_input[0];
        return files.iter().map(|file| read(open(file, stdin_name, 1)?, columns)).collect();
    }
    let inputs =
        files.iter().map(|file| open(file, file, 2)).collect::<Result<Vec<Input>, Failure>>()?;
    inputs.into_iter().map(|input| read(input, columns)).collect()
}

/// Checks that lists of fwdlab, which contain their testbed in a comment, are of the same testbed.
/// Other files are accepted unchecked, as by ministat(1).
fn check_labels(files: &[OsString]) -> Result<(), Failure> {
    let mut first: Option<(&OsString, Label)> = None;
    for file in files.iter().filter(|file| Path::new(file).is_file()) {
        let mut head = Vec::new();
        let opened = File::open(file).and_then(|f| f.take(HEAD).read_to_end(&mut head));
        let label = opened.ok().and_then(|_| Label::in_comments(&String::from_utf8_lossy(&head)));
        let Some(label) = label else { continue };
        match &first {
            Some((other, known)) if !known.is_comparable(&label) => {
                let (a, b) = (known.testbed.to_string(), label.testbed.to_string());
                return Err(Failure::of(
                    2,
                    &[
                        b"ministat: ",
                        other.as_bytes(),
                        b" (",
                        a.as_bytes(),
                        b") and ",
                        file.as_bytes(),
                        b" (",
                        b.as_bytes(),
                        b") are of different testbeds: measure both on one, or remove the comments",
                    ],
                ));
            }
            Some(_) => {}
            None => first = Some((file, label)),
        }
    }
    Ok(())
}

/// An open file.
struct Input<'a> {
    /// Name in legend and messages.
    name: &'a OsStr,
    /// `None` for standard input.
    source: Option<File>,
}

fn open<'a>(file: &'a OsStr, stdin_name: &'a OsStr, status: u8) -> Result<Input<'a>, Failure> {
    if file == "-" {
        return Ok(Input { name: stdin_name, source: None });
    }
    match File::open(file) {
        Ok(source) => Ok(Input { name: file, source: Some(source) }),
        Err(error) => {
            let reason = error.to_string();
            // Rust appends the number to strerror's text.
            let reason = reason.split(" (os error").next().unwrap_or_default();
            let file = file.as_bytes();
            Err(Failure::of(status, &[b"ministat: Cannot open ", file, b": ", reason.as_bytes()]))
        }
    }
}

fn read(input: Input, columns: &ReadOptions) -> Result<Set, Failure> {
    let name = input.name.as_bytes();
    let source: Box<dyn Read> = match input.source {
        Some(file) => Box::new(file),
        None => Box::new(io::stdin().lock()),
    };
    Set::read(name, source, columns).map_err(|error| match error {
        MinistatError::InvalidData { line, token } => {
            let quoted = match columns.generation {
                Generation::Fbsd15 => [b" \"", &token[..], b"\""].concat(),
                _ => Vec::new(),
            };
            let line = line.to_string();
            let parts = [b"ministat: Invalid data", &quoted[..], b" on line ", line.as_bytes()];
            Failure::of(2, &[&parts.concat(), b" in ", name])
        }
        MinistatError::TooFewPoints { .. } => {
            Failure::of(2, &[b"Dataset ", name, b" must contain at least 3 data points"])
        }
        other => Failure::of(2, &[b"ministat: ", other.to_string().as_bytes()]),
    })
}

/// Default width: on a terminal the value of `COLUMNS`, else two cells less than the terminal's
/// width.
fn terminal_width() -> i32 {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return DEFAULT_WIDTH;
    }
    let columns = std::env::var_os("COLUMNS").unwrap_or_default().into_vec();
    if !columns.is_empty() {
        return leading_integer(&columns).0;
    }
    match rustix::termios::tcgetwinsize(&stdout) {
        Ok(size) if size.ws_col > 0 => i32::from(size.ws_col) - 2,
        _ => DEFAULT_WIDTH,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(line: &[&str]) -> Option<Vec<OsString>> {
        Arguments::of_command_line(line.iter().map(OsString::from)).map(|arguments| arguments.raw)
    }

    #[test]
    fn of_command_line_recognises_ministat() {
        for line in [
            &["/usr/bin/ministat", "--", "--help"][..],
            &["fwdlab", "ministat", "--", "--help"],
            &["fwdlab", "--color", "never", "--color=auto", "ministat", "--", "--help"],
        ] {
            assert_eq!(raw(line).expect("ours"), ["--", "--help"], "{line:?}");
        }
        for line in [
            &["fwdlab"][..],
            &["fwdlab", "run", "ministat"],
            &["fwdlab", "--help", "ministat"],
            &["fwdlab", "help", "ministat"],
            &["fwdlab", "--color"],
        ] {
            assert_eq!(raw(line), None, "{line:?}");
        }
    }
}
