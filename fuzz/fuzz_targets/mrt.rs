//! The reader of MRT dumps never panics. Errors have an offset within the file, and every route has
//! a next hop.

#![no_main]

use fwdlab_router::routes::mrt;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| match mrt::read(bytes) {
    Ok(dump) => {
        let hops = &dump.routes.next_hops;
        assert!(dump.routes.inet.iter().all(|(_, hop)| hops.via(*hop).is_some()));
        assert!(dump.routes.inet6.iter().all(|(_, hop)| hops.via(*hop).is_some()));
    }
    Err(error) => assert!(error.offset <= bytes.len() && !error.what.is_empty()),
});
