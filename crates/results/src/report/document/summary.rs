//! Summary of a report for terminals: rates, verdicts and doubts.

use crate::document::form::text;
use crate::document::{Block, Data, Document, Remark};
use crate::format::runs_of;
use crate::quantity::Quantity;
use crate::report::analysis::{Compared, VariantResult};
use crate::report::counted;
use crate::report::results::Analysis;
use crate::report::sections::{ArchiveResult, Section};
use crate::report::verdicts::{compared, variants};
use fwdlab_model::units::format_pps;

/// Version of the machine-readable output; raised when an existing field is renamed or changes its
/// meaning.
const VERSION: u32 = 1;

/// Returns the summary as a document; `data` is the machine-readable content.
pub fn summary<'a>(analysis: &'a Analysis, data: &'a dyn Data) -> Document<'a> {
    let caption = Block::caption(&analysis.core.testbed.caption).into_iter().collect();
    // The set-up of a mail of counts repeats it.
    let mut blocks = match analysis.counts {
        Some(_) => vec![Block::Screen(caption)],
        None => caption,
    };
    blocks.push(Block::Mail(analysis.core.setup_brief.iter().map(Block::text).collect()));
    blocks.push(Block::text(format!(
        "{} of {}; per run: {}",
        analysis.core.runs_recorded,
        runs_of(analysis.core.runs_planned),
        analysis.core.figure.description()
    )));
    blocks.push(Block::Screen(Block::notes(&analysis.core.notes).collect()));
    let of = |v: &'a VariantResult| (v.label.as_str(), v.summary.as_ref());
    let figures = match &analysis.counts {
        Some(_) => counted::figures(&analysis.core.variants, of).block(),
        None => variants(&analysis.core.variants, of).block(),
    };
    // The rows of comparisons also contain the medians.
    blocks.push(match analysis.core.comparisons.is_empty() {
        true => figures,
        false => Block::Screen(vec![figures]),
    });
    blocks.extend(counted_rates(analysis));
    blocks.extend(analysis.method.summary());
    // Warnings about the measurement precede the results.
    blocks.extend(analysis.core.warnings.iter().map(|group| {
        let example = group.warnings.first().map_or("", |warning| warning.sentence.as_str());
        let trust = if group.fatal { "NOT TO BE TRUSTED: " } else { "" };
        let (kind, count, runs) = (&group.kind, group.count, group.runs);
        let of = runs_of(analysis.core.runs_recorded);
        let times = if count == runs { String::new() } else { format!("{count} times ") };
        Block::remark(
            Remark::Warning,
            format!("{trust}{kind} ({times}in {runs} of {of}), e.g. {example}"),
        )
    }));
    let rates = |compared: &Compared| {
        [compared.baseline, compared.variant].map(|variant| analysis.median(compared, variant))
    };
    let comparisons = &analysis.core.comparisons;
    let mut verdicts = compared(comparisons, &rates, &Quantity::PACKET_RATE);
    verdicts.extend(comparisons.iter().filter_map(|one| counted::differences(one, false)));
    match analysis.counts.is_some() && comparisons.len() > 1 {
        true => blocks.extend([Block::Screen(verdicts), Block::Mail(counted::brief(comparisons))]),
        false => blocks.extend(verdicts),
    }
    blocks.extend(analysis.beds.summary());
    let mut on_screen = analysis.device.summary();
    on_screen.extend(analysis.packets.summary());
    blocks.push(Block::Screen(on_screen));
    // Mails of counts contain the functions themselves.
    let places = super::answer::places(analysis).into_iter().filter(|_| analysis.counts.is_none());
    let places: Vec<Block> =
        places.map(|place| Block::text(format!("Where in the code: {place}."))).collect();
    blocks.push(Block::Mail(places));
    blocks.extend(analysis.scaling.summary());
    let repeat = format!(
        "repeat: fwdlab run {}.toml (plan {})",
        analysis.core.name, analysis.core.plan_hash
    );
    blocks.push(Block::Mail(vec![Block::text(repeat)]));
    let patch_found = analysis.archive.as_ref().and_then(ArchiveResult::patch_found);
    Document {
        title: analysis.core.title.clone(),
        conclusion: patch_found.into_iter().chain([super::answer::found(analysis)]).collect(),
        blocks,
        data,
        version: VERSION,
    }
}

/// Returns the counted rates, if other programs used so much of the device's CPU that the compared
/// rates differ from them.
fn counted_rates(analysis: &Analysis) -> Option<Block> {
    let counted = analysis.core.variants.iter().filter_map(|variant| {
        let (pps, factor) = variant.counted(analysis.core.figure)?;
        Some(format!("{} {} (x {factor:.2})", variant.label, format_pps(pps)))
    });
    let counted: Vec<String> = counted.collect();
    (!counted.is_empty()).then(|| {
        Block::remark(
            Remark::Note,
            format!(
                "counted over the whole window: {}. The rates above are per second of the CPU time \
                 that the device had",
                counted.join(", ")
            ),
        )
    })
}

/// Formats the summary in lines of at most `width` columns; longer words are not split.
pub fn summary_text(analysis: &Analysis, width: usize) -> String {
    text::render(&summary(analysis, &()), width)
}
