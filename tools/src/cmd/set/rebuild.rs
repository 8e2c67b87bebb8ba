//! `pleach set rebuild`: changes make the next generation of a set.

use super::build::{put_manifest, text};
use crate::changes;
use crate::cli::{Global, Method, RebuildArgs};
use crate::errors::set_failure;
use crate::failure::{self, ExitStatus, Failure};
use crate::message::Message;
use crate::place;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::grouped;
use crate::request::nulls_text;
use crate::stdout;
use pleach_builder::source::Schema;
use pleach_input::NullCounts;
use pleach_set::{SetRebuildOptions, rebuild_set};
use std::time::Instant;

pub fn rebuild(args: &RebuildArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let not_for_sets = [
        ("--keep", args.keep.is_some(), "a sweep says how many generations it keeps"),
        ("--salvage", args.salvage, "save the damaged file by `pleach fsck --salvage`"),
        ("--method", args.method != Method::Auto, "leave it out"),
        ("--approximate", args.approximate, "keys of a set are whole"),
        ("--metrics", args.metrics.is_some(), "leave it out, and use --json"),
    ];
    if let Some((option, _, advice)) = not_for_sets.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(Failure::usage(Message::new("it is not for sets").at(option).advise(advice)));
    }
    let started = Instant::now();
    let progress = Progress::new(global);
    let default = SetRebuildOptions::default();
    let options = SetRebuildOptions {
        memory_bytes: args.memory.unwrap_or(default.memory_bytes),
        threads: args.threads,
        temp_dir: args.temp.clone(),
        ..default
    };
    let counts = NullCounts::default();
    let store = place::store(&args.file, global)?;
    let open = Box::new(|schema: &Schema| changes::open(args, schema, global, &counts));
    let done = rebuild_set(store, open, &options, &progress)
        .map_err(|error| progress.failed(set_failure(&error)))?;
    drop(progress);
    let seconds = started.elapsed().as_secs_f64();
    let applied = &done.applied;
    if global.json {
        let mut document = json::document("set-rebuild");
        document.insert("set".to_owned(), args.file.display().to_string().into());
        put_manifest(&done.manifest, &mut document);
        document.insert("base_tuples".to_owned(), json::int(done.base_tuples));
        document.insert("touched_files".to_owned(), done.touched.into());
        document.insert("written_files".to_owned(), done.written.into());
        document.insert("carried_files".to_owned(), done.carried.into());
        document.insert("changes".to_owned(), changes::json(applied));
        crate::cmd::build::put_nulls(&counts, &mut document);
        document.insert("seconds".to_owned(), seconds.into());
        stdout::print_json(document)?;
    } else if !global.quiet {
        failure::say(&format!(
            "rebuilt {}: {} (was {}): {} put, {} added, {} deleted, {} of {} files made anew{}, {seconds:.1} s",
            args.file.display(),
            text(&done.manifest),
            grouped(done.base_tuples),
            grouped(applied.puts),
            grouped(applied.adds),
            grouped(applied.dels),
            done.touched,
            done.touched + done.carried,
            nulls_text(&counts),
        ));
    }
    Ok(ExitStatus::Success)
}
