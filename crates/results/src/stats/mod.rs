//! Statistics: ministat text, summaries, comparisons.
