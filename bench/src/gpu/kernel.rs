//! The row of the kernels that measure, and the record of what they use.

use super::measure::MEASURE;
use pleach_gpu::internal::{Compiler, Instance, Lowest, Source};

#[path = "../../../gpu/src/kernel/limits.rs"]
mod limits;

const ROWS: &[Source] = &[&MEASURE];
const RECORDED: &str = include_str!("limits.txt");
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gpu/limits.txt");
