//! This end of a guest's data interface: one frame per datagram, without privileges.
//!
//! Nothing is lost between this process and the guest: a full queue makes the sender wait.
//! [`Lockstep`] sends a batch, waits until all of it is in the guest's ring, lets the guest find it
//! as a whole, and lets the forwarded frames out when the guest rests. So every poll of every run
//! sees the same batch, and the guest notifies the card once per batch, however fast QEMU is.

use crate::counts::CountFile;
use crate::error::VmError;
use crate::machine::{Backend, Machine};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest received frame, bytes.
const FRAME_MAX: usize = 16 * 1024;
/// Interval between two checks whether the guest rests.
const LOOK: Duration = Duration::from_micros(100);
/// Number of consecutive checks at which nothing may move.
const LOOKS: u32 = 3;
/// Maximum time that a guest may be busy with a batch.
const PATIENCE: Duration = Duration::from_secs(10);

/// A datagram that fills QEMU's socket. No frame begins like it: a source address is never a group
/// (IEEE 802.3, 3.2.3).
static PLUG: [u8; 32 * 1024] = [0xff; 32 * 1024];

/// A data interface of a guest: both ends of a pair of sockets.
#[derive(Debug)]
pub struct Wire {
    ours: UnixDatagram,
    /// QEMU's end, which it inherits.
    guest: UnixDatagram,
    number: usize,
}

impl Wire {
    /// Creates the sockets of data interface number `number`.
    ///
    /// # Errors
    /// If they can't be created.
    pub fn new(number: usize) -> Result<Wire, VmError> {
        let fail = |source| VmError::file(name(number), source);
        let (ours, guest) = UnixDatagram::pair().map_err(fail)?;
        ours.set_write_timeout(Some(PATIENCE)).map_err(fail)?;
        guest.set_nonblocking(true).map_err(fail)?;
        Ok(Wire { ours, guest, number })
    }

    /// Returns the backend for QEMU; this end must still be open when the machine starts.
    pub fn backend(&self) -> Backend {
        Backend::Datagram(self.guest.as_raw_fd())
    }

    /// Sends a frame; waits while there is no room.
    ///
    /// # Errors
    /// If no room becomes free within ten seconds.
    pub fn send(&self, frame: &[u8]) -> Result<(), VmError> {
        self.ours.send(frame).map(drop).map_err(|source| self.failed(source))
    }

    /// Receives the next frame from the guest, cut to the length of `buffer`; `None` if none
    /// arrives within `patience`.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn receive(&self, buffer: &mut [u8], patience: Duration) -> Result<Option<usize>, VmError> {
        // Zero would mean forever.
        let patience = patience.max(Duration::from_millis(1));
        self.ours.set_read_timeout(Some(patience)).map_err(|source| self.failed(source))?;
        loop {
            match self.ours.recv(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(length) => return Ok(Some(length)),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(None);
                }
                Err(source) => return Err(self.failed(source)),
            }
        }
    }

    /// Fills QEMU's socket, so that it keeps the guest's frames until [`Wire::unplug`]: a virtio
    /// card whose frames do not leave requests no more notifications from the guest. Returns the
    /// number of datagrams.
    fn plug(&self) -> Result<usize, VmError> {
        let mut plugs = 0;
        loop {
            match self.guest.send(&PLUG) {
                Ok(_) => plugs += 1,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(plugs),
                Err(source) => return Err(self.failed(source)),
            }
        }
    }

    /// Receives the datagrams of [`Wire::plug`], and discards the frames before them.
    fn unplug(&self, plugs: usize) -> Result<(), VmError> {
        let mut buffer = [0; 64];
        let mut left = plugs;
        while left > 0 && self.receive(&mut buffer, PATIENCE)?.is_some() {
            left -= usize::from(buffer == PLUG[..buffer.len()]);
        }
        Ok(())
    }

    /// Discards unexpected frames: a full queue would stop the guest.
    fn drain(&self) -> Result<(), VmError> {
        let fail = |source| self.failed(source);
        self.ours.set_nonblocking(true).map_err(fail)?;
        let mut buffer = [0; 64];
        while self.ours.recv(&mut buffer).is_ok() {}
        self.ours.set_nonblocking(false).map_err(fail)
    }

    /// Returns the bytes that QEMU has not received yet.
    fn unsent(&self) -> Result<u32, VmError> {
        fwdlab_netio::tx_backlog::bytes(&self.ours).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> VmError {
        VmError::file(name(self.number), source)
    }
}

/// Name of a wire in errors.
fn name(number: usize) -> PathBuf {
    PathBuf::from(format!("socket of data interface {number}"))
}

/// Sends batches through a guest, one after the other.
#[derive(Debug)]
pub struct Lockstep<'a> {
    machine: &'a Machine,
    counts: &'a CountFile,
    /// Input and output.
    ends: [&'a Wire; 2],
    /// Batches that the guest did not find as a whole.
    scattered: u64,
}

/// Arrival of a batch at the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchArrival {
    /// All of it was in the guest's ring at the first poll.
    AtOnce,
    /// The guest polled before all of it was there.
    InParts,
    /// The guest did not poll in time.
    Never,
}

impl<'a> Lockstep<'a> {
    /// Sends from the first end through the guest to the second.
    pub fn new(machine: &'a Machine, counts: &'a CountFile, ends: [&'a Wire; 2]) -> Lockstep<'a> {
        Lockstep { machine, counts, ends, scattered: 0 }
    }

    /// Number of batches so far that the guest did not find as a whole: their counts include
    /// further polls.
    pub fn scattered(&self) -> u64 {
        self.scattered
    }

    /// Sends a batch and passes every forwarded frame to `arrived`, which returns true for frames
    /// of the batch. Returns their number, which is smaller than the batch if no more frames arrive
    /// within `patience`.
    ///
    /// # Errors
    /// If QEMU is gone, or the guest does not come to rest.
    pub fn batch<'f>(
        &mut self,
        frames: impl ExactSizeIterator<Item = &'f [u8]>,
        patience: Duration,
        mut arrived: impl FnMut(&[u8]) -> bool,
    ) -> Result<usize, VmError> {
        let [source, sink] = self.ends;
        let size = frames.len();
        source.drain()?;
        self.wait_for_rest()?;
        let plugs = sink.plug()?;
        let forwarded = self.forward(frames);
        sink.unplug(plugs)?;
        let gathered = forwarded?;
        if gathered != BatchArrival::AtOnce {
            self.scattered += 1;
        }
        let mut buffer = vec![0; FRAME_MAX];
        let mut count = 0;
        // Twice: after a stall of this machine the first time is over before the guest continues.
        let mut silences = 0;
        while count < size && silences < 2 {
            match sink.receive(&mut buffer, patience / 2)? {
                Some(length) => {
                    silences = 0;
                    count += usize::from(arrived(&buffer[..length]));
                }
                None => silences += 1,
            }
        }
        // A guest that drops all frames still polls.
        match (gathered, count) {
            (BatchArrival::Never, 0) => Err(self.machine.console().hangs(PATIENCE.as_secs())),
            _ => Ok(count),
        }
    }

    /// Sends a batch, lets the guest find it as a whole, and waits until the guest rests again.
    fn forward<'f>(
        &self,
        mut frames: impl Iterator<Item = &'f [u8]>,
    ) -> Result<BatchArrival, VmError> {
        let held = self.counts.held()?;
        self.counts.hold(true)?;
        let sent = frames.try_for_each(|frame| self.ends[0].send(frame));
        let sent = sent.map_err(|error| match error {
            // The wire holds only some frames.
            VmError::File { source, .. } if source.kind() == ErrorKind::WouldBlock => {
                self.machine.console().hangs(PATIENCE.as_secs())
            }
            other => other,
        });
        let gathered = sent.and_then(|()| self.gathered(held));
        self.counts.hold(false)?;
        let gathered = gathered?;
        self.wait_for_rest()?;
        Ok(gathered)
    }

    /// Waits until the guest is held at the gate and QEMU has put all frames into its ring.
    fn gathered(&self, held: u64) -> Result<BatchArrival, VmError> {
        let deadline = Instant::now() + PATIENCE;
        let mut rests = 0;
        while rests < LOOKS {
            if Instant::now() > deadline {
                return Ok(BatchArrival::Never);
            }
            std::thread::sleep(LOOK);
            self.machine.console().look()?;
            // At the gate the virtual CPU sleeps, so all of QEMU may rest.
            let is_there = self.source_is_empty()? && self.counts.held()? > held;
            rests = if is_there && self.machine.rests() { rests + 1 } else { 0 };
        }
        let is_first = self.counts.held()? == held + 1;
        Ok(if is_first { BatchArrival::AtOnce } else { BatchArrival::InParts })
    }

    fn source_is_empty(&self) -> Result<bool, VmError> {
        Ok(self.ends[0].unsent()? == 0)
    }

    /// Waits until the guest idles.
    ///
    /// # Errors
    /// If it does not.
    pub fn wait_for_rest(&self) -> Result<(), VmError> {
        let deadline = Instant::now() + PATIENCE;
        let mut last = self.counts.blocks()?;
        let mut rests = 0;
        while rests < LOOKS {
            if Instant::now() > deadline {
                return Err(VmError::Counts(format!(
                    "the guest does not come to rest within {} s: something else runs there",
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(LOOK);
            self.machine.console().look()?;
            let now = self.counts.blocks()?;
            rests = if now == last && self.machine.rests() { rests + 1 } else { 0 };
            last = now;
        }
        Ok(())
    }
}
