//! The kernel's pktgen: a host whose `/proc/net/pktgen` behaves like the kernel's.

use crate::bench::{ends, load, trial};
use fwdlab_bench::BenchError;
use fwdlab_bench::generator::{Generator, Pktgen};
use fwdlab_bench::host::{Ended, Host, Running};
use fwdlab_packet::Family;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const FILES: &str = "/proc/thread-self/net/pktgen/";

/// Packets per second of each thread, whatever the request.
const RATE: f64 = 10_000.0;

#[derive(Default)]
struct State {
    is_loaded: bool,
    can_load: bool,
    never_sends: bool,
    /// Commands in order, `file: command`.
    commands: Vec<String>,
    /// Last result of each file.
    results: BTreeMap<String, String>,
    started: Option<Instant>,
    sent_for: Duration,
}

impl State {
    fn is_running(&self) -> bool {
        self.started.is_some()
    }
    fn stop(&mut self) {
        if let Some(started) = self.started.take() {
            self.sent_for = started.elapsed();
        }
    }
    /// Packets of one thread.
    fn sent(&self) -> u64 {
        let time = self.started.map_or(self.sent_for, |started| started.elapsed());
        if self.never_sends { 0 } else { (time.as_secs_f64() * RATE) as u64 }
    }
    fn devices(&self) -> usize {
        self.commands.iter().filter(|command| command.contains("add_device")).count()
    }
}

struct Kernel(Arc<Mutex<State>>);

impl Kernel {
    fn new(state: State) -> Kernel {
        Kernel(Arc::new(Mutex::new(state)))
    }
    fn loaded() -> Kernel {
        Kernel::new(State { is_loaded: true, ..State::default() })
    }
    fn commands(&self) -> Vec<String> {
        self.0.lock().expect("state").commands.clone()
    }
}

fn file_error(path: &str, kind: io::ErrorKind) -> BenchError {
    BenchError::File { path: path.into(), host: "kernel".into(), source: kind.into() }
}

impl Host for Kernel {
    fn send_file(&self, _: &std::path::Path, to: &str) -> Result<(), BenchError> {
        Err(BenchError::Refused(format!("{to} is not sent by this test")))
    }

    fn name(&self) -> &str {
        "kernel"
    }

    fn run(&self, argv: &[&str], _stdin: &str) -> Result<String, BenchError> {
        let mut state = self.0.lock().expect("state");
        match argv[0] {
            "uname" => Ok("Linux\n".into()),
            // Every fourth packet is lost on its way to the receiver.
            "cat" => {
                let sent = state.sent() * state.devices() as u64;
                let received = if argv[1].contains("ix1") { sent - sent / 4 } else { 0 };
                Ok(format!("{received}\n0\n0\n{sent}\n0\n0\n"))
            }
            "modprobe" if state.can_load => {
                state.is_loaded = true;
                Ok(String::new())
            }
            _ => Err(BenchError::Program {
                command: argv.join(" "),
                host: "kernel".into(),
                why: "Module pktgen not found".into(),
            }),
        }
    }

    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError> {
        assert_eq!(argv[..3], ["timeout", "-s", "INT"]);
        assert!(argv[6] == format!("echo start > {FILES}pgctrl"), "{argv:?}");
        self.0.lock().expect("state").started = Some(Instant::now());
        Ok(Box::new(Start(self.0.clone())))
    }

    fn put(&self, path: &str, text: &str) -> Result<(), BenchError> {
        let mut state = self.0.lock().expect("state");
        let file = path.strip_prefix(FILES).expect("one of its files").to_owned();
        // The kernel treats the last byte as a line feed, whatever it is.
        let command = &text[..text.len() - 1];
        state.commands.push(format!("{file}: {command}"));
        match (file.as_str(), command) {
            ("pgctrl", "stop") => state.stop(),
            ("pgctrl", "reset") => {}
            ("pgctrl", _) => return Err(file_error(path, io::ErrorKind::InvalidInput)),
            _ => {
                let known = [
                    "count",
                    "clone_skb",
                    "pkt_size",
                    "src",
                    "dst",
                    "udp_",
                    "flag",
                    "rate",
                    "delay",
                    "burst",
                    "add_device",
                    "rem_device_all",
                ];
                let result = match known.iter().any(|word| command.starts_with(word)) {
                    true => format!("Result: OK: {}\n", command.replace(' ', "=")),
                    false => format!("Result: No such parameter \"{command}\"\n"),
                };
                state.results.insert(file, result);
            }
        }
        Ok(())
    }

    fn get(&self, path: &str) -> Result<String, BenchError> {
        let state = self.0.lock().expect("state");
        let file = path.strip_prefix(FILES).expect("one of its files");
        if !state.is_loaded {
            return Err(file_error(path, io::ErrorKind::NotFound));
        }
        if file == "pgctrl" {
            return Ok("Packet Generator for packet performance testing. Version: 2.75".into());
        }
        let result = state.results.get(file).cloned().unwrap_or_default();
        let (sent, us) = (state.sent(), state.sent_for.as_micros());
        let (stopped, result) = match state.is_running() || us == 0 {
            true => (0, result),
            false => (us + 5, format!("Result: OK: {us}(c{us}+d0) usec, {sent} (80byte,0frags)\n")),
        };
        Ok(format!(
            "Params: count 0\nCurrent:\n     pkts-sofar: {sent}  errors: 2\n     started: 5us  \
             stopped: {stopped}us idle: 1us\n{result}"
        ))
    }
}

/// The write of `start`, which returns when all threads have stopped.
struct Start(Arc<Mutex<State>>);

impl Running for Start {
    fn tell(&mut self, _line: &str) -> Result<(), BenchError> {
        Ok(())
    }
    fn hear(&mut self, _patience: Duration) -> Option<String> {
        None
    }
    fn interrupt(&mut self) {
        self.0.lock().expect("state").stop();
    }
    fn has_ended(&mut self) -> bool {
        false
    }
    fn wait(&mut self, _patience: Duration) -> Ended {
        let well = !self.0.lock().expect("state").is_running();
        Ended { well, status: "done".into(), ..Ended::default() }
    }
}

#[test]
fn threads_send_and_the_interface_counts() {
    let kernel = Kernel::loaded();
    let mut hosts = ends(&kernel, &kernel);
    hosts.sender_cpus = vec![1, 3];
    let load = load(Family::Inet, 3, 4, Some(2.0 * RATE));
    let window = Duration::from_millis(600);
    let (observed, outcome) = trial(Box::new(Pktgen::new(hosts)), &load, window).expect("a trial");
    let counted = outcome.counted;
    assert!(counted.sent >= 18_000 && counted.unsent == 0, "{outcome:?}");
    assert_eq!(counted.received, counted.sent - counted.sent / 4);
    assert_eq!(observed.total.forwarded, counted.received);
    let lost = observed.window.lost() as f64 / observed.window.offered as f64;
    assert!((lost - 0.25).abs() < 0.1, "{:?}", observed.window);
    for counter in &outcome.counters {
        assert_eq!(counter.delta(), counter.expected.unwrap_or(counter.delta()), "{counter:?}");
    }
    assert_eq!(outcome.counters.iter().filter(|c| c.name.contains("its result")).count(), 2);
    assert!(outcome.facts["pktgen version"].ends_with("2.75"));
    assert!(outcome.facts["pktgen flows"].starts_with("12 of 12: both"), "{:?}", outcome.facts);
    assert!(outcome.facts["received"].contains("at the interface"));
    assert!(outcome.remarks.is_empty(), "{:?}", outcome.remarks);

    let commands = kernel.commands();
    let first_commands: Vec<&str> =
        commands.iter().filter_map(|command| command.strip_prefix("ix0@1: ")).collect();
    assert_eq!(first_commands.join("; "), outcome.facts["pktgen commands"]);
    assert_eq!(
        first_commands.join("; "),
        "count 200000; clone_skb 0; pkt_size 80; src_mac 02:00:00:00:00:01; \
         dst_mac 02:00:00:00:00:02; udp_src_min 49184; udp_src_max 49184; udp_dst_min 7; \
         udp_dst_max 7; flag QUEUE_MAP_CPU; src_min 198.18.1.0; src_max 198.18.1.2; \
         dst_min 198.19.1.0; dst_max 198.19.1.3; ratep 10000"
    );
    assert_eq!(commands[..2], ["pgctrl: reset", "kpktgend_1: add_device ix0@1"]);
    assert!(
        commands
            .ends_with(&["kpktgend_1: rem_device_all".into(), "kpktgend_3: rem_device_all".into()]),
        "{commands:?}"
    );
}

#[test]
fn shortfall_causes_a_remark() {
    let kernel = Kernel::loaded();
    let load = load(Family::Inet6, 1, 8, Some(2.0 * RATE));
    let window = Duration::from_millis(700);
    let hosts = ends(&kernel, &kernel);
    let (_, outcome) = trial(Box::new(Pktgen::new(hosts)), &load, window).expect("a trial");
    let Some(unsent) = outcome.remarks.first() else { panic!("{outcome:?}") };
    assert!(unsent.contains("were to be sent were not"), "{unsent}");
    assert!(outcome.counted.unsent > 5000, "{outcome:?}");
    assert!(outcome.facts["pktgen flows"].starts_with("8 of 8: destinations are drawn"));
}

#[test]
fn missing_module_is_reported_with_a_next_step() {
    let kernel = Kernel::new(State::default());
    let mut generator = Pktgen::new(ends(&kernel, &kernel));
    let error = generator.prepare(&load(Family::Inet, 1, 1, None)).expect_err("no module");
    assert!(matches!(error, BenchError::Environment { .. }));
    let text = error.to_string();
    assert!(text.contains("Module pktgen not found") && text.contains("modprobe pktgen"), "{text}");
    let kernel = Kernel::new(State { can_load: true, ..State::default() });
    let mut generator = Pktgen::new(ends(&kernel, &kernel));
    generator.prepare(&load(Family::Inet, 1, 1, None)).expect("loaded");
}

#[test]
fn unknown_commands_are_reported_and_devices_removed() {
    let kernel = Kernel::loaded();
    let mut hosts = ends(&kernel, &kernel);
    hosts.options = vec!["colour blue".into()];
    let mut generator = Pktgen::new(hosts);
    let error = generator.prepare(&load(Family::Inet, 1, 1, None)).expect_err("no such parameter");
    assert!(error.to_string().contains("`colour blue` for ix0@0"), "{error}");
    drop(generator);
    assert_eq!(kernel.commands().last().map(String::as_str), Some("kpktgend_0: rem_device_all"));
}

#[test]
fn threads_that_never_send_cause_an_error() {
    let kernel = Kernel::new(State { is_loaded: true, never_sends: true, ..State::default() });
    let load = load(Family::Inet, 1, 1, None);
    let hosts = ends(&kernel, &kernel);
    let error = trial(Box::new(Pktgen::new(hosts)), &load, Duration::from_millis(100));
    let text = error.expect_err("no packet").to_string();
    assert!(text.contains("no packet was sent"), "{text}");
    assert!(kernel.commands().contains(&"pgctrl: stop".to_owned()), "{:?}", kernel.commands());
}
