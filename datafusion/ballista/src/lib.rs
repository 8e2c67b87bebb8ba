//! Pleach sets in a cluster of Ballista.
//!
//! Ballista distributes plans of DataFusion: a scheduler divides a plan into tasks, and executors run them. Stock
//! binaries cannot decode plans that read Pleach sets, so this package has its own scheduler and executor. A task
//! carries the location of a set, its generation and the pieces of the files that it reads, and an executor opens
//! these files only.
//!
//! ```text
//! version.rs        what must be the same in all processes      message.rs  the encoding of nodes
//! codec.rs          both codecs: versions, and what is wrapped  tables.rs   files and sets that stay open
//! codec_logical.rs  tables of logical plans
//! codec_physical.rs scans and look-up joins of tasks
//! task_scan.rs      the scan whose pieces Ballista can divide   planner.rs  puts it into plans
//! session.rs        sessions of scheduler and client            stores.rs   object stores by URL
//! cluster.rs        refuses executors of other versions         locality.rs tasks go where their files are open
//! results.rs        after a loss, results are read once
//! scheduler.rs      the scheduler                               executor.rs the executor
//! lines.rs          lines of progress on standard error
//! ```

mod cluster;
mod codec;
mod codec_logical;
mod codec_physical;
mod executor;
mod lines;
mod locality;
mod message;
mod planner;
mod results;
mod scheduler;
mod session;
mod stores;
mod tables;
mod task_scan;
mod version;

pub use cluster::VersionedCluster;
pub use codec_logical::PleachLogicalCodec;
pub use codec_physical::PleachPhysicalCodec;
pub use executor::{ExecutorOptions, executor_config, run_executor};
pub use lines::{Level, log_to_stderr};
pub use locality::Placement;
pub use planner::{ClusterPlanner, TaskScans, cluster_rules};
pub use scheduler::{Distribution, SchedulerOptions, run_scheduler};
pub use session::{client, session_config, session_state};
pub use tables::OpenTables;
pub use task_scan::PleachTaskScanExec;
pub use version::Version;
