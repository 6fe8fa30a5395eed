//! Arguments that accept the names of a model type's values.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use fwdlab_packet::named::{Named, UnknownName};
use std::str::FromStr;

/// Any value of a type.
pub(crate) fn any<T>() -> impl TypedValueParser<Value = T> + use<T>
where
    T: Named + FromStr<Err = UnknownName> + Send + Sync,
{
    parser(T::TABLE.iter().map(|&(_, name, doc)| possible(name, doc)).collect())
}

/// Some of the values of a type.
pub(crate) fn some<T>(values: &[T]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: Named + FromStr<Err = UnknownName> + Send + Sync,
{
    let offered = T::TABLE.iter().filter(|(value, ..)| values.contains(value));
    parser(offered.map(|&(_, name, doc)| possible(name, doc)).collect())
}

fn parser<T>(values: Vec<PossibleValue>) -> impl TypedValueParser<Value = T> + use<T>
where
    T: Named + FromStr<Err = UnknownName> + Send + Sync,
{
    PossibleValuesParser::new(values).try_map(|name| name.parse::<T>())
}

/// A name with the first sentence of its description.
fn possible(name: &'static str, doc: &'static str) -> PossibleValue {
    let sentence = doc.trim().split(". ").next().unwrap_or_default();
    PossibleValue::new(name).help(sentence.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::settings::TestbedKind;

    #[test]
    fn value_help_is_the_first_sentence() {
        let value = possible("holm", " For decisions. Holm (1979) has it.");
        assert_eq!(value.get_help().map(ToString::to_string).as_deref(), Some("For decisions"));
    }

    #[test]
    fn only_offered_values_are_accepted() {
        let command = clap::Command::new("x").arg(
            clap::Arg::new("kind").value_parser(some(&[TestbedKind::Netns, TestbedKind::Sim])),
        );
        let taken = command.clone().try_get_matches_from(["x", "sim"]).expect("a kind");
        assert_eq!(taken.get_one::<TestbedKind>("kind"), Some(&TestbedKind::Sim));
        let error = command.try_get_matches_from(["x", "ssh"]).expect_err("not offered");
        assert!(error.to_string().contains("[possible values: netns, sim]"), "{error}");
    }
}
