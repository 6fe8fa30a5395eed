//! A buffer that holds one Ethernet frame, and batches of them.
//!
//! Frames of links with an MTU of 1500 lie in their buffer as a whole. Of longer ones the
//! beginning does, with all that a router looks at; the rest is elsewhere (`tails`), and
//! costs shorter ones nothing.

mod tails;

use std::borrow::Cow;

/// Bytes of a frame, without FCS, that are in its buffer: an IP packet of 1578 bytes.
///
/// With the four bytes before them a smallest frame fills one cache line exactly,
/// and a buffer takes 25 lines: an odd number, so that the beginnings of frames
/// beside each other fall into different sets of a cache.
pub const CAPACITY: usize = 1592;
/// Bytes that a frame can have, without FCS.
pub const LONGEST: usize = CAPACITY + tails::TAIL;
/// Port number that means none.
const NO_PORT: u8 = u8::MAX;

/// Frames that travel together.
pub const BATCH: usize = 64;

const _: () = assert!(size_of::<Frame>() == 25 * 64);

/// One Ethernet frame without FCS, where it came from and where it goes to.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Frame {
    length: u16,
    ingress: u8,
    egress: u8,
    bytes: [u8; CAPACITY],
    /// Where what is beyond is kept; 0: nowhere. It stays the buffer's, for the next long one.
    tail: u32,
}

/// The bytes are more than [`LONGEST`], or there is no memory for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {0} bytes: a buffer has {LONGEST}")]
pub struct TooLong(pub usize);

impl Frame {
    /// An empty buffer.
    pub const fn new() -> Frame {
        Frame { length: 0, ingress: 0, egress: NO_PORT, bytes: [0; CAPACITY], tail: 0 }
    }

    /// A frame that came in at port `ingress`.
    ///
    /// # Errors
    /// When it doesn't fit.
    pub fn of(ingress: u8, bytes: &[u8]) -> Result<Frame, TooLong> {
        let mut frame = Frame::new();
        frame.receive(ingress, bytes)?;
        Ok(frame)
    }

    /// Makes this buffer hold a frame that came in at port `ingress` and goes
    /// nowhere yet.
    ///
    /// # Errors
    /// When it doesn't fit.
    #[inline]
    pub fn receive(&mut self, ingress: u8, bytes: &[u8]) -> Result<(), TooLong> {
        let Some(buffer) = self.bytes.get_mut(..bytes.len()) else {
            self.put_long(bytes)?;
            (self.ingress, self.egress) = (ingress, NO_PORT);
            return Ok(());
        };
        buffer.copy_from_slice(bytes);
        self.length = bytes.len() as u16;
        self.ingress = ingress;
        self.egress = NO_PORT;
        Ok(())
    }

    #[cold]
    fn put_long(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let (head, rest) = bytes.split_at(CAPACITY);
        self.put_tail(rest)?;
        self.bytes.copy_from_slice(head);
        self.length = bytes.len() as u16;
        Ok(())
    }

    fn put_tail(&mut self, rest: &[u8]) -> Result<(), TooLong> {
        let too_long = TooLong(CAPACITY + rest.len());
        if rest.len() > tails::TAIL {
            return Err(too_long);
        }
        if tails::bytes(self.tail).is_none() {
            self.tail = tails::take().ok_or(too_long)?;
        }
        let mut tail = tails::bytes(self.tail).ok_or(too_long)?;
        tail[..rest.len()].copy_from_slice(rest);
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

    /// As [`Frame::reset`], of a frame that begins with all that is in the buffer, and ends
    /// with `rest`.
    ///
    /// # Errors
    /// When it doesn't fit.
    pub fn reset_long(&mut self, ingress: u8, rest: &[u8]) -> Result<(), TooLong> {
        self.put_tail(rest)?;
        self.reset(ingress, CAPACITY + rest.len());
        Ok(())
    }

    /// The frame's bytes from the destination MAC on, of a long one the first [`CAPACITY`].
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len().min(CAPACITY)]
    }

    /// All bytes, of a long frame in a copy. What nobody has written is 0.
    pub fn whole(&self) -> Cow<'_, [u8]> {
        match self.is_long() {
            false => Cow::Borrowed(self.bytes()),
            true => {
                let mut bytes = vec![0; self.len()];
                self.copy_to(0, &mut bytes);
                Cow::Owned(bytes)
            }
        }
    }

    /// Fills `to` with the bytes from `at` on; what is beyond the frame is left as it is.
    pub fn copy_to(&self, at: usize, to: &mut [u8]) {
        let length = self.len();
        let end = length.min(at + to.len());
        let middle = end.min(CAPACITY).max(at.min(CAPACITY));
        if at < middle {
            to[..middle - at].copy_from_slice(&self.bytes[at..middle]);
        }
        if end > CAPACITY
            && let Some(tail) = tails::bytes(self.tail)
        {
            let begin = at.max(CAPACITY);
            if begin < end {
                to[begin - at..end - at].copy_from_slice(&tail[begin - CAPACITY..end - CAPACITY]);
            }
        }
    }

    /// Changes the frame's bytes, but not how many there are.
    pub fn edit<T>(&mut self, change: impl FnOnce(&mut [u8]) -> T) -> T {
        if !self.is_long() {
            let length = self.len();
            return change(&mut self.bytes[..length]);
        }
        let mut bytes = self.whole().into_owned();
        let result = change(&mut bytes);
        // It has its memory.
        let _ = self.put_long(&bytes);
        result
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        // Never more than that, which the compiler can't know.
        usize::from(self.length).min(LONGEST)
    }

    /// True when not all bytes are in the buffer.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.len() > CAPACITY
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
        self.length = length.min(LONGEST) as u16;
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

impl Clone for Frame {
    fn clone(&self) -> Frame {
        let mut frame = Frame::new();
        frame.clone_from(self);
        frame
    }

    /// A copy of a long frame that finds no memory is empty.
    fn clone_from(&mut self, other: &Frame) {
        self.bytes = other.bytes;
        (self.length, self.ingress, self.egress) = (other.length, other.ingress, other.egress);
        if other.is_long() && self.put_long(&other.whole()).is_err() {
            self.length = 0;
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if self.tail != 0 {
            tails::give_back(self.tail);
        }
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
        assert_eq!(frame.receive(1, &[0; LONGEST + 1]), Err(TooLong(LONGEST + 1)));
        assert_eq!((frame.len(), frame.ingress()), (CAPACITY, 3));
        frame.receive(0, &[1, 2]).expect("it fits");
        assert_eq!(frame.bytes(), [1, 2]);
    }

    #[test]
    fn long_frames_are_whole_wherever_they_are_cut() {
        let bytes: Vec<u8> = (0..LONGEST).map(|at| (at % 251) as u8).collect();
        let mut frame = Frame::of(1, &bytes[..60]).expect("it fits");
        for length in [CAPACITY + 1, 9014, LONGEST] {
            frame.receive(4, &bytes[..length]).expect("it fits");
            assert_eq!((frame.len(), frame.bytes().len()), (length, CAPACITY));
            assert_eq!(frame.whole(), &bytes[..length]);
            for at in [0, 14, CAPACITY - 9, CAPACITY, CAPACITY + 5, length - 3, length, length + 2]
            {
                let mut part = [0xaa; 40];
                frame.copy_to(at, &mut part);
                let there = length.saturating_sub(at).min(40);
                assert_eq!(part[..there], bytes[at.min(length)..at.min(length) + there]);
                assert!(part[there..].iter().all(|&byte| byte == 0xaa), "{length} {at}");
            }
        }
        let copy = frame.clone();
        frame.edit(|bytes| bytes[LONGEST - 1] ^= 0xff);
        assert_eq!(copy.whole(), bytes);
        assert_eq!(frame.whole()[LONGEST - 1], bytes[LONGEST - 1] ^ 0xff);
        // Shorter and longer again, and what nobody gave is no part of it.
        frame.set_len(100);
        assert_eq!(frame.whole(), &bytes[..100]);
        frame.receive(0, &[9; 60]).expect("it fits");
        assert_eq!(frame.bytes(), [9; 60]);
        let mut short = Frame::of(0, &[1; CAPACITY]).expect("it fits");
        short.set_len(CAPACITY + 2);
        assert_eq!((short.len(), &short.whole()[CAPACITY - 1..]), (CAPACITY + 2, &[1, 0, 0][..]));
        short.buffer_mut().copy_from_slice(&bytes[..CAPACITY]);
        short.reset_long(2, &bytes[CAPACITY..9014]).expect("it fits");
        assert_eq!(short.whole(), &bytes[..9014]);
    }

    /// As another process may write it into a circuit.
    #[test]
    fn a_number_that_is_no_tail_s_is_harmless() {
        for tail in [77_777, u32::MAX, 60_000] {
            let mut frame = Frame::new();
            (frame.tail, frame.length) = (tail, u16::MAX);
            assert_eq!(frame.whole().len(), LONGEST);
            let mut other = Frame::new();
            other.clone_from(&frame);
            frame.receive(0, &[3; 9000]).expect("it gets one");
            assert_eq!(frame.whole(), &[3; 9000][..]);
        }
    }
}
