//! A simulated host for tests.

use super::{FakeProgram, Host, Running};
use crate::error::BenchError;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

/// A simulated host with files in memory that records commands, for tests.
#[derive(Debug, Default)]
pub struct FakeHost {
    /// Files by path.
    pub files: Mutex<BTreeMap<String, String>>,
    /// Commands and their input, in order.
    pub commands: Mutex<Vec<(Vec<String>, String)>>,
    /// Outputs by the first two words of a command.
    pub outputs: BTreeMap<String, String>,
    /// Error messages of commands, by their first two words.
    pub failures: BTreeMap<String, String>,
    /// Behaviour of started programs, by their first two words.
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

    fn send_file(&self, from: &Path, to: &str) -> Result<(), BenchError> {
        self.run(&["send-file", to], &from.to_string_lossy()).map(drop)
    }
}

fn missing(host: &str, path: &str) -> BenchError {
    let source = std::io::Error::from(std::io::ErrorKind::NotFound);
    BenchError::File { path: path.into(), host: host.into(), source }
}
