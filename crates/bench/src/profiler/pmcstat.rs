//! pmcstat(8) as the sampler of a FreeBSD machine, through [`Host`].
//!
//! A machine that forwards as fast as it can has no time for programs: a sampler that is started on
//! command starts late, and its log waits for a disk. So sampling begins before the traffic and
//! ends after it, buffers of the kernel hold all samples, and samples outside the window are
//! omitted by their time. Times are the CPU's counter; programs that do nothing are executed before
//! and after, and the log records the counter at each execution, which relates the counter to the
//! profile's clock without any command during the traffic.
//!
//! Events: cycles and others if the machine counts them, otherwise the profiling clock of the
//! kernel (`CLOCK.PROF`), which virtual machines also have. DTrace is not used: its stacks have no
//! times.
//!
//! Sources: pmcstat(8), pmc.soft(3), hwpmc(4).

use super::pmclog::{Form, Log};
use super::{Census, Profiler, RawProfile, Sampling};
use crate::dut::freebsd::backup::Backup;
use crate::dut::freebsd::modules;
use crate::dut::freebsd::system::System;
use crate::error::BenchError;
use crate::host::{Host, Running};
use fwdlab_model::profile::{CallGraph, Event};
use fwdlab_model::record::ProfileCounter;
use fwdlab_vm::guest::freebsd_symbols;
use fwdlab_vm::symbols::Symbols;
use std::path::Path;
use std::time::Duration;

/// Kernel module.
const MODULE: &str = "hwpmc";
/// The kernel's profiling clock.
const CLOCK: &str = "CLOCK.PROF";
/// Name of the clock in a profile, where the unit of a clock is the nanosecond.
const CLOCK_NAME: &str = "clock.prof";
/// Number of log buffers per CPU, and kilobytes per buffer: when sampling begins, each process
/// takes one, and the rest holds the samples of several seconds.
const BUFFERS: [(&str, &str); 2] =
    [("kern.hwpmc.nbuffers_pcpu", "512"), ("kern.hwpmc.logbuffersize", "16")];
/// Variable with the minimum number of events between two samples: a thousand by default, which is
/// seconds of a clock.
const LEAST: &str = "kern.hwpmc.mincount";
/// Clock marks before the traffic, and the same number after it; the one with the smallest
/// uncertainty counts.
const MARKS: usize = 5;
/// Time limit for the beginning of the log, and for a mark.
const READY: Duration = Duration::from_secs(20);
/// Time limit for writing the last samples.
const END: Duration = Duration::from_secs(60);

/// Script that makes marks until its input ends: `$1` is the log, which must have begun, `$2` the
/// prefix of the programs' names.
const MARKER: &str = "n=0; until [ -s \"$1\" ] || [ $n -ge 150 ]; do sleep 0.1; n=$((n+1)); done; \
                      echo ready; while read -r mark; do \"$2$mark\"; echo made; done";

/// pmcstat, sampling.
pub struct Pmcstat<'a> {
    host: &'a dyn Host,
    clock: &'a dyn Fn() -> u64,
    log: String,
    cpus: Vec<u16>,
    sampler: Option<Box<dyn Running>>,
    marker: Option<Box<dyn Running>>,
    /// Times before and after each mark, nanoseconds.
    marks: Vec<(u64, u64)>,
    /// Number of events per sample.
    period: u64,
    undo: Undo,
    raw: RawProfile,
}

/// Changes on the machine to restore.
#[derive(Debug, Default)]
struct Undo {
    /// The machine, if this process loaded hwpmc there.
    loaded_on: Option<System>,
    /// Loader variables that were not set before.
    variables: Vec<&'static str>,
    /// Previous minimum number of events.
    mincount: Option<String>,
}

impl<'a> Pmcstat<'a> {
    /// Begins to sample `cpus` of `host` into `file`, which is removed at the end. `clock` reads
    /// the profile's clock in nanoseconds.
    pub fn prepare(
        host: &'a dyn Host,
        clock: &'a dyn Fn() -> u64,
        plan: &Sampling,
        cpus: &[u16],
        file: &Path,
    ) -> Pmcstat<'a> {
        let mut pmcstat = Pmcstat {
            host,
            clock,
            log: file.display().to_string(),
            cpus: cpus.to_vec(),
            sampler: None,
            marker: None,
            marks: Vec::new(),
            period: 1,
            undo: Undo::default(),
            raw: RawProfile::default(),
        };
        if let Err(error) = pmcstat.begin(plan) {
            pmcstat.raw.remarks.push(remark_on(&error.to_string()));
        }
        pmcstat.raw.counters = super::perf::COUNTED
            .map(|name| ProfileCounter::absent(name, "pmcstat samples one event"))
            .into();
        pmcstat
    }

    fn begin(&mut self, plan: &Sampling) -> Result<(), BenchError> {
        self.load()?;
        // Remains of a killed process.
        self.remove_files();
        for mark in 0..2 * MARKS {
            self.host.run(&["cp", "/usr/bin/true", &self.mark_file(mark)], "")?;
        }
        let (event, count) = self.event(plan)?;
        if plan.call_graph == CallGraph::Dwarf {
            self.raw.remarks.push(
                "copies of the stack are perf's: pmcstat follows frame pointers: next step: leave \
                 `call_graph` out"
                    .into(),
            );
        }
        self.raw.call_graph = "fp".into();
        let cpus = self.list();
        let count = count.to_string();
        let argv = ["pmcstat", "-c", &cpus, "-n", &count, "-S", &event, "-O", &self.log];
        self.sampler = Some(self.host.spawn(&argv)?);
        let stem = self.mark_stem();
        let argv = ["/bin/sh", "-c", MARKER, "marker", &self.log, &stem];
        let mut marker = self.host.spawn(&argv)?;
        let is_ready = marker.hear(READY).is_some();
        self.marker = Some(marker);
        if !is_ready || self.sampler.as_mut().is_some_and(|sampler| sampler.has_ended()) {
            return Err(self.failed());
        }
        self.mark();
        Ok(())
    }

    /// Loads hwpmc with large buffers, unless it is already loaded.
    fn load(&mut self) -> Result<(), BenchError> {
        if self.host.run(&["kldstat", "-q", "-m", MODULE], "").is_err() {
            for (name, value) in BUFFERS {
                if self.host.run(&["kenv", "-q", name], "").is_err() {
                    self.host.run(&["kenv", &format!("{name}={value}")], "")?;
                    self.undo.variables.push(name);
                }
            }
            // Recorded there first, so that it is unloaded even if this process does not return.
            let system = System::ask(self.host)?;
            modules::load(self.host, &Backup::new(self.host, &system), MODULE)?;
            self.undo.loaded_on = Some(system);
        }
        // Older releases have no minimum.
        if let Ok(mincount) = self.host.run(&["sysctl", "-n", LEAST], "")
            && self.host.run(&["sysctl", &format!("{LEAST}=1")], "").is_ok()
        {
            self.undo.mincount = Some(mincount.trim().to_owned());
        }
        Ok(())
    }

    /// Returns the event to sample, and the number of events between two samples.
    fn event(&mut self, plan: &Sampling) -> Result<(String, u64), BenchError> {
        let frequency = u64::from(plan.frequency_hz.max(1));
        let event = match plan.event {
            Event::Auto => Event::Cycles,
            configured => configured,
        };
        if let Some(name) = names(event).iter().find(|name| self.counts(name)) {
            let hz = self.host.run(&["sysctl", "-n", "machdep.tsc_freq"], "")?;
            let hz: u64 = hz.trim().parse().unwrap_or(2_000_000_000);
            // Misses are roughly a hundredth of the cycles.
            let share = if matches!(event, Event::Cycles | Event::Instructions) { 1 } else { 100 };
            self.period = (hz / frequency / share).max(1000);
            self.raw.event = event.name().into();
            self.raw.source =
                format!("pmcstat, {name} every {} events, frame pointers", self.period);
            return Ok(((*name).to_owned(), self.period));
        }
        if event != Event::CpuClock {
            self.raw.remarks.push(match plan.event {
                Event::Auto => {
                    "sampled by the kernel's profiling clock, since this machine counts \
                                no cycles: what runs with interrupts off is booked where they \
                                come on again"
                        .into()
                }
                configured => format!(
                    "{} can't be sampled on this machine, the kernel's profiling clock was taken \
                     instead: next step: `pmccontrol -L` shows what there is",
                    configured.name()
                ),
            });
        }
        let rates = self.host.run(&["sysctl", "-n", "kern.clockrate"], "")?;
        let clock_hz = profhz(&rates).ok_or_else(|| BenchError::Program {
            command: "sysctl -n kern.clockrate".into(),
            host: self.host.name().into(),
            why: format!("`{}` has no profhz", rates.trim()),
        })?;
        let count = ((clock_hz as f64 / frequency as f64).round() as u64).max(1);
        self.period = count * 1_000_000_000 / clock_hz;
        self.raw.event = CLOCK_NAME.into();
        self.raw.source = format!("pmcstat, {CLOCK} at {} Hz, frame pointers", clock_hz / count);
        Ok((CLOCK.to_owned(), count))
    }

    /// Returns true if the machine counts an event: an emulated one accepts it and counts nothing.
    fn counts(&self, event: &str) -> bool {
        let (cpus, script) = (self.list(), ["/bin/sh", "-c", "sleep 0.1"]);
        let argv = ["pmcstat", "-C", "-c", &cpus, "-s", event, "-w", "1"];
        let argv: Vec<&str> = argv.into_iter().chain(script).collect();
        let output = self.host.run(&argv, "").unwrap_or_default();
        let last = output.lines().rfind(|line| !line.starts_with('#')).unwrap_or_default();
        last.split_whitespace().any(|word| word.parse::<u64>().is_ok_and(|count| count > 0))
    }

    /// Makes clock marks in the log.
    fn mark(&mut self) {
        let Some(marker) = &mut self.marker else { return };
        for _ in 0..MARKS {
            let before_ns = (self.clock)();
            let sent = marker.tell(&self.marks.len().to_string());
            if sent.is_err() || marker.hear(READY).is_none() {
                return;
            }
            self.marks.push((before_ns, (self.clock)()));
        }
    }

    /// Returns the sampler's last message as an error.
    fn failed(&mut self) -> BenchError {
        let why = match self.sampler.take() {
            None => "it did not start".to_owned(),
            Some(mut sampler) => {
                sampler.interrupt();
                let ended = sampler.wait(Duration::from_secs(2));
                if ended.errors.trim().is_empty() { ended.status } else { ended.errors }
            }
        };
        BenchError::Program { command: "pmcstat".into(), host: self.host.name().into(), why }
    }

    fn read_out(&mut self) -> Result<(), BenchError> {
        let Some(mut sampler) = self.sampler.take() else { return Ok(()) };
        sampler.interrupt();
        let ended = sampler.wait(END);
        let message = ended.errors.trim();
        if let Some(lost) = discarded(message) {
            self.raw.remarks.push(format!(
                "the kernel had no room for {lost} records of the sampler: next step: {}",
                if self.undo.loaded_on.is_some() {
                    "a lower `frequency` or a shorter `duration` in [profile]"
                } else {
                    "unload hwpmc, which is then loaded with larger buffers, or raise \
                     kern.hwpmc.nbuffers_pcpu in loader.conf"
                }
            ));
        } else if !ended.well {
            let message = if message.is_empty() { &ended.status } else { message };
            self.raw.remarks.push(remark_on(message));
        }
        let text = self.host.run(&["od", "-An", "-v", "-t", "x4", &self.log], "")?;
        let failed = |why: String| BenchError::Program {
            command: format!("pmcstat -O {}", self.log),
            host: self.host.name().into(),
            why,
        };
        let log = Log::read(&text).map_err(failed)?;
        let marks = self.marks.clone();
        let sharpest = |from: usize, to: usize| {
            let marks_made =
                marks.iter().enumerate().take(to).skip(from).filter_map(|(mark, times)| {
                    let (before_ns, after_ns) = *times;
                    let tsc = log.executed(&self.mark_file(mark))?;
                    Some((after_ns - before_ns, (tsc, before_ns.midpoint(after_ns))))
                });
            marks_made.min_by_key(|(width_ns, _)| *width_ns)
        };
        let (Some(first), Some(last)) = (sharpest(0, MARKS), sharpest(MARKS, 2 * MARKS)) else {
            return Err(failed("no mark of the clock is in it".into()));
        };
        let symbols = self.host.run(&["/bin/sh", "-s"], &freebsd_symbols(1))?;
        let form = Form {
            symbols: &Symbols::of_modules(&symbols),
            clock: [first.1, last.1],
            event: &self.raw.event,
            period: self.period,
            from_ns: self.raw.sampled_from_ns,
            to_ns: self.raw.sampled_to_ns,
        };
        let (text, _) = log.script(&form);
        self.raw.text = text;
        let (window_ns, blur_ns) =
            (self.raw.sampled_to_ns - self.raw.sampled_from_ns, first.0.max(last.0) / 2);
        if blur_ns * 50 > window_ns {
            self.raw.remarks.push(format!(
                "times of samples are known to {} ms only: next step: a longer `duration` in \
                 [profile]",
                blur_ns / 1_000_000
            ));
        }
        self.check_samples();
        Ok(())
    }

    /// Adds remarks about missing samples or names.
    fn check_samples(&mut self) {
        let census = Census::of(&self.raw.text);
        if census.samples == 0 {
            self.raw.remarks.push(
                "no sample was taken in the traffic: next step: a longer `duration`, or a `rate` \
                 that the machine can carry, in [profile]"
                    .into(),
            );
        }
        if census.lacks_symbols() {
            self.raw.remarks.push(format!(
                "{} of {} frames of the kernel have no name: next step: see that nm(1) is installed \
                 there, and reads the files that kldstat(8) lists",
                census.unknown_kernel_frames, census.kernel_frames
            ));
        }
    }

    fn remove_files(&self) {
        let marks: Vec<String> = (0..2 * MARKS).map(|mark| self.mark_file(mark)).collect();
        let argv = ["rm", "-f", &self.log].into_iter().chain(marks.iter().map(String::as_str));
        // The next profile removes any remaining files.
        let _ = self.host.run(&argv.collect::<Vec<_>>(), "");
    }

    /// Restores everything that was changed.
    fn restore(&mut self) {
        self.remove_files();
        let undo = std::mem::take(&mut self.undo);
        let mut errors = Vec::new();
        if let Some(system) = undo.loaded_on {
            let memory = Backup::new(self.host, &system);
            match modules::unload(self.host, &memory, |file| file == MODULE) {
                Err(error) => errors.push(error.to_string()),
                Ok(is_loaded) if is_loaded(MODULE) => {
                    errors.push(format!("{MODULE} can't be unloaded"))
                }
                Ok(_) => {}
            }
        } else if let Some(mincount) = undo.mincount {
            errors.extend(
                self.host
                    .run(&["sysctl", &format!("{LEAST}={mincount}")], "")
                    .err()
                    .map(|e| e.to_string()),
            );
        }
        for name in undo.variables {
            errors.extend(self.host.run(&["kenv", "-u", name], "").err().map(|e| e.to_string()));
        }
        self.raw.remarks.extend(errors.into_iter().map(|error| {
            format!("{}: next step: put it back by hand, or reboot", error.replace('\n', " "))
        }));
    }

    fn list(&self) -> String {
        self.cpus.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
    }

    fn mark_stem(&self) -> String {
        format!("{}-mark", self.log)
    }

    fn mark_file(&self, mark: usize) -> String {
        format!("{}{mark}", self.mark_stem())
    }
}

impl Profiler for Pmcstat<'_> {
    fn start(&mut self) {
        if self.sampler.is_some() {
            self.raw.sampled_from_ns = (self.clock)();
        }
    }

    fn stop(&mut self) {
        if self.sampler.is_some() {
            self.raw.sampled_to_ns = (self.clock)();
        }
    }

    fn finish(mut self: Box<Self>) -> RawProfile {
        if self.raw.sampled_to_ns > 0 {
            self.mark();
            if let Err(error) = self.read_out() {
                self.raw.remarks.push(remark_on(&error.to_string()));
            }
        }
        // Programs that still run end with their connection.
        (self.sampler, self.marker) = (None, None);
        self.restore();
        self.raw.remarks.dedup();
        self.raw
    }
}

/// Names of an event, by CPU vendor and release.
fn names(event: Event) -> &'static [&'static str] {
    match event {
        Event::Auto | Event::CpuClock => &[],
        Event::Cycles => &["unhalted-cycles", "cpu_clk_unhalted.thread", "ls_not_halted_cyc"],
        Event::Instructions => &["instructions", "inst_retired.any", "ex_ret_instr"],
        Event::CacheMisses => &["longest_lat_cache.miss", "l3_comb_clstr_state.request_miss"],
        Event::BranchMisses => {
            &["branch-mispredicts", "br_misp_retired.all_branches", "ex_ret_brn_misp"]
        }
    }
}

/// Parses `profhz` of `{ hz = 100, tick = 10000, profhz = 8128, stathz = 127 }`.
fn profhz(rates: &str) -> Option<u64> {
    let after = rates.split_once("profhz = ")?.1;
    let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|hz| *hz > 0)
}

/// Parses the number of lost records from the sampler's message.
fn discarded(message: &str) -> Option<u64> {
    let (before, _) = message.split_once(" events were discarded")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Returns the remark on a failure, with the next step.
fn remark_on(words: &str) -> String {
    let known: [(&[&str], &str, &str); 5] = [
        (
            &["pmcstat is not installed", "pmcstat: not found", "pmcstat: No such file"],
            "pmcstat is missing",
            "install FreeBSD's base system with it (WITH_PMC)",
        ),
        (
            &["can't load hwpmc", "HWPMC_HOOKS"],
            "hwpmc can't be loaded",
            "boot a kernel with `options HWPMC_HOOKS`, as GENERIC is, with its own modules",
        ),
        (
            &["does not match module version", "Program version wrong", "version mismatch"],
            "pmcstat, hwpmc and the kernel are of different releases",
            "install kernel, modules and base system of one build",
        ),
        (
            &["No space left on device", "filesystem full"],
            "the samples did not fit on the disk",
            "make room, or ask for a lower `frequency` or a shorter `duration` in [profile]",
        ),
        (
            &["Device busy", "Resource busy"],
            "somebody else samples that machine",
            "end the other pmcstat there",
        ),
    ];
    let hint = known.iter().find(|(signs, ..)| signs.iter().any(|sign| words.contains(sign)));
    match hint {
        Some((_, what, next)) => format!("{what}: next step: {next}"),
        None => format!(
            "pmcstat failed ({}): next step: `pmcstat -S {CLOCK} -O log sleep 1` on that machine",
            words.trim().replace('\n', "; ")
        ),
    }
}

#[cfg(test)]
mod tests;
