//! Turns groups into variants. The `.info` files determine the factors.

use fwdlab_model::natural::natural;
use fwdlab_model::plan::{Change, Factor, Level};

/// Identity of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    /// Group name in the file names.
    pub(super) name: String,
    /// Image, from the `.info` file.
    pub(super) image: Option<String>,
    /// Configuration, from the `.info` file.
    pub(super) configuration: Option<String>,
    /// Traffic, from the `.info` file.
    pub(super) traffic: Option<String>,
}

/// The factors, and the level of each group in each of them.
#[derive(Debug, PartialEq)]
pub(super) struct GroupFactors {
    /// Factors with more than one level, in the order configuration, revision, traffic.
    pub(super) factors: Vec<Factor>,
    /// Indices of the levels of each group.
    pub(super) levels: Vec<Vec<usize>>,
    /// The factor of the configurations, if they vary.
    pub(super) configuration: Option<usize>,
    /// The factor of the revisions, if they vary.
    pub(super) revision: Option<usize>,
    /// Decisions that the report should mention.
    pub(super) notes: Vec<String>,
}

/// Kinds of name parts, in the order of the factors.
const CONFIGURATION: usize = 0;
const REVISION: usize = 1;
const TRAFFIC: usize = 2;

/// Determines factors and levels. `configurations` names the factor that the configurations vary,
/// if known.
pub(super) fn varied(groups: &[Identity], configurations: Option<&str>) -> GroupFactors {
    let mut notes = Vec::new();
    let parts: Vec<[String; 3]> = groups.iter().map(|group| parts(group, &mut notes)).collect();
    let is_unique = (1..parts.len()).all(|i| !parts[..i].contains(&parts[i]));
    if !is_unique {
        notes.push(
            "several groups say the same of themselves in their .info files: their names tell \
             them apart"
                .to_owned(),
        );
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        let (factor, levels) = factor("variant", &names, false);
        let levels = levels.into_iter().map(|level| vec![level]).collect();
        return GroupFactors {
            factors: vec![factor],
            levels,
            configuration: None,
            revision: None,
            notes,
        };
    }
    let mut found = GroupFactors {
        factors: Vec::new(),
        levels: vec![Vec::new(); groups.len()],
        configuration: None,
        revision: None,
        notes,
    };
    for part in [CONFIGURATION, REVISION, TRAFFIC] {
        let labels: Vec<&str> = parts.iter().map(|parts| parts[part].as_str()).collect();
        if labels.iter().all(|label| *label == labels[0]) {
            continue;
        }
        let is_family = labels.iter().all(|label| ["inet", "inet4", "inet6"].contains(label));
        let name = match part {
            CONFIGURATION => configurations.unwrap_or("configuration"),
            REVISION => "revision",
            _ if is_family => "family",
            _ => "traffic",
        };
        let place = Some(found.factors.len());
        match part {
            CONFIGURATION => found.configuration = place,
            REVISION => found.revision = place,
            _ => {}
        }
        let (factor, levels) = factor(name, &labels, part == CONFIGURATION);
        found.factors.push(factor);
        for (group, level) in found.levels.iter_mut().zip(levels) {
            group.push(level);
        }
    }
    found
}

/// Returns configuration, revision and traffic of a group; absent parts are empty. The harness
/// names files `IMAGE.CFG.PKTGEN` and omits parts that do not vary, so the name without the other
/// parts is the image's short name.
fn parts(group: &Identity, notes: &mut Vec<String>) -> [String; 3] {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let (mut configuration, traffic) = (text(&group.configuration), text(&group.traffic));
    let (rest, _) = without(&group.name, &traffic);
    let (rest, names_configuration) = without(rest, &configuration);
    let mut revision = rest.to_owned();
    let renamed = group.image.is_none() && !rest.is_empty() && !names_configuration;
    if renamed && !configuration.is_empty() {
        notes.push(format!(
            "the files of {} were renamed by hand: their .info states configuration \
             {configuration}",
            group.name
        ));
    }
    if renamed {
        configuration = std::mem::take(&mut revision);
    }
    if revision.is_empty() {
        revision = text(&group.image);
    }
    [configuration, revision, traffic]
}

/// Removes the last part of a name, and returns whether the name had it.
fn without<'a>(name: &'a str, part: &str) -> (&'a str, bool) {
    if part.is_empty() {
        return (name, false);
    }
    match name.strip_suffix(part) {
        Some("") => ("", true),
        Some(rest) => rest.strip_suffix('.').map_or((name, false), |rest| (rest, true)),
        None => (name, false),
    }
}

/// Returns a factor of `labels`, and the level of each label.
fn factor(name: &str, labels: &[&str], may_be_numbers: bool) -> (Factor, Vec<usize>) {
    let mut levels: Vec<&str> = labels.to_vec();
    // Main branches are newer than all releases and stable branches.
    levels.sort_by(|a, b| is_main(a).cmp(&is_main(b)).then_with(|| natural(a, b)));
    levels.dedup();
    // The usual baseline of experiments comes first.
    if let Some(plain) = levels.iter().position(|level| is_plain(level)) {
        levels[..=plain].rotate_right(1);
    }
    let numbers: Option<Vec<f64>> = levels.iter().map(|level| number(level)).collect();
    let numbers = numbers.filter(|_| may_be_numbers);
    let place = |label: &&str| levels.iter().position(|level| level == label).unwrap_or_default();
    let of = labels.iter().map(place).collect();
    let levels = levels
        .iter()
        .enumerate()
        .map(|(i, label)| Level {
            label: if label.is_empty() { "none".to_owned() } else { (*label).to_owned() },
            number: numbers.as_ref().map(|numbers| numbers[i]),
            changes: Vec::<Change>::new(),
            build_of: None,
        })
        .collect();
    (Factor { name: name.to_owned(), levels }, of)
}

/// Returns true for the name of a configuration without an added feature.
fn is_plain(level: &str) -> bool {
    let plain = ["", "forwarding", "fastforwarding", "default", "none", "disabled", "off", "base"];
    plain.contains(&level.to_lowercase().as_str())
}

/// Returns true for a name that begins with a main branch: `MAIN_n268154`, `head`.
fn is_main(level: &str) -> bool {
    let word = level.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    ["main", "head", "current"].contains(&word.to_ascii_lowercase().as_str())
}

/// Parses `500` and `500K`.
fn number(label: &str) -> Option<f64> {
    let (digits, factor) = match label.char_indices().next_back()? {
        (at, 'k' | 'K') => (&label[..at], 1e3),
        (at, 'm' | 'M') => (&label[..at], 1e6),
        _ => (label, 1.0),
    };
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    digits.parse::<f64>().ok().filter(|_| is_plain).map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, image: &str, configuration: &str, traffic: &str) -> Identity {
        let part = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Identity {
            name: name.to_owned(),
            image: part(image),
            configuration: part(configuration),
            traffic: part(traffic),
        }
    }

    fn labels(factor: &Factor) -> Vec<&str> {
        factor.levels.iter().map(|level| level.label.as_str()).collect()
    }

    #[test]
    fn varied_makes_a_sweep_a_numeric_factor() {
        let groups: Vec<Identity> = ["1", "10", "2"].iter().map(|n| group(n, "", n, "")).collect();
        let found = varied(&groups, Some("queues"));
        assert_eq!(found.factors.len(), 1);
        assert_eq!(found.factors[0].name, "queues");
        assert_eq!(labels(&found.factors[0]), ["1", "2", "10"]);
        assert!(found.factors[0].is_numeric());
        assert_eq!(found.levels, [vec![0], vec![2], vec![1]]);
        assert_eq!(found.configuration, Some(0));
    }

    #[test]
    fn varied_orders_main_branches_last() {
        let of = ["MAIN_n268154", "STABLE13_n265892", "STABLE12_n244468", "RELEASE13_n244468"];
        let groups: Vec<Identity> = of.iter().map(|n| group(n, n, "", "")).collect();
        let found = varied(&groups, None);
        assert_eq!(
            labels(&found.factors[0]),
            ["RELEASE13_n244468", "STABLE12_n244468", "STABLE13_n265892", "MAIN_n268154"]
        );
        assert!(!is_main("mainline2") && !is_main("12-head"));
    }

    #[test]
    fn varied_names_images_like_the_files() {
        let image = |n: &str| format!("/srv/images/BSDRP-{n}-upgrade-amd64-vga.img.xz");
        let groups = [
            group("295802.pf-statefull", &image("295802"), "pf-statefull", ""),
            group("295802D5330.pf-statefull", &image("295802D5330"), "pf-statefull", ""),
            group("295802.fastforwarding", &image("295802"), "fastforwarding", ""),
            group("295802D5330.fastforwarding", &image("295802D5330"), "fastforwarding", ""),
        ];
        let found = varied(&groups, None);
        assert_eq!(labels(&found.factors[0]), ["fastforwarding", "pf-statefull"]);
        assert_eq!(labels(&found.factors[1]), ["295802", "295802D5330"]);
        assert!(!found.factors[1].is_numeric(), "a revision is a name");
        assert_eq!((found.configuration, found.revision), (Some(0), Some(1)));
        assert_eq!(found.levels[1], [1, 1]);
    }

    #[test]
    fn varied_handles_dots_and_renamed_files() {
        let groups = [
            group("11.0.fw.inet4", "11.0", "fw", "inet4"),
            group("11.0.fw.inet6", "11.0", "fw", "inet6"),
            group("12.0.fw.inet6", "12.0", "fw", "inet6"),
        ];
        let found = varied(&groups, None);
        assert_eq!(
            found.factors.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
            ["revision", "family"]
        );
        assert_eq!(found.levels, [vec![0, 0], vec![0, 1], vec![1, 1]]);

        let renamed = [group("4479", "", "135519", ""), group("351", "", "351", "")];
        let found = varied(&renamed, None);
        assert_eq!(labels(&found.factors[0]), ["351", "4479"]);
        assert!(found.notes[0].contains("renamed by hand"), "{:?}", found.notes);

        let stable = [
            group("STABLE12.fw.inet6", "", "fw", "inet6"),
            group("HEAD.fw.inet6", "", "fw", "inet6"),
        ];
        assert_eq!(labels(&varied(&stable, None).factors[0]), ["STABLE12", "HEAD"]);
    }

    #[test]
    fn varied_falls_back_to_group_names() {
        let groups = [group("a.inet4", "i", "", "inet4"), group("a.inet4", "i", "", "inet4")];
        let found = varied(&groups, None);
        assert_eq!(found.factors[0].name, "variant");
        assert_eq!(varied(&[group("", "", "", "")], None).factors, []);
    }

    #[test]
    fn number_accepts_a_suffix() {
        assert_eq!(number("500K"), Some(5e5));
        assert_eq!(number("K"), None);
    }
}
