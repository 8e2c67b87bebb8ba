//! `pleach completions`: prints the completion script of a shell.

use crate::cli::{Cli, CompletionsArgs, Global};
use crate::failure::{ExitStatus, Failure};
use crate::render::json;
use crate::stdout;
use clap::CommandFactory;

pub fn run(args: &CompletionsArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pleach", &mut script);
    if global.json {
        let mut document = json::document("completions");
        document.insert("shell".to_owned(), args.shell.to_string().into());
        document.insert("script".to_owned(), String::from_utf8_lossy(&script).into_owned().into());
        stdout::print_json(document)?;
    } else {
        stdout::print(&script)?;
    }
    Ok(ExitStatus::Success)
}
