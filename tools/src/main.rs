//! `pleach`: builds, searches, checks and explains Pleach files. The library beside this file has the code.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: pleach_cli::Allocator = pleach_cli::Allocator;

fn main() -> ExitCode {
    pleach_cli::run::<pleach_cli::Cli>()
}
