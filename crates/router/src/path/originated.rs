//! Frames that the router originates (fragments, redirects, neighbour requests), which have no
//! place in the received batch.

use fwdlab_netio::frame::{Batch, Frame};
use std::collections::VecDeque;

/// Maximum number of frames that wait to be taken, a common size of a NIC's ring.
pub(super) const EMITTED_MAX: usize = 256;

/// The frames, oldest first.
#[derive(Debug, Default)]
pub(super) struct OriginatedFrames {
    frames: VecDeque<Frame>,
}

impl OriginatedFrames {
    /// Number of frames that still fit.
    pub(super) fn room(&self) -> usize {
        EMITTED_MAX - self.frames.len()
    }

    /// Adds a frame; returns false if there is no room.
    pub(super) fn push(&mut self, frame: Frame) -> bool {
        let has_room = self.room() > 0;
        if has_room {
            self.frames.push_back(frame);
        }
        has_room
    }

    /// Moves as many frames as fit to `work`, replacing its contents.
    pub(super) fn take(&mut self, work: &mut Batch) -> usize {
        work.clear();
        while let Some(frame) = self.frames.front()
            && let Some(place) = work.grow()
        {
            place.clone_from(frame);
            self.frames.pop_front();
        }
        work.frames().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_netio::frame::BATCH;

    #[test]
    fn frames_are_taken_in_order_and_limited() {
        let mut emitted = OriginatedFrames::default();
        for number in 0..EMITTED_MAX {
            let mut frame = Frame::of(1, &[number as u8]).expect("it fits");
            frame.send_to(2);
            assert!(emitted.push(frame));
        }
        assert!(!emitted.push(Frame::new()));
        let mut work = Batch::new();
        let mut numbers = Vec::new();
        while emitted.take(&mut work) > 0 {
            assert!(work.frames().len() <= BATCH);
            numbers.extend(work.frames().iter().map(|frame| (frame.bytes()[0], frame.egress())));
        }
        assert_eq!(numbers, (0..=255).map(|number| (number, Some(2))).collect::<Vec<_>>());
        assert_eq!(emitted.room(), EMITTED_MAX);
    }
}
