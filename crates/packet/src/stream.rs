//! The packets that one experiment sends, as senders, receivers, agents, guests and generators
//! of other projects must agree on them.

use crate::{Family, Flows, FrameSize};
use serde::{Deserialize, Serialize};

/// Description of a stream of packets. Identity and MACs are added per run: see
/// [`Template::new`](crate::Template::new).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Address family.
    pub family: Family,
    /// Bytes of a frame with FCS, or of the frames of a mix.
    pub frame_size: FrameSize,
    /// Addresses of both sides.
    pub flows: Flows,
}

impl Stream {
    /// A stream of `family` in frames of `frame_size` bytes with FCS, or of a mix of sizes.
    pub fn new(family: Family, frame_size: impl Into<FrameSize>, flows: Flows) -> Stream {
        Stream { family, frame_size: frame_size.into(), flows }
    }
}
