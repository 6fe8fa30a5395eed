//! perf(1) as the sampler of a Linux machine, through [`Host`].
//!
//! `perf record` and `perf stat` start before the traffic and sleep; a word on their standard input
//! switches them on and off (perf-record(1), `--control`), so that the sampled time equals the
//! window to within a millisecond and nothing slow happens in it.

use super::hints::{is_about_the_event, remark_on};
use super::{Census, Profiler, RawProfile, Sampling};
use crate::error::BenchError;
use crate::host::{Host, Running};
use fwdlab_model::profile::{CallGraph, Event};
use fwdlab_model::record::ProfileCounter;
use std::path::Path;
use std::time::Duration;

/// Fields of `perf script` in a profile.
pub const FIELDS: &str = "comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso";
/// Events that `perf stat` counts in addition to the samples.
pub const COUNTED: [&str; 6] = [
    "cycles",
    "instructions",
    "cache-misses",
    "branch-misses",
    "context-switches",
    "cpu-migrations",
];

/// Time limit for perf to become ready: it reads the kernel's symbols.
const READY: Duration = Duration::from_secs(15);
/// Time limit for switching on or off.
const SWITCH: Duration = Duration::from_secs(2);
/// Time limit for writing the last samples. A perf whose disk is full never ends by itself.
const END: Duration = Duration::from_secs(20);

/// perf, ready to sample.
pub struct Perf<'a> {
    host: &'a dyn Host,
    clock: &'a dyn Fn() -> u64,
    file: String,
    /// True to run `perf stat`, and to count lost samples; sampling at a low frequency loses none.
    counts: bool,
    record: Option<Box<dyn Running>>,
    stat: Option<Box<dyn Running>>,
    raw: RawProfile,
}

impl<'a> Perf<'a> {
    /// Prepares perf to sample `cpus` of `host` into `file`, which is removed at the end. `clock`
    /// reads CLOCK_MONOTONIC of the host in nanoseconds.
    pub fn prepare(
        host: &'a dyn Host,
        clock: &'a dyn Fn() -> u64,
        plan: &Sampling,
        cpus: &[u16],
        file: &Path,
    ) -> Perf<'a> {
        let file = file.display().to_string();
        let (counts, raw) = (plan.counts, RawProfile::default());
        let mut perf = Perf { host, clock, file, counts, record: None, stat: None, raw };
        perf.record(plan, &list(cpus));
        if !plan.counts {
            return perf;
        }
        if perf.record.is_some() {
            perf.stat(&list(cpus));
        } else {
            let why = "nothing was sampled, see the remarks";
            perf.raw.counters = COUNTED.map(|name| ProfileCounter::absent(name, why)).into();
        }
        perf
    }

    /// Starts `perf record` with the requested event, otherwise with the clock.
    fn record(&mut self, plan: &Sampling, cpus: &str) {
        let event = match plan.event {
            Event::Auto => Event::Cycles,
            configured => configured,
        };
        // perf itself silently replaces cycles by the clock.
        let event = match self.counts(event, cpus) {
            Ok(true) => event,
            Ok(false) => self.fall_back_to_clock(plan.event),
            Err(error) => return self.raw.remarks.push(remark_on(&error.to_string())),
        };
        match self.start_record(event, plan, cpus) {
            Ok(record) => self.record = Some(record),
            Err(words) if event != Event::CpuClock && is_about_the_event(&words) => {
                let event = self.fall_back_to_clock(plan.event);
                match self.start_record(event, plan, cpus) {
                    Ok(record) => self.record = Some(record),
                    Err(words) => self.raw.remarks.push(remark_on(&words)),
                }
            }
            Err(words) => self.raw.remarks.push(remark_on(&words)),
        }
    }

    fn fall_back_to_clock(&mut self, requested: Event) -> Event {
        self.raw.remarks.push(match requested {
            Event::Auto => "sampled by the kernel's clock, since this machine counts no cycles: \
                            what runs with interrupts off is booked where they come on again"
                .into(),
            configured => format!(
                "{} can't be sampled on this machine, the kernel's clock was taken instead: next \
                 step: `perf list hw` shows what there is",
                configured.name()
            ),
        });
        Event::CpuClock
    }

    /// Returns true if the machine counts the event; software events need no query.
    fn counts(&self, event: Event, cpus: &str) -> Result<bool, BenchError> {
        if event == Event::CpuClock {
            return Ok(true);
        }
        let argv = ["perf", "stat", "-x", ",", "--log-fd", "1", "-C", cpus, "-e", event.name()];
        let argv: Vec<&str> = argv.into_iter().chain(["--", "sleep", "0.01"]).collect();
        let output = self.host.run(&argv, "");
        match output {
            Err(error) if is_about_the_event(&error.to_string()) => Ok(false),
            other => Ok(counted(&other?, event.name()).value.is_some()),
        }
    }

    fn start_record(
        &mut self,
        event: Event,
        plan: &Sampling,
        cpus: &str,
    ) -> Result<Box<dyn Running>, String> {
        let frequency = plan.frequency_hz.to_string();
        let (method, graph) = match plan.call_graph {
            CallGraph::Auto | CallGraph::Fp => ("fp", "frame pointers"),
            CallGraph::Dwarf => ("dwarf", "copies of the stack"),
        };
        self.raw.event = event.name().into();
        self.raw.call_graph = method.into();
        self.raw.source = format!("perf, {} at {frequency} Hz, {graph}", event.name());
        let argv = ["perf", "record", "-k", "CLOCK_MONOTONIC", "-C", cpus, "-e", event.name()];
        let argv = argv.into_iter().chain(["-F", &frequency, "--call-graph", method]);
        // Build ids and events about BPF programs would take a third of a second at the end of each
        // run; names come from kallsyms while the programs are loaded.
        let argv = argv.chain(["-N", "-B", "--no-bpf-event", "-o", &self.file]);
        let argv = argv.chain(["-D", "-1", "--control", "fd:0,1"]);
        ready(self.host, &argv.collect::<Vec<&str>>())
    }

    /// Starts `perf stat`; without it the counters are absent.
    fn stat(&mut self, cpus: &str) {
        let events = COUNTED.join(",");
        let argv = ["perf", "stat", "-x", ",", "-C", cpus, "-e", &events];
        let argv: Vec<&str> = argv.into_iter().chain(["-D", "-1", "--control", "fd:0,1"]).collect();
        match ready(self.host, &argv) {
            Ok(stat) => self.stat = Some(stat),
            Err(words) => {
                let why = remark_on(&words);
                self.raw.counters = COUNTED.map(|name| ProfileCounter::absent(name, &why)).into();
            }
        }
    }

    /// Number of times that perf had no room for samples.
    fn lost(&self) -> u64 {
        let argv = ["perf", "report", "--stdio", "--stats", "-i", &self.file];
        self.host.run(&argv, "").map_or(0, |text| lost_records(&text))
    }

    fn read_out(&mut self) {
        if let Some(mut stat) = self.stat.take() {
            stat.interrupt();
            let ended = stat.wait(END);
            self.raw.counters = COUNTED.map(|name| counted(&ended.errors, name)).into();
        }
        let Some(mut record) = self.record.take() else { return };
        // An interrupt would also end perf, but with the signal's status.
        if record.tell("stop").is_err() {
            record.interrupt();
        }
        let ended = record.wait(END);
        if !ended.well || ended.errors.contains("No space left on device") {
            let words = match ended.errors.trim() {
                "" => ended.status.clone(),
                words => format!("{words}\n{}", ended.status),
            };
            self.raw.remarks.push(remark_on(&words));
        }
        let argv = ["perf", "script", "--ns", "--no-inline", "-F", FIELDS, "-i", &self.file];
        match self.host.run(&argv, "") {
            Ok(text) => self.raw.text = text,
            Err(error) => self.raw.remarks.push(remark_on(&error.to_string())),
        }
        let lost = if self.counts { self.lost() } else { 0 };
        if lost > 0 {
            self.raw.remarks.push(format!(
                "perf had no room for some samples, {lost} times: next step: a lower `frequency` in \
                 [profile], or call_graph = \"fp\""
            ));
        }
        let census = Census::of(&self.raw.text);
        if census.samples == 0 {
            self.raw.remarks.push(
                "no sample was taken: next step: `fwdlab doctor` tries the same thing alone".into(),
            );
        }
        if census.lacks_symbols() {
            let hidden = self.host.get("/proc/sys/kernel/kptr_restrict").unwrap_or_default();
            self.raw.remarks.push(format!(
                "{} of {} frames of the kernel have no name (kernel.kptr_restrict = {hidden}): next \
                 step: run as root, or sysctl kernel.kptr_restrict=0",
                census.unknown_kernel_frames, census.kernel_frames
            ));
        }
        self.raw.remarks.dedup();
    }
}

impl Profiler for Perf<'_> {
    fn start(&mut self) {
        for program in [&mut self.record, &mut self.stat].into_iter().flatten() {
            switch(program.as_mut(), "enable");
        }
        if self.record.is_some() {
            self.raw.sampled_from_ns = (self.clock)();
        }
    }

    fn stop(&mut self) {
        if self.record.is_none() {
            return;
        }
        self.raw.sampled_to_ns = (self.clock)();
        let mut responded = true;
        for program in [&mut self.record, &mut self.stat].into_iter().flatten() {
            responded &= switch(program.as_mut(), "disable");
        }
        if !responded {
            self.raw.remarks.push(
                "perf ended, or hung, before the window did: what it sampled until then is kept: \
                 next step: profile again"
                    .into(),
            );
        }
    }

    fn finish(mut self: Box<Self>) -> RawProfile {
        self.read_out();
        let _ = self.host.run(&["rm", "-f", &self.file], "");
        self.raw
    }
}

/// Starts a perf and waits until it responds; returns its last message if it does not.
fn ready(host: &dyn Host, argv: &[&str]) -> Result<Box<dyn Running>, String> {
    let mut program = host.spawn(argv).map_err(|error| error.to_string())?;
    let responds = program.tell("ping").is_ok() && program.hear(READY).is_some();
    if responds {
        return Ok(program);
    }
    let ended = program.wait(Duration::from_millis(100));
    Err(if ended.errors.trim().is_empty() { ended.status } else { ended.errors })
}

/// Sends a command and waits for the response; returns false if there is none.
fn switch(program: &mut dyn Running, word: &str) -> bool {
    program.tell(word).is_ok() && program.hear(SWITCH).is_some()
}

/// CPU list in perf's format: `1,2,5`.
fn list(cpus: &[u16]) -> String {
    cpus.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}

/// Number of losses of samples in the output of `perf report --stats`.
fn lost_records(text: &str) -> u64 {
    let lines = text.lines().filter(|line| line.trim_start().starts_with("LOST"));
    lines.filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum()
}

/// Parses one event of the output of `perf stat -x ,` (perf-stat(1), CSV FORMAT): value, unit,
/// event, time it was counted, share of the time.
fn counted(text: &str, event: &str) -> ProfileCounter {
    let line = text.lines().map(|line| line.split(',').collect::<Vec<_>>()).find(|fields| {
        // An event may carry modifiers: cycles:u.
        fields.get(2).is_some_and(|name| name.split([':', '/']).any(|part| part == event))
    });
    let Some(fields) = line else {
        return ProfileCounter::absent(event, "perf did not report it");
    };
    match fields[0] {
        "<not supported>" => ProfileCounter::absent(event, "not supported by this machine"),
        "<not counted>" => ProfileCounter::absent(event, "not counted: no free counter"),
        value => match value.parse() {
            Ok(value) => ProfileCounter::counted(event, value),
            Err(_) => ProfileCounter::absent(event, format!("perf printed \"{value}\"")),
        },
    }
}
