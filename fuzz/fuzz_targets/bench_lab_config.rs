//! The reader of bench-lab.sh's configurations never panics; its output is valid TOML and
//! deterministic.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let configs = ["configs/1".to_owned()];
    match fwdlab_model::bench_lab::import("fuzz.config", text, &configs) {
        Ok(imported) => {
            let again = fwdlab_model::bench_lab::import("fuzz.config", text, &configs);
            assert_eq!(again.as_ref(), Ok(&imported));
            if let Err(faults) = fwdlab_model::Lab::parse("lab.toml", &imported.lab) {
                assert!(!faults.to_string().contains("not valid TOML"), "{faults}");
            }
            let loader = |_: &str| Err("no files".into());
            if let Err(faults) = fwdlab_model::load("x.toml", &imported.experiment, &loader) {
                assert!(!faults.to_string().contains("not valid TOML"), "{faults}");
            }
        }
        Err(faults) => assert!(!faults.to_string().is_empty()),
    }
});
