//! Agents without a network: this program's agents on threads of a test, and agents that follow a
//! script.

use super::protocol::{Answer, Hello, Sent};
use super::{serve_receive, serve_send};
use crate::error::BenchError;
use crate::host::{Ended, Host, Running};
use fwdlab_model::record::Checked;
use fwdlab_netio::sender::Received as Counted;
use fwdlab_netio::{NetioError, Receiver, Sender};
use fwdlab_packet::Phase;
use fwdlab_packet::arrivals::{Delays, FlowSummary};
use fwdlab_packet::stamp::PHASES;
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, PipeWriter, Write, pipe};
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Link between senders and receiver: all packets sent arrive.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub(super) packets: [u64; PHASES],
    /// Packets of other runs.
    pub(super) foreign: u64,
    /// Number of senders that are sending.
    pub(super) sending: usize,
    /// A sender fails when it is halted.
    pub(super) fails: bool,
}

pub(super) type Shared = Arc<Mutex<Wire>>;

fn with<T>(wire: &Shared, work: impl FnOnce(&mut Wire) -> T) -> T {
    work(&mut wire.lock().expect("the wire"))
}

/// Sends ten packets at every query of its counters.
pub(super) struct FakeSender {
    wire: Shared,
    sent: Mutex<(usize, bool, [u64; PHASES])>,
}

impl FakeSender {
    pub(super) fn new(wire: &Shared) -> FakeSender {
        FakeSender { wire: wire.clone(), sent: Mutex::new((0, false, [0; PHASES])) }
    }
}

impl Sender for FakeSender {
    fn set_phase(&self, phase: Phase) {
        self.sent.lock().expect("sender").0 = phase as usize;
    }
    fn sent(&self) -> [u64; PHASES] {
        let mut sent = self.sent.lock().expect("sender");
        let (phase, sends, _) = *sent;
        if sends {
            sent.2[phase] += 10;
            with(&self.wire, |wire| wire.packets[phase] += 10);
        }
        sent.2
    }
    fn missed(&self) -> u64 {
        1
    }
    fn set_rate(&self, _rate_pps: f64) {}
    fn start(&self) {
        self.sent.lock().expect("sender").1 = true;
        with(&self.wire, |wire| wire.sending += 1);
    }
    fn halt(self: Box<Self>) -> Result<[u64; PHASES], NetioError> {
        let fails = with(&self.wire, |wire| wire.fails);
        let down = || NetioError::system("sending", std::io::Error::other("the link is down"));
        if fails { Err(down()) } else { Ok(self.sent()) }
    }
}

impl Drop for FakeSender {
    fn drop(&mut self) {
        if self.sent.lock().expect("sender").1 {
            with(&self.wire, |wire| wire.sending -= 1);
        }
    }
}

struct FakeReceiver(Shared);

impl Receiver for FakeReceiver {
    fn received(&self) -> Counted {
        let (packets, foreign) = with(&self.0, |wire| (wire.packets, wire.foreign));
        Counted { packets, bytes: [0, 60, 0, 0], foreign, unstamped: 7, ..Counted::default() }
    }
    fn flows(&self) -> Option<FlowSummary> {
        Some(FlowSummary { flows: 16, sent: 16, seen: 16, ..FlowSummary::default() })
    }
    fn delays(&self) -> Option<Delays> {
        let mut one = Delays::default();
        one.add(1500);
        Some(one)
    }
    fn dropped(&self) -> u64 {
        0
    }
}

pub(super) fn facts(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), "fake".to_owned())])
}

/// A host whose agents run on threads of this process.
pub(super) struct Threads {
    pub(super) name: &'static str,
    pub(super) wire: Shared,
}

struct Agent {
    input: Option<PipeWriter>,
    lines: mpsc::Receiver<String>,
}

impl Host for Threads {
    fn name(&self) -> &str {
        self.name
    }
    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError> {
        let (theirs, input) = pipe().expect("a pipe");
        let (output, mut agent_output) = pipe().expect("a pipe");
        let (wire, sends) = (self.wire.clone(), argv[1] == "send");
        std::thread::spawn(move || match sends {
            true => serve_send::serve(theirs, &mut agent_output, &|| false, |_| {
                Ok((vec![Box::new(FakeSender::new(&wire)) as Box<dyn Sender>], facts("sender")))
            }),
            false => serve_receive::serve(theirs, &mut agent_output, &|| false, |_| {
                let receiver: Box<dyn Receiver> = Box::new(FakeReceiver(wire.clone()));
                Ok((receiver, facts("receiver"), Checked::Stamp))
            }),
        });
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Ok(Box::new(Agent { input: Some(input), lines }))
    }
    fn run(&self, _: &[&str], _: &str) -> Result<String, BenchError> {
        unreachable!("agents are only started")
    }
    fn put(&self, _: &str, _: &str) -> Result<(), BenchError> {
        unreachable!("agents are only started")
    }
    fn get(&self, _: &str) -> Result<String, BenchError> {
        unreachable!("agents are only started")
    }
    fn send_file(&self, _: &Path, _: &str) -> Result<(), BenchError> {
        unreachable!("agents are only started")
    }
}

impl Running for Agent {
    fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}");
        }
        Ok(())
    }
    fn hear(&mut self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }
    fn interrupt(&mut self) {
        self.input = None;
    }
    fn has_ended(&mut self) -> bool {
        false
    }
    fn wait(&mut self, _: Duration) -> Ended {
        self.input = None;
        Ended { well: true, ..Ended::default() }
    }
}

/// A host whose only agent prints these lines in turn: the first immediately, then one per line it
/// receives. After that it is silent.
#[derive(Clone, Default)]
pub(super) struct Script {
    lines: VecDeque<String>,
    /// Exit of the agent.
    pub(super) ended: Ended,
    /// All lines that the agent received.
    pub(super) told: Arc<Mutex<Vec<String>>>,
}

impl Script {
    /// An agent that prints hello, ready and then these answers.
    pub(super) fn ready(answers: impl IntoIterator<Item = Answer>) -> Script {
        let hello = serde_json::to_string(&Hello::own()).expect("JSON");
        let ready = Answer::Ready { facts: BTreeMap::new() };
        let answers = std::iter::once(ready).chain(answers);
        let answers = answers.map(|answer| serde_json::to_string(&answer).expect("JSON"));
        Script::saying(std::iter::once(hello).chain(answers))
    }

    pub(super) fn saying(lines: impl IntoIterator<Item = String>) -> Script {
        Script { lines: lines.into_iter().collect(), ..Script::default() }
    }

    pub(super) fn ending(mut self, status: &str, errors: &str) -> Script {
        self.ended =
            Ended { well: false, status: status.into(), errors: errors.into(), ..Ended::default() };
        self
    }
}

impl Host for Script {
    fn name(&self) -> &str {
        "far"
    }
    fn spawn(&self, _: &[&str]) -> Result<Box<dyn Running>, BenchError> {
        Ok(Box::new(self.clone()))
    }
    fn run(&self, _: &[&str], _: &str) -> Result<String, BenchError> {
        unreachable!("agents are only started")
    }
    fn put(&self, _: &str, _: &str) -> Result<(), BenchError> {
        unreachable!("agents are only started")
    }
    fn get(&self, _: &str) -> Result<String, BenchError> {
        unreachable!("agents are only started")
    }
    fn send_file(&self, _: &Path, _: &str) -> Result<(), BenchError> {
        unreachable!("agents are only started")
    }
}

impl Running for Script {
    fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        self.told.lock().expect("told").push(line.to_owned());
        Ok(())
    }
    fn hear(&mut self, _: Duration) -> Option<String> {
        self.lines.pop_front()
    }
    fn interrupt(&mut self) {}
    fn has_ended(&mut self) -> bool {
        false
    }
    fn wait(&mut self, _: Duration) -> Ended {
        self.ended.clone()
    }
}

/// A sender's answer at this time of the agent's clock.
pub(super) fn sent_at(at_ns: u64) -> Answer {
    Answer::Sent(Sent { at_ns, ..Sent::default() })
}

/// A receiver's answer with all counters at zero.
pub(super) fn nothing_received() -> Answer {
    Answer::Received(Box::default())
}
