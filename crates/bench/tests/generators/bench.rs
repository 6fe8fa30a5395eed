//! Helpers for the tests of all generators.

use fwdlab_bench::generator::{Generator, GeneratorHosts, Load, Outcome};
use fwdlab_bench::host::{Host, LocalHost, Running};
use fwdlab_bench::trial::CountedTraffic;
use fwdlab_bench::trial::{self, Observed, SystemClock, TrialSpec};
use fwdlab_bench::{BenchError, NoopObserver};
use fwdlab_model::plan::Trial;
use fwdlab_packet::Flows;
use fwdlab_packet::{Family, Stream, Template};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const NEXT_HOP: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Returns a load of 84-byte frames (80 without FCS).
pub(crate) fn load(family: Family, sources: u32, destinations: u32, rate_pps: Option<f64>) -> Load {
    let stream = Stream::new(family, 84, Flows { sources, destinations });
    Load {
        template: Template::new(&stream, 1, SOURCE, NEXT_HOP),
        stream,
        source_mac: SOURCE,
        next_hop_mac: NEXT_HOP,
        rate_pps,
        at_most: Duration::from_secs(20),
    }
}

pub(crate) fn ends<'a>(sender: &'a dyn Host, receiver: &'a dyn Host) -> GeneratorHosts<'a> {
    GeneratorHosts {
        sender,
        sender_interface: "ix0".into(),
        sender_cpus: Vec::new(),
        receiver,
        receiver_interface: "ix1".into(),
        receiver_cpus: Vec::new(),
        server: None,
        options: Vec::new(),
    }
}

/// Runs a trial like a laboratory.
pub(crate) fn trial<'a>(
    generator: Box<dyn Generator + 'a>,
    load: &Load,
    window: Duration,
) -> Result<(Observed, Outcome), BenchError> {
    let mut traffic = CountedTraffic::new(generator, load)?;
    let phases = Trial {
        warmup_ns: 300_000_000,
        duration_ns: window.as_nanos() as u64,
        drain_ns: 5_000_000_000,
        interval_ns: 100_000_000,
        slice_ns: 100_000_000,
    };
    let spec = TrialSpec {
        trial: &phases,
        rate_pps: load.rate_pps,
        variant: 0,
        alternation: None,
        at_window: &mut |_| {},
        awaited: trial::OpeningConditions::default(),
        account: &mut trial::NoCounters,
    };
    let observed = trial::run(&mut traffic, &SystemClock, spec, &mut NoopObserver)?;
    Ok((observed, traffic.finish()?))
}

/// This machine, on which one program is a script of the test.
pub(crate) struct Scripted {
    name: &'static str,
    script: PathBuf,
    _directory: TempDir,
}

impl Scripted {
    pub(crate) fn new(name: &'static str, text: &str) -> Scripted {
        let directory = tempfile::tempdir().expect("a directory");
        let script = directory.path().join(name);
        fs::write(&script, text).expect("written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("made executable");
        Scripted { name, script, _directory: directory }
    }

    fn with(&self, argv: &[&str]) -> Vec<String> {
        let path = self.script.to_string_lossy();
        let word = |word: &&str| match *word == self.name {
            true => path.clone().into_owned(),
            // Also inside the text of a shell command.
            false if argv[0] == "sh" && word.contains(' ') => word.replace(self.name, &path),
            false => word.to_string(),
        };
        argv.iter().map(word).collect()
    }
}

impl Host for Scripted {
    fn send_file(&self, _: &std::path::Path, to: &str) -> Result<(), BenchError> {
        Err(BenchError::Refused(format!("{to} is not sent by this test")))
    }

    fn name(&self) -> &str {
        "scripted"
    }
    fn run(&self, argv: &[&str], stdin: &str) -> Result<String, BenchError> {
        let argv = self.with(argv);
        LocalHost.run(&argv.iter().map(String::as_str).collect::<Vec<_>>(), stdin)
    }
    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError> {
        let argv = self.with(argv);
        LocalHost.spawn(&argv.iter().map(String::as_str).collect::<Vec<_>>())
    }
    fn put(&self, path: &str, text: &str) -> Result<(), BenchError> {
        LocalHost.put(path, text)
    }
    fn get(&self, path: &str) -> Result<String, BenchError> {
        LocalHost.get(path)
    }
}
