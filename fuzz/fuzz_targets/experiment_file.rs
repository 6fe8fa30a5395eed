//! The reader of experiment files never panics. It yields the same plan for the same text, and
//! every error can be formatted.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let loader = |_: &str| Ok("table inet filter { }\n".into());
    match fwdlab_model::load("fuzz.toml", text, &loader) {
        Ok(plan) => {
            let again = fwdlab_model::load("fuzz.toml", text, &loader).expect("accepted before");
            assert_eq!(plan, again);
        }
        Err(faults) => assert!(!faults.to_string().is_empty()),
    }
});
