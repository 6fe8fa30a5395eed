//! The loads that a search chooses from. Neighbours are as far apart as the narrowest goal
//! requires, so two of them are close enough as bounds, and all goals share the same loads.

/// Loads in frames per second, ascending, from the lowest to the highest allowed one.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    loads: Vec<u64>,
}

impl Grid {
    /// Creates the grid from `min` to `max` that contains `anchor`, with neighbours at most `width`
    /// apart.
    pub(crate) fn around(anchor: f64, min: u64, max: u64, width: f64) -> Grid {
        let keep = 1.0 - width;
        let anchor = (anchor.round() as u64).clamp(min, max);
        let mut loads = vec![anchor];
        let mut load = anchor;
        while load > min {
            // Rounding must not move neighbours further apart; the minimum step is one frame per
            // second.
            load = ((load as f64 * keep).ceil() as u64).min(load - 1).max(min);
            loads.push(load);
        }
        loads.reverse();
        load = anchor;
        while load < max {
            load = ((load as f64 / keep).floor() as u64).max(load + 1).min(max);
            loads.push(load);
        }
        Grid { loads }
    }

    /// Returns the load nearest to `target` among those strictly between two others.
    pub(crate) fn nearest(
        &self,
        target: f64,
        above: Option<u64>,
        below: Option<u64>,
    ) -> Option<u64> {
        let from = above.map_or(0, |load| self.loads.partition_point(|at| *at <= load));
        let to = below.map_or(self.loads.len(), |load| self.loads.partition_point(|at| *at < load));
        let loads = self.loads.get(from..to)?;
        let after = loads.partition_point(|at| (*at as f64) < target);
        let neighbours = loads[after.saturating_sub(1)..].iter().take(2);
        let off = |load: u64| (load as f64 - target).abs();
        neighbours.copied().min_by(|a, b| off(*a).total_cmp(&off(*b)))
    }

    /// Returns the highest load that forms an interval of at most `width` with `lower`.
    pub(crate) fn within(&self, lower: u64, width: f64) -> u64 {
        let reach = (lower as f64 / (1.0 - width) * (1.0 + f64::EPSILON)).floor() as u64;
        let after = self.loads.partition_point(|at| *at <= reach);
        // The neighbour is never too far.
        let next = self.loads.partition_point(|at| *at <= lower);
        self.loads[after.max(next + 1).min(self.loads.len()) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::distance;

    #[test]
    fn neighbours_are_at_most_width_apart() {
        for width in [0.0005, 0.005, 0.05, 0.3] {
            for (min, max) in [(1_000, 14_880_952), (5_000, 5_001), (77_777, 123_456)] {
                for anchor in [0.0, 1_234.5, 99_999.9, 3.3e6, 1e9] {
                    let grid = Grid::around(anchor, min, max, width);
                    assert_eq!((grid.loads[0], *grid.loads.last().unwrap()), (min, max));
                    assert!(grid.loads.windows(2).all(|pair| pair[0] < pair[1]));
                    let far = |pair: &[u64]| distance(pair[0], pair[1]) > width;
                    let apart = |pair: &&[u64]| far(pair) && pair[1] - pair[0] > 1;
                    assert_eq!(grid.loads.windows(2).find(apart), None, "{width} {anchor}");
                }
            }
        }
    }

    #[test]
    fn nearest_load_is_strictly_between_the_bounds() {
        let grid = Grid::around(100_000.0, 90_000, 110_000, 0.01);
        assert_eq!(grid.nearest(100_300.0, None, None), Some(100_000));
        assert_eq!(grid.nearest(100_300.0, Some(100_000), None), Some(101_010));
        assert_eq!(grid.nearest(100_300.0, None, Some(100_000)), Some(99_000));
        assert_eq!(grid.nearest(100_300.0, Some(99_000), Some(100_000)), None);
        assert_eq!(grid.nearest(f64::INFINITY, None, None), Some(110_000));
        assert_eq!(grid.nearest(0.0, None, None), Some(90_000));
        assert_eq!(grid.within(100_000, 0.01), 101_010);
        assert_eq!(grid.within(100_000, 0.03), 103_060);
    }
}
