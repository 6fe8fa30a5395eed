//! "Did you mean": the nearest valid word.

/// Returns the candidate nearest to `word`, if it is near enough for a typing error: at most a
/// third of the word's characters (but always one) wrong, missing, superfluous or swapped with a
/// neighbour. Case is ignored. A number is never a misspelling of another number.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.parse::<f64>().is_ok() {
        return None;
    }
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the optimal string alignment distance: insertions, deletions, substitutions and swaps of
/// neighbours, with each part of the word edited once.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let substitution = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substitution.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_matches_known_pairs() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("queues", "queues", 0),
            ("queus", "queues", 1),
            ("qeueus", "queues", 2),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn typos_are_corrected_and_unrelated_words_are_not() {
        let words = ["frame_size", "flows", "family", "rate"];
        assert_eq!(nearest("framesize", words), Some("frame_size"));
        assert_eq!(nearest("flwos", words), Some("flows"));
        assert_eq!(nearest("RATE", words), Some("rate"));
        assert_eq!(nearest("colour", words), None);
        assert_eq!(nearest("x", words), None);
        assert_eq!(nearest("3", ["1", "2"]), None);
    }
}
