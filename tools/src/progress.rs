//! A progress bar on standard error, for work of more than half a second that a person watches. It shows the share,
//! the rate and the time left, and clears itself.

use crate::cli::Global;
use crate::failure::Failure;
use crate::interrupt::Guard;
use crate::render::text::{counted, human_bytes};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use pleach_builder::{Observer, Phase};
use std::fmt;
use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Delay before the progress bar appears.
const PROGRESS_DELAY: Duration = Duration::from_millis(500);

/// What the work is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    Tuples,
}

/// A bar that appears after half a second; while it lives, Ctrl-C sets a flag.
pub struct Progress {
    guard: Guard,
    started: Instant,
    wanted: bool,
    /// Unit of what is read.
    read: Unit,
    bar: Mutex<Option<(&'static str, ProgressBar)>>,
}

impl Progress {
    /// Begins the work. Shows nothing under `--quiet` or if standard error is not a terminal.
    pub fn new(global: &Global) -> Self {
        Self {
            guard: Guard::new(),
            started: Instant::now(),
            wanted: !global.quiet && stderr().is_terminal(),
            read: Unit::Bytes,
            bar: Mutex::new(None),
        }
    }

    /// Takes what is read for tuples; otherwise it is bytes.
    pub fn reading_tuples(mut self) -> Self {
        self.read = Unit::Tuples;
        self
    }

    /// Returns true if Ctrl-C or SIGTERM came.
    pub fn is_interrupted(&self) -> bool {
        self.guard.is_interrupted()
    }

    /// Returns the failure to report for failed work: an interruption, if there was one.
    pub fn failed(&self, failure: Failure) -> Failure {
        if self.is_interrupted() { Failure::Interrupted } else { failure }
    }

    /// Returns the unit in which the work called `label` is counted.
    fn unit(&self, label: &str) -> Unit {
        match label {
            "reading" => self.read,
            "writing" | "checking" | "copying" => Unit::Bytes,
            _ => Unit::Tuples,
        }
    }

    /// Shows that `done` of `total` of the work called `label` is done.
    pub fn show(&self, label: &'static str, done: u64, total: Option<u64>) {
        if !self.wanted || self.started.elapsed() < PROGRESS_DELAY {
            return;
        }
        // Another thread is drawing: its numbers are as recent.
        let Ok(mut shown) = self.bar.try_lock() else { return };
        let bar = match &*shown {
            Some((current, bar)) if *current == label => bar.clone(),
            _ => {
                let bar =
                    new_bar(label, self.unit(label), (done, total)).with_elapsed(self.started.elapsed());
                if let Some((_, old)) = shown.replace((label, bar.clone())) {
                    old.finish_and_clear();
                }
                bar
            }
        };
        if let Some(total) = total {
            bar.set_length(total);
        }
        bar.set_position(done);
    }
}

fn new_bar(label: &'static str, unit: Unit, (done, total): (u64, Option<u64>)) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let template = match (done, total) {
        (_, Some(_)) => "{prefix:9} [{wide_bar}] {percent:>3}%  {rate}, {eta} left",
        (0, None) => "{prefix:9} {spinner} {elapsed} elapsed",
        (_, None) => "{prefix:9} {spinner} {amount}, {rate}, {elapsed} elapsed",
    };
    let written = move |amount: u64| match unit {
        Unit::Bytes => human_bytes(amount),
        Unit::Tuples => counted(amount, "tuple"),
    };
    // The texts are constants; if one does not parse, the default style is used.
    if let Ok(style) = ProgressStyle::with_template(template) {
        let style = style
            .with_key("rate", move |state: &ProgressState, out: &mut dyn fmt::Write| {
                let _ = write!(out, "{}/s", written(state.per_sec() as u64));
            })
            .with_key("amount", move |state: &ProgressState, out: &mut dyn fmt::Write| {
                let _ = write!(out, "{}", written(state.pos()));
            });
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(label);
    bar
}

impl Drop for Progress {
    fn drop(&mut self) {
        let bar = match self.bar.get_mut() {
            Ok(bar) => bar,
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Some((_, bar)) = bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Progress {
    fn progress(&self, phase: Phase, done: u64, total: Option<u64>) {
        let label = match phase {
            Phase::Read => "reading",
            Phase::Sort => "sorting",
            Phase::Merge => "merging",
            Phase::Write => "writing",
            Phase::Sync => "syncing",
        };
        self.show(label, done, total);
    }

    fn cancelled(&self) -> bool {
        self.is_interrupted()
    }
}
