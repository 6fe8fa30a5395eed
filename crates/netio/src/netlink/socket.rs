//! The netlink socket.

use super::message::{Writer, messages};
use super::read::{Event, read};
use crate::NetioError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Notifications that a socket subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// Nothing.
    None,
    /// Links.
    Links,
    /// Links, addresses, routes and next hops of IPv4 and IPv6.
    Routes,
}

impl Groups {
    /// Returns one bit per group (linux/rtnetlink.h).
    const fn bits(self) -> u32 {
        match self {
            Groups::None => 0,
            Groups::Links => 1,
            Groups::Routes => 1 | 1 << 4 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 31,
        }
    }
}

/// Bytes of the receive buffer: some 100,000 routes that change together.
const BUFFER: usize = 32 << 20;
/// Maximum datagram size; the kernel writes up to 32 KiB at a time.
const DATAGRAM: usize = 64 << 10;
/// Maximum time to wait for an answer from the kernel.
const ANSWER: Duration = Duration::from_secs(10);
const RTM_GETLINK: u16 = 18;
const RTM_GETROUTE: u16 = 26;
const RTM_GETNEXTHOP: u16 = 106;
/// Something changed during the dump.
const NLM_F_DUMP_INTR: u16 = 0x10;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;

/// A socket for the kernel's routing, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// Pending notifications.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Events, in order.
    pub events: Vec<Event>,
    /// True if events were lost: everything must be queried again.
    pub is_lost: bool,
}

impl Netlink {
    /// Opens a socket for requests that also receives notifications of these groups.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn open(groups: Groups) -> Result<Netlink, NetioError> {
        let failed = |what: &'static str| {
            move |e: Errno| NetioError::system(format!("a netlink socket ({what})"), e)
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)
            .map_err(failed("socket"))?;
        // Only root of the initial namespace may exceed the limit. The alternative yields a smaller
        // buffer, and lost events are queried again.
        let _ = set_socket_recv_buffer_size_force(&socket, BUFFER)
            .or_else(|_| set_socket_recv_buffer_size(&socket, BUFFER));
        bind(&socket, &SocketAddrNetlink::new(0, groups.bits())).map_err(failed("bind"))?;
        Ok(Netlink { socket, sequence: 0, buffer: vec![0; DATAGRAM] })
    }

    /// Sends the request that `write` creates for a sequence number, and waits for the answer.
    ///
    /// # Errors
    /// If the kernel refuses; `what` describes the request.
    pub fn request(
        &mut self,
        what: &str,
        write: impl FnOnce(u32) -> Vec<u8>,
    ) -> Result<(), NetioError> {
        let failed = |e: std::io::Error| NetioError::system(what.to_owned(), e);
        self.sequence += 1;
        let request = write(self.sequence);
        send(&self.socket, &request, SendFlags::empty()).map_err(|e| failed(e.into()))?;
        self.until(what, |event| match event {
            Event::Answer(code) => Some(code),
            _ => None,
        })
        .map(drop)
    }

    /// Queries all routes of both families, and then all next hop objects: the answer has every
    /// object of a route, unless it was removed in the meantime.
    ///
    /// # Errors
    /// If the kernel refuses the request.
    pub fn routes(&mut self) -> Result<Vec<Event>, NetioError> {
        let mut all = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            // struct rtmsg, in which only the family matters.
            let mut head = [0; 12];
            head[0] = family as u8;
            let routes = self.dump("asking for the kernel's routes", RTM_GETROUTE, &head)?;
            // A kernel without one of the families returns all routes it has.
            all.extend(routes.into_iter().filter(|event| match event {
                Event::Route(route) => route.address.is_ipv4() == (family == libc::AF_INET),
                _ => true,
            }));
        }
        let what = "asking for the kernel's next hops";
        match self.dump(what, RTM_GETNEXTHOP, &[0; 8]) {
            Ok(next_hops) => all.extend(next_hops),
            // A kernel before Linux 5.3 has none.
            Err(error) if error.errno() == Some(libc::EOPNOTSUPP) => {}
            Err(error) => return Err(error),
        }
        Ok(all)
    }

    /// Queries all links.
    ///
    /// # Errors
    /// As [`Netlink::routes`].
    pub fn links(&mut self) -> Result<Vec<Event>, NetioError> {
        self.dump("asking for the kernel's links", RTM_GETLINK, &[0; 16])
    }

    fn dump(&mut self, what: &str, kind: u16, head: &[u8]) -> Result<Vec<Event>, NetioError> {
        let mut all = Vec::new();
        self.drain(what)?;
        for _ in 0..DUMPS {
            self.sequence += 1;
            let mut writer = Writer::new(kind, DUMP, self.sequence);
            writer.put(head);
            send(&self.socket, &writer.finish(), SendFlags::empty())
                .map_err(|e| NetioError::system(what.to_owned(), e))?;
            all.clear();
            let is_whole = self.until(what, |event| {
                match event {
                    Event::Done(code) => return Some(code),
                    Event::Answer(code) => return (code != 0).then_some(code),
                    event => all.push(event),
                }
                None
            })?;
            if is_whole {
                break;
            }
        }
        // The last dump is used even if interrupted: the changes are notified as well.
        Ok(all)
    }

    /// Reads and discards the rest of an abandoned answer: until then the kernel refuses other
    /// dumps on this socket (EBUSY).
    fn drain(&mut self, what: &str) -> Result<(), NetioError> {
        let deadline = Instant::now() + ANSWER;
        loop {
            match self.take() {
                Ok(None) => return Ok(()),
                Ok(Some(_)) if Instant::now() < deadline => {}
                Ok(Some(_)) => {
                    let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
                    return Err(NetioError::system(what.to_owned(), late));
                }
                // Lost messages are irrelevant here.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(error) => return Err(NetioError::system(what.to_owned(), error)),
            }
        }
    }

    /// Passes answers to the last request to `take` until it returns the result: 0, or the negative
    /// number of an error. Returns false if something changed during the dump.
    fn until(
        &mut self,
        what: &str,
        mut take: impl FnMut(Event) -> Option<i32>,
    ) -> Result<bool, NetioError> {
        let failed = |e: std::io::Error| NetioError::system(what.to_owned(), e);
        let deadline = Instant::now() + ANSWER;
        let mut is_whole = true;
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let ready = wait([self.socket.as_fd()], remaining).map_err(failed)?;
            if ready == 0 && remaining.is_zero() {
                return Err(failed(std::io::ErrorKind::TimedOut.into()));
            }
            let Some(count) = self.take().map_err(failed)? else { continue };
            for message in messages(&self.buffer[..count]) {
                let message = message.map_err(|e| failed(std::io::Error::other(e)))?;
                let event = read(&message).map_err(|e| failed(std::io::Error::other(e)))?;
                if message.sequence != self.sequence {
                    continue;
                }
                is_whole &= message.flags & NLM_F_DUMP_INTR == 0;
                match event.and_then(&mut take) {
                    Some(0) => return Ok(is_whole),
                    Some(code) => {
                        let code = code.saturating_neg();
                        return Err(failed(std::io::Error::from_raw_os_error(code)));
                    }
                    None => {}
                }
            }
        }
    }

    /// Returns pending notifications; does not block.
    ///
    /// # Errors
    /// If the socket fails for good.
    pub fn pending(&mut self) -> Result<Pending, NetioError> {
        let mut pending = Pending::default();
        while pending.events.len() < EVENTS {
            match self.take() {
                Ok(None) => break,
                Ok(Some(count)) => {
                    for message in messages(&self.buffer[..count]) {
                        match message.and_then(|message| read(&message)) {
                            Ok(event) => pending.events.extend(event),
                            // A new query replaces the unreadable message.
                            Err(_) => pending.is_lost = true,
                        }
                    }
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => pending.is_lost = true,
                Err(error) => {
                    return Err(NetioError::system("hearing of the kernel's routes", error));
                }
            }
        }
        Ok(pending)
    }

    /// Receives a datagram; `None` if none is pending.
    fn take(&mut self) -> Result<Option<usize>, std::io::Error> {
        match recv(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT) {
            Ok((count, _)) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Maximum number of dumps while interrupted by changes.
const DUMPS: usize = 5;
/// Maximum number of events in one [`Netlink::pending`].
const EVENTS: usize = 100_000;

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Waits until a notification is pending on one of the sockets, at most `timeout`.
///
/// # Errors
/// If the kernel refuses.
pub fn wait_for(sockets: &[&Netlink], timeout: Duration) -> Result<(), NetioError> {
    let result = wait(sockets.iter().map(|socket| socket.as_fd()), timeout);
    result.map(drop).map_err(|e| NetioError::system("waiting for the kernel's routes", e))
}

/// Waits until one of the descriptors is readable; returns the number of readable ones.
fn wait<'a>(
    descriptors: impl IntoIterator<Item = BorrowedFd<'a>>,
    timeout: Duration,
) -> Result<usize, std::io::Error> {
    let polls = descriptors.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let mut polls: Vec<PollFd<'_>> = polls.collect();
    let timeout = Timespec {
        tv_sec: timeout.as_secs().min(3600) as i64,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    match poll(&mut polls, Some(&timeout)) {
        Ok(ready) => Ok(ready),
        Err(Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::word;
    use super::*;
    use rustix::net::socketpair;
    use std::thread;

    const NLMSG_ERROR: u16 = 2;
    const NLMSG_DONE: u16 = 3;
    const RTM_NEWLINK: u16 = 16;
    const BUSY: i32 = -libc::EBUSY;

    /// Queries links from a simulated kernel that has already sent the messages `before`; `answers`
    /// contains the answers to each query.
    fn query_links(before: &[&[u8]], answers: Vec<Vec<(u16, Vec<u8>)>>) -> Vec<Result<usize, i32>> {
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
                .expect("sockets");
        for old in before {
            send(&far, old, SendFlags::empty()).expect("room");
        }
        let mut netlink = Netlink { socket: near, sequence: 0, buffer: vec![0; DATAGRAM] };
        let queries = answers.len();
        let kernel = thread::spawn(move || {
            for answer in answers {
                let mut query = [0; 64];
                recv(&far, &mut query[..], RecvFlags::empty()).expect("a question");
                let number = word(&query, 8).expect("a number");
                for (kind, payload) in answer {
                    let mut writer = Writer::new(kind, 2, number);
                    writer.put(&payload);
                    send(&far, &writer.finish(), SendFlags::empty()).expect("room");
                }
            }
        });
        let query_once =
            |_| netlink.links().map(|all| all.len()).map_err(|e| e.errno().unwrap_or(0));
        let results = (0..queries).map(query_once).collect();
        kernel.join().expect("all was asked");
        results
    }

    #[test]
    fn links_reports_refused_dump_as_error() {
        let code = |code: i32| code.to_ne_bytes().to_vec();
        let link = || (RTM_NEWLINK, vec![0; 16]);
        let answers = vec![
            vec![(NLMSG_ERROR, code(BUSY))],
            vec![link(), (NLMSG_DONE, code(-libc::ENOMEM))],
            vec![link(), link(), (NLMSG_DONE, code(0))],
            // From an old kernel.
            vec![link(), (NLMSG_DONE, Vec::new())],
        ];
        let expected = [Err(libc::EBUSY), Err(libc::ENOMEM), Ok(2), Ok(1)];
        assert_eq!(query_links(&[], answers), expected);
    }

    #[test]
    fn links_discards_rest_of_earlier_answer() {
        // Same sequence number as the next query.
        let mut old = Writer::new(NLMSG_ERROR, 0, 1);
        old.put(&BUSY.to_ne_bytes());
        let old = old.finish();
        let answers = vec![vec![(NLMSG_DONE, vec![0; 4])]];
        assert_eq!(query_links(&[&old, &old], answers), [Ok(0)]);
    }
}
