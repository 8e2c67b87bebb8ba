//! A progress bar on standard error, for work of more than half a second that a person watches. It shows the share,
//! the rate and the time left, and clears itself.

use crate::cli::Global;
use crate::failure::Failure;
use crate::interrupt::Guard;
use crate::metrics::{Metrics, Phases};
use crate::render::text::{counted, human_bytes};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pleach_builder::{Observer, Phase};
use std::io::{IsTerminal, stderr};
use std::sync::{Arc, Mutex};
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
    phase: Mutex<Option<Phased>>,
    timed: Option<Arc<Mutex<Phases>>>,
}

/// The current part of the work.
struct Phased {
    label: &'static str,
    since: Instant,
    /// What was done when it began.
    from: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Begins the work. Shows nothing under `--quiet` or if standard error is not a terminal.
    pub fn new(global: &Global) -> Self {
        Self {
            guard: Guard::new(),
            started: Instant::now(),
            wanted: !global.quiet && stderr().is_terminal(),
            read: Unit::Bytes,
            phase: Mutex::new(None),
            timed: None,
        }
    }

    /// Also takes the times of phases, for metrics.
    pub fn timed(mut self, metrics: &Metrics) -> Self {
        self.timed.clone_from(&metrics.phases);
        self
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
        if let Some(Ok(mut phases)) = self.timed.as_ref().map(|phases| phases.try_lock()) {
            phases.see(label, done);
        }
        if !self.wanted {
            return;
        }
        // Another thread is drawing: its numbers are as recent.
        let Ok(mut shown) = self.phase.try_lock() else { return };
        let phase = match &mut *shown {
            Some(phase) if phase.label == label => phase,
            before => {
                let since = if before.is_none() { self.started } else { Instant::now() };
                if let Some(bar) = before.take().and_then(|phase| phase.bar) {
                    bar.finish_and_clear();
                }
                before.insert(Phased { label, since, from: done, bar: None })
            }
        };
        if self.started.elapsed() < PROGRESS_DELAY {
            return;
        }
        let bar = phase.bar.get_or_insert_with(|| new_bar(label, (done, total)));
        if let Some(total) = total {
            bar.set_length(total);
        }
        bar.set_position(done);
        bar.set_message(told(
            self.unit(label),
            done,
            total,
            done.saturating_sub(phase.from),
            phase.since.elapsed(),
        ));
    }
}

/// Returns the rate and the time left, or the time gone if the end is not known. `made` units took `gone`.
fn told(unit: Unit, done: u64, total: Option<u64>, made: u64, gone: Duration) -> String {
    let written = |amount: u64| match unit {
        Unit::Bytes => human_bytes(amount),
        Unit::Tuples => counted(amount, "tuple"),
    };
    let per_second = made as f64 / gone.as_secs_f64().max(1e-3);
    let rate = format!("{}/s", written(per_second as u64));
    // Less than a second is no time to tell.
    let time = |time: Duration, what: &str| match time.as_secs() {
        0 => String::new(),
        _ => format!(", {} {what}", HumanDuration(time)),
    };
    match total {
        Some(total) if made > 0 => {
            let left = Duration::from_secs_f64(total.saturating_sub(done) as f64 / per_second);
            format!("{rate}{}", time(left, "left"))
        }
        _ if made > 0 => format!("{}, {rate}{}", written(done), time(gone, "elapsed")),
        _ => time(gone, "elapsed").trim_start_matches(", ").to_owned(),
    }
}

fn new_bar(label: &'static str, (done, total): (u64, Option<u64>)) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr()).with_position(done);
    let template = match total {
        Some(_) => "{prefix:9} [{bar:20}] {percent:>3}%  {wide_msg}",
        None => "{prefix:9} {spinner} {wide_msg}",
    };
    // The texts are constants; if one does not parse, the default style is used.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(label);
    bar
}

impl Drop for Progress {
    fn drop(&mut self) {
        let phase = match self.phase.get_mut() {
            Ok(phase) => phase,
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Some(bar) = phase.take().and_then(|phase| phase.bar) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_phase() {
        let told = |made, total| told(Unit::Tuples, 500, total, made, Duration::from_secs(2));
        assert_eq!(told(400, Some(1000)), "200 tuples/s, 3 seconds left");
        assert_eq!(told(400, None), "500 tuples, 200 tuples/s, 2 seconds elapsed");
        assert_eq!(told(0, Some(1000)), "2 seconds elapsed");
        let bytes = super::told(Unit::Bytes, 3 << 20, Some(4 << 20), 3 << 20, Duration::from_secs(1));
        assert_eq!(bytes, "3.00 MiB/s");
    }
}
