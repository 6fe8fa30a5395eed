//! The reader of routes never panics. Accepted routes read back unchanged when written, and every
//! error can be formatted.

#![no_main]

use fwdlab_router::routes::text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    match text::read(input) {
        Ok(routes) => {
            let written = text::write(&routes);
            let again = text::read(&written).expect("written by ourselves");
            assert_eq!(written, text::write(&again));
            assert_eq!(routes.inet.len(), again.inet.len());
            assert_eq!(routes.inet6.len(), again.inet6.len());
        }
        Err(error) => assert!(error.count > 0 && !error.to_string().is_empty()),
    }
});
