//! Figures of histories compared with golden files (`tests/golden/figure`). `UPDATE=1` rewrites
//! them; `KEEP_PNG=DIR` keeps the pictures for inspection.

use crate::golden::picture;
use fwdlab_results::plot::{ChangeMark, Draw, Level, Quantity, RevisionPoint, Revisions};

/// Medians on levels that begin at the given indices, scattered in a fixed pattern.
fn revisions(n: usize, levels: &[(usize, f64)]) -> Revisions {
    let level_of = |i: usize| levels.iter().rev().find(|(from, _)| *from <= i).unwrap().1;
    let points = (0..n).map(|i| {
        let wobble = [0.0, 0.6, -0.9, 0.3, -0.2, 1.0, -0.5][i * 5 % 7] * 0.006;
        let median = level_of(i) * (1.0 + wobble);
        RevisionPoint {
            label: format!("r{}", 280_000 + 613 * i),
            median,
            least: median * (0.994 - 0.001 * (i % 3) as f64),
            most: median * 1.005,
            patched: false,
        }
    });
    let ends = levels.iter().skip(1).map(|(from, _)| from - 1).chain([n - 1]);
    Revisions {
        title: "Xeon_E5-2650_8Cores, Chelsio_T540-CR, hw.cxgbe.nXxq10g, queues = 4".into(),
        points: points.collect(),
        levels: levels
            .iter()
            .zip(ends)
            .map(|(l, last)| Level { first: l.0, last, value: l.1 })
            .collect(),
        changes: levels
            .windows(2)
            .map(|w| ChangeMark { at: w[1].0, effect: w[1].1 / w[0].1 - 1.0 })
            .collect(),
        quantity: Quantity::Rate,
        footnote: None,
    }
}

#[test]
fn history_figure_four_points_on_one_level() {
    picture("figure/history-four", &revisions(4, &[(0, 1.45e6)]).render());
}

#[test]
fn history_figure_patches_and_changes() {
    let mut figure = revisions(30, &[(0, 4.1e6), (9, 3.9e6), (19, 4.05e6), (27, 3.6e6)]);
    for (i, label) in [(12, "r287356D27401"), (24, "r294712D5330")] {
        figure.points[i].patched = true;
        figure.points[i].label = label.into();
        figure.points[i].median *= 1.02;
        figure.points[i].most *= 1.02;
        figure.points[i].least *= 1.02;
    }
    figure.footnote = Some("Changes below 1.0 % are not marked.".into());
    picture("figure/history-thirty", &figure.render());
}

#[test]
fn history_figure_neighbouring_changes() {
    let levels = [(0, 8.9e6), (20, 9.2e6), (24, 9.6e6), (26, 9.1e6), (60, 9.4e6), (97, 9.0e6)];
    let mut figure = revisions(100, &levels);
    figure.footnote = Some("virtual testbed; not comparable with hardware.".into());
    picture("figure/history-hundred", &figure.render());
}

#[test]
fn history_figure_accepts_one_point_and_none() {
    let mut figure = revisions(1, &[(0, 1e6)]);
    picture("figure/history-one", &figure.render());
    figure.points.clear();
    assert!(!figure.render().contains("NaN"));
    figure.levels.clear();
    assert!(!figure.render().contains("inf"));
}
