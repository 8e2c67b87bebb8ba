//! Other libraries that search sorted arrays on a GPU: thrust, PyTorch and CuPy, if they are installed.
//!
//! Each is a program of its own that runs before any of our tables is on the device: `thrust.cu`, compiled by nvcc
//! while the limits are measured and kept in the cache folder, and `peers.py`. They make the same keys and
//! queries by the same formulas and tell times and a sum of the answers of each batch, which is compared
//! with ours once our table is there. A peer that is absent, or fails, is a row that says so.

use super::case::Case;
use super::measure::Drawn;
use super::tables::size_name;
use super::{Bench, GpuReport, GpuRow};
use crate::BenchError;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const THRUST: &str = include_str!("../../peers/gpu/thrust.cu");
const PYTHON: &str = include_str!("../../peers/gpu/peers.py");
/// Peers of `peers.py`.
const MODULES: [&str; 2] = ["torch", "cupy"];

/// Sums that a peer's row must have, to be compared when our table is on the device.
#[derive(Clone, Debug)]
pub struct Expected {
    name: String,
    key_type: String,
    size: String,
    kind: Drawn,
    sums: Vec<u64>,
}

/// The peers; thrust may still be compiling.
pub struct Peers {
    thrust: Result<Thrust, String>,
}

/// The program, and its compiler if that is running.
struct Thrust {
    binary: PathBuf,
    compiling: Option<(Child, PathBuf)>,
    // If there is no cache folder.
    _folder: Option<crate::Folder>,
}

/// Folder of the compiled peers.
fn cache_folder() -> Option<PathBuf> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = from("PLEACH_CACHE_DIR")
        .or_else(|| Some(from("XDG_CACHE_HOME")?.join("pleach")))
        .or_else(|| Some(from("HOME")?.join(".cache/pleach")))?
        .join("peers");
    std::fs::create_dir_all(&folder).ok().map(|()| folder)
}

/// The compiler, by the path or where the toolkit puts it.
fn nvcc() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/local/cuda/bin")]);
    folders.map(|folder| folder.join("nvcc")).find(|nvcc| nvcc.is_file())
}

impl Thrust {
    fn start(compute: (u32, u32)) -> Result<Self, String> {
        let said = |error: std::io::Error| error.to_string();
        let nvcc = nvcc().ok_or("absent: nvcc is not installed")?;
        let (folder, kept) = match cache_folder() {
            Some(folder) => (folder, None),
            None => {
                let folder = crate::folder(None).map_err(|error| error.to_string())?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let mut hasher = DefaultHasher::new();
        (THRUST, &nvcc, compute).hash(&mut hasher);
        let name = format!("thrust-{:016x}", hasher.finish());
        let binary = folder.join(&name);
        if binary.is_file() {
            return Ok(Self { binary, compiling: None, _folder: kept });
        }
        let source = folder.join(format!("{name}.cu"));
        std::fs::write(&source, THRUST).map_err(said)?;
        // Under another name until it is whole.
        let made = folder.join(format!("{name}.{}", std::process::id()));
        let child = Command::new(nvcc)
            .args(["-O3", "-std=c++17", &format!("-arch=sm_{}{}", compute.0, compute.1), "-o"])
            .args([&made, &source])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(said)?;
        Ok(Self { binary, compiling: Some((child, made)), _folder: kept })
    }

    /// The program, once it is compiled.
    fn binary(&mut self) -> Result<&Path, String> {
        if let Some((child, made)) = self.compiling.take() {
            let output = child.wait_with_output().map_err(|error| error.to_string())?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                let line = said.lines().find(|line| line.contains("error")).or_else(|| said.lines().next());
                return Err(format!("nvcc failed: {}", line.unwrap_or("no message")));
            }
            std::fs::rename(&made, &self.binary).map_err(|error| error.to_string())?;
        }
        Ok(&self.binary)
    }
}

impl Drop for Thrust {
    fn drop(&mut self) {
        if let Some((child, made)) = &mut self.compiling {
            // Nobody waits for it any more.
            let _ = child.kill();
            let _ = child.wait();
            let _ = std::fs::remove_file(made);
        }
    }
}

impl Peers {
    /// Starts what has to be compiled.
    pub fn start(compute: (u32, u32)) -> Self {
        Self { thrust: Thrust::start(compute) }
    }

    /// Runs all of them, each on all tables.
    pub fn run(self, bench: &Bench<'_>, report: &mut GpuReport) -> Result<Vec<Expected>, BenchError> {
        self.run_some(bench, &MODULES, report)
    }

    /// Runs thrust, and some of the modules, each on all tables.
    pub fn run_some(
        self,
        bench: &Bench<'_>,
        modules: &[&str],
        report: &mut GpuReport,
    ) -> Result<Vec<Expected>, BenchError> {
        let options = bench.options;
        let cases = options
            .key_types
            .iter()
            .flat_map(|key_type| options.tuples.iter().map(move |tuples| format!("{key_type}:{tuples}")));
        let mut arguments = vec![options.batch.to_string(), options.repetitions.to_string()];
        arguments.extend(cases);
        let mut expected = Vec::new();
        options.told.step("thrust")?;
        let thrust =
            self.thrust.and_then(|mut thrust| output(Command::new(thrust.binary()?).args(&arguments)));
        rows("thrust", thrust, bench, report, &mut expected)?;
        for module in modules {
            options.told.step(module)?;
            let found = output(Command::new("python3").args(["-c", PYTHON, module]).args(&arguments));
            rows(module, found, bench, report, &mut expected)?;
        }
        Ok(expected)
    }
}

/// Returns the output of a program, or its error if it fails. Lines before a failure count.
fn output(command: &mut Command) -> Result<(String, Option<String>), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("absent: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok((printed, None));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().last().unwrap_or("no message").to_owned();
    Ok((printed, Some(format!("{}: {said}", output.status))))
}

/// Rows of what a peer printed.
fn rows(
    engine: &str,
    output: Result<(String, Option<String>), String>,
    bench: &Bench<'_>,
    report: &mut GpuReport,
    expected: &mut Vec<Expected>,
) -> Result<(), BenchError> {
    let (printed, failed) = match output {
        Ok((printed, failed)) => (printed, failed),
        Err(error) => (String::new(), Some(error)),
    };
    for line in printed.lines() {
        let (row, sums) = match parse(line, bench.options.batch) {
            Ok(parsed) => parsed,
            Err(error) => (GpuRow::new("peer", engine, &[]).with("error", error), None),
        };
        expected.extend(sums);
        bench.push(report, row)?;
    }
    if let Some(error) = failed {
        bench.push(report, GpuRow::new("peer", engine, &[]).with("error", error))?;
    }
    Ok(())
}

/// A row of a line, and what its sums have to be compared with.
fn parse(line: &str, batch: u64) -> Result<(GpuRow, Option<Expected>), String> {
    let found: Value = serde_json::from_str(line).map_err(|_| format!("it printed `{line}`"))?;
    let text = |name: &str| found[name].as_str().unwrap_or_default();
    if let Some(absent) = found["absent"].as_str() {
        return Err(format!("absent: {absent}"));
    }
    let ms: Option<Vec<f64>> = found["ms"].as_array().and_then(|ms| ms.iter().map(Value::as_f64).collect());
    let sums = found["sums"].as_array();
    let sums: Option<Vec<u64>> =
        sums.and_then(|sums| sums.iter().map(|sum| sum.as_str()?.parse().ok()).collect());
    let (Some(ms), Some(sums), Some(tuples)) =
        (ms.filter(|ms| !ms.is_empty()), sums, found["tuples"].as_u64())
    else {
        return Err(format!("it printed `{line}`"));
    };
    let (key_type, size, order) = (text("key_type").to_owned(), size_name(tuples), text("order").to_owned());
    let row = GpuRow::new("peer", text("engine"), &[&key_type, &size, &order])
        .times(batch, &ms)
        .with("version", text("version"))
        .with("checked", false);
    let kind = if order == "sorted" { Drawn::Ascending } else { Drawn::Present };
    let name = row.name().to_owned();
    Ok((row, Some(Expected { name, key_type, size, kind, sums })))
}

/// Compares the sums of the peers with ours, on our table of the same tuples.
pub fn check(
    case: &Case<'_, '_>,
    [key_type, size]: [&str; 2],
    expected: &[Expected],
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let options = case.bench.options;
    for expected in
        expected.iter().filter(|expected| (&*expected.key_type, &*expected.size) == (key_type, size))
    {
        let mut wrong = None;
        for (seed, &sum) in (0..).zip(&expected.sums) {
            let batch = case.draw(expected.kind, options.batch, seed)?;
            let ours = case.maker.sum(&batch)?;
            if ours != sum {
                wrong = wrong.or(Some(format!("batch {seed}: its answers add up to {sum}, ours to {ours}")));
            }
        }
        let Some(row) = report.find_mut(&expected.name) else { continue };
        match wrong {
            Some(error) => {
                row.set("error", error);
                row.set("is_wrong", true);
            }
            None => row.set("checked", true),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_rows() {
        let line = r#"{"engine": "torch", "version": "2", "key_type": "u64", "tuples": 67108864, "order": "sorted",
            "ms": [2.0, 1.0, 3.0], "sums": ["18446744073709551615", "1"]}"#;
        let (row, expected) = parse(line, 1 << 26).expect("a row");
        assert_eq!(row.name(), "peer/torch/u64/2^26/sorted");
        assert_eq!(row.get("ms"), Some(2.0));
        let expected = expected.expect("sums");
        assert_eq!((expected.kind, expected.sums), (Drawn::Ascending, vec![u64::MAX, 1]));
        assert_eq!(parse(r#"{"absent": "no"}"#, 1).err().as_deref(), Some("absent: no"));
        assert!(parse("[]", 1).is_err() && parse("x", 1).is_err());
    }
}
