//! The machine that measures. Everything is best effort: fields that the system does not report are empty.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A machine, as far as it matters for look-ups.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Model name of the processor.
    pub cpu: String,
    /// Vector and bit instructions that matter here.
    pub features: Vec<&'static str>,
    /// The instruction set that Pleach chose.
    pub isa: String,
    /// Threads that run at once.
    pub cores: usize,
    /// Memory in bytes; 0 if unknown.
    pub memory_bytes: u64,
    /// Operating system and architecture.
    pub system: String,
    /// Kernel release.
    pub kernel: String,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub thp: String,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn this() -> Self {
        let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let thp = line("/sys/kernel/mm/transparent_hugepage/enabled");
        let chosen = thp.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
        Self {
            cpu: cpu_model(&line("/proc/cpuinfo")),
            features: features(),
            isa: pleach::Isa::best().name().to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: meminfo("MemTotal").unwrap_or(0),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            kernel: line("/proc/sys/kernel/osrelease"),
            thp: chosen.unwrap_or_default().to_owned(),
        }
    }

    /// Returns the name in reports.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "cpu": self.cpu,
            "features": self.features,
            "isa": self.isa,
            "cores": self.cores,
            "memory_bytes": self.memory_bytes,
            "system": self.system,
            "kernel": self.kernel,
            "thp": self.thp,
        })
    }
}

fn cpu_model(cpuinfo: &str) -> String {
    let named = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    named("model name").or_else(|| named("CPU part")).unwrap_or_default()
}

fn features() -> Vec<&'static str> {
    #[allow(unused_mut)]
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! detect {
            ($($name:tt),*) => {$( if std::arch::is_x86_feature_detected!($name) { found.push($name); } )*};
        }
        detect!("sse4.2", "popcnt", "avx2", "bmi2", "avx512f", "avx512bw", "avx512vl", "avx512vbmi2");
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("neon") {
        found.push("neon");
    }
    found
}

/// A line of /proc/meminfo in bytes.
pub(crate) fn meminfo(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    kibibytes(line)
}

fn kibibytes(text: &str) -> Option<u64> {
    let number: u64 = text.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

/// Bytes of the largest mapping of `file` in this process that lie in huge pages of the page cache;
/// `None` where the system does not tell.
#[must_use]
pub fn huge_mapped_bytes(file: &Path) -> Option<u64> {
    let name = fs::canonicalize(file).ok()?;
    let name = name.to_str()?;
    let smaps = fs::read_to_string("/proc/self/smaps").ok()?;
    let (mut ours, mut most) = (false, None);
    for line in smaps.lines() {
        if let Some(amount) = line.strip_prefix("FilePmdMapped:") {
            if ours {
                most = most.max(kibibytes(amount));
            }
        } else if line.split(' ').next().is_some_and(|word| !word.ends_with(':')) {
            // The head line of a mapping: addresses, flags, and the path at its end.
            ours = line.ends_with(name);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cores() {
        let machine = Machine::this();
        assert!(machine.cores > 0);
        assert!(!machine.system.is_empty());
        assert_eq!(machine.to_json()["cores"], machine.cores);
    }

    #[test]
    fn models() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Some CPU 3000\nflags: a b\n"), "Some CPU 3000");
        assert_eq!(cpu_model(""), "");
        assert_eq!(kibibytes("   12 kB"), Some(12 * 1024));
    }
}
