//! No line makes the reader of command lines panic; words that are joined are split into
//! the same words again, and those that were split are joined into a line that means them.

#![no_main]

use fwdlab_model::words::{join, split};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match split(text) {
        Ok(words) => {
            assert!(!words.is_empty());
            assert_eq!(split(&join(&words)), Ok(words));
        }
        Err(why) => assert!(!why.is_empty()),
    }
    let words: Vec<&str> = text.split('\0').collect();
    let again = split(&join(&words)).expect("joined");
    assert_eq!(again, words);
});
