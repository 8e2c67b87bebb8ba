//! Advice before a build: how large the file will be, how long the build takes, and how fast look-ups are, for each
//! type and layout that fits. At most 64 MiB of the tables are read, and it takes ten seconds at most.

mod command;
mod estimate;
mod grow;
mod infer;
mod input;
mod report;
mod trial;

pub use estimate::{Choice, Estimator, Told, best_first, gpu_pays_for, layouts};
pub use infer::Tries;
pub use input::{Input, SAMPLE_BYTES, Sample};
pub use report::Report;
pub use trial::look_up_ns_at_rest;
