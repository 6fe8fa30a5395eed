//! Programs of this machine that are run to their end.

use crate::error::VmError;
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs `program` with `input`, and returns what it printed.
///
/// # Errors
/// When it is missing (`package` says what holds it) or ends with another status than 0.
pub(crate) fn run(
    program: &str,
    arguments: &[&str],
    input: &[u8],
    package: &str,
) -> Result<Vec<u8>, VmError> {
    let missing = |why: String| VmError::Program {
        program: program.to_owned(),
        why,
        next: format!("install {package}"),
    };
    // Where Debian keeps depmod, also for users who don't look there.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut child = Command::new(program)
        .args(arguments)
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| missing(error.to_string()))?;
    // Written beside the reading of its output: neither pipe may fill up.
    let mut stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that does not read to the end says why by its status.
            stdin.take().map(|mut pipe| pipe.write_all(input))
        });
        child.wait_with_output()
    })
    .map_err(|error| missing(error.to_string()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let why = words.lines().last().unwrap_or("it said nothing").to_owned();
    Err(VmError::Program {
        program: format!("{program} {}", arguments.join(" ")),
        why,
        next: "read what it says".to_owned(),
    })
}
