//! Wake-up conditions, and waiting for them with poll(2).

use crate::NetioError;
use crate::bell::Bell;
use rustix::io::Errno;
use rustix::net::netdevice::index_to_name;
use rustix::net::sockopt::socket_error;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Wake-up conditions of a wait. Ports add theirs ([`crate::Port::wake_by`]).
#[derive(Debug, Default)]
pub struct Wakers {
    polls: Vec<libc::pollfd>,
    /// Index of the port of each descriptor.
    owners: Vec<usize>,
    /// Index of the port that currently adds conditions.
    pub(crate) owner: usize,
    pub(crate) ready: bool,
    within: Option<Duration>,
}

/// The end of a wait as seen by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Frames may be pending at this port.
    Here,
    /// The event occurred elsewhere.
    Elsewhere,
    /// The timeout expired.
    InVain,
    /// One of the port's descriptors reports an error.
    Failing,
}

impl Wakers {
    /// Creates an empty set.
    pub fn new() -> Wakers {
        Wakers::default()
    }

    /// Prevents sleeping: something is pending already.
    pub fn ready(&mut self) {
        self.ready = true;
    }

    /// Ends the wait when `descriptor` becomes readable.
    pub fn add(&mut self, descriptor: BorrowedFd<'_>) {
        let fd = descriptor.as_raw_fd();
        self.polls.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        self.owners.push(self.owner);
    }

    /// Ends the wait when the bell rings.
    pub(crate) fn add_bell(&mut self, bell: &Bell) {
        match bell.listen() {
            Some(descriptor) => self.add(descriptor),
            None => self.ready(),
        }
    }

    /// Ends the wait after this time at the latest, for ports that cannot signal new frames.
    pub fn within(&mut self, time: Duration) {
        self.within = Some(self.within.map_or(time, |other| other.min(time)));
    }

    pub(crate) fn clear(&mut self) {
        self.polls.clear();
        self.owners.clear();
        (self.ready, self.within) = (false, None);
    }

    /// Sleeps; returns the number of descriptors with events.
    pub(crate) fn sleep(&mut self, timeout: Duration) -> Result<usize, NetioError> {
        let timeout = self.within.map_or(timeout, |within| within.min(timeout));
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs().min(3600) as libc::time_t,
            tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
        };
        let (polls, count) = (self.polls.as_mut_ptr(), self.polls.len() as libc::nfds_t);
        // SAFETY: the pointer and the count describe the same vector of pollfds, which outlives the
        // call, as does the timespec; there is no signal mask. poll(2) reports closed descriptors
        // as such.
        let ready = unsafe { libc::ppoll(polls, count, &timeout, std::ptr::null()) };
        match usize::try_from(ready) {
            Ok(ready) => Ok(ready),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                error => Err(NetioError::system("waiting for frames (ppoll)", error)),
            },
        }
    }

    /// Returns the result of the wait for port number `owner`.
    pub(crate) fn told(&self, owner: usize, ready: usize) -> Woken {
        let polls_of_port =
            self.polls.iter().zip(&self.owners).filter(|&(_, &other)| other == owner);
        let events = polls_of_port.fold(0, |events, (poll, _)| events | poll.revents);
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

/// Waits until a socket bound to interface number `index` is readable.
///
/// # Errors
/// If the interface is gone for good.
pub(crate) fn wait_readable(
    socket: &OwnedFd,
    index: u32,
    timeout: Duration,
) -> Result<(), NetioError> {
    let mut wakers = Wakers::new();
    wakers.add(socket.as_fd());
    let ready = wakers.sleep(timeout)?;
    if wakers.told(0, ready) == Woken::Failing { clear_error(socket, index) } else { Ok(()) }
}

/// Clears the error of a socket bound to interface number `index`, so that the next poll waits
/// again. An interface that is down may come up again, so this is not an error.
///
/// # Errors
/// If the interface is gone for good.
pub(crate) fn clear_error(socket: &OwnedFd, index: u32) -> Result<(), NetioError> {
    let error = socket_error(socket).map_err(|e| NetioError::system(waiting_at(index), e))?;
    error.or_else(|error| check_error(socket, index, error))
}

/// Checks the cause of an error that a socket bound to interface number `index` has reported.
///
/// # Errors
/// If the interface is gone for good.
pub(crate) fn check_error(socket: &OwnedFd, index: u32, error: Errno) -> Result<(), NetioError> {
    if error != Errno::NETDOWN {
        return Err(NetioError::system(waiting_at(index), error));
    }
    // An error only if the interface no longer exists.
    index_to_name(socket, index).map(drop).map_err(|e| NetioError::system(waiting_at(index), e))
}

fn waiting_at(index: u32) -> String {
    format!("waiting for frames at interface {index}")
}
