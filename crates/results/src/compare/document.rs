//! Results of a comparison as a document.

use super::{InputResult, Results, VariantResult};
use crate::counts::NOT_TIME;
use crate::document::{Block, Document, Figure};
use crate::label::INSTRUCTIONS;
use crate::plot::Drawing;
use crate::report::analysis::Compared;
use crate::report::counted;
use crate::report::effects::{Terms, effects};
use crate::report::verdicts::{compared, terms, variants_in};

/// Version of the JSON fields; raised when an existing field is renamed or changes its meaning.
const VERSION: u32 = 1;

impl Results {
    /// Builds a document of the question, the values and the verdicts.
    pub fn document<'a>(&'a self) -> Document<'a> {
        let figure = self.figure.map_or(String::new(), |f| format!(": {}", f.description()));
        let mut blocks: Vec<Block> = Block::caption(&self.caption).into_iter().collect();
        blocks.extend(Block::notes(&self.notes));
        let drawn = |drawing| Figure { title: "Effects".to_owned(), file: None, drawing };
        blocks.extend(self.drawing().map(drawn).map(Block::Figure));
        let figures =
            |unit: &str| Block::text(format!("One figure per run{figure}. All in {unit}."));
        let of = |v: &'a VariantResult| (v.label.as_str(), v.summary.as_ref());
        if self.unit == INSTRUCTIONS {
            blocks.push(figures(INSTRUCTIONS));
            blocks.push(counted::figures(&self.variants, of).block());
            let terms = counted::terms(self.margin);
            blocks.push(Block::text(format!("{terms} {}", NOT_TIME)));
        } else {
            blocks.push(figures(self.quantity.name()));
            blocks.push(variants_in(&self.variants, of, &self.quantity).block());
            let of = self.comparisons.len();
            let terms = terms(self.confidence, self.margin, &self.adjustment, of);
            blocks.push(Block::Brief { brief: Vec::new(), whole: vec![Block::text(terms)] });
        }
        let median = |at: usize| Some(self.variants.get(at)?.summary?.median);
        let medians = |c: &Compared| [c.baseline, c.variant].map(median);
        blocks.extend(compared(&self.comparisons, &medians, &self.quantity));
        blocks.extend(self.comparisons.iter().filter_map(|c| counted::differences(c, false)));
        blocks.extend(self.legend());
        Document {
            title: self.asked.clone(),
            conclusion: Vec::new(),
            blocks,
            data: self,
            version: VERSION,
        }
    }

    /// Picture of the effects, with single runs over the baseline's median.
    fn drawing(&self) -> Option<Drawing> {
        let terms = Terms {
            confidence: self.confidence,
            margin: self.margin,
            caption: &self.caption,
            against: "single runs against the baseline's median",
            quantity: match self.quantity.is_packet_rate() {
                true => "rate",
                false => self.quantity.name(),
            },
        };
        effects(&self.comparisons, &terms, &|compared| {
            let of = |at: usize| self.variants.get(at);
            let median = of(compared.baseline).and_then(|variant| Some(variant.summary?.median));
            let runs = of(compared.variant).map_or(&[][..], |variant| variant.values.as_slice());
            median.map_or(Vec::new(), |median| runs.iter().map(|run| run / median).collect())
        })
    }

    /// Paths of files with short names. `None` if no name is short.
    fn legend(&self) -> Option<Block> {
        let are_short =
            self.inputs.len() > 1 && self.inputs.iter().any(|input| input.name != input.path);
        let entry = |input: &InputResult| format!("{}: {}", input.name, input.path);
        are_short.then(|| Block::list(self.inputs.iter().map(entry)))
    }
}
