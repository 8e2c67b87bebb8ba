//! Plans for a GPU: the reuse factor of copying a table to it, which decides whether the GPU pays.
//!
//! A table that was copied to a device may answer each batch sooner than the CPU. The number of batches after
//! which the copy has paid for itself is its *reuse factor* for batches of that size, `copy / (cpu - gpu)`
//! (Daga and Nutter, "Exploiting coarse-grained parallelism in B+ tree searches on an APU", 2012, section
//! IV.C); there is none if the CPU is as fast.
//!
//! The time of the CPU follows from its own planner, [`pleach::Costs`]; the time of the device from a few
//! costs of it.

use crate::resident::geometry;
use pleach::{Costs, Index, Request};

/// Costs of a device, in nanoseconds. The default is that of an H200 in a server with a link of PCI Express
/// 5.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuCosts {
    /// Finding and opening the device, and loading kernels: once per process.
    pub start: f64,
    /// Copying a byte of the table to the device, and making its image there.
    pub table_byte: f64,
    /// A batch from the host and back, of any size.
    pub call: f64,
    /// Moving a byte of keys or answers between an ordinary slice and the device.
    pub batch_byte: f64,
    /// A query on the device.
    pub query: f64,
}

impl Default for GpuCosts {
    fn default() -> Self {
        Self { start: 1e9, table_byte: 0.05, call: 18_000.0, batch_byte: 0.024, query: 0.05 }
    }
}

/// Expected times of a batch, and of copying its table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuPlan {
    /// Nanoseconds per batch on the CPU.
    pub cpu_ns: f64,
    /// Nanoseconds per batch on the device, from the host and back.
    pub gpu_ns: f64,
    /// Nanoseconds to copy the table to the device.
    pub copy_ns: f64,
}

impl GpuPlan {
    /// Returns the number of such batches after which the copy has paid for itself; `None` for never.
    #[must_use]
    pub fn reuse_factor(&self) -> Option<f64> {
        reuse_factor(self.copy_ns, self.cpu_ns, self.gpu_ns)
    }

    /// Returns true if the device pays for this number of such batches.
    #[must_use]
    pub fn pays(&self, batches: f64) -> bool {
        self.reuse_factor().is_some_and(|factor| factor <= batches)
    }
}

impl GpuCosts {
    /// Plans batches of `batch` keys for a table that is not on the device, against a CPU of `threads`
    /// threads. O(1).
    #[must_use]
    pub fn plan(&self, index: &Index, batch: usize, costs: &Costs, threads: usize) -> GpuPlan {
        let choice = index.plan_batch(&Request { threads, ..Request::new(batch) }, costs);
        let header = index.header();
        let geometry = geometry(header);
        let tuple_bytes = geometry.key_bytes + geometry.value_bytes;
        let n = batch as f64;
        // One presence bit per query.
        let moved = n * (tuple_bytes as f64 + 0.125);
        GpuPlan {
            cpu_ns: choice.estimate_response_ns,
            gpu_ns: self.call + moved * self.batch_byte + n * self.query,
            copy_ns: self.start + geometry.lines(header.tuples) as f64 * 64.0 * self.table_byte,
        }
    }
}

/// Returns the number of uses after which a copy has paid for itself; `None` for never.
#[must_use]
pub fn reuse_factor(copy: f64, cpu: f64, gpu: f64) -> Option<f64> {
    (cpu > gpu).then(|| copy / (cpu - gpu))
}

/// Returns the reuse factor at which a share of the batches, such as 0.9, does as well as on the CPU; `None`
/// for never.
#[must_use]
pub fn reuse_of_share(factors: &[Option<f64>], share: f64) -> Option<f64> {
    let mut all: Vec<f64> = factors.iter().map(|factor| factor.unwrap_or(f64::INFINITY)).collect();
    all.sort_by(f64::total_cmp);
    let wanted = (all.len() as f64 * share).ceil() as usize;
    all.get(wanted.max(1) - 1).copied().filter(|factor| factor.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_builder::{BuildOptions, build_bytes};

    #[test]
    fn a_copy_pays_after_as_many_batches_as_its_factor_says() {
        assert_eq!(reuse_factor(100.0, 30.0, 10.0), Some(5.0));
        assert_eq!(reuse_factor(100.0, 10.0, 10.0), None);
        let plan = GpuPlan { cpu_ns: 30.0, gpu_ns: 10.0, copy_ns: 100.0 };
        assert!(plan.pays(5.0) && !plan.pays(4.9));
        assert!(!GpuPlan { cpu_ns: 9.0, ..plan }.pays(f64::INFINITY));
    }

    #[test]
    fn shares_of_batches() {
        let mut factors: Vec<Option<f64>> = (1..=9).rev().map(|i| Some(f64::from(i))).collect();
        factors.push(None);
        assert_eq!(reuse_of_share(&factors, 0.9), Some(9.0));
        assert_eq!(reuse_of_share(&factors, 0.5), Some(5.0));
        assert_eq!(reuse_of_share(&factors, 1.0), None);
        assert_eq!(reuse_of_share(&[], 0.9), None);
    }

    #[test]
    fn long_batches_pay_and_single_keys_never_do() {
        let tuples: Vec<(u64, u64)> = (0..100_000).map(|i| (i * 3, i)).collect();
        let bytes = build_bytes(&tuples, &BuildOptions::default()).expect("built");
        let index = Index::from_bytes(bytes).expect("opens");
        let plan = |batch| GpuCosts::default().plan(&index, batch, &Costs::default(), 2);
        assert_eq!(plan(1).reuse_factor(), None);
        let few = plan(1 << 16).reuse_factor().expect("faster");
        let many = plan(1 << 24).reuse_factor().expect("faster");
        assert!(many < few, "{many} {few}");
    }
}
