//! Waiting with poll(2) for all ports of a thread at once.

use crate::PortError;
use crate::bell::Bell;
use crate::port::Port;
use rustix::io::Errno;
use rustix::net::netdevice::index_to_name;
use rustix::net::sockopt::socket_error;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// What ends a wait. Ports add to it what they know ([`Port::wake_by`]).
#[derive(Debug, Default)]
pub struct Wakers {
    polls: Vec<libc::pollfd>,
    /// Which port each is of.
    owners: Vec<usize>,
    owner: usize,
    ready: bool,
    within: Option<Duration>,
}

/// How a wait ended, as a port sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// There may be something to receive here.
    Here,
    /// Something happened elsewhere.
    Elsewhere,
    /// Time was up.
    InVain,
    /// One of the port's descriptors has an error to tell.
    Failing,
}

impl Wakers {
    /// Nothing yet.
    pub fn new() -> Wakers {
        Wakers::default()
    }

    /// Something is there already, so that nobody sleeps.
    pub fn ready(&mut self) {
        self.ready = true;
    }

    /// Ends the wait when there is something to read from `descriptor`.
    pub fn add(&mut self, descriptor: BorrowedFd<'_>) {
        let fd = descriptor.as_raw_fd();
        self.polls.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        self.owners.push(self.owner);
    }

    /// Ends the wait after this time at the latest: nothing tells when to look again.
    pub fn within(&mut self, time: Duration) {
        self.within = Some(self.within.map_or(time, |other| other.min(time)));
    }

    fn clear(&mut self) {
        self.polls.clear();
        self.owners.clear();
        (self.ready, self.within) = (false, None);
    }

    /// Sleeps; returns how many descriptors have something to tell.
    fn sleep(&mut self, timeout: Duration) -> Result<usize, PortError> {
        let timeout = self.within.map_or(timeout, |within| within.min(timeout));
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs().min(3600) as libc::time_t,
            tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
        };
        let (polls, count) = (self.polls.as_mut_ptr(), self.polls.len() as libc::nfds_t);
        // SAFETY: as many pollfds as said, which outlive the call, and a whole timespec; no
        // signal mask. A descriptor that is none any more is told as such.
        let ready = unsafe { libc::ppoll(polls, count, &timeout, std::ptr::null()) };
        match usize::try_from(ready) {
            Ok(ready) => Ok(ready),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                error => Err(PortError::system("waiting for frames (ppoll)", error)),
            },
        }
    }

    /// What port number `owner` is told of it.
    fn told(&self, owner: usize, ready: usize) -> Woken {
        let own = self.polls.iter().zip(&self.owners).filter(|&(_, &other)| other == owner);
        let events = own.fold(0, |events, (poll, _)| events | poll.revents);
        match events {
            _ if ready == 0 => Woken::InVain,
            0 => Woken::Elsewhere,
            events if events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 => {
                Woken::Failing
            }
            _ => Woken::Here,
        }
    }
}

/// Waits until something may have come in at any of the ports, or the bell rings, `timeout`
/// at most. `wakers` is memory for that, to be used again.
///
/// # Errors
/// When a port is gone for good.
pub fn wait_any<P: Port>(
    ports: &mut [P],
    bell: Option<&Bell>,
    wakers: &mut Wakers,
    timeout: Duration,
) -> Result<(), PortError> {
    wakers.clear();
    for (at, port) in ports.iter_mut().enumerate() {
        wakers.owner = at;
        port.wake_by(wakers)?;
    }
    if let Some(bell) = bell {
        wakers.owner = ports.len();
        bell.wake_by(wakers);
    }
    // Nothing is slept then, but who is asleep has to be told all the same.
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
/// When the port is gone for good.
pub(crate) fn wait_one<P: Port + ?Sized>(port: &mut P, timeout: Duration) -> Result<(), PortError> {
    let mut wakers = Wakers::new();
    port.wake_by(&mut wakers)?;
    let timeout = if wakers.ready { Duration::ZERO } else { timeout };
    let ready = wakers.sleep(timeout)?;
    port.woken(wakers.told(0, ready))
}

/// Waits until a socket that is bound to interface number `index` can be read.
///
/// # Errors
/// When the interface is gone for good.
pub(crate) fn wait_readable(
    socket: &OwnedFd,
    index: u32,
    timeout: Duration,
) -> Result<(), PortError> {
    let mut wakers = Wakers::new();
    wakers.add(socket.as_fd());
    let ready = wakers.sleep(timeout)?;
    if wakers.told(0, ready) == Woken::Failing { clear_error(socket, index) } else { Ok(()) }
}

/// Asks a socket that is bound to interface number `index` for its error, so that the next
/// poll waits again. Down may be up again later, and is no error.
///
/// # Errors
/// When the interface is gone for good.
pub(crate) fn clear_error(socket: &OwnedFd, index: u32) -> Result<(), PortError> {
    let what = || format!("waiting for frames at interface {index}");
    let error = socket_error(socket).map_err(|e| PortError::system(what(), e))?;
    match error {
        Err(error) if error != Errno::NETDOWN => Err(PortError::system(what(), error)),
        // Unless the interface does not exist any more.
        Err(_) => index_to_name(socket, index).map(drop).map_err(|e| PortError::system(what(), e)),
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Batch;
    use crate::port::Sent;
    use std::os::unix::net::UnixDatagram;
    use std::time::Instant;

    struct Line(UnixDatagram, Vec<Woken>);

    impl Port for Line {
        fn receive(&mut self, _: &mut Batch) -> Result<usize, PortError> {
            Ok(0)
        }
        fn send(&mut self, _: &mut Batch) -> Result<Sent, PortError> {
            Ok(Sent::default())
        }
        fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), PortError> {
            wakers.add(self.0.as_fd());
            Ok(())
        }
        fn woken(&mut self, woken: Woken) -> Result<(), PortError> {
            self.1.push(woken);
            Ok(())
        }
        fn missed(&mut self) -> u64 {
            0
        }
    }

    #[test]
    fn any_port_and_the_bell_end_the_wait_for_all() {
        let (near, far): (Vec<_>, Vec<_>) =
            (0..3).map(|_| UnixDatagram::pair().expect("a pair")).unzip();
        let mut ports: Vec<Line> = near.into_iter().map(|line| Line(line, Vec::new())).collect();
        let (bell, mut wakers) = (Bell::new().expect("an eventfd"), Wakers::new());
        let long = Duration::from_secs(60);
        let begin = Instant::now();
        far[1].send(b"x").expect("it is sent");
        wait_any(&mut ports, Some(&bell), &mut wakers, long).expect("waiting");
        let told: Vec<_> = ports.iter_mut().map(|line| line.1.pop()).collect();
        let (here, elsewhere) = (Some(Woken::Here), Some(Woken::Elsewhere));
        assert_eq!(told, [elsewhere, here, elsewhere]);
        ports[1].0.recv(&mut [0; 9]).expect("it arrived");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                bell.ring();
            });
            wait_any(&mut ports, Some(&bell), &mut wakers, long).expect("waiting");
        });
        assert_eq!(ports[1].1.pop(), elsewhere);
        // What was rung while nobody slept is heard before anybody sleeps.
        bell.ring();
        wait_any(&mut ports, Some(&bell), &mut wakers, long).expect("waiting");
        assert!(begin.elapsed() < long);
        ports.iter_mut().for_each(|line| line.1.clear());
        wait_any(&mut ports, Some(&bell), &mut wakers, Duration::from_millis(1)).expect("waiting");
        assert!(ports.iter().all(|line| line.1 == [Woken::InVain]));
    }
}
