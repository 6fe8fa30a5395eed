//! `fwdlab ministat`: takes the place of ministat(1), also under its name.
//!
//! Arguments, messages and exit statuses are the original's, so clap only knows
//! of this command for the sake of the help: the arguments come here untouched.
//!
//! Deliberately different: widths that the original has no defined behaviour for
//! are refused, so are lists of fwdlab that were measured on different testbeds, `-` may be
//! any operand, and there are `--generation` and `--help`.
//! Messages for bad data are those of 2015 in fbsd10 too, without the text of an
//! errno that no call has set.

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

/// Bytes of a file that may hold the comment which says where its figures come from.
const HEAD: u64 = 4096;
/// Width of what is no terminal.
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
    /// Options and files, as ministat(1) takes them
    #[arg(
        value_name = "OPTION|FILE",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        num_args = 0..
    )]
    raw: Vec<OsString>,
}

impl Arguments {
    /// The arguments, if a command line is for this command: as clap would
    /// understand some of them itself, they must not get there.
    pub(crate) fn of_command_line(line: impl IntoIterator<Item = OsString>) -> Option<Arguments> {
        let mut line = line.into_iter();
        let program = line.next()?;
        let mut asked = Path::new(&program).file_name() == Some(OsStr::new("ministat"));
        while !asked {
            let argument = line.next()?;
            match argument.to_str() {
                Some("ministat") => asked = true,
                Some("--color") => drop(line.next()),
                Some(color) if color.starts_with("--color=") => {}
                _ => return None,
            }
        }
        Some(Arguments { raw: line.collect() })
    }
}

/// Why there is no text.
#[derive(Debug, PartialEq)]
struct Failure {
    /// Exit status: 1 or 2.
    status: u8,
    /// For standard error, as bytes because it quotes names and tokens.
    message: Vec<u8>,
}

impl Failure {
    /// Something other than the usage is wrong; `parts` make up the line.
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

/// The usage text without its last line end.
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

/// Prints the text, or what is wrong.
///
/// # Errors
/// When standard output can't be written.
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

/// Says what is wrong, on standard error.
fn report(failure: &Failure) -> Exit {
    // That it can't be said changes nothing.
    let _ = io::stderr().write_all(&failure.message);
    // The numbers are the original's, whatever our other commands mean by them.
    if failure.status == Exit::Difference as u8 { Exit::Difference } else { Exit::Mistake }
}

/// Reads every file. From fbsd14 on all of them are opened first; before, each is
/// read as it is opened, a missing one ends with 1, and `-` is called `<stdin>`.
/// (The releases of FreeBSD 12 changed two of these in their course; fbsd12
/// stands for its numbers, with the habits from before.)
fn read_all(files: &[OsString], columns: &ReadOptions) -> Result<Vec<Set>, Failure> {
    check_labels(files)?;
    let standard_input = [OsString::from("<stdin>")];
    if files.is_empty() {
        let set = read(Input { name: &standard_input[0], source: None }, columns)?;
        return Ok(vec![set]);
    }
    if columns.generation < Generation::Fbsd14 {
        // One by one.
        let stdin_name = &standard_input[0];
        return files.iter().map(|file| read(open(file, stdin_name, 1)?, columns)).collect();
    }
    let inputs =
        files.iter().map(|file| open(file, file, 2)).collect::<Result<Vec<Input>, Failure>>()?;
    inputs.into_iter().map(|input| read(input, columns)).collect()
}

/// Lists of fwdlab say in a comment where they were measured: those of different testbeds
/// are not compared. Of all other files nothing is known, as it is for ministat(1).
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

/// A file that is open.
struct Input<'a> {
    /// As in legend and messages.
    name: &'a OsStr,
    /// None for standard input.
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
            // Rust adds the number to strerror's text.
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

/// Width where none is given: on a terminal what `COLUMNS` says, else two cells
/// less than the terminal has.
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
    fn command_lines_for_this_command_are_known() {
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
