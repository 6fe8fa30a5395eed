//! Results of a comparison as a document.

use super::Results;
use crate::document::{Block, Document};
use crate::report::verdicts::{terms, variants, verdicts};

/// Version of the shape of the fields; raised when something that was there is named
/// otherwise or means something else.
const VERSION: u32 = 1;

impl Results {
    /// What was asked, the figures and the verdicts.
    pub fn document(&self) -> Document<'_> {
        let figure = self.figure.map_or(String::new(), |f| format!(": {}", f.description()));
        let mut blocks: Vec<Block> = Block::caption(&self.caption).into_iter().collect();
        blocks.extend(Block::notes(&self.notes));
        blocks.push(Block::text(format!("One figure per run{figure}. All in packets per second.")));
        blocks.push(variants(&self.variants, |v| (v.label.as_str(), v.summary.as_ref())).block());
        let of = self.comparisons.len();
        blocks.push(Block::text(terms(self.confidence, self.margin, &self.adjustment, of)));
        blocks.push(verdicts(&self.comparisons));
        Document {
            title: self.asked.clone(),
            conclusion: Vec::new(),
            blocks,
            data: self,
            version: VERSION,
        }
    }
}
