//! The readers of profiles and the functions that use their results never panic. Splitting and
//! drawing neither loses nor adds samples.

#![no_main]

use fwdlab_results::profile::draw::{Look, flame_graph};
use fwdlab_results::profile::functions::{SortKey, neighbours_in_stacks};
use fwdlab_results::profile::{FilteredProfile, Filter, KeptPart, Subsystems, document, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(profile) = read(bytes) else { return };
    let divided = FilteredProfile::of(&profile, &Filter::default(), false);
    let _ = document::summary(&divided.summary, "fuzz");
    let _ = document::functions(&divided, SortKey::Total, 9);
    if let KeptPart::Stacks(kept) = &divided.kept {
        let _ = flame_graph(kept, &Look::default());
        let _ = Subsystems::default().of_stacks(kept);
        for function in divided.kept.functions(SortKey::Own).iter().take(3) {
            assert!(neighbours_in_stacks(kept, &function.name).is_some());
        }
        let split = Filter::default().split(&profile.stacks().expect("there are stacks"));
        assert_eq!(split.work.total(), kept.total());
    }
});
