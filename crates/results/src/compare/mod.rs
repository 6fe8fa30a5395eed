//! Compares figures in files and stores: `fwdlab compare`.
//!
//! Arguments become inputs (lists of figures, tables, stores), inputs become
//! pairs of variants, pairs become comparisons; all comparisons of a command are
//! one family. Variants with common blocks are compared within blocks, others as
//! independent samples. Invalid comparisons (simulated with measured figures,
//! virtual testbeds with hardware, different units, different plans) are refused
//! with the reason.
//!
//! [`compare()`] answers, [`Results::document`] says it in every form. What is deliberately left out: pictures and whole reports
//! ([`crate::report`]), and any number that isn't already in [`crate::stats`].

mod argument;
mod beds;
mod counts;
mod document;
mod doubts;
mod error;
mod figures;
mod input;
mod pairs;
mod read;
mod records;
mod results;
mod sidecar;
mod stored;

pub use error::CompareError;
pub use input::Kind;
pub use results::{InputResult, Results, VariantResult};

use crate::short_names;
use crate::stats::Adjustment;
use crate::store::Store;
use argument::Argument;
use input::Input;
use pairs::{Named, Pairs};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Request of the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Files, directories with a store, `FILE:LABEL`.
    pub arguments: Vec<String>,
    /// Label of the baseline where one argument holds several variants.
    pub baseline: Option<String>,
    /// True when line k of each file belongs to block k.
    pub blocked: bool,
    /// Confidence in percent; none for that of the first argument's plan, or 95.
    pub confidence: Option<f64>,
    /// Margin of equivalence as a ratio; none for that of the first argument's
    /// plan, or 0.02.
    pub margin: Option<f64>,
    /// How p-values are adjusted for the number of comparisons.
    pub adjustment: Adjustment,
}

/// Reads what is named and compares it.
///
/// # Errors
/// Whatever is wrong with the question or the files, before anything is
/// computed; a pair that has too few runs is no error but has no answer.
pub fn compare(question: &Question) -> Result<Results, CompareError> {
    let mut inputs: Vec<Input> = Vec::new();
    let mut known: HashMap<PathBuf, usize> = HashMap::new();
    let mut named = Vec::new();
    for text in &question.arguments {
        let argument = Argument::of(text)?;
        // One file by two names is one file; a pipe has no other name.
        let identity =
            std::fs::canonicalize(&argument.path).unwrap_or_else(|_| argument.path.clone());
        let input = match known.get(&identity) {
            Some(&input) => input,
            None => {
                inputs.push(read::read(&argument.path)?);
                known.insert(identity, inputs.len() - 1);
                inputs.len() - 1
            }
        };
        let variant = match &argument.label {
            Some(label) => Some(inputs[input].variant(label)?),
            None => None,
        };
        named.push(Named { input, variant });
    }
    name(&mut inputs);
    answer(question, &inputs, &named)
}

/// Compares the variants of one open store; `question` names no arguments.
///
/// # Errors
/// As [`compare()`].
pub fn compare_store(question: &Question, store: &Store) -> Result<Results, CompareError> {
    let input = stored::of_store(store.path(), store)?;
    answer(question, &[input], &[Named { input: 0, variant: None }])
}

/// Compares texts as if they were files of these names; `question` names no
/// arguments.
///
/// # Errors
/// As [`compare()`].
pub fn compare_texts(
    question: &Question,
    texts: &[(impl AsRef<Path>, impl AsRef<str>)],
) -> Result<Results, CompareError> {
    let mut inputs: Vec<Input> = texts
        .iter()
        .map(|(path, text)| figures::read(path.as_ref(), text.as_ref()))
        .collect::<Result<_, _>>()?;
    name(&mut inputs);
    let named: Vec<Named> = (0..inputs.len()).map(|input| Named { input, variant: None }).collect();
    answer(question, &inputs, &named)
}

/// Names the inputs by what distinguishes their paths.
fn name(inputs: &mut [Input]) {
    let paths: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    for (input, name) in inputs.iter_mut().zip(short_names(&paths)) {
        input.name = name;
    }
}

fn answer(question: &Question, inputs: &[Input], named: &[Named]) -> Result<Results, CompareError> {
    let pairs = Pairs::of(question, inputs, named)?;
    results::results(question, inputs, named, &pairs)
}
