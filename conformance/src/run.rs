//! Asks a driver for the answers of a kit, and judges them.

use crate::case::{ANY, Sheet, find};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Differences of one file that are told; the others are counted.
const TOLD: usize = 10;
/// Times that a driver is started again after it crashed or hung.
const STARTS: usize = 8;

/// Time in which a line that nobody asked for follows an answer.
const STEP: Duration = Duration::from_millis(50);

/// What is asked of whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Level of the driver.
    pub level: u8,
    /// Folders of files.
    pub folders: Vec<PathBuf>,
    /// Seconds in which an answer must come.
    pub seconds: u64,
    /// The driver stands above the interface of a library. A refusal need not name its rule, and a file may be
    /// skipped whose plain keys the interface does not take.
    pub is_binding: bool,
    /// The driver and its arguments.
    pub command: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Level of the driver.
    pub level: u8,
    /// Files that were asked about.
    pub files: usize,
    /// Files that were not, since the driver failed too often.
    pub left: usize,
    /// Answers that came.
    pub answers: usize,
    /// Answers that refused a higher level.
    pub above: usize,
    /// Answers that said that the reader has no such structure.
    pub skipped: usize,
    /// Differences, by the file.
    pub differences: BTreeMap<String, Vec<String>>,
}

impl Outcome {
    /// Reports whether all answers were right.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.differences.is_empty() && self.left == 0
    }

    fn differ(&mut self, file: &str, what: String) {
        self.differences.entry(file.to_owned()).or_default().push(what);
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (file, all) in &self.differences {
            for what in all.iter().take(TOLD) {
                writeln!(f, "{file}: {what}")?;
            }
            if all.len() > TOLD {
                writeln!(f, "{file}: and {} more", all.len() - TOLD)?;
            }
        }
        if self.left > 0 {
            writeln!(f, "{} files were not asked about: the driver failed too often", self.left)?;
        }
        writeln!(
            f,
            "level {}: {} files, {} answers, {} above the level, {} skipped: {}",
            self.level,
            self.files,
            self.answers,
            self.above,
            self.skipped,
            match self.differences.values().map(Vec::len).sum::<usize>() {
                0 if self.left == 0 => "all right".to_owned(),
                count => format!("{count} differences in {} files", self.differences.len()),
            }
        )
    }
}

/// Why no answer came.
enum Silence {
    /// None in time.
    Hangs,
    /// The driver ended.
    Ended,
}

/// A driver that runs.
struct Driver {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    wait: Duration,
}

impl Driver {
    fn start(options: &Options) -> Result<Self> {
        let (program, arguments) = options.command.split_first().context("no driver was named")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the driver {program}"))?;
        let output = child.stdout.take().context("an output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n') {
                let Ok(line) = line else { break };
                // Other bytes than text are a wrong answer.
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        Ok(Self { child, input, lines, wait: Duration::from_secs(options.seconds) })
    }

    /// Returns a line that nobody asked for, if there is one.
    fn uncalled(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    fn ask(&mut self, request: &str) -> Result<String, Silence> {
        let input = self.input.as_mut().ok_or(Silence::Ended)?;
        let sent = writeln!(input, "{request}").and_then(|()| input.flush());
        // A driver that ended may have answered all the same.
        match self.lines.recv_timeout(self.wait) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) if sent.is_ok() => Err(Silence::Hangs),
            Err(_) => Err(Silence::Ended),
        }
    }

    /// Says how the driver ended.
    fn death(&mut self) -> String {
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Ends the input, and says what the driver does wrong then.
    fn finish(mut self) -> Option<String> {
        self.input = None;
        let end = Instant::now() + self.wait;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if !line.is_empty() {
                return Some(format!("a line that no request asked for: {}", cut(&line)));
            }
        }
        while Instant::now() < end {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return None,
                Ok(Some(status)) => return Some(format!("the driver ended with {status}")),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(error) => return Some(error.to_string()),
            }
        }
        Some("the driver does not end when its input ends".to_owned())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the beginning of a text.
fn cut(text: &str) -> String {
    let most = 200;
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// Whether an answer may stand.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Right,
    Above,
    Skipped,
    Wrong,
}

/// Returns the level of a request about a file.
fn level_of(request: &str, sheet: &Sheet) -> u8 {
    let mut words = request.split(' ');
    let own = match (words.next(), words.next()) {
        (Some("by"), Some("lines" | "spine")) => 1,
        (Some("by" | "derive"), _) => 3,
        (Some("name" | "logical"), _) => 2,
        _ => 1,
    };
    own.max(sheet.level)
}

fn judge(request: &str, wanted: &str, got: &str, level: u8, sheet: &Sheet) -> Verdict {
    let needed = level_of(request, sheet);
    let above = got.strip_prefix("above ").and_then(|rest| rest.split(' ').next()?.parse::<u8>().ok());
    let may_skip = ["by ", "derive ", "logical "].iter().any(|start| request.starts_with(start));
    if got.starts_with("error") {
        return Verdict::Wrong;
    }
    if let Some(above) = above {
        return if needed > level && above > level { Verdict::Above } else { Verdict::Wrong };
    }
    match got {
        "skip" if may_skip => Verdict::Skipped,
        "skip" => Verdict::Wrong,
        _ if got == wanted => Verdict::Right,
        // Damage that this level need not find.
        _ if wanted == ANY => Verdict::Right,
        "clean" if request == "check" && sheet.code.is_some() && sheet.level > level => Verdict::Right,
        _ => Verdict::Wrong,
    }
}

/// Asks a driver about all files of some folders.
///
/// # Errors
/// If the driver cannot be started, or the files cannot be read. Wrong answers are in the outcome.
pub fn run(options: &Options) -> Result<Outcome> {
    let mut files = Vec::new();
    for folder in &options.folders {
        files.extend(find(folder)?);
    }
    let mut outcome = Outcome { level: options.level, ..Outcome::default() };
    let mut driver = Driver::start(options)?;
    let mut starts = 1;
    for (at, (path, sheet)) in files.iter().enumerate() {
        let path = std::path::absolute(path)?;
        let file = shown(&path);
        outcome.files += 1;
        if ask(&mut driver, &path, sheet, options, &mut outcome) {
            continue;
        }
        let death = driver.death();
        outcome.differ(&file, format!("the driver was ended: {death}"));
        if starts == STARTS {
            outcome.left = files.len() - at - 1;
            return Ok(outcome);
        }
        starts += 1;
        driver = Driver::start(options)?;
    }
    if let Some(fault) = driver.finish() {
        outcome.differ("at the end", fault);
    }
    Ok(outcome)
}

/// Returns the folder and the name of a file.
fn shown(path: &Path) -> String {
    let last: Vec<_> = path.components().rev().take(2).collect();
    last.iter().rev().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Asks about one file. Returns false if no more answers come.
fn ask(driver: &mut Driver, path: &Path, sheet: &Sheet, options: &Options, outcome: &mut Outcome) -> bool {
    let file = shown(path);
    let open = format!("open {}", path.display());
    let wanted = sheet.rule.as_ref().map_or_else(|| "ok".to_owned(), |rule| format!("refuse {rule}"));
    let Some(got) = answer(driver, &open, "open", &wanted, options, (&file, outcome)) else { return false };
    let verdict = match judge("open", &wanted, &got, options.level, sheet) {
        Verdict::Wrong if got == "skip" && options.is_binding => Verdict::Skipped,
        Verdict::Wrong if got == "refuse -" && options.is_binding && sheet.rule.is_some() => Verdict::Right,
        // A fault that this level need not find.
        Verdict::Wrong if got == "ok" && sheet.is_broken() && sheet.level > options.level => Verdict::Right,
        other => other,
    };
    count(&verdict, outcome);
    if verdict == Verdict::Wrong {
        outcome.differ(&file, format!("open: wanted {wanted}, got {}", cut(&got)));
    }
    if got != "ok" || sheet.rule.is_some() {
        return true;
    }
    for (request, wanted) in &sheet.exchange {
        let Some(got) = answer(driver, request, request, wanted, options, (&file, outcome)) else {
            return false;
        };
        let verdict = judge(request, wanted, &got, options.level, sheet);
        count(&verdict, outcome);
        if verdict == Verdict::Wrong {
            // Answers that are out of step come from a line too many.
            if !outcome.differences.contains_key(&file) {
                std::thread::sleep(STEP);
            }
            outcome.differ(&file, format!("{}: wanted {}, got {}", cut(request), cut(wanted), cut(&got)));
        }
    }
    true
}

fn count(verdict: &Verdict, outcome: &mut Outcome) {
    outcome.answers += 1;
    outcome.above += usize::from(*verdict == Verdict::Above);
    outcome.skipped += usize::from(*verdict == Verdict::Skipped);
}

/// Asks one request; tells of silence and of lines that nobody asked for.
fn answer(
    driver: &mut Driver,
    request: &str,
    name: &str,
    wanted: &str,
    options: &Options,
    (file, outcome): (&str, &mut Outcome),
) -> Option<String> {
    let name = cut(name);
    if let Some(line) = driver.uncalled() {
        outcome.differ(file, format!("before {name}: a line that no request asked for: {}", cut(&line)));
        // Questions and answers are out of step from here on.
        return None;
    }
    match driver.ask(request) {
        Ok(answer) => Some(answer),
        Err(Silence::Hangs) => {
            let text =
                format!("{name}: wanted {}, got no answer in {} seconds", cut(wanted), options.seconds);
            outcome.differ(file, text);
            None
        }
        Err(Silence::Ended) => {
            outcome.differ(file, format!("{name}: wanted {}, but the driver ended", cut(wanted)));
            None
        }
    }
}
