//! VLANs (IEEE 802.1Q): several ports on one, distinguished by the tags of their frames.
//!
//! The [`Trunk`] is the underlying port. It receives untagged frames, and frames whose tag has a
//! priority but no VLAN. A [`Branch`] receives the frames of one VLAN without their tags. Frames of
//! unknown VLANs arrive at the trunk unchanged.

use crate::NetioError;
use crate::frame::{Batch, Frame};
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// EtherType of the tag.
const TYPE: [u8; 2] = [0x81, 0];
/// Bytes of a tag, and of the two MAC addresses before it.
const TAG: usize = 4;
const MACS: usize = 12;
/// Number of VLAN ids, of which 0 and the last are reserved.
const VLANS: usize = 4096;

/// The port below the VLANs.
pub struct Trunk {
    wire: Arc<Mutex<Wire>>,
    /// Port numbers by VLAN.
    ports: Box<[Option<u8>; VLANS]>,
}

/// Port of a VLAN, in the same thread as its trunk, which receives for it.
pub struct Branch {
    wire: Arc<Mutex<Wire>>,
    number: u8,
    trunk: u8,
    vlan: u16,
}

/// The port and buffer that trunk and branches share.
struct Wire {
    port: Box<dyn Port>,
    tagged: Batch,
}

/// Splits port `number` into a trunk and one branch per `(VLAN, port number)`.
pub fn split(port: Box<dyn Port>, number: u8, vlans: &[(u16, u8)]) -> (Trunk, Vec<Branch>) {
    let wire = Arc::new(Mutex::new(Wire { port, tagged: Batch::new() }));
    let mut ports = Box::new([None; VLANS]);
    let branch = |&(vlan, branch_number): &(u16, u8)| {
        if let Some(port) = ports.get_mut(usize::from(vlan)) {
            *port = Some(branch_number);
        }
        Branch { wire: Arc::clone(&wire), number: branch_number, trunk: number, vlan }
    };
    let branches = vlans.iter().map(branch).collect();
    (Trunk { wire, ports }, branches)
}

fn locked(wire: &Mutex<Wire>) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the VLAN of a frame's tag; `None` without a tag.
fn vlan_of(frame: &Frame) -> Option<u16> {
    match frame.bytes() {
        [_, _, _, _, _, _, _, _, _, _, _, _, a, b, c, d, _, _, ..] if [*a, *b] == TYPE => {
            Some(u16::from_be_bytes([*c, *d]) & 0xfff)
        }
        _ => None,
    }
}

/// Removes the tag and sets the ingress port.
fn untag(frame: &mut Frame, port: u8) {
    let length = frame.len();
    if frame.is_long() {
        let whole = frame.whole();
        let without = [&whole[..MACS], &whole[MACS + TAG..]].concat();
        // Cannot fail: the frame is shorter than before.
        let _ = frame.receive(port, &without);
        return;
    }
    frame.buffer_mut().copy_within(MACS + TAG..length, MACS);
    frame.reset(port, length - TAG);
}

/// Copies the frame into `to` with a tag; false if that is too long.
fn tag(frame: &Frame, vlan: u16, to: &mut Frame) -> bool {
    let bytes = frame.whole();
    let length = bytes.len() + TAG;
    let Some((macs, rest)) = bytes.split_at_checked(MACS) else { return false };
    let tag = [TYPE, vlan.to_be_bytes()].concat();
    match to.buffer_mut().get_mut(..length) {
        Some(buffer) => {
            buffer[..MACS].copy_from_slice(macs);
            buffer[MACS..MACS + TAG].copy_from_slice(&tag);
            buffer[MACS + TAG..].copy_from_slice(rest);
            to.reset(frame.ingress(), length);
            true
        }
        None => to.receive(frame.ingress(), &[macs, &tag, rest].concat()).is_ok(),
    }
}

impl Port for Trunk {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        let count = locked(&self.wire).port.receive(batch)?;
        for frame in batch.frames_mut() {
            let Some(vlan) = vlan_of(frame) else { continue };
            let ingress = frame.ingress();
            match self.ports[usize::from(vlan)] {
                Some(port) => untag(frame, port),
                None if vlan == 0 => untag(frame, ingress),
                None => {}
            }
        }
        Ok(count)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        locked(&self.wire).port.send(batch)
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        locked(&self.wire).port.wake_by(wakers)
    }

    fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
        locked(&self.wire).port.woken(woken)
    }

    fn missed(&mut self) -> u64 {
        locked(&self.wire).port.missed()
    }

    fn is_at_end(&self) -> bool {
        locked(&self.wire).port.is_at_end()
    }

    fn receives_for_others(&self) -> bool {
        true
    }
}

impl Port for Branch {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        batch.clear();
        Ok(0)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        let (number, mut lost) = (Some(self.number), 0);
        let Wire { port, tagged } = &mut *locked(&self.wire);
        tagged.clear();
        for frame in batch.frames().iter().filter(|frame| frame.egress() == number) {
            // Never more frames than fit in a batch.
            let Some(place) = tagged.grow() else { break };
            if tag(frame, self.vlan, place) {
                place.send_to(self.trunk);
            } else {
                tagged.shrink();
                lost += 1;
            }
        }
        let sent = port.send(tagged)?;
        Ok(Sent { lost: sent.lost + lost, ..sent })
    }

    /// Waking the trunk is enough.
    fn wake_by(&mut self, _: &mut Wakers) -> Result<(), NetioError> {
        Ok(())
    }

    fn missed(&mut self) -> u64 {
        0
    }

    fn is_at_end(&self) -> bool {
        locked(&self.wire).port.is_at_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::LONGEST;

    /// Returns some frames once, and stores sent frames.
    struct Wires(Vec<Vec<u8>>, Arc<Mutex<Vec<Vec<u8>>>>);

    impl Port for Wires {
        fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
            let count = self.0.len();
            for (frame, bytes) in batch.fill(count).iter_mut().zip(self.0.drain(..)) {
                frame.receive(3, &bytes).expect("it fits");
            }
            Ok(count)
        }
        fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
            let mut all = self.1.lock().expect("nobody has it");
            let before = all.len();
            let outgoing = batch.frames().iter().filter(|frame| frame.egress() == Some(3));
            all.extend(outgoing.map(|frame| frame.whole().into_owned()));
            Ok(Sent { sent: (all.len() - before) as u64, lost: 0 })
        }
        fn wake_by(&mut self, _: &mut Wakers) -> Result<(), NetioError> {
            Ok(())
        }
        fn missed(&mut self) -> u64 {
            0
        }
    }

    fn frame(length: usize, tag: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..length).map(|at| (at % 249) as u8).collect();
        bytes[12..14].copy_from_slice(&[8, 0]);
        bytes.splice(12..12, tag.iter().copied());
        bytes
    }

    #[test]
    fn trunk_and_branches_translate_tags() {
        let unknown = frame(60, &[0x81, 0, 0, 9]);
        let twice = frame(60, &[0x81, 0, 0, 100, 0x81, 0, 0, 9]);
        let provider = frame(60, &[0x88, 0xa8, 0, 100]);
        let incoming = vec![
            frame(60, &[]),
            frame(60, &[0x81, 0, 0xe0, 100]),
            frame(60, &[0x81, 0, 0xa0, 0]),
            frame(9014, &[0x81, 0, 0x0f, 0xfe]),
            frame(1590, &[0x81, 0, 0, 100]),
            unknown.clone(),
            twice,
            provider.clone(),
            frame(60, &[])[..13].to_vec(),
        ];
        let sent = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let port = Box::new(Wires(incoming, Arc::clone(&sent)));
        let (mut trunk, mut branches) = split(port, 3, &[(100, 5), (4094, 7)]);
        let mut batch = Batch::new();
        assert_eq!(trunk.receive(&mut batch).expect("frames"), 9);
        let received: Vec<(u8, Vec<u8>)> =
            batch.frames().iter().map(|f| (f.ingress(), f.whole().into_owned())).collect();
        let expected = [
            (3, frame(60, &[])),
            (5, frame(60, &[])),
            (3, frame(60, &[])),
            (7, frame(9014, &[])),
            (5, frame(1590, &[])),
            (3, unknown),
            (5, frame(60, &[0x81, 0, 0, 9])),
            (3, provider),
            (3, frame(60, &[])[..13].to_vec()),
        ];
        assert!(received == expected, "{received:?}");
        for (at, (port, length)) in
            [(3, 60), (5, 60), (7, 1589), (7, 9014), (5, LONGEST), (5, 60)].into_iter().enumerate()
        {
            let buffer = &mut batch.fill(6)[at];
            buffer.receive(0, &frame(length, &[])).expect("it fits");
            buffer.send_to(port);
        }
        let counts = |sent: Sent| (sent.sent, sent.lost);
        assert_eq!(counts(branches[0].send(&mut batch).expect("sending")), (2, 1));
        assert_eq!(counts(branches[1].send(&mut batch).expect("sending")), (2, 0));
        assert_eq!(counts(trunk.send(&mut batch).expect("sending")), (1, 0));
        let tags = [[0x81, 0, 0, 100], [0x81, 0, 0x0f, 0xfe]];
        let expected = [
            frame(60, &tags[0]),
            frame(60, &tags[0]),
            frame(1589, &tags[1]),
            frame(9014, &tags[1]),
            frame(60, &[]),
        ];
        assert!(*sent.lock().expect("nobody has it") == expected);
    }
}
