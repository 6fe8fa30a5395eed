//! Details of an imported experiment, and comparison with its published text.

use super::{ArchiveResult, ArchivedVariant, PatchedVariant, RuleComparison};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Inline, Table};
use crate::format::signed_percent;
use crate::report::analysis::{Answer, Outcome};
use crate::report::sections::{DETAILS, MANY, PROFILES};
use crate::text::Tone;

/// Returns the sections that only imported experiments have.
pub(super) fn sections(archive: &ArchiveResult) -> Vec<Block> {
    let mut sections = vec![
        Block::section("Against the published text", published(archive)),
        Block::section("What each variant is", variants(archive)).folded().on_page(DETAILS),
        Block::section("The rule that made the figures", rules(archive)).folded().on_page(DETAILS),
    ];
    if !archive.pictures.is_empty() {
        let links = archive.pictures.iter();
        let links = links.map(|picture| Inline::default().link(&picture.title, &picture.file));
        let links = Block::section("Where the time went", vec![Block::list(links)]);
        let are_many = archive.pictures.len() > MANY;
        sections.push(if are_many { links.on_page(PROFILES) } else { links });
    }
    if !archive.missing.is_empty() {
        let missing = Block::section("Missing", vec![Block::list(&archive.missing)]);
        sections.push(missing.folded().on_page(DETAILS));
    }
    sections
}

fn published(archive: &ArchiveResult) -> Vec<Block> {
    let contradicted = archive.blocks.iter().flat_map(|block| &block.contradicted);
    let contradicted: Vec<Inline> = contradicted
        .map(|c| Inline::default().strong(&c.label).text(format!(": {}", c.sentence)))
        .collect();
    let block = match (contradicted.is_empty(), archive.blocks.is_empty()) {
        (false, _) => Block::list(contradicted),
        (true, false) => {
            Block::text("Nothing in the published text is contradicted by the analysis above.")
        }
        (true, true) => Block::text("No ministat text was published with these runs."),
    };
    let mut blocks = vec![block];
    let differences = differences(archive);
    if !differences.is_empty() {
        blocks.push(Block::text("What of the published text does not come out again, and why:"));
        blocks.push(Block::list(differences));
    }
    blocks.push(Block::text("What the design of these runs can't show:"));
    blocks.push(Block::list(&archive.warnings));
    blocks
}

/// Lists published lists, blocks and rows that the logs don't reproduce, each with the reason.
fn differences(archive: &ArchiveResult) -> Vec<String> {
    let lists = archive.groups.iter().filter_map(|group| {
        let ArchivedVariant { label, published, list_equal, .. } = group;
        match (published, list_equal) {
            (None, _) => Some(format!("{label}: no list of its figures was published")),
            (Some(list), None) => Some(format!("{label}: its list {list} could not be read")),
            (Some(list), Some(false)) => {
                Some(format!("{label}: the logs give other figures than its list {list}"))
            }
            (Some(_), Some(true)) => None,
        }
    });
    let blocks = archive.blocks.iter().filter(|block| !block.exact).map(|block| {
        let heading = block.heading.trim().trim_end_matches(':');
        format!("block in line {} ({heading}): {}", block.line, block.sentence)
    });
    let rows = archive.tables.iter().flat_map(|table| {
        table.others.iter().map(move |reason| format!("{}, {reason}", table.name))
    });
    lists.chain(blocks).chain(rows).collect()
}

impl ArchiveResult {
    /// States the effect of the patch of this set; `None` if the set is not patched.
    pub(in crate::report) fn patch_found(&self) -> Option<Block> {
        let patch = self.patch.as_ref()?;
        let (label, unpatched) = (&self.label, &patch.unpatched);
        let found = patch.variants.iter().filter_map(|variant| match &variant.outcome {
            Outcome::Compared(answer) => {
                Some(format!("{}: {} ({})", variant.label, answer.verdict, answer.shown.effect))
            }
            _ => None,
        });
        let found: Vec<String> = found.collect();
        let text = Inline::default().strong(match found.is_empty() {
            true => format!("{label} is {unpatched} with a patch."),
            false => {
                format!("{label} against {unpatched}, without the patch: {}.", found.join("; "))
            }
        });
        Some(Block::Paragraph(text, Tone::Heading))
    }

    /// Returns the comparison of a patched set with the unpatched set, and the command that compares
    /// their stores.
    pub(in crate::report) fn patch_section(&self) -> Option<Block> {
        let patch = self.patch.as_ref()?;
        let of = |get: fn(&Answer) -> String| {
            move |variant: &PatchedVariant| match &variant.outcome {
                Outcome::Compared(answer) => Cell::text(get(answer)),
                _ => Cell::None,
            }
        };
        let table = Table::of(&patch.variants)
            .words("variant", |variant| Cell::text(&variant.label))
            .words("verdict", |variant| match &variant.outcome {
                Outcome::Unanswerable { reason } => Cell::text(format!("no answer: {reason}")),
                Outcome::Compared(answer) => {
                    Cell::Verdict(answer.verdict.to_string(), answer.shown.verdict.clone())
                }
                Outcome::Counted(_) => Cell::None,
            })
            .numbers("effect", of(|answer| answer.shown.effect.clone()))
            .words("interval", of(|answer| answer.shown.interval.clone()))
            .numbers("patched", |variant| variant.patched_pps.map_or(Cell::None, Cell::rate))
            .numbers("unpatched", |variant| variant.unpatched_pps.map_or(Cell::None, Cell::rate))
            .block();
        let command = Inline::from("With every doubt, in the directory of this report: ");
        let command = Block::Paragraph(command.code(&patch.command), Tone::Plain);
        let blocks = if patch.variants.is_empty() { vec![command] } else { vec![table, command] };
        Some(Block::section(format!("With the patch against {}", patch.unpatched), blocks))
    }
}

fn variants(archive: &ArchiveResult) -> Vec<Block> {
    let list = |group: &ArchivedVariant| match (&group.published, group.list_equal) {
        (None, _) => "none".into(),
        (Some(list), None) => Inline::from(format!("{list}: could not be read")),
        (Some(list), Some(true)) => format!("{list}: equal").into(),
        (Some(list), Some(false)) => Inline::from(format!("{list}: ")).strong("differs"),
    };
    let table = Table::of(&archive.groups)
        .words("variant", |group| Cell::text(&group.label))
        .words("in the archive", |group| Cell::text(&group.name))
        .words("published list", move |group| Cell::Text(list(group)))
        .words("changes against its baseline", |group| match group.changes.as_str() {
            "" => Cell::None,
            changes => Cell::text(changes),
        });
    let mut blocks = vec![table.block()];
    if !archive.configurations.is_empty() {
        let lines = archive.configurations.iter().map(|(name, sets)| {
            let sets = if sets.is_empty() { "the same" } else { sets };
            format!("{name}: {sets}")
        });
        blocks.push(Block::text("What the configurations set:"));
        blocks.push(Block::list(lines));
    }
    blocks
}

fn rules(archive: &ArchiveResult) -> Vec<Block> {
    let RuleComparison { used, used_is, other_is, variants, largest } = &archive.rules;
    let mut blocks = Vec::new();
    match largest {
        None => blocks.push(Block::text(format!("Compared is the {used_is}."))),
        Some(largest) => {
            let largest = signed_percent(*largest, 2);
            blocks.push(Block::text(format!(
                "Compared is the {used_is}. The other rule, {other_is}, gives medians that differ \
                 by at most {largest}:"
            )));
            let table = Table::of(variants)
                .words("variant", |variant| Cell::text(&variant.label))
                .numbers(format!("by {used}"), |variant| Cell::rate(variant.used_pps))
                .numbers("by the other rule", |variant| Cell::rate(variant.other_pps))
                .numbers("difference", |variant| {
                    Cell::number(variant.difference, Digits::Signed(2))
                });
            blocks.push(table.block());
        }
    }
    if !archive.tables.is_empty() {
        let lines =
            archive.tables.iter().map(|table| format!("{}: {}", table.name, table.sentence));
        blocks.push(Block::text("Published tables of medians:"));
        blocks.push(Block::list(lines));
    }
    blocks
}
