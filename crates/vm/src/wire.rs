//! A guest's data interface at this end: one frame a datagram, without any privilege.
//!
//! Nothing is lost between here and the guest: a queue that is full makes the sender wait.
//! [`Lockstep`] sends a batch, waits until all of it is in the guest's ring, lets the
//! guest find it at once, and waits until it is out again, so that every poll of every run
//! sees the same batch.

use crate::counts::CountFile;
use crate::error::VmError;
use crate::machine::{Backend, Machine};
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest frame that comes back, bytes.
const FRAME_MAX: usize = 16 * 1024;
/// Between two looks at whether the guest rests.
const LOOK: Duration = Duration::from_micros(100);
/// Looks in a row at which nothing may move.
const LOOKS: u32 = 3;
/// For how long a guest may be busy with a batch.
const PATIENCE: Duration = Duration::from_secs(10);

/// One end.
#[derive(Debug)]
pub struct Wire {
    socket: UnixDatagram,
    guest: PathBuf,
    ours: PathBuf,
}

impl Wire {
    /// The end number `number` of a machine whose files lie in `directory`.
    ///
    /// # Errors
    /// When the socket can't be made.
    pub fn bind(directory: &Path, number: usize) -> Result<Wire, VmError> {
        let ours = directory.join(format!("wire{number}"));
        let guest = directory.join(format!("guest{number}"));
        let fail = |source| VmError::file(&ours, source);
        let socket = UnixDatagram::bind(&ours).map_err(fail)?;
        socket.set_write_timeout(Some(PATIENCE)).map_err(fail)?;
        Ok(Wire { socket, guest, ours })
    }

    /// As QEMU is told of it.
    pub fn backend(&self) -> Backend {
        Backend::Datagram { guest: self.guest.clone(), ours: self.ours.clone() }
    }

    /// Connects to QEMU, which must have begun.
    ///
    /// # Errors
    /// When it has no socket there.
    pub fn connect(&self) -> Result<(), VmError> {
        self.socket.connect(&self.guest).map_err(|source| VmError::file(&self.guest, source))
    }

    /// Sends a frame; waits while there is no room.
    ///
    /// # Errors
    /// When QEMU is gone.
    pub fn send(&self, frame: &[u8]) -> Result<(), VmError> {
        self.socket.send(frame).map(drop).map_err(|source| VmError::file(&self.guest, source))
    }

    /// The next frame from the guest, as long as `buffer` is; none when none comes in time.
    ///
    /// # Errors
    /// When the socket fails.
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

    /// Takes away what has come and nobody wants: a full queue would stop the guest.
    fn drain(&self) -> Result<(), VmError> {
        let fail = |source| VmError::file(&self.ours, source);
        self.socket.set_nonblocking(true).map_err(fail)?;
        let mut buffer = [0; 64];
        while self.socket.recv(&mut buffer).is_ok() {}
        self.socket.set_nonblocking(false).map_err(fail)
    }

    /// Bytes that QEMU has not yet taken.
    fn unsent(&self) -> Result<u32, VmError> {
        fwdlab_netio::tx_backlog::bytes(&self.socket)
            .map_err(|source| VmError::file(&self.guest, source))
    }
}

/// Batches that go through a guest one after the other.
#[derive(Debug)]
pub struct Lockstep<'a> {
    machine: &'a Machine,
    counts: &'a CountFile,
    /// Where frames go in, and where they come out.
    ends: [&'a Wire; 2],
    /// Batches that the guest did not find at once.
    scattered: u64,
}

/// How a guest found a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gathered {
    /// All of it lay in its ring when it came.
    AtOnce,
    /// It had come before.
    InParts,
    /// It did not come in time.
    Never,
}

impl<'a> Lockstep<'a> {
    /// From the first end through the guest to the second.
    pub fn new(machine: &'a Machine, counts: &'a CountFile, ends: [&'a Wire; 2]) -> Lockstep<'a> {
        Lockstep { machine, counts, ends, scattered: 0 }
    }

    /// Batches so far that the guest did not find at once: their counts hold other polls.
    pub fn scattered(&self) -> u64 {
        self.scattered
    }

    /// Sends a batch and gives every frame that comes out to `arrived`, which says whether
    /// it is one of the batch. Returns how many were; fewer than were sent when no more
    /// came within `patience`.
    ///
    /// # Errors
    /// When QEMU is gone, or the guest does not come to rest.
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
            // The wire holds a few frames only.
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
        while count < size {
            match sink.receive(&mut buffer, patience)? {
                Some(length) => count += usize::from(arrived(&buffer[..length])),
                None => break,
            }
        }
        // One that drops all of them still comes and takes them.
        match (gathered, count) {
            (Gathered::Never, 0) => Err(self.machine.console().hangs(PATIENCE.as_secs())),
            _ => Ok(count),
        }
    }

    /// Waits until the guest stands at the gate and QEMU has put all frames into its ring.
    fn gathered(&self, held: u64) -> Result<Gathered, VmError> {
        let deadline = Instant::now() + PATIENCE;
        let mut rests = 0;
        while rests < LOOKS {
            if Instant::now() > deadline {
                return Ok(Gathered::Never);
            }
            std::thread::sleep(LOOK);
            // At the gate its virtual CPU sleeps, so all of QEMU may rest.
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
    /// When it does not.
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
