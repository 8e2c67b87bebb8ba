//! Lines of progress on standard error.

use log::{LevelFilter, Log, Metadata, Record};
use std::sync::OnceLock;
use std::time::Instant;

/// How much is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// Nothing.
    Off,
    /// What goes wrong.
    #[default]
    Warn,
    /// Tasks, and the files that they are given.
    Info,
    /// Plans as well.
    Debug,
}

/// Writes lines to standard error from now on. A second call has no effect.
pub fn log_to_stderr(level: Level) {
    let level = match level {
        Level::Off => LevelFilter::Off,
        Level::Warn => LevelFilter::Warn,
        Level::Info => LevelFilter::Info,
        Level::Debug => LevelFilter::Debug,
    };
    static LINES: OnceLock<Lines> = OnceLock::new();
    let lines = LINES.get_or_init(|| Lines { level, start: Instant::now() });
    if log::set_logger(lines).is_ok() {
        log::set_max_level(level);
    }
}

struct Lines {
    level: LevelFilter,
    start: Instant,
}

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_own = ["pleach", "ballista"].iter().any(|name| metadata.target().starts_with(name));
        metadata.level() <= if is_own { self.level } else { self.level.min(LevelFilter::Warn) }
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let seconds = self.start.elapsed().as_secs_f64();
            eprintln!("{seconds:9.3} {} {}: {}", record.level(), record.target(), record.args());
        }
    }

    fn flush(&self) {}
}
