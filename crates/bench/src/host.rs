//! A place where programs run and files lie.
//!
//! Commands are argument vectors, never strings glued for a shell.

mod program;

pub use program::{Ended, FakeProgram, Program, Running};

use crate::error::BenchError;
use fwdlab_port::NetNs;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// A machine or namespace, as far as a laboratory needs it.
pub trait Host {
    /// Name for messages.
    fn name(&self) -> &str;

    /// Runs a program to its end with `stdin` as its input; returns its output.
    ///
    /// # Errors
    /// When it is missing, or ends with another status than 0.
    fn run(&self, argv: &[&str], stdin: &str) -> Result<String, BenchError>;

    /// Starts a program that is talked to while it runs.
    ///
    /// # Errors
    /// When it is missing.
    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError>;

    /// Writes a file that exists (a sysctl, an attribute in sysfs).
    ///
    /// # Errors
    /// When it is missing or refuses the value.
    fn put(&self, path: &str, text: &str) -> Result<(), BenchError>;

    /// Reads a file; surrounding white space is removed.
    ///
    /// # Errors
    /// When it is missing or unreadable.
    fn get(&self, path: &str) -> Result<String, BenchError>;
}

/// This machine, as the program sees it.
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
}

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace with its own `/sys`, served by one thread that lives in it.
#[derive(Debug)]
pub struct NamespaceHost {
    name: String,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl NamespaceHost {
    /// Enters the namespace with a new thread, bound to `cpus` unless empty:
    /// programs that it starts inherit both.
    ///
    /// # Errors
    /// When the namespace can't be entered.
    pub fn new(namespace: &NetNs, cpus: &[u16]) -> Result<NamespaceHost, BenchError> {
        let (jobs, queue) = channel::<Job>();
        let (ready, entered) = channel();
        let (theirs, cpus) = (namespace.clone(), cpus.to_vec());
        let thread = std::thread::spawn(move || {
            let result = theirs.enter_with_sysfs().and_then(|()| match cpus.is_empty() {
                true => Ok(()),
                false => fwdlab_port::affinity::pin_thread(&cpus),
            });
            let failed = result.is_err();
            let _ = ready.send(result);
            if !failed {
                queue.into_iter().for_each(|job| job());
            }
        });
        let host = NamespaceHost {
            name: namespace.name().to_owned(),
            jobs: Some(jobs),
            thread: Some(thread),
        };
        match entered.recv() {
            Ok(result) => result.map(|()| host).map_err(BenchError::from),
            Err(_) => Err(BenchError::Refused("the namespace's thread ended".into())),
        }
    }

    fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, result) = channel();
        let job: Job = Box::new(move || {
            let _ = answer.send(work());
        });
        self.jobs
            .as_ref()
            .and_then(|jobs| jobs.send(job).ok())
            .and_then(|()| result.recv().ok())
            .expect("the namespace's thread lives as long as the host")
    }
}

impl Host for NamespaceHost {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, argv: &[&str], stdin: &str) -> Result<String, BenchError> {
        let (name, stdin) = (self.name.clone(), stdin.to_owned());
        let argv: Vec<String> = argv.iter().map(|s| s.to_string()).collect();
        self.within(move || {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            run_here(&name, &argv, &stdin)
        })
    }

    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError> {
        let name = self.name.clone();
        let argv: Vec<String> = argv.iter().map(|s| s.to_string()).collect();
        let program = self.within(move || {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            Program::start(&name, &argv)
        })?;
        Ok(Box::new(program))
    }

    fn put(&self, path: &str, text: &str) -> Result<(), BenchError> {
        let (name, path, text) = (self.name.clone(), path.to_owned(), text.to_owned());
        self.within(move || put_here(&name, &path, &text))
    }

    fn get(&self, path: &str) -> Result<String, BenchError> {
        let (name, path) = (self.name.clone(), path.to_owned());
        self.within(move || get_here(&name, &path))
    }
}

impl Drop for NamespaceHost {
    fn drop(&mut self) {
        self.jobs = None; // ends the thread's loop
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A host of files in memory that remembers what was run, for tests.
#[derive(Debug, Default)]
pub struct FakeHost {
    /// Files by path.
    pub files: Mutex<BTreeMap<String, String>>,
    /// Commands and their input, in order.
    pub commands: Mutex<Vec<(Vec<String>, String)>>,
    /// Outputs by the first two words of a command.
    pub outputs: BTreeMap<String, String>,
    /// What running a command fails with, by its first two words.
    pub failures: BTreeMap<String, String>,
    /// What happens to a program that is started, by its first two words.
    pub programs: BTreeMap<String, FakeProgram>,
}

impl Host for FakeHost {
    fn name(&self) -> &str {
        "fake"
    }

    fn run(&self, argv: &[&str], stdin: &str) -> Result<String, BenchError> {
        let words: Vec<String> = argv.iter().map(|s| s.to_string()).collect();
        let key = words.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
        if let Ok(mut commands) = self.commands.lock() {
            commands.push((words, stdin.to_owned()));
        }
        if let Some(why) = self.failures.get(&key) {
            let (command, host) = (argv.join(" "), self.name().to_owned());
            return Err(BenchError::Program { command, host, why: why.clone() });
        }
        Ok(self.outputs.get(&key).cloned().unwrap_or_default())
    }

    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError> {
        self.run(argv, "")?;
        let key = argv.iter().take(2).copied().collect::<Vec<_>>().join(" ");
        Ok(Box::new(self.programs.get(&key).cloned().unwrap_or_default()))
    }

    fn put(&self, path: &str, text: &str) -> Result<(), BenchError> {
        match self.files.lock().ok().and_then(|mut f| f.get_mut(path).map(|t| *t = text.into())) {
            Some(()) => Ok(()),
            None => Err(missing(self.name(), path)),
        }
    }

    fn get(&self, path: &str) -> Result<String, BenchError> {
        let found = self.files.lock().ok().and_then(|files| files.get(path).cloned());
        found.ok_or_else(|| missing(self.name(), path))
    }
}

fn missing(host: &str, path: &str) -> BenchError {
    let source = std::io::Error::from(std::io::ErrorKind::NotFound);
    BenchError::File { path: path.into(), host: host.into(), source }
}

fn run_here(host: &str, argv: &[&str], stdin: &str) -> Result<String, BenchError> {
    let failed =
        |why: String| BenchError::Program { command: argv.join(" "), host: host.to_owned(), why };
    let stdio = if stdin.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = program::start(argv, stdio).map_err(failed)?;
    // A long input goes in on a thread of its own, so that neither side waits
    // for the other's full pipe. A program that stops reading says why itself.
    let writer = child.stdin.take().map(|mut pipe| {
        let text = stdin.to_owned();
        std::thread::spawn(move || {
            let _ = pipe.write_all(text.as_bytes());
        })
    });
    let output = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if let Some(writer) = writer {
        let _ = writer.join();
    }
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let words = words.trim().lines().take(5).collect::<Vec<_>>().join("; ");
        return Err(failed(if words.is_empty() { output.status.to_string() } else { words }));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn put_here(host: &str, path: &str, text: &str) -> Result<(), BenchError> {
    // No O_CREAT: a name that the kernel does not offer is an error, not a file.
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| BenchError::File { path: path.into(), host: host.into(), source })
}

fn get_here(host: &str, path: &str) -> Result<String, BenchError> {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(|source| BenchError::File {
        path: path.into(),
        host: host.into(),
        source,
    })
}
