//! `pleach bench`: runs `pleach-bench`, which measures Pleach beside other engines.
//!
//! It is a program of its own, so that building `pleach` does not compile those engines.

use crate::cli::{BenchArgs, Global};
use crate::failure::{self, Code, ExitStatus, Failure};
use crate::message::Message;
use std::env;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = "pleach-bench";

/// Replaces this process by `pleach-bench` with the same arguments: it is beside this program, or on PATH.
pub fn run(args: &BenchArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let beside = env::current_exe().ok().map(|pleach| pleach.with_file_name(PROGRAM));
    let program = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM));
    let error = Command::new(&program)
        .args(global.json.then_some("--json"))
        .args(global.quiet.then_some("--quiet"))
        .args(&args.args)
        .exec();
    if error.kind() != ErrorKind::NotFound {
        return Err(Failure::io("cannot run", &program, &error));
    }
    // The option may be one of the arguments that are passed on.
    failure::set_json(global.json || args.args.iter().any(|argument| argument == "--json"));
    Err(Failure::new(
        Code::NotFound,
        Message::new("cannot find pleach-bench").more("it is neither beside pleach nor on PATH").advise(
            "in a copy of Pleach's source, run `cargo run --release -p pleach-bench -- ...`, or install it with \
             `cargo install --path bench`",
        ),
    ))
}
