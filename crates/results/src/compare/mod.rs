//! Compares values in files and stores: `fwdlab compare`.
//!
//! Arguments become inputs (lists of values, tables, stores), inputs become pairs of variants,
//! pairs become comparisons. All comparisons of a command are one family. Variants with common
//! blocks are compared within blocks, others as independent samples. Invalid comparisons (simulated
//! with measured values, virtual testbeds with hardware, different units, different plans) are
//! rejected with the reason.
//!
//! [`compare()`] computes the results, [`Results::document`] renders them. Out of scope: pictures
//! and whole reports ([`crate::report`]), and any statistic that is not in [`crate::stats`].

mod argument;
mod beds;
mod columns;
mod contents;
mod counts;
mod document;
mod doubts;
mod error;
mod figures;
mod input;
mod pairs;
mod peers;
mod read;
mod records;
mod results;
mod sidecar;
mod stored;

pub use contents::{BenchmarkResult, FileContents, Selection, contents};
pub use error::CompareError;
pub use input::Kind;
pub use results::{InputResult, Results, VariantResult};

use crate::short_names;
use crate::stats::Adjustment;
use crate::store::Store;
use argument::Argument;
use input::Input;
use pairs::{NamedVariants, Pairs};
use peers::Choice;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Request of the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Files, directories with a store, `FILE:LABEL`.
    pub arguments: Vec<String>,
    /// Label of the baseline if one argument contains several variants.
    pub baseline: Option<String>,
    /// True if line k of each file belongs to block k.
    pub blocked: bool,
    /// Confidence in percent. `None` for the confidence of the first argument's plan, or 95.
    pub confidence: Option<f64>,
    /// Margin of equivalence as a ratio. `None` for the margin of the first argument's plan, or
    /// 0.02.
    pub margin: Option<f64>,
    /// Adjustment of p-values for the number of comparisons.
    pub adjustment: Adjustment,
    /// Name of the benchmark to read from files of other tools. `None` for the only one.
    pub only: Option<String>,
    /// Name of the value to read from files of other tools. `None` for the usual one.
    pub column: Option<String>,
}

impl Question {
    fn choice(&self, has_label: bool) -> Choice<'_> {
        Choice {
            only: self.only.as_deref(),
            column: self.column.as_deref(),
            has_label,
            is_single_enough: false,
        }
    }
}

/// Reads the arguments and compares them.
///
/// # Errors
/// Fails if the question or a file is invalid, before anything is computed. A pair with too few
/// runs is not an error, but has no result.
pub fn compare(question: &Question) -> Result<Results, CompareError> {
    let mut inputs: Vec<Input> = Vec::new();
    let mut known: HashMap<PathBuf, usize> = HashMap::new();
    let mut named = Vec::new();
    let arguments = question.arguments.iter().map(|text| Argument::of(text));
    let arguments: Vec<Argument> = arguments.collect::<Result<_, _>>()?;
    // Two names of one file are one input; a pipe has only one name.
    let identity = |argument: &Argument| {
        std::fs::canonicalize(&argument.path).unwrap_or_else(|_| argument.path.clone())
    };
    let labelled: HashSet<PathBuf> =
        arguments.iter().filter(|argument| argument.label.is_some()).map(identity).collect();
    for argument in &arguments {
        let identity = identity(argument);
        let input = match known.get(&identity) {
            Some(&input) => input,
            None => {
                let has_label = labelled.contains(&identity);
                inputs.push(read::read(&argument.path, question.choice(has_label))?);
                known.insert(identity, inputs.len() - 1);
                inputs.len() - 1
            }
        };
        let variant = match &argument.label {
            Some(label) => Some(inputs[input].variant(label)?),
            None => None,
        };
        named.push(NamedVariants { input, variant });
    }
    name(&mut inputs);
    answer(question, &inputs, &named)
}

/// Compares the variants of one open store; `question` names no arguments.
///
/// # Errors
/// Fails like [`compare()`].
pub fn compare_store(question: &Question, store: &Store) -> Result<Results, CompareError> {
    let input = stored::of_store(store.path(), store)?;
    answer(question, &[input], &[NamedVariants { input: 0, variant: None }])
}

/// Compares texts as if they were files with these names; `question` names no arguments.
///
/// # Errors
/// Fails like [`compare()`].
pub fn compare_texts(
    question: &Question,
    texts: &[(impl AsRef<Path>, impl AsRef<str>)],
) -> Result<Results, CompareError> {
    let mut inputs: Vec<Input> = texts
        .iter()
        .map(|(path, text)| read::of_text(path.as_ref(), text.as_ref(), question.choice(false)))
        .collect::<Result<_, _>>()?;
    name(&mut inputs);
    let named: Vec<NamedVariants> =
        (0..inputs.len()).map(|input| NamedVariants { input, variant: None }).collect();
    answer(question, &inputs, &named)
}

/// Gives the inputs short, distinct names.
fn name(inputs: &mut [Input]) {
    let paths: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    for (input, name) in inputs.iter_mut().zip(short_names(&paths)) {
        input.name = name;
    }
}

fn answer(
    question: &Question,
    inputs: &[Input],
    named: &[NamedVariants],
) -> Result<Results, CompareError> {
    let pairs = Pairs::of(question, inputs, named)?;
    results::results(question, inputs, named, &pairs)
}
