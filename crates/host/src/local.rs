//! This machine.

use super::output::Output;
use super::program::{self, Program};
use super::{Host, Running};
use crate::error::BenchError;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::thread::JoinHandle;

/// This machine, in the namespaces of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalHost;

impl Host for LocalHost {
    fn name(&self) -> &str {
        "this machine"
    }
    fn run(&self, argv: &[&str], stdin: &str) -> Result<String, BenchError> {
        run_here(self.name(), argv, stdin)
    }
    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError> {
        Ok(Box::new(Program::start(self.name(), argv)?))
    }
    fn put(&self, path: &str, text: &str) -> Result<(), BenchError> {
        put_here(self.name(), path, text)
    }
    fn get(&self, path: &str) -> Result<String, BenchError> {
        get_here(self.name(), path)
    }
    fn send_file(&self, from: &Path, to: &str) -> Result<(), BenchError> {
        copy_here(self.name(), from, to)
    }
}

pub(super) fn run_here(host: &str, argv: &[&str], stdin: &str) -> Result<String, BenchError> {
    let failed =
        |why: String| BenchError::Program { command: argv.join(" "), host: host.to_owned(), why };
    let stdio = if stdin.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = program::start(argv, stdio).map_err(failed)?;
    // A separate thread writes the input, so that neither side blocks on a full pipe. A program
    // that stops reading reports the reason itself.
    let writer = child.stdin.take().map(|mut pipe| {
        let text = stdin.to_owned();
        std::thread::spawn(move || {
            let _ = pipe.write_all(text.as_bytes());
        })
    });
    let [output, errors] =
        [child.stdout.take().map(Output::read), child.stderr.take().map(Output::read)];
    let status = child.wait().map_err(|e| failed(e.to_string()))?;
    let [output, errors] = [output, errors].map(|read| read.map(Output::text).unwrap_or_default());
    // Otherwise a process in the background holds the pipe, and does not read.
    if let Some(writer) = writer.filter(JoinHandle::is_finished) {
        let _ = writer.join();
    }
    if !status.success() {
        let message = errors.trim().lines().take(5).collect::<Vec<_>>().join("; ");
        return Err(failed(if message.is_empty() { status.to_string() } else { message }));
    }
    Ok(output)
}

pub(super) fn put_here(host: &str, path: &str, text: &str) -> Result<(), BenchError> {
    // No O_CREAT: a name that the kernel does not offer is an error, not a new file.
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| BenchError::File { path: path.into(), host: host.into(), source })
}

pub(super) fn get_here(host: &str, path: &str) -> Result<String, BenchError> {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(|source| BenchError::File {
        path: path.into(),
        host: host.into(),
        source,
    })
}

/// Copies next to the old file, then renames: a running program cannot be overwritten.
pub(super) fn copy_here(host: &str, from: &Path, to: &str) -> Result<(), BenchError> {
    let part = format!("{to}.part");
    let copied = fs::copy(from, &part).and_then(|_| fs::rename(&part, to));
    copied.map_err(|source| {
        let _ = fs::remove_file(&part);
        let path = format!("{} to {to}", from.display());
        BenchError::File { path, host: host.into(), source }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn output_of_a_command_that_leaves_a_process_behind_is_returned() {
        let started = Instant::now();
        let line = "sleep 60 & echo $!";
        let pid = LocalHost.run(&["sh", "-c", line], "").expect("ended");
        assert!(started.elapsed() < Duration::from_secs(30));
        LocalHost.run(&["kill", pid.trim()], "").expect("alive");
        let numbers = LocalHost.run(&["seq", "200000"], "").expect("numbers");
        assert_eq!(numbers.lines().count(), 200_000);
    }

    #[test]
    fn files_are_copied_atomically() {
        let directory = std::env::temp_dir().join(format!("fwdlab-copy-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let (from, to) = (directory.join("from"), directory.join("to"));
        fs::write(&from, "text").expect("a file");
        LocalHost.send_file(&from, &to.to_string_lossy()).expect("copied");
        assert_eq!(fs::read_to_string(&to).expect("the copy"), "text");
        let missing = directory.join("no-folder/to");
        let error = LocalHost.send_file(&from, &missing.to_string_lossy()).expect_err("no folder");
        assert!(error.to_string().contains("no-folder/to on this machine"), "{error}");
        let _ = fs::remove_dir_all(&directory);
    }
}
