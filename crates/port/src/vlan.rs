//! Interfaces of a link that carries several networks (IEEE 802.1Q).
//!
//! A trunk is a port around the port of the link: frames with the tag of one of its networks
//! come in at that network's number, without the tag, and what goes out at that number gets
//! the tag. Frames with other tags stay as they are. Those with a tag for the priority alone
//! belong to the link itself.
//!
//! A router without such networks has no trunk, and nothing of this costs it anything.

use crate::PortError;
use crate::frame::{Batch, CAPACITY, Frame};
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};

/// Both MAC addresses, after which a tag stands.
const MACS: usize = 12;
/// Bytes of a tag.
const TAG: usize = 4;
/// What a tag begins with.
const TPID: [u8; 2] = [0x81, 0];
/// Numbers of networks: 0 means none.
const IDS: usize = 1 << 12;
/// No port.
const NONE: u8 = u8::MAX;

/// A link's port that carries networks with tags.
pub struct Trunk<P> {
    port: P,
    number: u8,
    /// The number of the port of each network.
    ports: Box<[u8; IDS]>,
    /// The network of each port; 0 of those that are none of this link's.
    ids: [u16; 256],
}

impl<P: Port> Trunk<P> {
    /// `port` has this number; `networks` are the numbers of their ports, each with that of
    /// the network (1 to 4094).
    pub fn new(port: P, number: u8, networks: &[(u8, u16)]) -> Trunk<P> {
        let mut trunk = Trunk { port, number, ports: Box::new([NONE; IDS]), ids: [0; 256] };
        trunk.ports[0] = number;
        for &(port, id) in networks {
            trunk.ports[usize::from(id) % IDS] = port;
            trunk.ids[usize::from(port)] = id % IDS as u16;
        }
        trunk
    }
}

impl<P: Port> Port for Trunk<P> {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let count = self.port.receive(batch)?;
        for frame in batch.frames_mut() {
            let bytes = frame.bytes();
            if bytes.len() < MACS + TAG + 2 || bytes[MACS..MACS + 2] != TPID {
                continue;
            }
            let id = u16::from_be_bytes([bytes[MACS + 2], bytes[MACS + 3]]) & 0xfff;
            let port = self.ports[usize::from(id)];
            if port != NONE {
                let length = frame.len();
                frame.buffer_mut().copy_within(MACS + TAG..length, MACS);
                frame.reset(port, length - TAG);
            }
        }
        Ok(count)
    }

    /// Frames of the link itself, and of its networks.
    fn send(&mut self, batch: &mut Batch) -> Result<Sent, PortError> {
        let mut too_long = 0;
        for frame in batch.frames_mut() {
            let Some(port) = frame.egress() else { continue };
            let id = self.ids[usize::from(port)];
            if id == 0 {
                continue;
            }
            if put_tag(frame, id) {
                frame.send_to(self.number);
            } else {
                frame.send_nowhere();
                too_long += 1;
            }
        }
        let sent = self.port.send(batch)?;
        Ok(Sent { lost: sent.lost + too_long, ..sent })
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), PortError> {
        self.port.wake_by(wakers)
    }

    fn woken(&mut self, woken: Woken) -> Result<(), PortError> {
        self.port.woken(woken)
    }

    fn missed(&mut self) -> u64 {
        self.port.missed()
    }

    fn is_at_end(&self) -> bool {
        self.port.is_at_end()
    }
}

/// Puts a network's tag behind the addresses; false when there is no room.
fn put_tag(frame: &mut Frame, id: u16) -> bool {
    let length = frame.len();
    if length < MACS || length + TAG > CAPACITY {
        return false;
    }
    let buffer = frame.buffer_mut();
    buffer.copy_within(MACS..length, MACS + TAG);
    buffer[MACS..MACS + 2].copy_from_slice(&TPID);
    buffer[MACS + 2..MACS + TAG].copy_from_slice(&id.to_be_bytes());
    frame.set_len(length + TAG);
    true
}

/// The place of a network's port among a worker's: what comes in and goes out there does so
/// at the trunk.
#[derive(Debug, Default)]
pub struct Carried;

impl Port for Carried {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        batch.clear();
        Ok(0)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, PortError> {
        // Nobody sends here.
        Ok(Sent { sent: 0, lost: batch.frames().len() as u64 })
    }

    fn wake_by(&mut self, _: &mut Wakers) -> Result<(), PortError> {
        Ok(())
    }

    fn missed(&mut self) -> u64 {
        0
    }

    fn is_at_end(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Gives these frames once, keeps what is sent.
    struct Line(Vec<Vec<u8>>, RefCell<Vec<Vec<u8>>>);

    impl Port for Line {
        fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
            let count = self.0.len();
            for (frame, bytes) in batch.fill(count).iter_mut().zip(self.0.drain(..)) {
                frame.receive(2, &bytes).expect("it fits");
            }
            Ok(count)
        }
        fn send(&mut self, batch: &mut Batch) -> Result<Sent, PortError> {
            let own = batch.frames().iter().filter(|frame| frame.egress() == Some(2));
            let own: Vec<Vec<u8>> = own.map(|frame| frame.bytes().to_vec()).collect();
            let sent = own.len() as u64;
            self.1.borrow_mut().extend(own);
            Ok(Sent { sent, lost: 0 })
        }
        fn wake_by(&mut self, _: &mut Wakers) -> Result<(), PortError> {
            Ok(())
        }
        fn missed(&mut self) -> u64 {
            0
        }
    }

    fn tagged(tag: Option<u16>) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..12).collect();
        if let Some(tag) = tag {
            bytes.extend([0x81, 0]);
            bytes.extend(tag.to_be_bytes());
        }
        bytes.extend([8, 0]);
        bytes.extend(20..80);
        bytes
    }

    #[test]
    fn tags_are_ports_within() {
        let incoming = [None, Some(10), Some(0x2014), Some(99), Some(0xe000)].map(tagged).to_vec();
        let line = Line(incoming, RefCell::default());
        let mut trunk = Trunk::new(line, 2, &[(5, 10), (6, 20)]);
        let mut batch = Batch::new();
        assert_eq!(trunk.receive(&mut batch).expect("frames"), 5);
        let seen: Vec<_> =
            batch.frames().iter().map(|f| (f.ingress(), f.bytes() == tagged(None))).collect();
        assert_eq!(seen, [(2, true), (5, true), (6, true), (2, false), (2, true)]);
        assert_eq!(batch.frames()[3].bytes(), tagged(Some(99)));
        for (frame, port) in batch.frames_mut().iter_mut().zip([2, 5, 6, 7, 5]) {
            frame.receive(0, &tagged(None)).expect("it fits");
            frame.send_to(port);
        }
        let long = batch.frames_mut().last_mut().expect("five");
        long.set_len(CAPACITY - 3);
        assert_eq!(trunk.send(&mut batch).expect("a line"), Sent { sent: 3, lost: 1 });
        let expected = [None, Some(10), Some(20)].map(tagged);
        assert_eq!(trunk.port.1.into_inner(), expected);
    }
}
