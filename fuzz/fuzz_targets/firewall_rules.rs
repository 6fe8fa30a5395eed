//! The reader of firewall rules never panics. Accepted rules read back unchanged when written and
//! can be installed; every error has a position.

#![no_main]

use fwdlab_router::firewall::{SharedFirewall, StateConfig, StateTable, text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    match text::read(input) {
        Ok(ruleset) => {
            assert_eq!(text::read(&ruleset.to_string()).as_ref(), Ok(&ruleset));
            let config = StateConfig { kind: StateTable::None, ..StateConfig::default() };
            assert!(SharedFirewall::new(&ruleset, &config).is_ok());
            assert_eq!(text::rule_lines(input).len(), ruleset.rules.len());
            assert!(ruleset.shadowed().iter().all(|(rule, earlier)| earlier < rule));
        }
        Err(error) => assert!(error.line > 0 && error.column > 0 && !error.what.is_empty()),
    }
});
