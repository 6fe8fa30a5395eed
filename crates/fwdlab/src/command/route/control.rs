//! `fwdlab route --control`: serves the process that started this program.

use super::{TICK, show};
use crate::error::CliError;
use crate::exit::Exit;
use crate::signal::Stop;
use crate::terminal;
use anyhow::Result;
use fwdlab_model::router::RouterSetup;
use fwdlab_netio::{landlock, rights};
use fwdlab_routerd::Running;
use std::borrow::Cow;
use std::io::{self, BufRead, Read};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

/// Maximum bytes of a line: a configuration with some hundred thousand routes.
const LINE_MAX: usize = 16 << 20;
/// Maximum number of characters of a line that an answer repeats.
const SHOWN: usize = 200;

/// Serves the process that started this program.
pub(super) fn serve(stop: &Stop) -> Result<Exit> {
    // A thread reads, so that a signal ends the program while no input arrives.
    let (sender, lines) = channel();
    thread::spawn(move || {
        // The router drops its privileges in the thread that opens its ports, and in the threads
        // that it starts.
        let dropped = rights::drop_all().and_then(|()| landlock::write_only_in(&[]));
        if let Err(error) = dropped {
            terminal::note(&error.to_string());
            return;
        }
        let mut input = io::stdin().lock();
        while let Ok(Some(line)) = next_line(&mut input) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let setup =
        lines.recv().map_err(|_| CliError::Mistake("no configuration on standard input".into()))?;
    let setup: RouterSetup = setup
        .and_then(|setup| serde_json::from_str(&setup).map_err(|error| error.to_string()))
        .map_err(|error| CliError::Mistake(format!("configuration on standard input: {error}")))?;
    let mut running = Running::start(&setup, &[])?;
    show(true, &running.stats(), None)?;
    while !stop.requested() {
        match lines.recv_timeout(TICK) {
            Ok(Ok(line)) if line == "stop" => break,
            Ok(line) => terminal::print(&answer(&mut running, line))?,
            Err(RecvTimeoutError::Timeout) if running.has_ended() => break,
            // The controlling process sees news in the counters.
            Err(RecvTimeoutError::Timeout) => drop(running.news()),
            // The controlling process has ended.
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let ended = running.stop();
    show(true, &running.stats(), None)?;
    ended?;
    running.check_captures()?;
    Ok(Exit::Done)
}

/// Executes a command. An invalid line is answered with an error, and the router continues.
pub(super) fn answer(running: &mut Running, line: Result<String, String>) -> String {
    let answer = line.and_then(|line| {
        running.obey(&line).map_err(|what| format!("command `{}`: {what}", beginning(&line)))
    });
    answer.unwrap_or_else(|error| running.failure(error))
}

/// Reads a line, without its end; `None` at the end of the input. The inner error is the reason why
/// the line cannot be used.
pub(super) fn next_line(input: &mut impl BufRead) -> io::Result<Option<Result<String, String>>> {
    let mut bytes = Vec::new();
    input.by_ref().take(LINE_MAX as u64 + 1).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    match bytes.strip_suffix(b"\n") {
        Some(line) => bytes.truncate(line.strip_suffix(b"\r").unwrap_or(line).len()),
        None if bytes.len() > LINE_MAX => {
            input.skip_until(b'\n')?;
            return Ok(Some(Err(format!("a line of more than {LINE_MAX} bytes"))));
        }
        None => {}
    }
    let line = String::from_utf8(bytes);
    Ok(Some(line.map_err(|error| {
        let text = error.to_string();
        format!("command `{}`: {text}", beginning(&String::from_utf8_lossy(error.as_bytes())))
    })))
}

/// The beginning of a line, for a message.
fn beginning(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &line[..end]).into(),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_line_bounds_lines_and_refuses_other_encodings() {
        let long = "x".repeat(LINE_MAX + 9);
        let fits = "y".repeat(LINE_MAX);
        let input =
            [b"stats\r\n\xff\xfe\n", long.as_bytes(), b"\n", fits.as_bytes(), b"\nlast"].concat();
        let mut input = &input[..];
        let mut next = || next_line(&mut input).expect("memory");
        assert_eq!(next(), Some(Ok("stats".to_owned())));
        assert!(next().is_some_and(|line| line.is_err_and(|why| why.contains("utf-8"))));
        assert!(next().is_some_and(|line| line.is_err_and(|why| why.contains("more than"))));
        assert_eq!(next(), Some(Ok(fits)));
        assert_eq!(next(), Some(Ok("last".to_owned())));
        assert_eq!(next(), None);
        assert_eq!(beginning(&long).len(), SHOWN + 3);
        assert_eq!(beginning("stats"), "stats");
    }
}
