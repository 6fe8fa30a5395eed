//! The parser of stamps never panics. A parsed stamp, when written, equals bytes of the frame.

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
