//! Taps: interfaces with a descriptor at the other end, to pass to a QEMU machine.
//!
//! A tap exists as long as a process holds its descriptors, so a process that dies leaves nothing
//! behind. See Documentation/networking/tuntap.rst of Linux.

use crate::NetioError;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Device that creates taps.
const DEVICE: &str = "/dev/net/tun";
/// From `linux/if_tun.h`: `TUNSETIFF`, and its flags: a tap, frames with virtio's header instead of
/// the old one, several queues.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const IFF_TAP: u16 = 0x0002;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;
const IFF_MULTI_QUEUE: u16 = 0x0100;
/// Maximum frame length including the header, bytes.
const FRAME_MAX: usize = 2048;
/// Interval at which the copier checks whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Request to the kernel (`struct ifreq` of netdevice(7)).
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    flags: u16,
    rest: [u8; 22],
}

/// Creates a tap named `interface` in the calling thread's namespace; returns one descriptor per
/// queue. Frames begin with virtio's header.
///
/// # Errors
/// Without `/dev/net/tun` or CAP_NET_ADMIN over the namespace, or if the name is taken or too long.
pub fn open(interface: &str, queues: u16) -> Result<Vec<OwnedFd>, NetioError> {
    open_as(interface, queues, IFF_VNET_HDR)
}

/// Like [`open`], but frames have no header, and complete checksums.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_plain(interface: &str, queues: u16) -> Result<Vec<OwnedFd>, NetioError> {
    open_as(interface, queues, 0)
}

fn open_as(interface: &str, queues: u16, header: u16) -> Result<Vec<OwnedFd>, NetioError> {
    let what = |step: &str| format!("making the tap {interface} ({step})");
    let mut name = [0; libc::IFNAMSIZ];
    // The last byte stays 0.
    if interface.len() >= name.len() {
        return Err(NetioError::system(what("name"), io::Error::from(io::ErrorKind::InvalidInput)));
    }
    name[..interface.len()].copy_from_slice(interface.as_bytes());
    let several = if queues > 1 { IFF_MULTI_QUEUE } else { 0 };
    let flags = IFF_TAP | IFF_NO_PI | header | several;
    let mut opened = Vec::new();
    for _ in 0..queues.max(1) {
        // Non-blocking: readers wait by poll(2), as a blocked read could not be ended.
        let mut file = OpenOptions::new();
        file.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let file = file.open(DEVICE).map_err(|e| NetioError::system(what(DEVICE), e))?;
        let mut request = Request { name, flags, rest: [0; 22] };
        // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, as large as `Request`, which
        // outlives the call; the descriptor is open.
        let status = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) };
        if status != 0 {
            return Err(NetioError::system(what("TUNSETIFF"), io::Error::last_os_error()));
        }
        opened.push(file.into());
    }
    Ok(opened)
}

/// Copies frames from one tap to another, as a guest does; stops when dropped.
#[derive(Debug)]
pub struct Copier {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Copier {
    /// Starts the copier; both descriptors are the first queues of taps.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(from: OwnedFd, to: OwnedFd) -> Result<Copier, NetioError> {
        let stop = Arc::new(AtomicBool::new(false));
        let thread_stop = stop.clone();
        let (from, to) = (File::from(from), File::from(to));
        let thread = std::thread::Builder::new()
            .name("copier".into())
            .spawn(move || copy(from, to, &thread_stop))
            .map_err(|e| NetioError::system("starting thread copier", e))?;
        Ok(Copier { stop, thread: Some(thread) })
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread has no result.
            let _ = thread.join();
        }
    }
}

fn copy(mut from: File, mut to: File, stop: &AtomicBool) {
    let mut frame = [0; FRAME_MAX];
    while !stop.load(Ordering::Relaxed) {
        match from.read(&mut frame) {
            // The other tap drops frames it cannot take, as a cable does.
            Ok(length) => drop(to.write(&frame[..length])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&from),
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Waits for a frame, at most [`LOOK`].
fn wait(file: &File) {
    let mut poll = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: exactly one pollfd, which outlives the call.
    unsafe { libc::poll(&mut poll, 1, LOOK.as_millis() as libc::c_int) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_has_size_of_ifreq() {
        assert_eq!(size_of::<Request>(), size_of::<libc::ifreq>());
    }

    #[test]
    fn open_rejects_long_name() {
        let error = open("a-name-of-twenty-char", 1).expect_err("too long").to_string();
        assert!(error.contains("a-name-of-twenty-char"), "{error}");
    }
}
