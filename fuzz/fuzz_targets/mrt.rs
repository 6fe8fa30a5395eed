//! The reader of MRT dumps never panics. Errors have an offset within the file, and every route has
//! a next hop. Each record of a file is read or counted as left out.

#![no_main]

use fwdlab_router::routes::mrt;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| match mrt::read(bytes) {
    Ok(dump) => {
        let hops = &dump.routes.next_hops;
        assert!(dump.routes.inet.iter().all(|(_, hop)| hops.via(*hop).is_some()));
        assert!(dump.routes.inet6.iter().all(|(_, hop)| hops.via(*hop).is_some()));
        assert_eq!(dump.records(), records(bytes));
        assert_eq!(dump.remark().is_some(), dump.left_out() > 0);
        if let Err(error) = dump.check() {
            assert!(error.offset <= bytes.len() && error.to_string().contains("next step"));
        }
    }
    Err(error) => assert!(error.offset <= bytes.len() && !error.what.is_empty()),
});

/// Number of records, by their lengths.
fn records(mut bytes: &[u8]) -> u64 {
    let mut count = 0;
    while let Some((header, rest)) = bytes.split_at_checked(12) {
        let length = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        bytes = &rest[length as usize..];
        count += 1;
    }
    count
}
