//! Revisions at which several machines change: a change on one machine may be local, a change on
//! three is due to the software.

use super::ordered::Ordered;
use super::place::Place;
use super::results::{Agreement, Change, Direction};

/// A change with the places around it.
struct LocatedChange<'a> {
    before: &'a Place,
    after: &'a Place,
    change: &'a Change,
    series: &'a Ordered,
}

/// Groups of changes with a possible common cause: same direction, and a revision
/// that could explain all of them. Sorted by revision.
pub(super) fn agreements(series: &[Ordered]) -> Vec<Agreement> {
    let mut found: Vec<(&Place, Agreement)> = Vec::new();
    for direction in [Direction::Better, Direction::Worse] {
        let mut located: Vec<LocatedChange<'_>> =
            series.iter().flat_map(|one| located(one, direction)).collect();
        // Changes that end first are grouped first: each next one belongs to the group if it begins
        // before the group's earliest end.
        located.sort_by(|a, b| (a.after, a.before).cmp(&(b.after, b.before)));
        let mut rest = located.into_iter().peekable();
        while let Some(first) = rest.next() {
            let end = first.after;
            let mut group = vec![first];
            while let Some(next) = rest.next_if(|next| next.before < end) {
                group.push(next);
            }
            found.extend(agreement(&group, direction).map(|agreement| (end, agreement)));
        }
    }
    found.sort_by(|a, b| a.0.cmp(b.0));
    found.into_iter().map(|(_, agreement)| agreement).collect()
}

/// Changes of one series in one direction.
fn located(series: &Ordered, direction: Direction) -> impl Iterator<Item = LocatedChange<'_>> {
    let changes = series.result.changes.iter();
    changes.filter(move |change| change.direction == direction).filter_map(move |change| {
        let after = series.places.get(change.at)?;
        let points = series.result.points.iter().take(change.at);
        let before = points.zip(&series.places).rfind(|(point, _)| !point.patched)?.1;
        before.is_comparable(after).then_some(LocatedChange { before, after, change, series })
    })
}

/// Agreement of a group. `None` if all its changes are of one machine.
fn agreement(group: &[LocatedChange<'_>], direction: Direction) -> Option<Agreement> {
    let mut machines: Vec<String> =
        group.iter().map(|located| located.series.result.machine.clone()).collect();
    machines.sort();
    machines.dedup();
    let latest = group.iter().max_by_key(|located| located.before)?;
    let earliest = group.iter().min_by_key(|located| located.after)?;
    (machines.len() > 1).then(|| Agreement {
        before: latest.change.before.clone(),
        after: earliest.change.after.clone(),
        direction,
        machines,
        series: group.iter().map(|located| located.series.result.title.clone()).collect(),
        places: group.iter().map(|located| located.change.at).collect(),
    })
}
