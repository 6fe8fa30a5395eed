//! The trait of a router's ports.

use crate::NetioError;
use crate::bell::Bell;
use crate::frame::Batch;
use crate::poll::{Wakers, Woken};
use std::time::Duration;

/// A port: receives and sends frames; used by one thread.
///
/// Ports are numbered; each knows its number. Wrappers (to capture frames, inject faults, or spread
/// frames over threads) are ports, too.
pub trait Port: Send {
    /// Receives pending frames, at most [`crate::frame::BATCH`], and returns how many. The
    /// previous contents of the batch are lost. Does not block.
    ///
    /// # Errors
    /// If the port is gone for good.
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError>;

    /// Sends the frames of the batch whose egress is this port, and returns the result. If
    /// all frames have this egress, the contents of the batch are unspecified afterwards;
    /// otherwise it is unchanged.
    ///
    /// # Errors
    /// If the port is gone for good.
    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError>;

    /// Adds the wake-up conditions of this port for a thread that has found nothing to receive and
    /// is about to sleep, possibly at several ports ([`wait_any`]).
    ///
    /// # Errors
    /// If the port is gone for good.
    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError>;

    /// Called after the sleep.
    ///
    /// # Errors
    /// If the port is gone for good.
    fn woken(&mut self, _: Woken) -> Result<(), NetioError> {
        Ok(())
    }

    /// Waits until frames may be pending, at most `timeout`.
    ///
    /// # Errors
    /// If the port is gone for good.
    fn wait(&mut self, timeout: Duration) -> Result<(), NetioError> {
        wait_one(self, timeout)
    }

    /// Returns the number of frames lost before they could be received, as far as the port knows.
    fn missed(&mut self) -> u64;

    /// True if no more frames will ever arrive, as at the end of a file.
    fn is_at_end(&self) -> bool {
        false
    }

    /// True if received frames may belong to other ports ([`crate::Frame::ingress`]), which receive
    /// none themselves.
    fn receives_for_others(&self) -> bool {
        false
    }
}

/// Result of sending frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames accepted.
    pub sent: u64,
    /// Frames lost because a queue was full.
    pub lost: u64,
}

impl<P: Port + ?Sized> Port for Box<P> {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        (**self).receive(batch)
    }
    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        (**self).send(batch)
    }
    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        (**self).wake_by(wakers)
    }
    fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
        (**self).woken(woken)
    }
    fn missed(&mut self) -> u64 {
        (**self).missed()
    }
    fn is_at_end(&self) -> bool {
        (**self).is_at_end()
    }
    fn receives_for_others(&self) -> bool {
        (**self).receives_for_others()
    }
}

/// Waits until frames may be pending at any of the ports, or the bell rings, at most `timeout`.
/// `wakers` is reusable memory.
///
/// # Errors
/// If a port is gone for good.
pub fn wait_any<P: Port>(
    ports: &mut [P],
    bell: Option<&Bell>,
    wakers: &mut Wakers,
    timeout: Duration,
) -> Result<(), NetioError> {
    wakers.clear();
    for (at, port) in ports.iter_mut().enumerate() {
        wakers.owner = at;
        port.wake_by(wakers)?;
    }
    if let Some(bell) = bell {
        wakers.owner = ports.len();
        wakers.add_bell(bell);
    }
    // Then the thread does not sleep, but ports must still be notified.
    let timeout = if wakers.ready { Duration::ZERO } else { timeout };
    let ready = wakers.sleep(timeout)?;
    bell.inspect(|bell| bell.answer());
    for (at, port) in ports.iter_mut().enumerate() {
        port.woken(wakers.told(at, ready))?;
    }
    Ok(())
}

/// Waits at one port.
///
/// # Errors
/// If the port is gone for good.
fn wait_one<P: Port + ?Sized>(port: &mut P, timeout: Duration) -> Result<(), NetioError> {
    let mut wakers = Wakers::new();
    port.wake_by(&mut wakers)?;
    let timeout = if wakers.ready { Duration::ZERO } else { timeout };
    let ready = wakers.sleep(timeout)?;
    port.woken(wakers.told(0, ready))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;
    use std::time::Instant;

    struct Line(UnixDatagram, Vec<Woken>);

    impl Port for Line {
        fn receive(&mut self, _: &mut Batch) -> Result<usize, NetioError> {
            Ok(0)
        }
        fn send(&mut self, _: &mut Batch) -> Result<Sent, NetioError> {
            Ok(Sent::default())
        }
        fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
            wakers.add(self.0.as_fd());
            Ok(())
        }
        fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
            self.1.push(woken);
            Ok(())
        }
        fn missed(&mut self) -> u64 {
            0
        }
    }

    #[test]
    fn any_port_or_bell_ends_wait_any() {
        let (near, far): (Vec<_>, Vec<_>) =
            (0..3).map(|_| UnixDatagram::pair().expect("a pair")).unzip();
        let mut ports: Vec<Line> = near.into_iter().map(|line| Line(line, Vec::new())).collect();
        let (bell, mut wakers) = (Bell::new().expect("an eventfd"), Wakers::new());
        let long = Duration::from_secs(60);
        let begin = Instant::now();
        far[1].send(b"x").expect("it is sent");
        wait_any(&mut ports, Some(&bell), &mut wakers, long).expect("waiting");
        let results: Vec<_> = ports.iter_mut().map(|line| line.1.pop()).collect();
        let (here, elsewhere) = (Some(Woken::Here), Some(Woken::Elsewhere));
        assert_eq!(results, [elsewhere, here, elsewhere]);
        ports[1].0.recv(&mut [0; 9]).expect("it arrived");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                bell.ring();
            });
            wait_any(&mut ports, Some(&bell), &mut wakers, long).expect("waiting");
        });
        assert_eq!(ports[1].1.pop(), elsewhere);
        // A ring while no thread sleeps ends the next wait.
        bell.ring();
        wait_any(&mut ports, Some(&bell), &mut wakers, long).expect("waiting");
        assert!(begin.elapsed() < long);
        ports.iter_mut().for_each(|line| line.1.clear());
        wait_any(&mut ports, Some(&bell), &mut wakers, Duration::from_millis(1)).expect("waiting");
        assert!(ports.iter().all(|line| line.1 == [Woken::InVain]));
    }
}
