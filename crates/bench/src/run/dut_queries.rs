//! Queries to the DUT before and after a trial's window: drops and connection states.

use crate::trial::DutCounters;
use fwdlab_model::record::DropPlace;

/// Answers a trial's queries by reading the DUT's counters.
pub(super) struct DutQueries<'a> {
    /// Places where the DUT lost packets of the given number since the trial began; the last place,
    /// the unexplained remainder, is ignored.
    pub(super) drops: Box<dyn Fn(u64) -> Option<Vec<DropPlace>> + 'a>,
    /// Number of connection states in the DUT's table.
    pub(super) states: Box<dyn Fn() -> Option<u64> + 'a>,
}

impl DutCounters for DutQueries<'_> {
    fn dropped(&mut self, sent: u64) -> Option<u64> {
        let places = (self.drops)(sent)?;
        let (_, explained) = places.split_last()?;
        let sum = explained.iter().map(|place| place.packets).fold(0, i64::saturating_add);
        u64::try_from(sum).ok()
    }

    fn states(&mut self) -> Option<u64> {
        (self.states)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unexplained_loss_does_not_count_as_dropped() {
        let place = |packets| DropPlace { place: "somewhere".into(), packets };
        let drops = |_| Some(vec![place(3), place(4), place(100)]);
        let mut queries = DutQueries { drops: Box::new(drops), states: Box::new(|| None) };
        assert_eq!((queries.dropped(9), queries.states()), (Some(7), None));
        let silent = |_| None;
        assert_eq!(
            DutQueries { drops: Box::new(silent), states: Box::new(|| Some(5)) }.dropped(9),
            None
        );
    }
}
