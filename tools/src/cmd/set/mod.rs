//! `pleach set`: tables of several files. Each command of it has a file here.

mod build;
mod check;
mod commit;
mod entries;
mod generations;
mod rebuild;
mod show;
mod sweep;

pub use check::check;
pub use generations::{list, rollback};
pub use rebuild::rebuild;
pub use show::show;

use crate::cli::Global;
use crate::cli::set::{SetArgs, SetCommand};
use crate::failure::{ExitStatus, Failure};

pub fn run(args: &SetArgs, global: &Global) -> Result<ExitStatus, Failure> {
    match &args.command {
        SetCommand::Build(args) => build::build(args, global),
        SetCommand::Write(args) => build::write(args, global),
        SetCommand::Commit(args) => commit::run(args, global),
        SetCommand::Rebuild(args) => rebuild(args, global),
        SetCommand::Sweep(args) => sweep::run(args, global),
        SetCommand::Generations(args) => list(args, global),
        SetCommand::Rollback(args) => rollback(args, global),
    }
}
