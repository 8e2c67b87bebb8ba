//! One module per subcommand. Each has `run(&Args, &Global) -> Result<ExitStatus, Failure>`: data is written
//! to standard output, everything else is in the result.

pub mod advise;
pub mod bench;
pub mod build;
pub mod compact;
pub mod completions;
pub mod demo;
pub mod devices;
pub mod diff;
pub mod export;
pub mod fsck;
pub mod generations;
pub mod get;
pub mod inspect;
pub mod man;
pub mod range;
pub mod rebuild;
pub mod relation;
pub mod rollback;
mod salvage;
pub mod sample;
pub mod set;
pub mod stats;
pub mod tune;
pub mod upgrade;
