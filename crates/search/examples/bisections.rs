//! Success rates of bisections on histories with known changes: the table of docs/BISECT.md. `cargo
//! run --release -p fwdlab-search --example bisections [SEARCHES]`.

use fwdlab_search::bisect::simulated::{History, SearchRun, search};
use fwdlab_search::bisect::{Ending, Options};

const PLAIN: History = History {
    candidates: 128,
    changes: &[-0.02],
    scatter: 0.01,
    drift: 0.0,
    layout: 0.0,
    broken: 0.0,
    bad: (0.0, 0.0),
};

fn main() {
    let searches = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1000);
    let rows: [(&str, History, usize, f64); 23] = [
        ("-2 %, CV 1 %", PLAIN, 150, 0.0),
        ("-2 %, CV 1 %, drift 0.2", History { drift: 0.2, ..PLAIN }, 150, 0.0),
        ("-2 %, CV 2 %", History { scatter: 0.02, ..PLAIN }, 400, 0.0),
        ("-2 %, CV 2 %, drift 0.2", History { scatter: 0.02, drift: 0.2, ..PLAIN }, 400, 0.0),
        ("-2 %, known, CV 1 %", PLAIN, 150, 0.0),
        ("-2 %, known, CV 1 %, drift 0.2", History { drift: 0.2, ..PLAIN }, 150, 0.0),
        ("-2 %, known, CV 2 %", History { scatter: 0.02, ..PLAIN }, 400, 0.0),
        (
            "-2 %, known, CV 2 %, drift 0.2",
            History { scatter: 0.02, drift: 0.2, ..PLAIN },
            400,
            0.0,
        ),
        ("+2 %, CV 1 %", History { changes: &[0.02], ..PLAIN }, 150, 0.0),
        ("-2 %, CV 1 %, 10 % skipped", History { broken: 0.1, ..PLAIN }, 150, 0.0),
        (
            "-2 %, CV 2 %, drift 0.2, 10 % skipped",
            History { scatter: 0.02, drift: 0.2, broken: 0.1, ..PLAIN },
            400,
            0.0,
        ),
        ("-2 %, CV 1 %, drift 0.4", History { drift: 0.4, ..PLAIN }, 150, 0.0),
        ("-2 %, CV 1 %, 5 % bad starts of 4 %", History { bad: (0.05, 0.04), ..PLAIN }, 150, 0.0),
        ("-2 %, CV 1 %, 10 % bad starts of 8 %", History { bad: (0.1, 0.08), ..PLAIN }, 150, 0.0),
        ("-2 %, CV 1 %, 2 % bad starts of 20 %", History { bad: (0.02, 0.2), ..PLAIN }, 150, 0.0),
        ("no change, CV 1 %", History { changes: &[], ..PLAIN }, 150, 0.0),
        ("no change, CV 1 %, drift 0.2", History { changes: &[], drift: 0.2, ..PLAIN }, 150, 0.0),
        ("two of -1.5 %, CV 1 %", History { changes: &[-0.015, -0.015], ..PLAIN }, 150, 0.0),
        ("-3 % and +1 %, CV 1 %", History { changes: &[-0.03, 0.01], ..PLAIN }, 150, 0.0),
        ("-0.3 %, CV 1 %", History { changes: &[-0.003], ..PLAIN }, 150, 0.0),
        ("-2 %, layout 0.5 %, not told", History { layout: 0.005, ..PLAIN }, 150, 0.0),
        ("-2 %, layout 0.5 %, told", History { layout: 0.005, ..PLAIN }, 150, 0.005),
        ("-2 %, layout 1 %, told", History { layout: 0.01, ..PLAIN }, 150, 0.01),
    ];
    println!("| history | right | wrong | ends alike | a set | holds it | runs | 90 % need |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    let first = std::env::args().nth(2).unwrap_or_default();
    for (name, history, cap, layout) in rows.into_iter().filter(|row| row.0.contains(&first)) {
        let known = name.contains("known").then_some(-0.02);
        let options = Options { cap, layout, known, ..Options::new(history.candidates) };
        let tried: Vec<SearchRun> =
            (0..searches).map(|seed| search(history, options.clone(), seed)).collect();
        let share = |count: usize, of: usize| format!("{:.1} %", 100.0 * count as f64 / of as f64);
        let all = tried.len();
        let ended = |ending| tried.iter().filter(move |tried| tried.verdict.ending == Some(ending));
        let sets = ended(Ending::Cap).count();
        let hold = ended(Ending::Cap)
            .filter(|tried| tried.places.iter().any(|place| tried.verdict.set.contains(place)));
        let mut runs: Vec<usize> = tried.iter().map(|tried| tried.verdict.runs).collect();
        runs.sort_unstable();
        println!(
            "| {name} | {} | {} | {} | {} | {} | {:.0} | {} |",
            share(tried.iter().filter(|tried| tried.is_right()).count(), all),
            share(tried.iter().filter(|tried| tried.is_wrong()).count(), all),
            share(ended(Ending::NoStep).count(), all),
            share(sets, all),
            if sets == 0 { "-".into() } else { share(hold.count(), sets) },
            runs.iter().sum::<usize>() as f64 / all as f64,
            runs[all * 9 / 10],
        );
    }
}
