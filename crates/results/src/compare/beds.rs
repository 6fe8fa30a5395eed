//! Comparisons between beds, and their wording.

use super::input::Input;
use crate::format::listed;

/// The description, with the beds if they differ.
pub(super) fn with_beds(inputs: &[Input], question: &str) -> String {
    match between(inputs) {
        Some((first, others)) => {
            let s = if others.len() == 1 { "" } else { "s" };
            format!("bed{s} {} against bed {first}: {question}", listed(&others))
        }
        None => question.to_owned(),
    }
}

/// Caveats about values of several beds.
pub(super) fn notes(inputs: &[Input]) -> Vec<String> {
    let named: Vec<&Input> = inputs.iter().filter(|input| !input.beds.is_empty()).collect();
    let differ = named.iter().any(|input| input.beds != named[0].beds);
    if !differ {
        return Vec::new();
    }
    let of = |input: &&Input| format!("{} of {}", input.name, listed(&input.beds));
    let each: Vec<String> = named.iter().map(of).collect();
    vec![format!(
        "this holds beds against each other ({}): what differs may be the machines; variants of one \
         bed are told apart by `fwdlab compare` of its store alone",
        each.join(", ")
    )]
}

/// Bed of the first input and beds of the others. `None` unless each input is of one bed and the
/// beds differ.
fn between(inputs: &[Input]) -> Option<(&String, Vec<String>)> {
    let beds = inputs.iter().map(|input| match input.beds.as_slice() {
        [bed] => Some(bed),
        _ => None,
    });
    let beds: Vec<&String> = beds.collect::<Option<_>>()?;
    let (first, rest) = beds.split_first()?;
    let mut others: Vec<String> = rest.iter().map(|bed| (*bed).clone()).collect();
    others.dedup();
    (!others.is_empty() && others.iter().all(|bed| bed != *first)).then_some((first, others))
}
