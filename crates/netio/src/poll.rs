//! What ends a wait, and waiting for it with poll(2).

use crate::NetioError;
use crate::bell::Bell;
use rustix::io::Errno;
use rustix::net::netdevice::index_to_name;
use rustix::net::sockopt::socket_error;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// What ends a wait. Ports add to it what they know ([`crate::Port::wake_by`]).
#[derive(Debug, Default)]
pub struct Wakers {
    polls: Vec<libc::pollfd>,
    /// Which port each is of.
    owners: Vec<usize>,
    /// Who is asked.
    pub(crate) owner: usize,
    pub(crate) ready: bool,
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

    /// Ends the wait when it rings.
    pub(crate) fn add_bell(&mut self, bell: &Bell) {
        match bell.listen() {
            Some(descriptor) => self.add(descriptor),
            None => self.ready(),
        }
    }

    /// Ends the wait after this time at the latest: nothing tells when to look again.
    pub fn within(&mut self, time: Duration) {
        self.within = Some(self.within.map_or(time, |other| other.min(time)));
    }

    pub(crate) fn clear(&mut self) {
        self.polls.clear();
        self.owners.clear();
        (self.ready, self.within) = (false, None);
    }

    /// Sleeps; returns how many descriptors have something to tell.
    pub(crate) fn sleep(&mut self, timeout: Duration) -> Result<usize, NetioError> {
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
                error => Err(NetioError::system("waiting for frames (ppoll)", error)),
            },
        }
    }

    /// What port number `owner` is told of it.
    pub(crate) fn told(&self, owner: usize, ready: usize) -> Woken {
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

/// Waits until a socket that is bound to interface number `index` can be read.
///
/// # Errors
/// When the interface is gone for good.
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

/// Asks a socket that is bound to interface number `index` for its error, so that the next
/// poll waits again. Down may be up again later, and is no error.
///
/// # Errors
/// When the interface is gone for good.
pub(crate) fn clear_error(socket: &OwnedFd, index: u32) -> Result<(), NetioError> {
    let what = || format!("waiting for frames at interface {index}");
    let error = socket_error(socket).map_err(|e| NetioError::system(what(), e))?;
    match error {
        Err(error) if error != Errno::NETDOWN => Err(NetioError::system(what(), error)),
        // Unless the interface does not exist any more.
        Err(_) => index_to_name(socket, index).map(drop).map_err(|e| NetioError::system(what(), e)),
        Ok(()) => Ok(()),
    }
}
