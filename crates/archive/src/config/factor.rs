//! The factor that a family of configurations varies.

use super::{Configuration, Place, Setting};
use std::collections::BTreeSet;

/// A name for what differs among labelled configurations: `queues` where every
/// label is a number and all settings that differ speak of queues and carry
/// exactly that number; the setting's own name (a whole file's path) where
/// exactly one differs; else none.
pub fn varied(configurations: &[(&str, &Configuration)]) -> Option<String> {
    let keys: BTreeSet<(&Place, &str)> = configurations
        .iter()
        .flat_map(|(_, configuration)| configuration.iter())
        .map(|Setting { place, name, .. }| (place, name.as_str()))
        .collect();
    let differing: Vec<(&Place, &str)> = keys
        .into_iter()
        .filter(|(place, name)| {
            let mut values = configurations.iter().map(|(_, c)| c.get(place, name));
            let first = values.next();
            values.any(|value| Some(value) != first)
        })
        .collect();
    let queues = !differing.is_empty()
        && differing.iter().all(|(place, name)| {
            speaks_of_queues(name)
                && configurations.iter().all(|(label, configuration)| {
                    let number = label.parse::<u32>().ok();
                    let value = configuration.get(place, name);
                    number.is_some() && value.and_then(|value| value.parse().ok()) == number
                })
        });
    match (queues, &differing[..]) {
        (true, _) => Some("queues".into()),
        (_, [(place, "")]) => Some(place.to_string()),
        (_, [(_, name)]) => Some((*name).to_owned()),
        _ => None,
    }
}

/// `hw.cxgbe.nrxq10g`, `hw.igb.num_queues`, `dev.ix.0.iflib.override_ntxqs`;
/// but not the length of queues.
fn speaks_of_queues(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let words = ["rxq", "txq", "queue"];
    words.iter().any(|word| last.contains(word))
        && !["size", "len"].iter().any(|w| last.contains(w))
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;

    fn of(settings: &[(&str, &str)]) -> Option<String> {
        let trees: Vec<_> = settings
            .iter()
            .map(|(label, text)| (*label, tree(&[("boot/loader.conf", text)])))
            .collect();
        let named: Vec<_> = trees.iter().map(|(label, tree)| (*label, tree)).collect();
        varied(&named)
    }

    #[test]
    fn queues_where_labels_and_values_agree() {
        let both = |n| format!("same=\"1\"\nhw.cxgbe.nrxq10g=\"{n}\"\nhw.cxgbe.ntxq10g=\"{n}\"");
        let queues = Some("queues".to_owned());
        assert_eq!(of(&[("1", &both(1)), ("2", &both(2)), ("8", &both(8))]), queues);
        assert_eq!(of(&[("1", &both(1)), ("2", &both(3))]), None, "the label lies");
        assert_eq!(of(&[("a", &both(1)), ("b", &both(2))]), None, "two settings, no number");
        assert_eq!(of(&[("1", "hw.igb.num_queues=\"1\""), ("2", "hw.igb.num_queues=2")]), queues);
    }

    #[test]
    fn the_only_setting_that_differs_is_the_factor() {
        assert_eq!(
            of(&[("1", "x.qsize_rxq=1"), ("2", "x.qsize_rxq=2")]),
            Some("x.qsize_rxq".into())
        );
        assert_eq!(of(&[("no", ""), ("yes", "hw.x=1")]), Some("hw.x".into()));
        assert_eq!(of(&[("a", "x=1"), ("b", "x=1")]), None);
        assert_eq!(varied(&[]), None);
        let (one, two) = (tree(&[("etc/pf.conf", "pass")]), tree(&[("etc/pf.conf", "block")]));
        assert_eq!(varied(&[("a", &one), ("b", &two)]), Some("etc/pf.conf".into()));
    }
}
