//! Runs programs of this machine to their end.

use crate::error::VmError;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Directories in which programs and libraries are looked up by name.
const PLACES: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Number of SIGPIPE on Linux (signal(7)).
const SIGPIPE: i32 = 13;

/// Finds a program of this machine by its path or name.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    if name.starts_with('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    PLACES.iter().map(|place| Path::new(place).join(name)).find(|path| path.is_file())
}

/// Runs `program` with `input`, and returns its output.
///
/// # Errors
/// If it is missing (`package` is the package that contains it) or exits with a status other than
/// 0.
pub(crate) fn run(
    program: &str,
    arguments: &[&str],
    input: &[u8],
    package: &str,
) -> Result<Vec<u8>, VmError> {
    let stage = Stage { program, arguments, package, directory: None, failure: None };
    let mut output = Vec::new();
    pipe(input, &[stage], Some(&mut output))?;
    Ok(output)
}

/// One program of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage<'a> {
    /// Name or path of the program.
    pub(crate) program: &'a str,
    /// Its arguments.
    pub(crate) arguments: &'a [&'a str],
    /// Package that contains the program.
    pub(crate) package: &'a str,
    /// Working directory; `None` for the current one.
    pub(crate) directory: Option<&'a Path>,
    /// Beginning of messages about failures in spite of exit status 0.
    pub(crate) failure: Option<&'a str>,
}

impl Stage<'_> {
    fn spawn(&self, input: Stdio) -> Result<Child, VmError> {
        // Debian keeps some programs in directories that ordinary users do not search.
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        let mut command = Command::new(self.program);
        command.args(self.arguments).env("PATH", path).env("LC_ALL", "C");
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        let spawned = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        spawned.map_err(|error| self.missing(&error))
    }

    fn missing(&self, error: &io::Error) -> VmError {
        VmError::Program {
            program: self.program.to_owned(),
            why: error.to_string(),
            next: format!("install {}", self.package),
        }
    }
}

/// Runs programs as a pipeline that reads `input`, and appends the output of the last one to
/// `output`, if given.
///
/// # Errors
/// If a program is missing or fails, or `input` can't be read. If several fail, the error names the
/// first one that failed for another reason than a closed pipe.
pub(crate) fn pipe(
    mut input: impl Read + Send,
    stages: &[Stage<'_>],
    output: Option<&mut Vec<u8>>,
) -> Result<(), VmError> {
    let mut children: Vec<Child> = Vec::new();
    for stage in stages {
        let before = children.last_mut().and_then(|child| child.stdout.take());
        match stage.spawn(before.map_or_else(Stdio::piped, Stdio::from)) {
            Ok(child) => children.push(child),
            Err(error) => {
                children.iter_mut().for_each(end);
                return Err(error);
            }
        }
    }
    let mut stdin = children.first_mut().and_then(|child| child.stdin.take());
    let mut stdout = children.last_mut().and_then(|child| child.stdout.take());
    let errors: Vec<_> = children.iter_mut().map(|child| child.stderr.take()).collect();
    // All pipes are read and written at the same time: none of them may fill up.
    let (words, fed, read) = std::thread::scope(|scope| {
        let fed = scope.spawn(move || stdin.take().map(|mut pipe| feed(&mut input, &mut pipe)));
        let words: Vec<_> = errors.into_iter().map(|pipe| scope.spawn(|| all_of(pipe))).collect();
        let mut unused = Vec::new();
        let output = output.unwrap_or(&mut unused);
        let read = stdout.as_mut().map_or(Ok(0), |pipe| pipe.read_to_end(output));
        let words: Vec<String> = words.into_iter().filter_map(|one| one.join().ok()).collect();
        (words, fed.join().ok().flatten(), read)
    });
    let mut failures = Vec::new();
    for ((child, stage), words) in children.iter_mut().zip(stages).zip(words) {
        let status = child.wait().map_err(|error| stage.missing(&error))?;
        let is_failure = |begin| words.lines().any(|line| line.starts_with(begin));
        if !status.success() || stage.failure.is_some_and(is_failure) {
            failures.push((status.signal() == Some(SIGPIPE), failure(stage, &words)));
        }
    }
    failures.sort_by_key(|(lost_its_reader, _)| *lost_its_reader);
    if let Some((_, error)) = failures.into_iter().next() {
        return Err(error);
    }
    let fault = |source| VmError::file(stages.first().map_or("", |stage| stage.program), source);
    fed.unwrap_or(Ok(())).and(read).map(drop).map_err(fault)
}

/// Ends a program of an incomplete pipeline.
fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// Copies the input into a program, which may stop reading before the end.
fn feed(input: &mut impl Read, pipe: &mut impl Write) -> io::Result<()> {
    match io::copy(input, pipe) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

fn all_of(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // Read errors only shorten an error message.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn failure(stage: &Stage<'_>, words: &str) -> VmError {
    VmError::Program {
        program: format!("{} {}", stage.program, stage.arguments.join(" ")),
        why: words.lines().last().unwrap_or("it printed no reason").to_owned(),
        next: "read what it says".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage<'a>(program: &'a str, arguments: &'a [&'a str]) -> Stage<'a> {
        Stage { program, arguments, package: "coreutils", directory: None, failure: None }
    }

    #[test]
    fn pipeline_passes_more_than_pipes_hold() {
        let input = vec![b'x'; 1 << 20];
        let mut output = Vec::new();
        let stages = [stage("cat", &[]), stage("cat", &[]), stage("wc", &["-c"])];
        pipe(&input[..], &stages, Some(&mut output)).unwrap();
        assert_eq!(String::from_utf8(output).unwrap().trim(), "1048576");
    }

    #[test]
    fn pipeline_names_the_program_that_failed() {
        let input = vec![b'x'; 1 << 20];
        let failing = stage("sh", &["-c", "echo no room >&2; exit 3"]);
        let error = pipe(&input[..], &[stage("cat", &[]), failing], None).unwrap_err();
        assert!(error.to_string().contains("no room"), "{error}");
        let silent = stage("sh", &["-c", "cat >/dev/null; echo Error: no room >&2"]);
        let silent = Stage { failure: Some("Error"), ..silent };
        let error = pipe(&input[..], &[silent, stage("cat", &[])], None).unwrap_err();
        assert!(error.to_string().contains("no room"), "{error}");
        let missing = stage("no-such-program", &[]);
        let error = pipe(&input[..], &[stage("cat", &[]), missing], None).unwrap_err();
        assert!(error.to_string().ends_with("next step: install coreutils"), "{error}");
    }
}
