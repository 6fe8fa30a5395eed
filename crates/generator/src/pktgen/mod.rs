//! The Linux kernel's pktgen, one kernel thread for each sending CPU.
//!
//! It is controlled through files, one command per write, with the status in the file's `Result:`.
//! Counters can be read at any time; start and end times have a resolution of a microsecond. It
//! does not receive: the receiver's interface counts arrivals. With IPv6 only the destination
//! varies, bitwise. `options` are further commands for each device, one per element, e.g.
//! `"clone_skb 100"` or `"burst 32"`.

mod commands;
pub mod text;

use super::interface::{InterfaceCounter, InterfaceCounters, InterfaceReading};
use super::load_check::LoadCheck;
use super::{Capabilities, Counted, Edges, Generator, GeneratorHosts, Load, Outcome};
use fwdlab_host::Running;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::Counter;
use std::time::{Duration, Instant};
use text::Device;

/// Directory of pktgen's files. Not `/proc/net`, which is the namespace of the process's first
/// thread.
const FILES: &str = "/proc/thread-self/net/pktgen";
/// Time limit for the threads to start or stop.
const PATIENCE: Duration = Duration::from_secs(5);

/// The kernel's pktgen at one end, an interface's counters at the other.
pub struct Pktgen<'a> {
    ends: GeneratorHosts<'a>,
    threads: Vec<u16>,
    is_configured: bool,
    is_sending: bool,
    starter: Option<Box<dyn Running>>,
    at_most: Duration,
    receiver: Option<InterfaceCounter<'a>>,
    before: InterfaceReading,
    load_check: LoadCheck,
    interface_counters: InterfaceCounters<'a>,
    outcome: Outcome,
}

impl<'a> Pktgen<'a> {
    /// Creates the generator without configuring anything.
    pub fn new(ends: GeneratorHosts<'a>) -> Pktgen<'a> {
        let threads = if ends.sender_cpus.is_empty() { vec![0] } else { ends.sender_cpus.clone() };
        Pktgen {
            ends,
            threads,
            is_configured: false,
            is_sending: false,
            starter: None,
            at_most: Duration::ZERO,
            receiver: None,
            before: InterfaceReading::default(),
            load_check: LoadCheck::open(None, Duration::ZERO),
            interface_counters: InterfaceCounters::default(),
            outcome: Outcome::default(),
        }
    }

    /// Name of the device of a thread, e.g. `eth4@3`.
    fn device(&self, thread: u16) -> String {
        format!("{}@{thread}", self.ends.sender_interface)
    }

    /// Writes one command. The kernel treats the last byte of a write to `pgctrl` as a line feed,
    /// whatever it is.
    fn write(&self, file: &str, command: &str) -> Result<(), BenchError> {
        self.ends.sender.put(&format!("{FILES}/{file}"), &format!("{command}\n"))
    }

    /// Writes one command and checks its result.
    fn execute(&self, file: &str, command: &str) -> Result<(), BenchError> {
        let status = match self.write(file, command) {
            Ok(()) => text::result(&self.ends.sender.get(&format!("{FILES}/{file}"))?),
            Err(BenchError::File { source, .. }) => source.to_string(),
            Err(error) => return Err(error),
        };
        match status.starts_with("OK") {
            true => Ok(()),
            false => Err(BenchError::Program {
                command: format!("pktgen's `{command}` for {file}"),
                host: self.ends.sender.name().to_owned(),
                why: if status.is_empty() { "no answer".into() } else { status },
            }),
        }
    }

    fn load_module(&self) -> Result<String, BenchError> {
        let (host, control) = (self.ends.sender, format!("{FILES}/pgctrl"));
        if let Ok(version) = host.get(&control) {
            return Ok(version);
        }
        let loaded = host.run(&["modprobe", "pktgen"], "");
        host.get(&control).map_err(|_| {
            let why = loaded.err().map(|error| format!(" ({error})")).unwrap_or_default();
            BenchError::environment(
                format!("{} has no pktgen in its kernel{why}", host.name()),
                "as root: modprobe pktgen; it needs a kernel with CONFIG_NET_PKTGEN, and a host, \
                 not a container, to load it",
            )
        })
    }

    fn devices(&self) -> Result<Vec<Device>, BenchError> {
        let read = |thread: &u16| {
            let text = self.ends.sender.get(&format!("{FILES}/{}", self.device(*thread)))?;
            Ok(Device::parse(&text))
        };
        self.threads.iter().map(read).collect()
    }

    fn received(&self) -> Result<InterfaceReading, BenchError> {
        match &self.receiver {
            Some(receiver) => receiver.read(),
            None => Ok(InterfaceReading::default()),
        }
    }

    /// Removes the devices. Errors are ignored: they recur at the next use.
    fn clean(&mut self) {
        if std::mem::take(&mut self.is_sending) {
            let _ = self.write("pgctrl", "stop");
        }
        if std::mem::take(&mut self.is_configured) {
            for thread in &self.threads {
                let _ = self.write(&format!("kpktgend_{thread}"), "rem_device_all");
            }
        }
    }
}

impl Generator for Pktgen<'_> {
    fn name(&self) -> &'static str {
        "pktgen"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { paced: true, inet6: true, edges: Edges::Read }
    }

    fn prepare(&mut self, load: &Load) -> Result<(), BenchError> {
        let version = self.load_module()?;
        let settings = commands::device(load, self.threads.len(), &self.ends.options);
        let facts = &mut self.outcome.facts;
        facts.insert("pktgen version".into(), version);
        facts.insert("pktgen commands".into(), settings.commands.join("; "));
        facts.insert("pktgen flows".into(), settings.flows);
        facts.insert("received".into(), "at the interface: every packet counts".into());
        self.outcome.remarks.extend(settings.remarks);
        self.write("pgctrl", "reset")?;
        self.is_configured = true;
        for &thread in &self.threads {
            let (file, device) = (format!("kpktgend_{thread}"), self.device(thread));
            self.execute(&file, &format!("add_device {device}"))?;
            for command in &settings.commands {
                self.execute(&device, command)?;
            }
        }
        let receiver = InterfaceCounter::new(self.ends.receiver, &self.ends.receiver_interface)?;
        self.before = receiver.read()?;
        self.receiver = Some(receiver);
        self.interface_counters =
            InterfaceCounters::new(self.ends.sender, &self.ends.sender_interface);
        self.load_check = LoadCheck::open(load.rate_pps, Duration::from_secs(1));
        self.at_most = load.at_most;
        Ok(())
    }

    fn start(&mut self) -> Result<(), BenchError> {
        // The write returns after all threads have sent; timeout(1) ends it in any case, and the
        // threads with it.
        let seconds = self.at_most.as_secs().max(1).to_string();
        let write = format!("echo start > {FILES}/pgctrl");
        let argv = ["timeout", "-s", "INT", &seconds, "sh", "-c", &write];
        let mut starter = self.ends.sender.spawn(&argv)?;
        self.is_sending = true;
        let deadline = Instant::now() + PATIENCE;
        while self.devices()?.iter().all(|device| device.sent == 0) {
            if Instant::now() > deadline {
                let ended = starter.wait(Duration::from_millis(10));
                return Err(BenchError::Program {
                    command: argv.join(" "),
                    host: self.ends.sender.name().to_owned(),
                    why: format!("no packet was sent ({}) {}", ended.status, ended.errors.trim()),
                });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.load_check.begin();
        self.starter = Some(starter);
        Ok(())
    }

    fn counted(&mut self) -> Result<Counted, BenchError> {
        let devices = if self.is_configured { self.devices()? } else { Vec::new() };
        let sent = devices.iter().map(|device| device.sent).fold(0, u64::saturating_add);
        self.load_check.saw(sent);
        let now = self.received()?;
        let before = &self.before;
        Ok(Counted {
            sent,
            received: now.received.saturating_sub(before.received),
            receiver_dropped: now.receiver_dropped.saturating_sub(before.receiver_dropped),
            unsent: self.load_check.unsent(sent, longest(&devices)),
        })
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        if !std::mem::take(&mut self.is_sending) {
            return Ok(());
        }
        let stopped = self.write("pgctrl", "stop");
        self.load_check.end();
        if let Some(mut starter) = self.starter.take() {
            if stopped.is_err() {
                starter.interrupt();
            }
            let ended = starter.wait(PATIENCE);
            if !ended.well {
                let words = format!("{} {}", ended.status, ended.errors.trim());
                self.outcome.remarks.push(format!("pktgen's start ended with {words}"));
            }
        }
        stopped
    }

    fn finish(&mut self) -> Result<Outcome, BenchError> {
        self.stop()?;
        let counted = self.counted()?;
        let devices = self.devices()?;
        let mut outcome = std::mem::take(&mut self.outcome);
        for (thread, device) in self.threads.iter().zip(&devices) {
            let name = format!("pktgen errors of thread {thread}");
            outcome.counters.push(Counter {
                name,
                before: 0,
                after: device.errors,
                expected: None,
            });
            if let Some((_, packets)) = device.last_run() {
                let name = format!("pktgen packets of thread {thread} (its result)");
                let expected = Some(device.sent);
                outcome.counters.push(Counter { name, before: 0, after: packets, expected });
            }
            if let Some(time) = device.time {
                let text = format!("{:.6} s", time.as_secs_f64());
                outcome.facts.insert(format!("pktgen time of thread {thread}"), text);
            }
        }
        outcome.remarks.extend(self.load_check.remarks(counted.sent, longest(&devices)));
        match self.interface_counters.testify("sent packets", counted.sent, |reading| reading.sent)
        {
            Ok(counter) => outcome.counters.push(counter),
            Err(remark) => outcome.remarks.push(remark),
        }
        self.clean();
        outcome.counted = counted;
        Ok(outcome)
    }
}

impl Drop for Pktgen<'_> {
    fn drop(&mut self) {
        self.clean();
    }
}

/// Sending time: the maximum over all threads, since each sends a share of the rate.
fn longest(devices: &[Device]) -> Option<Duration> {
    devices.iter().filter_map(|device| device.time).max()
}
