//! `--metrics FILE`: what a run did, for Prometheus, as its textfile collector reads it.
//!
//! The file is begun before the work, so that a bad path is an error before anything is read, and published after
//! it in one step, also if the work failed. The time of the last success is then that of the file before.

use crate::errors::build_failure;
use crate::failure::{ExitStatus, Failure};
use crate::message::Message;
use pleach_builder::publish::{Draft, Rules};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Name of the time of the last success, which later runs read.
const SUCCESS: &str = "pleach_last_success_timestamp_seconds";

/// Durations of the phases of a run, in the order in which they began, and the last count of what was done.
#[derive(Debug, Default)]
pub struct Phases {
    all: Vec<(&'static str, Duration, u64)>,
    current: Option<(&'static str, Instant)>,
}

impl Phases {
    /// Takes that `done` of the work called `label` is done.
    pub fn see(&mut self, label: &'static str, done: u64) {
        if self.current.is_none_or(|(current, _)| current != label) {
            self.end();
            self.current = Some((label, Instant::now()));
            if !self.all.iter().any(|(name, ..)| *name == label) {
                self.all.push((label, Duration::ZERO, 0));
            }
        }
        if let Some((.., most)) = self.all.iter_mut().find(|(name, ..)| *name == label) {
            *most = done.max(*most);
        }
    }

    fn end(&mut self) {
        let Some((label, since)) = self.current.take() else { return };
        if let Some((_, took, _)) = self.all.iter_mut().find(|(name, ..)| *name == label) {
            *took += since.elapsed();
        }
    }
}

/// What a run tells of itself. Numbers of several files are added.
#[derive(Debug, Default)]
pub struct Told {
    /// Tuples in the file.
    pub tuples: Option<u64>,
    /// Bytes that were read.
    pub read_bytes: Option<u64>,
    /// Bytes of the file that was written.
    pub written_bytes: Option<u64>,
    /// Generation of the file that was written.
    pub generation: Option<u64>,
    /// Files that were checked.
    pub checked: Vec<Checked>,
}

/// A file that was checked.
#[derive(Debug)]
pub struct Checked {
    /// Its path.
    pub path: PathBuf,
    /// How many findings there are.
    pub findings: u64,
    /// Whether it is damaged.
    pub is_damaged: bool,
}

/// The recorder of a run.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Shared with [`crate::progress::Progress`]; `None` if nothing is to be written.
    pub phases: Option<Arc<Mutex<Phases>>>,
    told: Mutex<Told>,
}

impl Metrics {
    /// Changes what the run tells.
    pub fn tell(&self, change: impl FnOnce(&mut Told)) {
        if let Ok(mut told) = self.told.lock() {
            change(&mut told);
        }
    }
}

/// A run whose metrics are wanted.
pub struct Run<'a> {
    /// Name of the command.
    pub command: &'static str,
    /// The file that it makes, changes or checks first.
    pub file: &'a Path,
    /// Files that the metrics must not replace.
    pub inputs: Vec<PathBuf>,
    /// Where metrics go, if they are wanted.
    pub metrics: Option<&'a Path>,
}

impl Run<'_> {
    /// Runs the work, and publishes its metrics.
    pub fn measure(
        self,
        work: impl FnOnce(&Metrics) -> Result<ExitStatus, Failure>,
    ) -> Result<ExitStatus, Failure> {
        let Some(path) = self.metrics else { return work(&Metrics::default()) };
        if path == Path::new("-") || placed(path).is_some_and(|place| Some(place) == placed(self.file)) {
            let message = Message::new("metrics need a file of their own").at(path.display());
            return Err(Failure::usage(message.advise("name another file with --metrics")));
        }
        let before = fs::read_to_string(path).ok().and_then(|text| last_success(&text));
        let mut protected = self.inputs.clone();
        protected.push(self.file.to_owned());
        let rules = Rules::table(protected, false);
        let mut draft = Draft::create(path, rules).map_err(|error| build_failure(&error))?;
        let metrics = Metrics { phases: Some(Arc::default()), ..Metrics::default() };
        let started = Instant::now();
        let done = work(&metrics);
        let exit = done.as_ref().map_or_else(Failure::code, |status| status.code());
        let text = self.text(&metrics, started.elapsed(), exit, before);
        let written =
            draft.write_all(text.as_bytes()).map_err(|error| Failure::io("cannot write", path, &error));
        let published = written.and_then(|()| draft.commit().map_err(|error| build_failure(&error)));
        // The failure of the work is what a caller has to know.
        done.and_then(|status| published.map(|()| status))
    }

    fn text(&self, metrics: &Metrics, took: Duration, exit: u8, before: Option<f64>) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let of = |file: &Path| {
            format!("command=\"{}\",file=\"{}\"", self.command, label(&file.display().to_string()))
        };
        let labels = of(self.file);
        let mut text = String::new();
        let mut put = |name: &str, help: &str, samples: &[(String, f64)]| {
            if samples.is_empty() {
                return;
            }
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            for (labels, value) in samples {
                let _ = writeln!(text, "{name}{{{labels}}} {value}");
            }
        };
        let one = |value: Option<u64>| -> Vec<(String, f64)> {
            value.map(|value| (labels.clone(), value as f64)).into_iter().collect()
        };
        put("pleach_duration_seconds", "Duration of the run.", &[(labels.clone(), took.as_secs_f64())]);
        let mut read = None;
        if let Some(Ok(mut phases)) = metrics.phases.as_ref().map(|phases| phases.lock()) {
            phases.end();
            let samples: Vec<(String, f64)> = phases
                .all
                .iter()
                .map(|(name, took, _)| (format!("{labels},phase=\"{name}\""), took.as_secs_f64()))
                .collect();
            put("pleach_phase_duration_seconds", "Duration of each phase of the run.", &samples);
            read = phases.all.iter().find(|(name, ..)| *name == "reading").map(|(.., done)| *done);
        }
        let told = metrics.told.lock().map(|mut told| std::mem::take(&mut *told)).unwrap_or_default();
        put("pleach_tuples", "Tuples in the file.", &one(told.tuples));
        put("pleach_read_bytes", "Bytes that the run read of its input.", &one(told.read_bytes.or(read)));
        put("pleach_written_bytes", "Bytes of the file that the run wrote.", &one(told.written_bytes));
        put("pleach_generation", "Generation of the file that the run wrote.", &one(told.generation));
        let checked = |number: fn(&Checked) -> f64| -> Vec<(String, f64)> {
            told.checked.iter().map(|file| (of(&file.path), number(file))).collect()
        };
        let findings = "Findings of the check of a file, of which each is damage.";
        put("pleach_findings", findings, &checked(|file| file.findings as f64));
        let mut damaged = checked(|file| f64::from(u8::from(file.is_damaged)));
        if damaged.is_empty() {
            damaged.push((labels.clone(), f64::from(u8::from(exit == 4))));
        }
        put("pleach_damaged", "1 if the run met damage in the file, else 0.", &damaged);
        put("pleach_exit_code", "Exit code of the run; 0 is success.", &[(labels.clone(), exit.into())]);
        put("pleach_last_run_timestamp_seconds", "Time at which the run ended.", &[(labels.clone(), now)]);
        let success = if exit == 0 { Some(now) } else { before };
        let success: Vec<(String, f64)> = success.map(|at| (labels.clone(), at)).into_iter().collect();
        put(SUCCESS, "Time at which a run with these metrics last succeeded.", &success);
        text
    }
}

/// Returns the folder and the name of a file that may be missing, by which paths can be compared.
fn placed(path: &Path) -> Option<(PathBuf, &OsStr)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some((folder.canonicalize().ok()?, path.file_name()?))
}

/// Returns the time of the last success that a file of metrics has.
fn last_success(text: &str) -> Option<f64> {
    let line = text.split('\n').find(|line| line.starts_with(SUCCESS))?;
    line.rsplit(' ').next()?.parse().ok().filter(|at: &f64| at.is_finite())
}

/// Returns text as the value of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_summed() {
        let mut phases = Phases::default();
        for (name, done) in [("reading", 5), ("reading", 9), ("writing", 3), ("reading", 2)] {
            phases.see(name, done);
        }
        phases.end();
        let told: Vec<_> = phases.all.iter().map(|(name, _, done)| (*name, *done)).collect();
        assert_eq!(told, [("reading", 9), ("writing", 3)]);
    }

    #[test]
    fn labels_are_escaped_and_times_read_back() {
        assert_eq!(label("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
        assert_eq!(last_success(&format!("# x\n{SUCCESS}{{command=\"a b\"}} 12.5\n")), Some(12.5));
        assert_eq!(last_success("other 1\n"), None);
    }
}
