//! Packets in lockstep, and counts of the code that the machine executes for them.

use super::executed::executed;
use super::machines::RunningMachine;
use super::trouble;
use crate::arrivals;
use crate::error::BenchError;
use crate::links::mac;
use crate::path::Path;
use crate::testbed::TrafficRequest;
use crate::testbed::traffic::snapshot;
use crate::trial::Snapshot;
use fwdlab_model::record::{Arrivals, Checked, Executed};
use fwdlab_netio::{Receiver, Watch};
use fwdlab_packet::arrivals::{self as packets, Expected, FlowSummary, Received};
use fwdlab_packet::{FrameWriter, Phase, Template};
use fwdlab_vm::VmError;
use fwdlab_vm::bursts::{self, Burst, CountSnapshot};
use fwdlab_vm::symbols::Symbols;
use fwdlab_vm::wire::Lockstep;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Number of bursts in the window: their agreement shows the accuracy of a count.
const BURSTS: u32 = 3;
/// Time of a trial that passes with each packet: a thousand per second, about the rate of an
/// emulated guest on a machine with other work.
const PACKET_NS: u64 = 1_000_000;
/// Silence after which the missing packets of a batch count as lost.
const SILENCE: Duration = Duration::from_secs(1);

/// Sender and receiver of a run in one thread: a batch goes in, and comes out again.
pub(super) struct Pump<'a> {
    up: &'a RunningMachine,
    symbols: Rc<Symbols>,
    lockstep: Lockstep<'a>,
    writer: FrameWriter,
    frames: Vec<Vec<u8>>,
    received: Counter,
    checked: Checked,
    sent: [u64; 4],
    phase: Phase,
    is_sending: bool,
    /// Error that has not yet been returned.
    failed: Option<VmError>,
    /// Length of a burst by the plan.
    burst_ns: u64,
    batches: u64,
    /// The current burst.
    open: Option<Opened>,
    bursts: Vec<(Burst, Duration)>,
    scattered: (u64, u64),
}

/// The beginning of a burst.
struct Opened {
    look: CountSnapshot,
    at: Instant,
    arrived: u64,
    /// Time of the trial since then.
    passed_ns: u64,
}

/// The receiver.
struct Counter(packets::Arrivals);

impl Receiver for Counter {
    fn received(&self) -> Received {
        *self.0.counts()
    }

    fn flows(&self) -> Option<FlowSummary> {
        self.0.flows()
    }

    fn delays(&self) -> Option<packets::Delays> {
        None // a guest's clock stands still and jumps
    }

    fn dropped(&self) -> u64 {
        0
    }
}

impl Counter {
    /// Packets of the run that came out, including damaged and duplicate ones.
    fn arrived(&self) -> u64 {
        let counts = self.0.counts();
        let others = counts.damaged.iter().chain(&counts.duplicates).sum::<u64>();
        counts.total() + others
    }
}

impl<'a> Pump<'a> {
    /// Returns a pump for the packets of a request through `up`.
    ///
    /// # Errors
    /// Returns an error if the machine's functions cannot be read.
    pub(super) fn new(
        up: &'a RunningMachine,
        request: &TrafficRequest<'_>,
    ) -> Result<Pump<'a>, BenchError> {
        let counts = up.running.counts.as_ref().ok_or_else(|| {
            trouble(VmError::Counts("the machine is not emulated, so nothing is counted".into()))
        })?;
        let wires = up.sockets().ok_or_else(|| {
            trouble(VmError::Counts("the machine has taps, and lockstep needs sockets".into()))
        })?;
        let settings = request.settings;
        let path = Path::new(settings, &up.links)?;
        let template = |stream| Template::new(stream, request.run_id, mac::SENDER, mac::INGRESS);
        let watch = Watch::Packets(Box::new(Expected {
            template: template(&path.arriving),
            destination_mac: Some(mac::RECEIVER),
            source_mac: Some(mac::EGRESS),
            translated: path.translated,
            hops: 1,
            senders: 1,
            timestamps: false,
            same_clock: false,
            sampled: false,
        }));
        let writer = FrameWriter::new(template(&path.sent), 0);
        let mut frame = vec![0; writer.frame_length()];
        writer.prepare(&mut frame);
        Ok(Pump {
            up,
            symbols: up.symbols()?,
            lockstep: Lockstep::new(&up.running.machine, counts, [&wires[0], &wires[1]]),
            writer,
            frames: vec![frame; usize::from(settings.testbed.vm.batch)],
            received: Counter(watch.arrivals()),
            checked: arrivals::checked(&watch),
            sent: [0; 4],
            phase: Phase::WarmUp,
            is_sending: false,
            failed: None,
            burst_ns: request.trial.duration_ns / u64::from(BURSTS),
            batches: 0,
            open: None,
            bursts: Vec::new(),
            scattered: (0, 0),
        })
    }

    /// Begins sending.
    pub(super) fn start(&mut self) {
        self.failed = bursts::begin(&self.up.running).err();
        self.is_sending = true;
    }

    /// Returns true while packets flow.
    pub(super) fn flows(&self) -> bool {
        self.is_sending && self.failed.is_none()
    }

    /// Sends a batch and waits until it comes out. Returns its duration for the trial, in
    /// nanoseconds: the nominal time of its packets if all of them come out, however long it took.
    /// Otherwise the real time: the silence that shows a loss is part of the trial, or a device
    /// that loses some of each batch would be measured for minutes.
    pub(super) fn batch(&mut self) -> u64 {
        let began = Instant::now();
        let sent = self.send();
        let passed = match sent {
            Ok(arrived) if arrived == self.frames.len() => arrived as u64 * PACKET_NS,
            _ => began.elapsed().as_nanos() as u64,
        };
        if let Some(open) = &mut self.open {
            open.passed_ns += passed;
        }
        if let Err(error) = sent.and_then(|_| self.turn()) {
            self.failed = Some(error);
        }
        passed
    }

    /// Sends a batch and returns the number of packets that came out.
    fn send(&mut self) -> Result<usize, VmError> {
        for frame in &mut self.frames {
            self.writer.write_next(frame, self.phase, 0);
        }
        self.sent[self.phase as usize] += self.frames.len() as u64;
        self.batches += 1;
        let received = &mut self.received;
        self.lockstep.batch(self.frames.iter().map(Vec::as_slice), SILENCE, |frame| {
            let before = received.arrived();
            received.0.take(frame, frame.len(), 0);
            received.arrived() > before
        })
    }

    /// Begins the next burst if the current one is full. The last burst ends with the window.
    fn turn(&mut self) -> Result<(), VmError> {
        let is_full = self.open.as_ref().is_some_and(|open| open.passed_ns >= self.burst_ns);
        if is_full && self.bursts.len() + 1 < BURSTS as usize {
            self.close()?;
            self.open()?;
        }
        Ok(())
    }

    /// Changes the phase of packets from now on; counts open and close with the window.
    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.phase = phase;
        let result = match phase {
            Phase::Window => {
                self.scattered = (self.lockstep.scattered(), self.batches);
                self.open()
            }
            _ if self.open.is_some() => {
                let (scattered, batches) = self.scattered;
                self.scattered = (self.lockstep.scattered() - scattered, self.batches - batches);
                self.close()
            }
            _ => Ok(()),
        };
        if let Err(error) = result {
            self.failed = Some(error);
        }
    }

    fn open(&mut self) -> Result<(), VmError> {
        self.lockstep.wait_for_rest()?;
        let (look, arrived) = (CountSnapshot::at(&self.up.running)?, self.received.arrived());
        self.open = Some(Opened { look, at: Instant::now(), arrived, passed_ns: 0 });
        Ok(())
    }

    fn close(&mut self) -> Result<(), VmError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        self.lockstep.wait_for_rest()?;
        let took = open.at.elapsed();
        let work = CountSnapshot::at(&self.up.running)?.since(&open.look)?;
        let packets = self.received.arrived() - open.arrived;
        self.bursts.push((Burst { packets, work, ..Burst::default() }, took));
        Ok(())
    }

    /// Ends sending.
    ///
    /// # Errors
    /// Returns the error that occurred since sending began.
    pub(super) fn stop(&mut self) -> Result<(), BenchError> {
        self.is_sending = false;
        match self.failed.take() {
            None => Ok(()),
            // A dead guest prints the reason on its console.
            Some(error) => Err(trouble(self.up.explain(error))),
        }
    }

    /// Counts of code executed in the window: waits for the duration of a burst, to count the idle
    /// machine. `None` if no window was opened.
    ///
    /// # Errors
    /// Returns an error if the machine is gone or does not become idle.
    pub(super) fn executed(&mut self) -> Result<Option<Executed>, BenchError> {
        if self.bursts.is_empty() {
            return Ok(None);
        }
        self.lockstep.wait_for_rest().map_err(trouble)?;
        let bursts = std::mem::take(&mut self.bursts);
        let (bursts, last) = bursts::with_idle(&self.up.running, bursts).map_err(trouble)?;
        let found = bursts::found(&self.up.running, bursts, &last, &self.symbols);
        let found = found.map_err(trouble)?;
        Ok(Some(executed(found, self.frames.len() as u16, self.scattered)))
    }

    /// Counters so far.
    pub(super) fn snapshot(&self) -> Snapshot {
        snapshot(self.sent, &self.received)
    }

    /// Number of flows that arrived.
    pub(super) fn flows_seen(&self) -> Option<u32> {
        self.received.flows().map(|flows| flows.seen)
    }

    /// Results of the receiver's checks.
    pub(super) fn arrivals(&self) -> Arrivals {
        arrivals::found(&self.received, self.checked)
    }
}
