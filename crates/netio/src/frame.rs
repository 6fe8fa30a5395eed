//! Buffers for single Ethernet frames, and batches of them.
//!
//! A frame of a link with an MTU of 1500 fits in its buffer. The buffer holds the beginning of a
//! longer frame, which includes everything a router reads; the rest is stored elsewhere (`tails`),
//! at no cost to shorter frames.

mod tails;

use std::borrow::Cow;

/// Bytes of a frame, without FCS, that fit in its buffer: an IP packet of 1578 bytes.
///
/// With the four bytes before them a minimum-size frame fills exactly one cache line. A buffer
/// takes 25 lines, an odd number, so that the beginnings of adjacent frames fall into different
/// sets of a cache.
pub const CAPACITY: usize = 1592;
/// Maximum bytes of a frame, without FCS.
pub const LONGEST: usize = CAPACITY + tails::TAIL;
/// Reserved number that means no port.
const NO_PORT: u8 = u8::MAX;

/// Maximum number of frames in a batch.
pub const BATCH: usize = 64;

const _: () = assert!(size_of::<Frame>() == 25 * 64);

/// One Ethernet frame without FCS, with its ingress and egress ports.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Frame {
    length: u16,
    ingress: u8,
    egress: u8,
    bytes: [u8; CAPACITY],
    /// Number of the tail with the bytes beyond the buffer; 0 for none. The buffer keeps it for the
    /// next long frame.
    tail: u32,
}

/// The frame exceeds [`LONGEST`], or there is no memory for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {0} bytes: a buffer has {LONGEST}")]
pub struct TooLong(pub usize);

impl Frame {
    /// Creates an empty buffer.
    pub const fn new() -> Frame {
        Frame { length: 0, ingress: 0, egress: NO_PORT, bytes: [0; CAPACITY], tail: 0 }
    }

    /// Creates a frame received at port `ingress`.
    ///
    /// # Errors
    /// If the frame doesn't fit.
    pub fn of(ingress: u8, bytes: &[u8]) -> Result<Frame, TooLong> {
        let mut frame = Frame::new();
        frame.receive(ingress, bytes)?;
        Ok(frame)
    }

    /// Fills this buffer with a frame received at port `ingress`, without an egress yet.
    ///
    /// # Errors
    /// If the frame doesn't fit.
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

    /// Turns the first `length` bytes of the buffer into a frame received at port `ingress`,
    /// without an egress yet.
    #[inline(always)]
    pub fn reset(&mut self, ingress: u8, length: usize) {
        self.set_len(length);
        self.ingress = ingress;
        self.egress = NO_PORT;
    }

    /// Like [`Frame::reset`], for a frame that consists of the whole buffer followed by `rest`.
    ///
    /// # Errors
    /// If the frame doesn't fit.
    pub fn reset_long(&mut self, ingress: u8, rest: &[u8]) -> Result<(), TooLong> {
        self.put_tail(rest)?;
        self.reset(ingress, CAPACITY + rest.len());
        Ok(())
    }

    /// Returns the frame's bytes from the destination MAC on; the first [`CAPACITY`] of a long
    /// frame.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len().min(CAPACITY)]
    }

    /// Returns all bytes; copies a long frame. Bytes never written are 0.
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

    /// Fills `to` with the bytes from `at` on; the rest of `to` keeps its contents.
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

    /// Changes the frame's bytes, but not their number.
    pub fn edit<T>(&mut self, change: impl FnOnce(&mut [u8]) -> T) -> T {
        if !self.is_long() {
            let length = self.len();
            return change(&mut self.bytes[..length]);
        }
        let mut bytes = self.whole().into_owned();
        let result = change(&mut bytes);
        // Cannot fail: the frame has its tail already.
        let _ = self.put_long(&bytes);
        result
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        // Never more than that, which the compiler cannot know.
        usize::from(self.length).min(LONGEST)
    }

    /// True if the frame extends beyond its buffer.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.len() > CAPACITY
    }

    /// True if the frame has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Port that received the frame.
    #[inline]
    pub fn ingress(&self) -> u8 {
        self.ingress
    }

    /// Port that sends the frame; `None` if the frame is not sent.
    #[inline]
    pub fn egress(&self) -> Option<u8> {
        (self.egress != NO_PORT).then_some(self.egress)
    }

    /// Returns the whole buffer. Bytes after [`Frame::len`] are not part of the frame and must not
    /// be read.
    #[inline(always)]
    pub fn buffer(&self) -> &[u8; CAPACITY] {
        &self.bytes
    }

    /// Like [`Frame::buffer`], for writing.
    #[inline(always)]
    pub fn buffer_mut(&mut self) -> &mut [u8; CAPACITY] {
        &mut self.bytes
    }

    /// Shortens the frame, or extends it by bytes written to the buffer.
    #[inline(always)]
    pub fn set_len(&mut self, length: usize) {
        self.length = length.min(LONGEST) as u16;
    }

    /// Sends the frame out of this port.
    #[inline(always)]
    pub fn send_to(&mut self, port: u8) {
        self.egress = port;
    }

    /// Does not send the frame.
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

    /// Copies the frame. If there is no memory for a long frame, the copy is empty.
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

/// Buffers for [`BATCH`] frames, the first `count` of which are in use.
#[derive(Clone, Debug)]
pub struct Batch {
    frames: Box<[Frame]>,
    count: usize,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Batch {
        Batch { frames: vec![Frame::new(); BATCH].into_boxed_slice(), count: 0 }
    }

    /// Returns the frames in the batch.
    #[inline]
    pub fn frames(&self) -> &[Frame] {
        &self.frames[..self.count]
    }

    /// Returns the frames in the batch, for writing.
    #[inline]
    pub fn frames_mut(&mut self) -> &mut [Frame] {
        &mut self.frames[..self.count]
    }

    /// Makes the first `count` buffers the batch's frames, whatever they contain, and returns them.
    #[inline]
    pub fn fill(&mut self, count: usize) -> &mut [Frame] {
        self.count = count.min(self.frames.len());
        self.frames_mut()
    }

    /// Adds a buffer as the batch's last frame and returns it; `None` if there is no room.
    #[inline]
    pub fn grow(&mut self) -> Option<&mut Frame> {
        let frame = self.frames.get_mut(self.count)?;
        self.count += 1;
        Some(frame)
    }

    /// Removes all frames.
    #[inline]
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Removes the last frame.
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
    fn frame_rejects_bytes_beyond_longest() {
        let full = [7; CAPACITY];
        let mut frame = Frame::of(3, &full).expect("it fits");
        assert_eq!((frame.bytes(), frame.ingress(), frame.egress()), (&full[..], 3, None));
        assert_eq!(frame.receive(1, &[0; LONGEST + 1]), Err(TooLong(LONGEST + 1)));
        assert_eq!((frame.len(), frame.ingress()), (CAPACITY, 3));
        frame.receive(0, &[1, 2]).expect("it fits");
        assert_eq!(frame.bytes(), [1, 2]);
    }

    #[test]
    fn long_frames_survive_partial_copies() {
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
                let available = length.saturating_sub(at).min(40);
                assert_eq!(part[..available], bytes[at.min(length)..at.min(length) + available]);
                assert!(part[available..].iter().all(|&byte| byte == 0xaa), "{length} {at}");
            }
        }
        let copy = frame.clone();
        frame.edit(|bytes| bytes[LONGEST - 1] ^= 0xff);
        assert_eq!(copy.whole(), bytes);
        assert_eq!(frame.whole()[LONGEST - 1], bytes[LONGEST - 1] ^ 0xff);
        // Shorter and longer again: bytes outside the frame are not part of it.
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

    /// Another process may write such a number into a circuit.
    #[test]
    fn invalid_tail_number_is_harmless() {
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
