//! Published lists of values: assigns them to groups, determines their median rule, and compares
//! them with the logs.

use fwdlab_model::record::Sample;
use fwdlab_results::stats::log_rule;

/// One group's figures by the archive's rule, in the order of `ls`; `None` for failed runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// With the mean of the two middle values as the median.
    pub(super) even: Vec<Option<f64>>,
    /// With the upper middle value as the median.
    pub(super) upper: Vec<Option<f64>>,
}

impl Figures {
    /// Computes the figures from the runs' samples, given in the order of `ls`.
    pub(super) fn of<'a>(runs: impl Iterator<Item = &'a [Sample]>) -> Figures {
        let mut figures = Figures::default();
        for samples in runs {
            figures.even.push(log_rule::netbenches_pps(samples, false));
            figures.upper.push(log_rule::netbenches_pps(samples, true));
        }
        figures
    }

    /// Returns the figures of searches: their results, in the unit of the published lists.
    pub(super) fn found(estimates: impl Iterator<Item = Option<f64>>) -> Figures {
        let even: Vec<Option<f64>> = estimates.collect();
        Figures { upper: even.clone(), even }
    }

    /// Returns the values by one of the rules, without failed runs.
    pub(super) fn values(&self, upper: bool) -> Vec<f64> {
        let all = if upper { &self.upper } else { &self.even };
        all.iter().flatten().copied().collect()
    }
}

/// A published list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct List {
    /// Its file name, without folders.
    pub(super) base: String,
    /// Its values.
    pub(super) values: Vec<f64>,
}

/// Result of comparing a list with the logs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Agreement {
    /// All values are equal.
    Equal,
    /// Some values differ; contains a sentence with the difference.
    Different(String),
}

/// Returns true if a file of this name may be the list of `group`.
pub(super) fn is_called(base: &str, group: &str) -> bool {
    let names = [format!("{group}.pps"), format!("pps.{group}"), format!("bench.{group}.pps")];
    names.iter().any(|name| name == base)
        || (!group.is_empty() && base == group)
        || (group.is_empty() && base == "bench.pps")
}

/// Returns the list of each group, matched by name, otherwise by values.
pub(super) fn assign(lists: &[List], groups: &[(&str, &Figures)]) -> Vec<Option<usize>> {
    let mut used = vec![false; lists.len()];
    let mut assigned: Vec<Option<usize>> = groups
        .iter()
        .map(|(name, _)| {
            let found = lists.iter().position(|list| is_called(&list.base, name))?;
            used[found] = true;
            Some(found)
        })
        .collect();
    for (slot, (_, figures)) in assigned.iter_mut().zip(groups) {
        if slot.is_none() {
            let same = |(at, list): (usize, &List)| {
                let equal = [false, true].iter().any(|upper| figures.values(*upper) == list.values);
                (equal && !used[at]).then_some(at)
            };
            *slot = lists.iter().enumerate().find_map(same);
            if let Some(found) = *slot {
                used[found] = true;
            }
        }
    }
    assigned
}

/// Returns true if the lists were made with the upper median: more of them match with it than
/// without it.
pub(super) fn is_upper<'a>(pairs: impl Iterator<Item = (&'a List, &'a Figures)>) -> bool {
    let (mut upper, mut even) = (0, 0);
    for (list, figures) in pairs {
        upper += usize::from(figures.values(true) == list.values);
        even += usize::from(figures.values(false) == list.values);
    }
    upper > even
}

/// Compares a list with the figures of its group.
pub(super) fn agreement(list: &List, figures: &Figures, upper: bool) -> Agreement {
    let computed = figures.values(upper);
    if computed == list.values {
        return Agreement::Equal;
    }
    let (published, found) = (list.values.len(), computed.len());
    if published != found {
        return Agreement::Different(format!(
            "{} has {published} values, the logs give {found}",
            list.base
        ));
    }
    let differences: Vec<String> = list
        .values
        .iter()
        .zip(&computed)
        .enumerate()
        .filter(|(_, (a, b))| a != b)
        .map(|(i, (a, b))| {
            let (a, b) = (log_rule::printed(*a), log_rule::printed(*b));
            format!("value {} is {a} there and {b} in the log", i + 1)
        })
        .collect();
    let first = differences.first().cloned().unwrap_or_default();
    let more = match differences.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    Agreement::Different(format!("{}: {first}{more}", list.base))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(base: &str, values: &[f64]) -> List {
        List { base: base.to_owned(), values: values.to_vec() }
    }

    fn figures(even: &[f64], upper: &[f64]) -> Figures {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect();
        Figures { even: some(even), upper: some(upper) }
    }

    #[test]
    fn assign_matches_by_name_then_by_value() {
        let (a, b) = (figures(&[1.0, 2.0], &[1.0, 3.0]), figures(&[5.0, 6.0], &[5.0, 6.0]));
        let lists = [list("odd-name", &[5.0, 6.0]), list("pps.a", &[9.0])];
        assert_eq!(assign(&lists, &[("a", &a), ("b", &b)]), [Some(1), Some(0)]);
        assert!(is_called("pf.inet4", "pf.inet4") && is_called("bench.pps", ""));
        assert!(!is_called("", ""));
    }

    #[test]
    fn is_upper_detects_the_median_rule() {
        let group = figures(&[1.0, 2.0], &[1.0, 3.0]);
        let pairs = [(list("x", &[1.0, 3.0]), group.clone())];
        assert!(is_upper(pairs.iter().map(|(list, figures)| (list, figures))));
        assert!(!is_upper(std::iter::empty()));
        assert_eq!(agreement(&pairs[0].0, &group, true), Agreement::Equal);
        let Agreement::Different(why) = agreement(&pairs[0].0, &group, false) else { panic!() };
        assert_eq!(why, "x: value 2 is 3 there and 2 in the log");
    }
}
