//! The factor that a family of configurations varies.

use super::{Configuration, Place, Setting};
use std::collections::BTreeSet;

/// Returns a name for the difference among labelled configurations. It is `queues` if every label
/// is a number and every differing setting is a number of queues equal to the label; the setting's
/// own name (or a whole file's path) if exactly one differs; `None` otherwise.
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
            is_queue_count(name)
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

/// Returns true for `hw.cxgbe.nrxq10g`, `hw.igb.num_queues`, `dev.ix.0.iflib.override_ntxqs`, but
/// not for queue lengths.
fn is_queue_count(name: &str) -> bool {
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
    fn varied_is_queues_if_labels_equal_values() {
        let rx_and_tx =
            |n| format!("same=\"1\"\nhw.cxgbe.nrxq10g=\"{n}\"\nhw.cxgbe.ntxq10g=\"{n}\"");
        let queues = Some("queues".to_owned());
        assert_eq!(of(&[("1", &rx_and_tx(1)), ("2", &rx_and_tx(2)), ("8", &rx_and_tx(8))]), queues);
        assert_eq!(of(&[("1", &rx_and_tx(1)), ("2", &rx_and_tx(3))]), None, "the label lies");
        assert_eq!(
            of(&[("a", &rx_and_tx(1)), ("b", &rx_and_tx(2))]),
            None,
            "two settings, no number"
        );
        assert_eq!(of(&[("1", "hw.igb.num_queues=\"1\""), ("2", "hw.igb.num_queues=2")]), queues);
    }

    #[test]
    fn varied_is_the_only_differing_setting() {
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
