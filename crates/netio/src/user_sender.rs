//! The thread of all user-space senders: it writes frames, passes them to a [`Transmit`], and
//! counts those that the kernel accepted.

use crate::flood::Flooding;
use crate::pacing::{Pacer, Times};
use crate::sender::{Sender, SenderConfig};
use crate::{NetioError, affinity, clock};
use fwdlab_packet::{FrameWriter, Phase, stamp::PHASES};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Hands frames to the kernel.
pub(crate) trait Transmit {
    /// Maximum number of frames in one call of [`Transmit::transmit`].
    fn capacity(&self) -> usize;

    /// Hands over the next `count` of `frames`. Returns how many the kernel accepted; the sequence
    /// numbers of the others are lost.
    fn transmit(&mut self, count: usize, frames: &mut Frames<'_>) -> Result<usize, NetioError>;
}

/// Frames to send, in order.
pub(crate) struct Frames<'a> {
    writer: &'a mut FrameWriter,
    phase: Phase,
    /// Sending times; `None` if packets carry none.
    times: Option<Times>,
    /// Number of frames written.
    written: usize,
    /// True if the buffers also hold other packets.
    is_shared: bool,
}

impl Frames<'_> {
    /// Returns the queue of the next frame.
    #[inline]
    pub(crate) fn queue(&mut self) -> u16 {
        self.writer.next_queue()
    }

    /// Writes the next frame into a prepared buffer; returns its length.
    #[inline]
    pub(crate) fn write(&mut self, frame: &mut [u8]) -> usize {
        let time_ns = self.times.as_mut().map_or(0, Times::next);
        self.written += 1;
        if self.is_shared {
            self.writer.prepare(frame);
        }
        self.writer.write_next(frame, self.phase, time_ns)
    }
}

#[derive(Debug, Default)]
struct Shared {
    order: AtomicU8,
    phase: AtomicU8,
    sent: [AtomicU64; PHASES],
    missed: AtomicU64,
    /// Bits of the newly requested rate; 0 for the configured rate.
    rate: AtomicU64,
}

impl Shared {
    /// Phase of the packets sent from now on.
    fn phase(&self) -> Phase {
        Phase::of(self.phase.load(Ordering::Relaxed))
    }
}

const WAIT: u8 = 0;
const GO: u8 = 1;
const STOP: u8 = 2;

/// Interval at which a thread that has sent its burst checks whether to stop.
const AFTER_A_BURST: std::time::Duration = std::time::Duration::from_millis(1);

/// A sending thread in user space.
#[derive(Debug)]
pub struct UserSender {
    shared: Arc<Shared>,
    task: u32,
    thread: Option<JoinHandle<Result<(), NetioError>>>,
}

impl UserSender {
    /// Starts the thread inside the namespace; `open` creates the socket there.
    pub(crate) fn new<T: Transmit>(
        config: &SenderConfig,
        open: impl FnOnce(&SenderConfig, &FrameWriter) -> Result<T, NetioError> + Send + 'static,
    ) -> Result<UserSender, NetioError> {
        let shared = Arc::new(Shared::default());
        let (thread_shared, config) = (shared.clone(), config.clone());
        let (ready, opened) = std::sync::mpsc::sync_channel(1);
        let thread = config.namespace.clone().spawn("sender", &[config.cpu], move || {
            let first = config.limit.map_or(0, |counted| counted.first);
            let mut writer =
                FrameWriter::new(config.template.clone(), config.number).beginning_with(first);
            if let Some(turns) = &config.spread {
                writer = writer.with_turns(turns.clone());
            }
            let mut transmit = match open(&config, &writer) {
                Ok(transmit) => transmit,
                Err(error) => {
                    drop(ready);
                    return Err(error);
                }
            };
            let _ = ready.send(affinity::this_task());
            while thread_shared.order.load(Ordering::Acquire) == WAIT {
                std::thread::park();
            }
            send_until_stopped(&mut transmit, writer, &config, &thread_shared)
        })?;
        let mut sender = UserSender { shared, task: 0, thread: Some(thread) };
        match opened.recv() {
            Ok(task) => {
                sender.task = task;
                Ok(sender)
            }
            Err(_) => Err(sender.join().err().unwrap_or(NetioError::System {
                what: "opening a socket to send".into(),
                source: std::io::Error::other("the sending thread ended"),
            })),
        }
    }

    fn join(&mut self) -> Result<(), NetioError> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }

    fn give(&self, order: u8) {
        self.shared.order.store(order, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

/// Sends the due packets of a flood; false if none were due.
fn flood(
    flooding: &mut Flooding,
    phase: Phase,
    transmit: &mut impl Transmit,
) -> Result<bool, NetioError> {
    let due = flooding.due(phase, transmit.capacity());
    if due == 0 {
        return Ok(false);
    }
    let writer = &mut flooding.writer;
    let mut frames = Frames { writer, phase, times: None, written: 0, is_shared: true };
    let taken = transmit.transmit(due, &mut frames)?;
    let refused = frames.written.saturating_sub(taken);
    flooding.writer.take_back(refused as u32);
    flooding.sent(taken);
    Ok(true)
}

fn send_until_stopped(
    transmit: &mut impl Transmit,
    mut writer: FrameWriter,
    config: &SenderConfig,
    shared: &Shared,
) -> Result<(), NetioError> {
    let flooding = config.flood.clone();
    let mut flooding = flooding.map(|flood| Flooding::new(flood, config.number, config.burst));
    let mut pacer =
        config.rate_pps.map(|rate| Pacer::new(rate, clock::monotonic_ns(), config.burst));
    let capacity = transmit.capacity();
    let (mut remaining, mut rate) = (config.limit.map_or(u64::MAX, |counted| counted.packets), 0);
    while shared.order.load(Ordering::Relaxed) == GO {
        if remaining == 0 {
            // The burst is sent: leave the CPU to the forwarder.
            std::thread::park_timeout(AFTER_A_BURST);
            continue;
        }
        let new_rate = shared.rate.load(Ordering::Relaxed);
        if new_rate != rate
            && let Some(pacer) = &mut pacer
        {
            rate = new_rate;
            pacer.set_rate(f64::from_bits(rate), clock::monotonic_ns());
        }
        let has_flooded = match &mut flooding {
            Some(flooding) => flood(flooding, shared.phase(), transmit)?,
            None => false,
        };
        let capacity = capacity.min(usize::try_from(remaining).unwrap_or(usize::MAX));
        let count = match &mut pacer {
            None => capacity,
            Some(pacer) => match pacer.due(clock::monotonic_ns(), capacity) {
                0 => {
                    match (has_flooded, config.yields) {
                        (true, _) => {}
                        (false, true) => std::thread::yield_now(),
                        (false, false) => std::hint::spin_loop(),
                    }
                    continue;
                }
                due => due,
            },
        };
        let phase = shared.phase();
        let times = config.timestamps.then(|| match &pacer {
            Some(pacer) => pacer.times(),
            None => Times::all(clock::monotonic_ns()),
        });
        // Frames that the kernel does not accept are written again with the same numbers: a missing
        // sequence number means a lost packet.
        let is_shared = flooding.is_some();
        let mut frames = Frames { writer: &mut writer, phase, times, written: 0, is_shared };
        let taken = transmit.transmit(count, &mut frames)?;
        let refused = frames.written.saturating_sub(taken);
        writer.take_back(refused as u32);
        // One writer: a plain load and store keep the hot loop free of locked instructions.
        remaining -= taken as u64;
        let sent = &shared.sent[phase as usize];
        sent.store(sent.load(Ordering::Relaxed) + taken as u64, Ordering::Release);
        if let Some(pacer) = &mut pacer {
            pacer.sent(taken);
            shared.missed.store(pacer.missed(), Ordering::Relaxed);
        }
        if config.yields {
            std::thread::yield_now();
        }
    }
    Ok(())
}

impl Sender for UserSender {
    fn set_phase(&self, phase: Phase) {
        self.shared.phase.store(phase as u8, Ordering::Release);
    }

    fn sent(&self) -> [u64; PHASES] {
        std::array::from_fn(|phase| self.shared.sent[phase].load(Ordering::Acquire))
    }

    fn missed(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }

    fn set_rate(&self, rate_pps: f64) {
        self.shared.rate.store(rate_pps.to_bits(), Ordering::Relaxed);
    }

    fn task(&self) -> Option<u32> {
        Some(self.task)
    }

    fn start(&self) {
        self.give(GO);
    }

    fn halt(mut self: Box<Self>) -> Result<[u64; PHASES], NetioError> {
        self.give(STOP);
        self.join()?;
        Ok(self.sent())
    }
}

impl Drop for UserSender {
    fn drop(&mut self) {
        self.give(STOP);
        let _ = self.join();
    }
}
