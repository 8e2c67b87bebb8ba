//! The executor.

use crate::codec_logical::PleachLogicalCodec;
use crate::codec_physical::PleachPhysicalCodec;
use crate::session::session_config;
use crate::stores::runtime;
use crate::tables::OpenTables;
use crate::version::Version;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_core::ids::new_instance_id;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use pleach::{OpenOptions, Verify};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of an executor.
#[derive(Clone, Debug, clap::Args)]
pub struct ExecutorOptions {
    /// Host and port of the scheduler
    #[arg(long, default_value = "localhost:50050", value_name = "HOST:PORT")]
    pub scheduler: String,
    /// Seconds to wait for the scheduler at the start
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub scheduler_timeout: u16,
    /// Address to listen at; 0.0.0.0 is reached from other machines
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub bind: String,
    /// Name of this machine, by which others reach it; that of its connection if it is left out
    #[arg(long)]
    pub host: Option<String>,
    /// Port for results; 0 is any free one
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Port for tasks; 0 is any free one
    #[arg(long, default_value_t = 0)]
    pub task_port: u16,
    /// Name of the executor; one that lasts keeps its files with it when it starts again
    #[arg(long)]
    pub name: Option<String>,
    /// Tasks that run at a time; 0 is one for each core
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub cores: usize,
    /// Memory of all tasks, in bytes; 0 is no limit, and 70 % of the machine if it is left out
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<u64>,
    /// Folder for results of tasks; a temporary one if it is left out
    #[arg(long, value_name = "FOLDER")]
    pub work: Option<PathBuf>,
    /// Seconds from one heartbeat to the next
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    pub heartbeat: u64,
    /// How much of files is verified: `header`, `touched` or `full`
    #[arg(long, default_value = "header", value_parser = verify)]
    pub verify: Verify,
}

fn verify(text: &str) -> std::result::Result<Verify, String> {
    let all = [Verify::Header, Verify::Touched, Verify::Full];
    all.into_iter()
        .find(|verify| verify.to_string() == text)
        .ok_or_else(|| "use header, touched or full".into())
}

/// Returns what an executor of Ballista is made of.
///
/// # Errors
/// [`BallistaError::Configuration`] if the scheduler is no host and port, or if no port is free.
pub fn executor_config(options: &ExecutorOptions, version: &Version) -> Result<ExecutorProcessConfig> {
    let usage = |text: String| BallistaError::Configuration(text);
    let scheduler = options.scheduler.rsplit_once(':');
    let scheduler = scheduler.and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
    let Some((scheduler_host, scheduler_port)) = scheduler else {
        return Err(usage(format!("no host and port: --scheduler {}: give HOST:PORT", options.scheduler)));
    };
    let tables = OpenTables::new(OpenOptions::default().verify(options.verify));
    let codec = (
        PleachLogicalCodec::new(version.clone(), tables.clone()),
        PleachPhysicalCodec::new(version.clone(), tables.clone()),
    );
    let name = options.name.clone().unwrap_or_else(new_instance_id);
    let version = version.clone();
    Ok(ExecutorProcessConfig {
        executor_id: version.of_executor(&name),
        bind_host: options.bind.clone(),
        external_host: options.host.clone(),
        port: free_port(&options.bind, options.port)?,
        grpc_port: free_port(&options.bind, options.task_port)?,
        scheduler_host,
        scheduler_port,
        scheduler_connect_timeout_seconds: options.scheduler_timeout,
        vcores: options.cores,
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: options.work.as_ref().map(|path| path.display().to_string()),
        executor_heartbeat_interval_seconds: options.heartbeat,
        memory_pool_size: options.memory,
        override_config_producer: Some(Arc::new(move || session_config(&version, &tables))),
        override_runtime_producer: Some(Arc::new(|_| runtime())),
        override_logical_codec: Some(Arc::new(codec.0)),
        override_physical_codec: Some(Arc::new(codec.1)),
        ..ExecutorProcessConfig::default()
    })
}

/// Returns the port, or a free one. Ballista tells others the port before it listens.
fn free_port(bind: &str, port: u16) -> Result<u16> {
    if port > 0 {
        return Ok(port);
    }
    let listener = TcpListener::bind((bind, 0)).map_err(|error| {
        BallistaError::Configuration(format!("no free port: {bind}: {error}: give another --bind"))
    })?;
    Ok(listener.local_addr()?.port())
}

/// Runs an executor until the process is told to end. Results of tasks are removed with it, unless their folder was
/// given.
///
/// # Errors
/// [`BallistaError::General`] with the reason why the scheduler refused it; those of [`executor_config`] and of
/// listening.
pub async fn run_executor(options: &ExecutorOptions, version: &Version) -> Result<()> {
    let config = executor_config(options, version)?;
    if options.work.is_some() {
        return start_executor_process(Arc::new(config)).await.map_err(refusal);
    }
    let folder = std::env::temp_dir().join(format!("pleach-executor-{}-{}", std::process::id(), config.port));
    std::fs::create_dir_all(&folder)?;
    let config = ExecutorProcessConfig { work_dir: Some(folder.display().to_string()), ..config };
    let ended = start_executor_process(Arc::new(config)).await.map_err(refusal);
    std::fs::remove_dir_all(&folder)?;
    ended
}

/// Leaves of an answer of the scheduler what it is about.
fn refusal(error: BallistaError) -> BallistaError {
    match error {
        BallistaError::GrpcError(status) => {
            let text = status.message();
            let reason = text.rsplit_once("Configuration error: ").map_or(text, |(_, reason)| reason);
            BallistaError::General(format!("the scheduler refuses this executor: {reason}"))
        }
        other => other,
    }
}
