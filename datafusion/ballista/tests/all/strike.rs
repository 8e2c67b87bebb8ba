//! An executor that stops at a task which a file names, so that a test can kill a process just then.
//!
//! The folder of a strike has the file `target`: the number of a task and what happens there. Executors number the
//! tasks that they begin by files that only one of them can create. The one that gets the number writes the file
//! `struck`, and waits; it fires once, since a number is given once.

use ballista_core::JobId;
use ballista_core::serde::protobuf::ShuffleWritePartition;
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use clap::Parser;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::prelude::SessionConfig;
use pleach_ballista::{ExecutorOptions, Level, Version, executor_config, log_to_stderr};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// What happens at the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The executor is killed before it runs the task.
    Before,
    /// It is killed when the results are there, and before it says so.
    After,
    /// The other executor is killed, with the results that this task may need, and the task goes on.
    Other,
}

pub const MOMENTS: [Moment; 3] = [Moment::Before, Moment::After, Moment::Other];

/// Returns the command of an executor that takes part in strikes.
pub fn command(scheduler: &str, name: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test is a program"));
    command.args(["strike::runs_an_executor", "--exact", "--ignored", "--nocapture"]);
    command.env("PLEACH_TEST_EXECUTOR", [scheduler, name].join(" "));
    command.env("PLEACH_TEST_STRIKE", folder);
    command
}

/// Not a test: the program of the command above.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is started by other tests"]
async fn runs_an_executor() {
    let text = std::env::var("PLEACH_TEST_EXECUTOR").expect("another test starts it");
    let folder = PathBuf::from(std::env::var_os("PLEACH_TEST_STRIKE").expect("another test starts it"));
    let (scheduler, name) = text.split_once(' ').expect("two words");
    log_to_stderr(Level::Info);
    let work = folder.join(name).join("work");
    fs::create_dir_all(&work).expect("a folder can be made");
    let work = work.display().to_string();
    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        options: ExecutorOptions,
    }
    let arguments =
        ["executor", "--scheduler", scheduler, "--name", name, "--cores", "2", "--heartbeat", "1"];
    let arguments = arguments.into_iter().chain(["--memory", "0", "--work", &work]);
    let options = Arguments::parse_from(arguments).options;
    let config = executor_config(&options, &Version::own()).expect("the options are right");
    let engine = Striking { inner: DefaultExecutionEngine::new(), folder };
    let config = ExecutorProcessConfig { override_execution_engine: Some(Arc::new(engine)), ..config };
    start_executor_process(Arc::new(config)).await.expect("the scheduler takes it");
}

struct Striking {
    inner: DefaultExecutionEngine,
    folder: PathBuf,
}

impl ExecutionEngine for Striking {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        global_output_partition_ids: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let ids = global_output_partition_ids;
        let inner =
            self.inner.create_query_stage_exec(job_id, stage_id, task_id, ids, plan, work_dir, config)?;
        Ok(Arc::new(StrikingStage { inner, folder: self.folder.clone() }))
    }
}

#[derive(Debug)]
struct StrikingStage {
    inner: Arc<dyn QueryStageExecutor>,
    folder: PathBuf,
}

impl fmt::Display for StrikingStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl StrikingStage {
    /// Returns what happens at this task, if it is the one.
    fn moment(&self) -> Option<Moment> {
        let target = fs::read_to_string(self.folder.join("target")).ok()?;
        let (number, moment) = target.split_once(' ')?;
        let taken = |number: &usize| {
            let path = self.folder.join(format!("task-{number}"));
            OpenOptions::new().write(true).create_new(true).open(path).is_ok()
        };
        let own = (0..).find(taken)?;
        let moment = MOMENTS.into_iter().find(|one| format!("{one:?}") == moment);
        moment.filter(|_| number == own.to_string())
    }

    /// Says that the time has come, and waits until the test has done its part.
    async fn strike(&self) {
        let path = self.folder.join("struck.part");
        fs::write(&path, std::process::id().to_string()).expect("the folder is there");
        fs::rename(path, self.folder.join("struck")).expect("the folder is there");
        while !self.folder.join("go").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[async_trait::async_trait]
impl QueryStageExecutor for StrikingStage {
    async fn execute_query_stage(
        &self,
        task: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        let moment = self.moment();
        if matches!(moment, Some(Moment::Before | Moment::Other)) {
            self.strike().await;
        }
        let results = self.inner.execute_query_stage(task, context).await;
        if moment == Some(Moment::After) {
            self.strike().await;
        }
        results
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.inner.collect_plan_metrics()
    }
}
