//! `pleach man`: writes a manual page for each command.

use crate::cli::{Cli, Global, ManArgs};
use crate::errors::build_failure;
use crate::failure::{ExitStatus, Failure};
use crate::render::json;
use crate::render::text::printable;
use crate::stdout;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use pleach_builder::publish::{self, Rules};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

pub fn run(args: &ManArgs, global: &Global) -> Result<ExitStatus, Failure> {
    fs::create_dir_all(&args.dir).map_err(|error| Failure::io("cannot make folder", &args.dir, &error))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = vec![write(&args.dir, "pleach", command.clone())?];
    for each in command.get_subcommands() {
        pages.push(write(&args.dir, &format!("pleach-{}", each.get_name()), each.clone())?);
    }
    if global.json {
        let mut document = json::document("man");
        document.insert("pages".to_owned(), pages.into());
        stdout::print_json(document)?;
    } else if !global.quiet {
        let lines: String = pages.iter().map(|page| printable(page) + "\n").collect();
        stdout::print(lines.as_bytes())?;
    }
    Ok(ExitStatus::Success)
}

/// Writes one page and returns its path.
fn write(dir: &Path, name: &str, command: Command) -> Result<String, Failure> {
    let path = dir.join(format!("{name}.1"));
    let mut page = Vec::new();
    render(name, command, &mut page).map_err(|error| Failure::io("cannot write", &path, &error))?;
    publish::replace(&path, &page, Rules::table(Vec::new(), false)).map_err(|error| build_failure(&error))?;
    Ok(path.display().to_string())
}

/// Writes all arguments with the names of their values, which clap's own synopsis leaves out.
fn synopsis(name: &str, command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let roff = |text: &str| text.replace('\\', "\\e").replace('-', "\\-");
    let mut words = vec![format!("\\fB{}\\fR", roff(&name.replacen("pleach-", "pleach ", 1)))];
    // Options first, as people type them.
    let all = || command.get_arguments().filter(|argument| !argument.is_hide_set());
    for argument in
        all().filter(|argument| !argument.is_positional()).chain(all().filter(|one| one.is_positional()))
    {
        let values = argument.get_num_args().unwrap_or_default();
        let names: Vec<String> =
            argument.get_value_names().unwrap_or_default().iter().map(|name| roff(name)).collect();
        let mut value =
            if values.takes_values() { format!("\\fI{}\\fR", names.join(" ")) } else { String::new() };
        if values.max_values() > 1 || matches!(argument.get_action(), clap::ArgAction::Append) {
            value.push_str("...");
        }
        let word = match (argument.get_long(), values.min_values()) {
            (None, _) => value,
            (Some(long), 0) if values.takes_values() => format!("\\fB\\-\\-{}\\fR[={value}]", roff(long)),
            (Some(long), _) if value.is_empty() => format!("\\fB\\-\\-{}\\fR", roff(long)),
            (Some(long), _) => format!("\\fB\\-\\-{}\\fR {value}", roff(long)),
        };
        words.push(if argument.is_required_set() { word } else { format!("[{word}]") });
    }
    if command.has_subcommands() {
        words.push("\\fICOMMAND\\fR ...".to_owned());
    }
    writeln!(page, ".SH SYNOPSIS\n{}", words.join("\n"))
}

/// Writes a page: clap's description, and the examples as they are in the help.
fn render(name: &str, mut command: Command, page: &mut Vec<u8>) -> io::Result<()> {
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // `man` finds a page by its dashed name.
    let dashed: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let synopsis_of = command.clone();
    command = command.name(dashed);
    let version = concat!("pleach ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command).title(name.to_uppercase()).source(version).manual("Pleach manual");
    man.render_title(page)?;
    man.render_name_section(page)?;
    synopsis(name, &synopsis_of, page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if name == "pleach" {
        man.render_subcommands_section(page)?;
    }
    writeln!(page, ".SH EXAMPLES\n.nf")?;
    for line in examples.lines().skip(1) {
        // A dash is a minus sign to copy; a dot at the start is not a request, and a backslash is not an
        // escape.
        writeln!(page, "\\&{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
    }
    writeln!(page, ".fi\n.SH EXIT STATUS")?;
    writeln!(page, "0 done; 1 a key of get is missing; 2 invalid arguments;")?;
    writeln!(page, "4 a Pleach file is damaged; 8 any other failure; 130 interrupted.")
}
