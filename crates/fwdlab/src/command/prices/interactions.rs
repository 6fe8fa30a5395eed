//! Interactions: pairs of features whose price together is not the sum of their prices.
//!
//! For each function, the count with both features is compared with the count with the first one plus
//! the price of the second one. Plain forwarding of each boot is subtracted, as in the history of
//! prices ([`super::history`]), and the difference is judged as all comparisons of counts.

use super::catalogue::{Feature, Pair};
use super::history::{Contribution, contributions, is_beyond_margin, with_plain_of};
use super::store::{Outcome, PriceList};
use fwdlab_model::record::Executed;
use fwdlab_results::counts::{CountVerdict, Repetition, compare_executed};
use serde::Serialize;

/// A pair of features in a kernel.
#[derive(Serialize)]
pub(super) struct Interaction {
    pub(super) kernel: String,
    /// Names of the features, in the order in which they are set up.
    pub(super) first: String,
    pub(super) second: String,
    #[serde(flatten)]
    pub(super) result: Additivity,
}

/// The price of a pair in relation to the prices of its parts.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(super) enum Additivity {
    /// All three were counted.
    Counted {
        /// Sum of the two prices, instructions per packet.
        sum: f64,
        /// Price of both together.
        together: f64,
        /// Sum over the functions that differ from the sum of both prices.
        difference: f64,
        verdict: Interacting,
        /// Functions with the largest differences.
        functions: Vec<Contribution>,
    },
    /// The kernel lacks one of them, or cannot have both.
    Absent { why: String },
    /// One of the three was not counted yet.
    Missing,
}

/// Verdict on a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Interacting {
    /// The price together is the sum, within the margin.
    Additive,
    /// Together they cost less.
    Cheaper,
    /// Together they cost more.
    Dearer,
    /// The bursts scatter too much.
    Inconclusive,
}

impl Interacting {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Interacting::Additive => "additive",
            Interacting::Cheaper => "cheaper together",
            Interacting::Dearer => "dearer together",
            Interacting::Inconclusive => "inconclusive",
        }
    }
}

/// Evaluates all pairs in each kernel; `price` returns the price of a feature in a kernel.
pub(super) fn interactions(
    (lists, labels): (&[PriceList], &[String]),
    features: &[Feature],
    pairs: &[Pair],
    margin: f64,
    price: impl Fn(&PriceList, &Feature) -> Option<f64>,
) -> Vec<Interaction> {
    let mut all = Vec::new();
    for (list, label) in lists.iter().zip(labels) {
        for pair in pairs {
            let [first, second] = pair.parts.map(|at| &features[at]);
            all.push(Interaction {
                kernel: label.clone(),
                first: first.name.clone(),
                second: second.name.clone(),
                result: additivity(list, [first, second, &pair.both], margin, &price),
            });
        }
    }
    all
}

fn additivity(
    list: &PriceList,
    of: [&Feature; 3],
    margin: f64,
    price: &impl Fn(&PriceList, &Feature) -> Option<f64>,
) -> Additivity {
    let mut counts: Vec<(&Executed, &Executed, f64)> = Vec::new();
    for feature in of {
        match (list.row(feature).map(|row| &row.outcome), price(list, feature)) {
            (Some(Outcome::Counted { plain, executed, .. }), Some(price)) => {
                counts.push((plain, executed, price));
            }
            (Some(Outcome::Absent { why }), _) => return Additivity::Absent { why: why.clone() },
            _ => return Additivity::Missing,
        }
    }
    let &[(plain, a, of_a), (plain_of_b, b, of_b), (plain_of_both, both, together)] = &counts[..]
    else {
        return Additivity::Missing;
    };
    let expected = with_plain_of(a, b, plain_of_b);
    let found = with_plain_of(plain, both, plain_of_both);
    let compared = compare_executed(&[&expected], &[&found], margin, Repetition::Bursts).ok();
    let verdict = match &compared {
        Some(exact) if exact.verdict != CountVerdict::Inconclusive => match is_beyond_margin(exact)
        {
            true if exact.difference < 0.0 => Interacting::Cheaper,
            true => Interacting::Dearer,
            false => Interacting::Additive,
        },
        _ => Interacting::Inconclusive,
    };
    Additivity::Counted {
        sum: of_a + of_b,
        together,
        difference: compared.as_ref().map_or(together - of_a - of_b, |exact| exact.difference),
        verdict,
        functions: compared.as_ref().map(contributions).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue;
    use super::super::document::document;
    use super::super::findings::Findings;
    use super::super::store::{KernelFile, Plain};
    use super::super::tests::executed;
    use super::*;
    use fwdlab_results::document::FORMS;

    const CATALOGUE: &str = r#"
[[feature]]
name = "vlan"
group = "Links"
question = "What does a tag cost?"
set_up = "tag"
undo = "untag"
[[feature]]
name = "flowtable"
group = "Filters"
question = "What does the short path cost?"
set_up = "offload"
undo = "flush"
[[feature]]
name = "counter"
group = "Filters"
question = "What does a counter cost?"
set_up = "count"
undo = "flush"
"#;

    /// Plain forwarding executes 1000 instructions in the boot of single features, and 1040 in the
    /// boot of pairs. A tag costs 200, the short path saves 900 of `ip_forward`, and a counter costs
    /// 50 in `ip_forward`, which the short path does not execute.
    fn findings() -> Findings {
        let features = catalogue::read(CATALOGUE, "test").unwrap();
        let pairs = catalogue::pairs(&features);
        let mut list = PriceList::new(KernelFile::default(), "--family inet".to_owned());
        list.release = "6.1".to_owned();
        let plain = executed(&[("ip_forward", 1000.0)]);
        list.boots.push(Plain::new(&plain, (300, 0)));
        let mut add = |feature: &Feature, base: f64, functions: &[(&str, f64)]| {
            let plain = Box::new(executed(&[("ip_forward", base)]));
            let executed = Box::new(executed(functions));
            list.add(feature, Outcome::Counted { plain, executed, sent: 300, lost: 0 });
        };
        add(&features[0], 1000.0, &[("ip_forward", 1000.0), ("vlan_xmit", 200.0)]);
        add(&features[1], 1000.0, &[("ip_forward", 100.0)]);
        add(&features[2], 1000.0, &[("ip_forward", 1050.0)]);
        add(&pairs[0].both, 1040.0, &[("ip_forward", 140.0), ("vlan_xmit", 200.0)]);
        add(&pairs[2].both, 1040.0, &[("ip_forward", 140.0)]);
        let why = "both are the same chain".to_owned();
        list.add(&pairs[1].both, Outcome::Absent { why });
        Findings::new(&[list], &features, &pairs, 0.02)
    }

    #[test]
    fn pairs_are_compared_with_the_sum_of_their_prices() {
        let found = findings();
        let [first, second, third] = &found.interactions[..] else { panic!("three pairs") };
        let Additivity::Counted { sum, together, difference, verdict, .. } = first.result else {
            panic!("vlan and flowtable are counted")
        };
        assert_eq!((sum, together, difference), (-700.0, -700.0, 0.0));
        assert_eq!(verdict, Interacting::Additive, "other boots don't matter");
        assert!(matches!(&second.result, Additivity::Absent { .. }));
        let Additivity::Counted { sum, together, difference, verdict, functions } = &third.result
        else {
            panic!("flowtable and counter are counted")
        };
        assert_eq!((*sum, *together, *difference), (-850.0, -900.0, -50.0));
        assert_eq!(*verdict, Interacting::Cheaper);
        assert_eq!((functions[0].name.as_str(), functions[0].difference), ("ip_forward", -50.0));
        assert_eq!(found.features.len(), 3, "pairs are no rows of the prices");
    }

    #[test]
    fn table_begins_with_the_largest_interaction() {
        let found = findings();
        let form = FORMS.into_iter().find(|form| form.name == "csv").expect("CSV");
        let csv = (form.render)(&document(&found), 100).expect("a document");
        let place = |row: &str| csv.find(row).unwrap_or_else(|| panic!("no {row} in {csv}"));
        assert!(
            place("flowtable,counter,6.1,cheaper together") < place("vlan,flowtable,6.1,additive")
        );
        assert!(csv.contains("both are the same chain"), "{csv}");
    }
}
