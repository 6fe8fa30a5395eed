//! A buffer that holds one Ethernet frame, and batches of them.

/// Bytes that a frame can have, without FCS: an IP packet of 1582 bytes.
///
/// With the four bytes before them a smallest frame fills one cache line exactly,
/// and a buffer takes 25 lines: an odd number, so that the beginnings of frames
/// beside each other fall into different sets of a cache.
pub const CAPACITY: usize = 1596;
/// Port number that means none.
const NO_PORT: u8 = u8::MAX;

/// Frames that travel together.
pub const BATCH: usize = 64;

const _: () = assert!(size_of::<Frame>() == 25 * 64);

/// One Ethernet frame without FCS, where it came from and where it goes to.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Frame {
    length: u16,
    ingress: u8,
    egress: u8,
    bytes: [u8; CAPACITY],
}

/// The bytes are more than [`CAPACITY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {0} bytes: the buffer has {CAPACITY}")]
pub struct TooLong(pub usize);

impl Frame {
    /// An empty buffer.
    pub const fn new() -> Frame {
        Frame { length: 0, ingress: 0, egress: NO_PORT, bytes: [0; CAPACITY] }
    }

    /// A frame that came in at port `ingress`.
    pub fn of(ingress: u8, bytes: &[u8]) -> Result<Frame, TooLong> {
        let mut frame = Frame::new();
        frame.receive(ingress, bytes)?;
        Ok(frame)
    }

    /// Makes this buffer hold a frame that came in at port `ingress` and goes
    /// nowhere yet.
    #[inline]
    pub fn receive(&mut self, ingress: u8, bytes: &[u8]) -> Result<(), TooLong> {
        let Some(buffer) = self.bytes.get_mut(..bytes.len()) else {
            return Err(TooLong(bytes.len()));
        };
        buffer.copy_from_slice(bytes);
        self.length = bytes.len() as u16;
        self.ingress = ingress;
        self.egress = NO_PORT;
        Ok(())
    }

    /// Makes this buffer hold a frame of `length` bytes, those that are in it, which came
    /// in at port `ingress` and goes nowhere yet.
    #[inline(always)]
    pub fn reset(&mut self, ingress: u8, length: usize) {
        self.set_len(length);
        self.ingress = ingress;
        self.egress = NO_PORT;
    }

    /// The frame's bytes from the destination MAC on.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        // Never more than that, which the compiler can't know.
        usize::from(self.length).min(CAPACITY)
    }

    /// True when there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Port at which it came in.
    #[inline]
    pub fn ingress(&self) -> u8 {
        self.ingress
    }

    /// Port at which it goes out, if it does.
    #[inline]
    pub fn egress(&self) -> Option<u8> {
        (self.egress != NO_PORT).then_some(self.egress)
    }

    /// The whole buffer: what is after [`Frame::len`] bytes is no part of the frame
    /// and must not be looked at.
    #[inline(always)]
    pub fn buffer(&self) -> &[u8; CAPACITY] {
        &self.bytes
    }

    /// As [`Frame::buffer`], to be written to.
    #[inline(always)]
    pub fn buffer_mut(&mut self) -> &mut [u8; CAPACITY] {
        &mut self.bytes
    }

    /// Makes the frame shorter, or longer by what was written to the buffer.
    #[inline(always)]
    pub fn set_len(&mut self, length: usize) {
        self.length = length.min(CAPACITY) as u16;
    }

    /// Lets it go out at this port.
    #[inline(always)]
    pub fn send_to(&mut self, port: u8) {
        self.egress = port;
    }

    /// Lets it go out nowhere.
    #[inline(always)]
    pub fn send_nowhere(&mut self) {
        self.egress = NO_PORT;
    }
}

impl Default for Frame {
    fn default() -> Frame {
        Frame::new()
    }
}

/// Buffers for [`BATCH`] frames, of which the first hold some.
#[derive(Clone, Debug)]
pub struct Batch {
    frames: Box<[Frame]>,
    count: usize,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch { frames: vec![Frame::new(); BATCH].into_boxed_slice(), count: 0 }
    }

    /// The frames in it.
    #[inline]
    pub fn frames(&self) -> &[Frame] {
        &self.frames[..self.count]
    }

    /// The frames in it.
    #[inline]
    pub fn frames_mut(&mut self) -> &mut [Frame] {
        &mut self.frames[..self.count]
    }

    /// The first `count` buffers, which are the batch's frames from now on, whatever
    /// they hold.
    #[inline]
    pub fn fill(&mut self, count: usize) -> &mut [Frame] {
        self.count = count.min(self.frames.len());
        self.frames_mut()
    }

    /// One more buffer, which is the batch's last frame from now on, if there is room.
    #[inline]
    pub fn grow(&mut self) -> Option<&mut Frame> {
        let frame = self.frames.get_mut(self.count)?;
        self.count += 1;
        Some(frame)
    }

    /// Forgets all frames.
    #[inline]
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Forgets the last frame.
    #[inline]
    pub fn shrink(&mut self) {
        self.count = self.count.saturating_sub(1);
    }
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_hold_what_fits() {
        let full = [7; CAPACITY];
        let mut frame = Frame::of(3, &full).expect("it fits");
        assert_eq!((frame.bytes(), frame.ingress(), frame.egress()), (&full[..], 3, None));
        assert_eq!(frame.receive(1, &[0; CAPACITY + 1]), Err(TooLong(CAPACITY + 1)));
        assert_eq!((frame.len(), frame.ingress()), (CAPACITY, 3));
        frame.receive(0, &[1, 2]).expect("it fits");
        assert_eq!(frame.bytes(), [1, 2]);
    }
}
