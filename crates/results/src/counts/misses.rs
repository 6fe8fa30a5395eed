//! What a model of caches missed while a device was counted.

use super::total::Foreground;
use crate::stats::summary::median;
use fwdlab_model::record::{Executed, Misses};
use serde::Serialize;
use std::collections::BTreeMap;

/// What must stand beside every such figure.
pub const OF_A_MODEL: &str = "Misses are those of a model, of no machine: nothing is fetched ahead \
                              in it, addresses are virtual, and programs, page tables and what \
                              devices write are not in it.";

/// Misses a packet of one variant: medians over its runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Modelled {
    /// The caches, in words.
    pub model: String,
    /// All functions together.
    pub total: Misses,
    /// By function, those first that miss most data.
    pub functions: Vec<FunctionMisses>,
}

/// Misses a packet of one function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionMisses {
    /// Its name.
    pub name: String,
    /// The misses.
    #[serde(flatten)]
    pub misses: Misses,
}

/// Reads and writes, and misses in the caches of instructions, of data and behind them.
fn words(misses: &Misses) -> [f64; 4] {
    let Misses { references, code, data, last } = *misses;
    [references, code, data, last]
}

fn of([references, code, data, last]: [f64; 4]) -> Misses {
    Misses { references, code, data, last }
}

/// The misses of one variant's runs; none where caches were not modelled in all of them.
pub(crate) fn misses(runs: &[&Executed], foreground: &Foreground) -> Option<Modelled> {
    let model = runs.first().map(|run| run.caches.clone()).filter(|model| !model.is_empty())?;
    if runs.iter().any(|run| run.caches != model) {
        return None;
    }
    let mut by_name: BTreeMap<&str, Vec<[f64; 4]>> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        for function in foreground.functions(run) {
            // A run that lacks it misses next to nothing in it.
            let own = by_name.entry(&function.name).or_insert_with(|| vec![[0.0; 4]; runs.len()]);
            own[at] = function.misses.as_ref().map(words).unwrap_or_default();
        }
    }
    let function = |(name, own): (&str, Vec<[f64; 4]>)| {
        let middle = |word: usize| {
            median(&own.iter().map(|words| words[word]).collect::<Vec<_>>()).unwrap_or(0.0)
        };
        FunctionMisses { name: name.to_owned(), misses: of(std::array::from_fn(middle)) }
    };
    let mut functions: Vec<FunctionMisses> = by_name.into_iter().map(function).collect();
    let total = functions.iter().fold([0.0; 4], |sum: [f64; 4], function| {
        let own = words(&function.misses);
        std::array::from_fn(|word| sum[word] + own[word])
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
    fn misses_are_medians_of_runs_and_background_is_left_out() {
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
