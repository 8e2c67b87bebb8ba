//! Batches over the files of a set: keys are grouped by file, each file answers its own batch, and the answers return
//! to the places of their keys.

pub(crate) mod files;
mod gather;
mod groups;
mod look_ups;
#[cfg(test)]
mod tests;
mod whole;
