//! The rows of the kernels of papers, and the record of what they use.

use super::relation::{cta, merge, pages, unary};
use super::search::{PARY, PARY_TREE, REGULAR, SLIDES};
use pleach_gpu::internal::{Compiler, Instance, Lowest, Source};

#[path = "../../../gpu/src/kernel/limits.rs"]
mod limits;

const ROWS: &[Source] =
    &[&PARY, &PARY_TREE, &REGULAR, &SLIDES, &cta::JOIN, &merge::STREAM, &pages::PAGES, &unary::STAGES];
const RECORDED: &str = include_str!("kernels/limits.txt");
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gpu/kernels/limits.txt");
