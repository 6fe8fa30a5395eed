//! The reader of command lines never panics. Joined words split into the same words again, and
//! split words join into an equivalent line.

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
