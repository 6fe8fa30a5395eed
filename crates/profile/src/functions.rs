//! Cost of each function, and its callers.

use super::flat::FlatProfile;
use super::read::{Content, Profile};
use super::stacks::{Frame, Stacks};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A function of a profile; costs are in the profile's unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// Name of the function.
    pub name: String,
    /// Cost of the function itself.
    pub own: f64,
    /// Cost of the function and its callees; a recursive function counts once. `None` if a profile
    /// without stacks does not contain it.
    pub total: Option<f64>,
}

/// Sort key of functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortKey {
    /// Cost of the function itself.
    #[default]
    Own,
    /// Cost of the function and its callees.
    Total,
}

/// All functions of the stacks, the costliest first.
pub fn of_stacks(stacks: &Stacks, by: SortKey) -> Vec<Function> {
    let mut counts: HashMap<&Frame, (u64, u64)> = HashMap::new();
    let mut seen: HashSet<&Frame> = HashSet::new();
    for (frames, count) in stacks.iter() {
        seen.clear();
        for frame in frames {
            if seen.insert(frame) {
                let total = &mut counts.entry(frame).or_default().1;
                *total = total.saturating_add(count);
            }
        }
        if let Some(leaf) = frames.last() {
            let own = &mut counts.entry(leaf).or_default().0;
            *own = own.saturating_add(count);
        }
    }
    let functions = counts.into_iter().map(|(name, (own, total))| Function {
        name: name.to_string(),
        own: own as f64,
        total: Some(total as f64),
    });
    sorted(functions.collect(), by)
}

/// All functions of a profile without stacks, the costliest first.
pub fn of_flat(flat: &FlatProfile, by: SortKey) -> Vec<Function> {
    let functions = flat.functions.iter().map(|function| Function {
        name: function.name.clone(),
        own: function.own,
        total: function.total,
    });
    sorted(functions.collect(), by)
}

/// All functions of a profile, each sample counting as one.
pub fn of_profile(profile: &Profile, by: SortKey) -> Vec<Function> {
    match (&profile.content, profile.stacks()) {
        (Content::Flat(flat), _) => of_flat(flat, by),
        (_, Some(stacks)) => of_stacks(&stacks, by),
        (_, None) => Vec::new(),
    }
}

fn sorted(mut functions: Vec<Function>, by: SortKey) -> Vec<Function> {
    let key = |function: &Function| match by {
        SortKey::Own => function.own,
        SortKey::Total => function.total.unwrap_or(function.own),
    };
    functions.sort_by(|a, b| key(b).total_cmp(&key(a)).then_with(|| a.name.cmp(&b.name)));
    functions
}

/// A function with its callers and callees, as gprof lists it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Neighbours {
    /// The function.
    pub function: Function,
    /// Callers, and the part of the function's total spent on their behalf; the costliest first.
    /// The name is empty for a root.
    pub callers: Vec<Neighbour>,
    /// Callees, and the part of the function's total spent in them.
    pub callees: Vec<Neighbour>,
}

/// A caller or callee.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Neighbour {
    /// Name; empty if there is no caller.
    pub name: String,
    /// Part of the function's total, in the profile's unit.
    pub count: f64,
}

/// Callers and callees of `name`. `None` if it is not on any stack.
///
/// For a recursive function, the caller is the outermost call's and the callee the innermost
/// call's. So the callers sum to the total, and the callees plus the function's own cost do the
/// same.
pub fn neighbours_in_stacks(stacks: &Stacks, name: &str) -> Option<Neighbours> {
    let (mut own, mut total) = (0_u64, 0_u64);
    let mut callers: BTreeMap<&str, u64> = BTreeMap::new();
    let mut callees: BTreeMap<&str, u64> = BTreeMap::new();
    for (frames, count) in stacks.iter() {
        let is_it = |frame: &Frame| frame.as_ref() == name;
        let (Some(outer), Some(inner)) =
            (frames.iter().position(is_it), frames.iter().rposition(is_it))
        else {
            continue;
        };
        total = total.saturating_add(count);
        let caller = outer.checked_sub(1).and_then(|at| frames.get(at)).map_or("", AsRef::as_ref);
        let caller = callers.entry(caller).or_default();
        *caller = caller.saturating_add(count);
        let below = match frames.get(inner + 1) {
            Some(callee) => callees.entry(callee).or_default(),
            None => &mut own,
        };
        *below = below.saturating_add(count);
    }
    let listed = |counts: BTreeMap<&str, u64>| {
        costliest(counts.into_iter().map(|(name, count)| (name, count as f64)))
    };
    (total > 0).then(|| Neighbours {
        function: Function { name: name.to_owned(), own: own as f64, total: Some(total as f64) },
        callers: listed(callers),
        callees: listed(callees),
    })
}

/// Callers and callees in a profile without stacks: the parts are gprof's estimates.
pub fn neighbours_in_flat(flat: &FlatProfile, name: &str) -> Option<Neighbours> {
    let function = flat.function(name)?;
    let callers = flat.edges.iter().filter(|edge| edge.callee == name);
    let callees = flat.edges.iter().filter(|edge| edge.caller == name);
    Some(Neighbours {
        function: Function { name: name.to_owned(), own: function.own, total: function.total },
        callers: costliest(callers.map(|e| (e.caller.as_str(), e.own + e.descendants))),
        callees: costliest(callees.map(|e| (e.callee.as_str(), e.own + e.descendants))),
    })
}

fn costliest<'a>(counts: impl Iterator<Item = (&'a str, f64)>) -> Vec<Neighbour> {
    let mut list: Vec<Neighbour> =
        counts.map(|(name, count)| Neighbour { name: name.to_owned(), count }).collect();
    list.sort_by(|a, b| b.count.total_cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    list
}

#[cfg(test)]
mod tests {
    use super::super::stacks::stacks;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn recursive_function_counts_once() {
        let some = stacks(&[("a;f;f;b", 3), ("a;f", 2), ("c;f;f", 1), ("f", 4)]);
        let functions = of_stacks(&some, SortKey::Total);
        let f = functions.iter().find(|f| f.name == "f").unwrap();
        assert_eq!((f.own, f.total), (7.0, Some(10.0)));
        assert_eq!(functions[0].name, "f");
        let around = neighbours_in_stacks(&some, "f").unwrap();
        let pairs = |list: &[Neighbour]| -> Vec<(String, f64)> {
            list.iter().map(|n| (n.name.clone(), n.count)).collect()
        };
        let named = |list: &[(&str, f64)]| -> Vec<(String, f64)> {
            list.iter().map(|(n, c)| ((*n).to_owned(), *c)).collect()
        };
        assert_eq!(pairs(&around.callers), named(&[("a", 5.0), ("", 4.0), ("c", 1.0)]));
        assert_eq!(pairs(&around.callees), named(&[("b", 3.0)]));
        assert_eq!((around.function.own, around.function.total), (7.0, Some(10.0)));
        assert_eq!(neighbours_in_stacks(&some, "g"), None);
    }

    proptest! {
        #[test]
        fn own_counts_and_neighbours_sum_to_totals(
            lines in prop::collection::vec(("[ab](;[abc]){0,5}", 1..100_u64), 1..12)
        ) {
            let lines: Vec<(&str, u64)> = lines.iter().map(|(s, n)| (s.as_str(), *n)).collect();
            let some = stacks(&lines);
            let functions = of_stacks(&some, SortKey::Own);
            let own: f64 = functions.iter().map(|f| f.own).sum();
            prop_assert_eq!(own, some.total() as f64);
            for function in &functions {
                let around = neighbours_in_stacks(&some, &function.name).unwrap();
                prop_assert_eq!(&around.function, function);
                let sum = |list: &[Neighbour]| list.iter().map(|n| n.count).sum::<f64>();
                prop_assert_eq!(Some(sum(&around.callers)), function.total);
                prop_assert_eq!(Some(sum(&around.callees) + function.own), function.total);
            }
        }
    }
}
