//! `pleach devices`: lists the devices of this machine, and which of their features are used.

use crate::cli::{DevicesArgs, Global};
use crate::failure::{ExitStatus, Failure};
use crate::render::json;
use crate::render::table::bare;
use crate::render::terminal::columns;
use crate::render::text::human_bytes;
use crate::stdout;
use pleach::Isa;
use serde_json::{Value, json};
use std::fs;

/// All instruction sets that have a search, best last.
const ISAS: [Isa; 4] = [Isa::Scalar, Isa::Avx2, Isa::Avx512, Isa::Neon];

pub fn run(_: &DevicesArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let available = Isa::available();
    let best = Isa::best();
    let cpu = cpu_name();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let huge = HugePages::find();
    let gpus = pleach_gpu::devices();

    if global.json {
        let mut document = json::document("devices");
        document.insert(
            "cpu".to_owned(),
            json!({
                "name": cpu,
                "threads": threads,
                "isa_available": available.iter().map(|isa| isa.name()).collect::<Vec<_>>(),
                "isa_used": best.name(),
            }),
        );
        document.insert("huge_pages".to_owned(), huge.json());
        document
            .insert("gpus".to_owned(), gpus.as_ref().map_or(Value::Array(Vec::new()), |gpus| gpu_json(gpus)));
        document.insert(
            "gpus_missing".to_owned(),
            gpus.as_ref().err().map_or(Value::Null, |error| error.missing.clone().into()),
        );
        document.insert("searches_on".to_owned(), "cpu".into());
        stdout::print_json(document)?;
        return Ok(ExitStatus::Success);
    }

    let mut rows = vec![["CPU".to_owned(), format!("{cpu}, {threads} threads")]];
    for isa in ISAS {
        let state = match (isa == best, available.contains(&isa)) {
            (true, _) => "used",
            (false, true) => "available, not used",
            (false, false) => "not available",
        };
        rows.push([format!("  {}", isa.name()), state.to_owned()]);
    }
    rows.push(["huge pages".to_owned(), huge.text()]);
    match &gpus {
        Ok(gpus) => rows.extend(gpus.iter().map(|gpu| {
            let facts = format!(
                "{}, {}, {} multiprocessors, compute {}.{}, CUDA {}.{}, NVRTC {}",
                gpu.name,
                human_bytes(gpu.memory_bytes),
                gpu.multiprocessors,
                gpu.compute.0,
                gpu.compute.1,
                gpu.driver.0,
                gpu.driver.1,
                if gpu.nvrtc { "there" } else { "missing" },
            );
            [format!("cuda:{}", gpu.ordinal), facts]
        })),
        Err(error) => rows.push(["GPU".to_owned(), format!("none: {}", error.missing)]),
    }
    let on_gpu = if gpus.is_ok() { "; get --device cuda searches on the GPU" } else { "" };
    rows.push(["searches".to_owned(), format!("on the CPU ({}){on_gpu}", best.name())]);
    stdout::print(format!("{}\n", bare(&rows, columns())).as_bytes())?;
    Ok(ExitStatus::Success)
}

fn gpu_json(gpus: &[pleach_gpu::Device]) -> Value {
    gpus.iter()
        .map(|gpu| {
            json!({
                "device": format!("cuda:{}", gpu.ordinal),
                "name": gpu.name,
                "memory_bytes": gpu.memory_bytes.to_string(),
                "l2_bytes": gpu.l2_bytes.to_string(),
                "multiprocessors": gpu.multiprocessors,
                "compute": format!("{}.{}", gpu.compute.0, gpu.compute.1),
                "cuda": format!("{}.{}", gpu.driver.0, gpu.driver.1),
                "nvrtc": gpu.nvrtc,
            })
        })
        .collect()
}

/// Returns the CPU's name, if the system reports it.
fn cpu_name() -> String {
    fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// 2 MiB pages for mappings that request them.
struct HugePages {
    /// The chosen word of `/sys/kernel/mm/transparent_hugepage/enabled`: always, madvise or never.
    mode: Option<String>,
}

impl HugePages {
    fn find() -> Self {
        let mode = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok().and_then(|text| {
            let (_, rest) = text.split_once('[')?;
            Some(rest.split_once(']')?.0.to_owned())
        });
        Self { mode }
    }

    fn text(&self) -> String {
        match self.mode.as_deref() {
            Some(mode @ ("always" | "madvise")) => {
                format!("{mode}: files are mapped with them where possible")
            }
            Some(mode) => format!(
                "{mode}: the system does not provide them: write madvise to \
                 /sys/kernel/mm/transparent_hugepage/enabled"
            ),
            None => "unknown: the system does not report it".to_owned(),
        }
    }

    fn json(&self) -> Value {
        json!({ "mode": self.mode, "usable": matches!(self.mode.as_deref(), Some("always" | "madvise")) })
    }
}
