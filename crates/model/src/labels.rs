//! Labels of variants in sentences.

/// The first labels of a list: `a`, `b` ... (12 in all).
pub fn some_of<'a>(labels: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 6;
    let all = labels.len();
    let shown: Vec<String> = labels.take(SHOWN).map(|label| format!("`{label}`")).collect();
    let shown = shown.join(", ");
    if all > SHOWN { format!("{shown} ... ({all} in all)") } else { shown }
}
