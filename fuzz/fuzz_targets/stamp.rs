//! No frame makes the parser of stamps panic, and what it reads out of a frame
//! is there: written back it gives the same bytes.

#![no_main]

use fwdlab_packet::{Stamp, stamp};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|frame: &[u8]| {
    if let Some(found) = Stamp::parse_frame(frame) {
        let mut bytes = [0; stamp::BYTES];
        found.emit(&mut bytes);
        assert!(frame.windows(stamp::BYTES).any(|window| window == bytes), "{found:?}");
    }
});
