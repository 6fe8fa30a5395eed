//! This end of a guest's data interface: one frame per datagram, without privileges.
//!
//! Nothing is lost between this process and the guest: a full queue makes the sender wait.
//! [`Lockstep`] sends a batch, waits until all of it is in the guest's ring, lets the guest find it
//! as a whole, and waits until it is forwarded, so that every poll of every run sees the same
//! batch.

use crate::counts::CountFile;
use crate::error::VmError;
use crate::machine::{Backend, Machine};
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest received frame, bytes.
const FRAME_MAX: usize = 16 * 1024;
/// Interval between two checks whether the guest rests.
const LOOK: Duration = Duration::from_micros(100);
/// Number of consecutive checks at which nothing may move.
const LOOKS: u32 = 3;
/// Maximum time that a guest may be busy with a batch.
const PATIENCE: Duration = Duration::from_secs(10);

/// One end of a data interface.
#[derive(Debug)]
pub struct Wire {
    socket: UnixDatagram,
    guest: PathBuf,
    ours: PathBuf,
}

impl Wire {
    /// Opens end number `number` of a machine with its files in `directory`.
    ///
    /// # Errors
    /// If the socket can't be created.
    pub fn bind(directory: &Path, number: usize) -> Result<Wire, VmError> {
        let ours = directory.join(format!("wire{number}"));
        let guest = directory.join(format!("guest{number}"));
        let fail = |source| VmError::file(&ours, source);
        let socket = UnixDatagram::bind(&ours).map_err(fail)?;
        socket.set_write_timeout(Some(PATIENCE)).map_err(fail)?;
        Ok(Wire { socket, guest, ours })
    }

    /// Returns the backend for QEMU.
    pub fn backend(&self) -> Backend {
        Backend::Datagram { guest: self.guest.clone(), ours: self.ours.clone() }
    }

    /// Connects to QEMU, which must be running.
    ///
    /// # Errors
    /// If QEMU has no socket there.
    pub fn connect(&self) -> Result<(), VmError> {
        self.socket.connect(&self.guest).map_err(|source| VmError::file(&self.guest, source))
    }

    /// Sends a frame; waits while there is no room.
    ///
    /// # Errors
    /// If QEMU is gone.
    pub fn send(&self, frame: &[u8]) -> Result<(), VmError> {
        self.socket.send(frame).map(drop).map_err(|source| VmError::file(&self.guest, source))
    }

    /// Receives the next frame from the guest, cut to the length of `buffer`; `None` if none
    /// arrives within `patience`.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn receive(&self, buffer: &mut [u8], patience: Duration) -> Result<Option<usize>, VmError> {
        let fail = |source| VmError::file(&self.ours, source);
        // Zero would mean forever.
        let patience = patience.max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(patience)).map_err(fail)?;
        loop {
            match self.socket.recv(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(length) => return Ok(Some(length)),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(None);
                }
                Err(source) => return Err(fail(source)),
            }
        }
    }

    /// Discards unexpected frames: a full queue would stop the guest.
    fn drain(&self) -> Result<(), VmError> {
        let fail = |source| VmError::file(&self.ours, source);
        self.socket.set_nonblocking(true).map_err(fail)?;
        let mut buffer = [0; 64];
        while self.socket.recv(&mut buffer).is_ok() {}
        self.socket.set_nonblocking(false).map_err(fail)
    }

    /// Returns the bytes that QEMU has not received yet.
    fn unsent(&self) -> Result<u32, VmError> {
        fwdlab_netio::tx_backlog::bytes(&self.socket)
            .map_err(|source| VmError::file(&self.guest, source))
    }
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
enum Gathered {
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
        let held = self.counts.held()?;
        self.counts.hold(true)?;
        let sent = frames.into_iter().try_for_each(|frame| source.send(frame));
        let sent = sent.map_err(|error| match error {
            // The wire holds only a few frames.
            VmError::File { source, .. } if source.kind() == ErrorKind::WouldBlock => {
                self.machine.console().hangs(PATIENCE.as_secs())
            }
            other => other,
        });
        let gathered = sent.and_then(|()| self.gathered(held));
        self.counts.hold(false)?;
        let gathered = gathered?;
        if gathered != Gathered::AtOnce {
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
            (Gathered::Never, 0) => Err(self.machine.console().hangs(PATIENCE.as_secs())),
            _ => Ok(count),
        }
    }

    /// Waits until the guest is held at the gate and QEMU has put all frames into its ring.
    fn gathered(&self, held: u64) -> Result<Gathered, VmError> {
        let deadline = Instant::now() + PATIENCE;
        let mut rests = 0;
        while rests < LOOKS {
            if Instant::now() > deadline {
                return Ok(Gathered::Never);
            }
            std::thread::sleep(LOOK);
            // At the gate the virtual CPU sleeps, so all of QEMU may rest.
            let is_there = self.source_is_empty()? && self.counts.held()? > held;
            rests = if is_there && self.machine.rests() { rests + 1 } else { 0 };
        }
        let is_first = self.counts.held()? == held + 1;
        Ok(if is_first { Gathered::AtOnce } else { Gathered::InParts })
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
            let now = self.counts.blocks()?;
            rests = if now == last && self.machine.rests() { rests + 1 } else { 0 };
            last = now;
        }
        Ok(())
    }
}
