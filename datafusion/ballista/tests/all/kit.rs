//! The processes of a cluster, tables to ask, and rows as texts.

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use pleach_ballista::{OpenTables, Version, client, session_config};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Files of the set.
pub const FILES: usize = 8;
/// Tuples of a file.
pub const FILE_TUPLES: usize = 5000;
/// Partitions of scans.
const PARTITIONS: usize = 8;
/// Time after which a process is taken for stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that is killed when it is no longer needed. If a test fails, what the process wrote is shown.
pub struct Process {
    pub name: String,
    pub child: Child,
    pub log: PathBuf,
}

impl Process {
    /// Starts a command. It writes its errors to a file in a folder.
    pub fn start(name: &str, command: &mut Command, folder: &Path) -> Self {
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log).expect("a log can be made");
        let child = command.stdin(Stdio::null()).stderr(file).spawn().expect("the program can be started");
        Self { name: name.to_owned(), child, log }
    }

    /// Returns what the process wrote.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log is there")
    }

    /// Kills the process, as a failing machine does.
    pub fn kill(&mut self) {
        self.child.kill().expect("the process was started here");
        self.child.wait().expect("the process was started here");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            eprintln!("---- {} ----\n{log}", self.name);
        }
    }
}

/// A scheduler and its executors.
pub struct Cluster {
    pub executors: Vec<Process>,
    pub address: String,
    pub folder: tempfile::TempDir,
    _scheduler: Process,
}

impl Cluster {
    /// Starts a scheduler.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mut command = Command::new(env!("CARGO_BIN_EXE_pleach-scheduler"));
        command.args(["--port", "0", "--executor-timeout", "4", "--executors", "2", "--log", "info"]);
        command.stdout(Stdio::piped());
        let mut scheduler = Process::start("scheduler", &mut command, folder.path());
        let mut line = String::new();
        let output = scheduler.child.stdout.take().expect("the output is a pipe");
        BufReader::new(output).read_line(&mut line).expect("the scheduler says where it is");
        let address = line.trim().rsplit(' ').next().expect("the line ends with the address").to_owned();
        assert!(address.starts_with("127.0.0.1:"), "{line}");
        Self { executors: Vec::new(), address, folder, _scheduler: scheduler }
    }

    /// Starts a scheduler and two executors.
    pub fn of_two() -> Self {
        let mut cluster = Self::new();
        for name in ["left", "right"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_pleach-executor"));
            command.args([
                "--scheduler",
                &cluster.address,
                "--name",
                name,
                "--cores",
                "2",
                "--heartbeat",
                "1",
            ]);
            command.args(["--memory", "0", "--log", "info"]);
            cluster.add(name, &mut command);
        }
        cluster.wait_for_two();
        cluster
    }

    /// Starts an executor.
    pub fn add(&mut self, name: &str, command: &mut Command) {
        let process = Process::start(name, command.stdout(Stdio::null()), self.folder.path());
        self.executors.push(process);
    }

    /// Waits until the scheduler has two executors.
    pub fn wait_for_two(&mut self) {
        let start = Instant::now();
        while !is_ready(&self.address) {
            for executor in &mut self.executors {
                let ended = executor.child.try_wait().expect("the process was started here");
                assert!(ended.is_none(), "{} ended: {ended:?}", executor.name);
            }
            assert!(start.elapsed() < PATIENCE, "no two executors after {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns a session whose queries run here. `is_adaptive` says which planner Ballista uses.
    pub async fn client(&self, is_adaptive: bool) -> SessionContext {
        let config = session_config(&Version::own(), &OpenTables::default())
            .with_target_partitions(PARTITIONS)
            .set_bool("ballista.planner.adaptive.enabled", is_adaptive)
            .set_usize("ballista.scheduler.max_partitions_per_task", 1);
        client(&self.address, config).await.expect("a session can be made")
    }
}

/// Asks the scheduler whether it has its executors.
fn is_ready(address: &str) -> bool {
    let ask = || {
        let mut connection = TcpStream::connect(address)?;
        connection.write_all(
            format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
        )?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// A folder with a set of [`FILES`] files, and rows in Parquet that ask it.
pub struct Tables(tempfile::TempDir);

impl Tables {
    /// Makes the tables in one process.
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let tables = Self(folder);
        let session = pleach_datafusion::session();
        let tuples = FILES * FILE_TUPLES;
        let sql = format!(
            "COPY (SELECT value * 3 AS k, value * 7919 % 1009 AS n FROM generate_series(0, {}))
             TO '{}' STORED AS PLEACH OPTIONS (key k, unique 'error', partition_tuples {FILE_TUPLES})",
            tuples - 1,
            tables.set().display()
        );
        rows(&session, &sql).await.expect("a set can be made");
        for part in 0..4 {
            // Every third key is there.
            let sql = format!(
                "COPY (SELECT value AS id, value * 7919 % {} AS k FROM generate_series({}, {}))
                 TO '{}/probe/{part}.parquet' STORED AS PARQUET",
                3 * tuples,
                part * 500,
                part * 500 + 499,
                tables.0.path().display()
            );
            rows(&session, &sql).await.expect("rows can be written");
        }
        tables
    }

    /// Returns the path of the set.
    pub fn set(&self) -> PathBuf {
        self.0.path().join("numbers.set")
    }

    /// Registers the tables by name, and returns the session.
    pub async fn in_session(&self, session: SessionContext) -> SessionContext {
        let (set, folder) = (self.set(), self.0.path());
        let set = format!("CREATE EXTERNAL TABLE s STORED AS PLEACH LOCATION '{}'", set.display());
        let probe =
            format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{}/probe/'", folder.display());
        for sql in [set, probe] {
            rows(&session, &sql).await.expect("tables can be registered");
        }
        session
    }
}

/// Runs a query and returns its rows as texts.
pub async fn rows(session: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let batches = session.sql(sql).await?.collect().await?;
    let options = FormatOptions::default().with_null("null");
    let mut rows = Vec::new();
    for batch in &batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        rows.extend((0..batch.num_rows()).map(|row| {
            let values: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
            values.join(" ")
        }));
    }
    Ok(rows)
}
