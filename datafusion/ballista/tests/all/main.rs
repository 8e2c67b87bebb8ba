//! Clusters of processes on this machine: a scheduler and two executors.
//!
//! ```text
//! kit.rs       the processes, the tables, and rows as texts
//! queries.rs   answers are those of one process           files.rs     files that a task is given and opens
//! kills.rs     an executor is killed in mid-query         strike.rs    the executor that says when
//! versions.rs  processes of other versions are refused
//! ```

mod files;
mod kills;
mod kit;
mod queries;
mod strike;
mod versions;
