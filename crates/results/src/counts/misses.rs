//! Misses of a model of caches, recorded while counting a device.

use super::total::Foreground;
use crate::stats::summary::median;
use fwdlab_model::record::{Executed, Misses};
use serde::Serialize;
use std::collections::BTreeMap;

/// Caveat to print with every such number.
pub const OF_A_MODEL: &str = "Misses are those of a model, of no machine: nothing is fetched ahead \
                              in it, addresses are virtual, and programs, page tables and what \
                              devices write are not in it.";

/// Misses per packet of one variant: medians over its runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Modelled {
    /// Description of the caches.
    pub model: String,
    /// All functions together.
    pub total: Misses,
    /// By function, most data misses first.
    pub functions: Vec<FunctionMisses>,
}

/// Misses per packet of one function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionMisses {
    /// Its name.
    pub name: String,
    /// The misses.
    #[serde(flatten)]
    pub misses: Misses,
}

/// Converts misses to an array: references, then misses of instruction, data and last-level cache.
fn words(misses: &Misses) -> [f64; 4] {
    let Misses { references, code, data, last } = *misses;
    [references, code, data, last]
}

fn of([references, code, data, last]: [f64; 4]) -> Misses {
    Misses { references, code, data, last }
}

/// Returns the misses of one variant's runs; `None` unless all runs modelled the same caches.
pub(crate) fn misses(runs: &[&Executed], foreground: &Foreground) -> Option<Modelled> {
    let model = runs.first().map(|run| run.caches.clone()).filter(|model| !model.is_empty())?;
    if runs.iter().any(|run| run.caches != model) {
        return None;
    }
    let mut by_name: BTreeMap<&str, Vec<[f64; 4]>> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        for function in foreground.functions(run) {
            // A run without the function misses next to nothing in it.
            let values =
                by_name.entry(&function.name).or_insert_with(|| vec![[0.0; 4]; runs.len()]);
            values[at] = function.misses.as_ref().map(words).unwrap_or_default();
        }
    }
    let function = |(name, values): (&str, Vec<[f64; 4]>)| {
        let middle = |word: usize| {
            median(&values.iter().map(|words| words[word]).collect::<Vec<_>>()).unwrap_or(0.0)
        };
        FunctionMisses { name: name.to_owned(), misses: of(std::array::from_fn(middle)) }
    };
    let mut functions: Vec<FunctionMisses> = by_name.into_iter().map(function).collect();
    let total = functions.iter().fold([0.0; 4], |sum: [f64; 4], function| {
        let values = words(&function.misses);
        std::array::from_fn(|word| sum[word] + values[word])
    });
    functions
        .sort_by(|a, b| b.misses.data.total_cmp(&a.misses.data).then_with(|| a.name.cmp(&b.name)));
    Some(Modelled { model, total: of(total), functions })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::ExecutedFunction;

    fn run(model: &str, data: f64) -> Executed {
        let function = |name: &str, misses, is_background| ExecutedFunction {
            name: name.into(),
            bursts: vec![10.0; 3],
            misses: Some(misses),
            is_background,
            ..ExecutedFunction::default()
        };
        Executed {
            caches: model.into(),
            functions: vec![
                function("forward", of([20.0, 1.0, 0.5, 0.0]), false),
                function("lookup", of([5.0, 0.0, data, 2.0]), false),
                function("tick", of([9.0; 4]), true),
            ],
            ..Executed::default()
        }
    }

    #[test]
    fn misses_are_medians_without_background() {
        let runs = [run("L1", 3.0), run("L1", 90.0), run("L1", 4.0)];
        let foreground = Foreground::of(&runs);
        let found = misses(&runs.iter().collect::<Vec<_>>(), &foreground).expect("modelled");
        assert_eq!(found.total, of([25.0, 1.0, 4.5, 2.0]));
        assert_eq!(found.functions[0].name, "lookup");
        assert_eq!(found.functions.len(), 2);
        let others = [run("L1", 3.0), run("", 3.0)];
        assert_eq!(misses(&others.iter().collect::<Vec<_>>(), &foreground), None);
    }
}
