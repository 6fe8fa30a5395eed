//! Direct calls between functions.

use crate::build::Build;
use crate::function::Function;
use crate::image::plain;
use crate::reference::Use;
use std::collections::{BTreeMap, BTreeSet};

/// Returns for each of `functions` (names without suffixes of the compiler) the others that call it,
/// jump to it, or take its address. Calls through pointers are known only where the pointer is
/// written into an instruction.
pub fn callers<'n>(
    build: &Build,
    functions: impl IntoIterator<Item = &'n str>,
) -> BTreeMap<&'n str, BTreeSet<&'n str>> {
    let names: BTreeSet<&str> = functions.into_iter().collect();
    let mut callers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for caller in &names {
        let decoded = build.functions(caller).into_iter().filter_map(Function::decode);
        for function in decoded {
            let references = function.steps.iter().flat_map(|step| &step.references);
            let calls = references.filter(|one| matches!(one.how, Use::Branch | Use::Address));
            for call in calls {
                let Some(target) = function.location.to(call.target) else { continue };
                let target = plain(build.resolve(target).symbol);
                if let Some(target) = names.get(target).filter(|target| *target != caller) {
                    callers.entry(target).or_default().insert(caller);
                }
            }
        }
    }
    callers
}
