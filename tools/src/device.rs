//! Device on which `get` searches: the CPU, or a GPU to which the table is copied.
//!
//! `cuda` means a GPU or an error. `auto` takes the CPU, unless there is a GPU and enough keys will be
//! searched for the copy to pay. If that GPU then fails, the CPU answers, and one line says why. Answers are
//! the same on every device.

use crate::cli::GetArgs;
use crate::errors;
use crate::failure::{self, Failure};
use crate::message::Message;
use crate::parse::Device;
use crate::render::text::grouped;
use pleach::{Costs, Index, Structure};
use pleach_gpu::plan::{GpuCosts, GpuPlan};
use pleach_gpu::{Algorithm, Gpu, GpuError, GpuOptions, GpuTable, HarmoniaSearch, SectionTree};

/// Approximate bytes per key in a file of keys.
const KEY_TEXT_BYTES: u64 = 10;
/// Keys per batch for which the plan computes when a copy pays.
pub const BATCH: usize = 1 << 16;

/// Plans a copy of the table to a GPU: its cost and its gain.
pub fn plan(index: &Index, costs: &Costs) -> GpuPlan {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    GpuCosts::default().plan(index, BATCH, costs, threads)
}

impl Device {
    /// Returns the GPU that `get` should use, if any; for `auto`, only if enough keys will be searched for
    /// the copy to pay.
    fn number(self, args: &GetArgs, index: &Index, costs: &Costs) -> Option<u32> {
        match self {
            Self::Cpu => None,
            Self::Cuda(number) => Some(number),
            Self::Auto => {
                let length = args.keys.as_ref().and_then(|path| std::fs::metadata(path).ok())?.len();
                let batches = (length / KEY_TEXT_BYTES) as f64 / BATCH as f64;
                (plan(index, costs).pays(batches) && pleach_gpu::devices().is_ok()).then_some(0)
            }
        }
    }
}

/// Returns the search of a GPU by a structure of the file: trees as they lie in their sections.
pub fn algorithm(structure: Structure) -> Result<Algorithm, Failure> {
    Ok(match structure {
        Structure::Auto => Algorithm::Auto,
        Structure::Spine => Algorithm::Spine,
        Structure::Fast => Algorithm::Section(SectionTree::Fast),
        Structure::Harmonia => Algorithm::Section(SectionTree::Harmonia(HarmoniaSearch::FASTEST)),
        Structure::Btree => Algorithm::Section(SectionTree::Btree),
        Structure::Grid => {
            let message = Message::new("a GPU is not searched by the grid");
            let message = message.at(format!("--strategy {structure}"));
            return Err(Failure::usage(message.advise("use --device cpu, or auto")));
        }
    })
}

/// A table on a GPU, while the GPU answers.
#[derive(Debug)]
pub struct OnDevice<'a> {
    table: Option<GpuTable<'a>>,
    algorithm: Algorithm,
    /// Bytes of a tree's section, if one is searched, on the device and in the file.
    section_bytes: Option<[u64; 2]>,
    /// True if the CPU may answer instead.
    is_auto: bool,
    args: &'a GetArgs,
}

impl<'a> OnDevice<'a> {
    /// Leaves all to the CPU.
    pub fn cpu(args: &'a GetArgs) -> Self {
        Self { table: None, algorithm: Algorithm::Auto, section_bytes: None, is_auto: true, args }
    }

    /// Copies a table to the requested device. Tuples near keys, and intervals, are searched through no tree.
    pub fn open(args: &'a GetArgs, index: &'a Index, costs: &Costs, is_near: bool) -> Result<Self, Failure> {
        let structure = args.strategy.structure;
        let is_auto = args.device == Device::Auto;
        let mut this = Self { is_auto, ..Self::cpu(args) };
        // A named structure is searched on the CPU, unless a GPU is named too.
        let may = !is_auto || structure == Structure::Auto;
        if let Some(number) = args.device.number(args, index, costs).filter(|_| may) {
            this.algorithm = match algorithm(structure)? {
                Algorithm::Section(_) if is_near => Algorithm::Auto,
                other => other,
            };
            let options = GpuOptions { memory_bytes: args.device_memory, ..GpuOptions::default() };
            pleach_builder::pool::ready();
            let opened = Gpu::with_options(number, options).and_then(|gpu| GpuTable::new(index, &gpu));
            this.table = this.result(opened)?;
            if let (Some(table), Algorithm::Section(_)) = (&this.table, this.algorithm) {
                let on_device = table.structure_bytes(this.algorithm).map_err(errors::device)?;
                let section = structure.tag().and_then(|tag| index.header().section(tag));
                this.section_bytes = section.map(|section| [on_device, section.entry.length.get()]);
            }
        }
        Ok(this)
    }

    /// Returns true if a GPU answers.
    pub fn is_used(&self) -> bool {
        self.table.is_some()
    }

    /// Returns its name, for people.
    pub fn name(&self) -> String {
        self.table.as_ref().map_or("cpu".to_owned(), |table| {
            let device = table.gpu().device();
            format!("cuda:{} ({}), table {}", device.ordinal, device.name, table.residence().name())
        })
    }

    /// Returns the search, for people: its name, and the bytes of a section.
    pub fn search(&self) -> String {
        let name = self.algorithm.name();
        match self.section_bytes {
            Some([device, file]) => {
                let (device, file) = (grouped(device), grouped(file));
                format!(
                    "algorithm {name} on the section as it lies ({device} bytes there, {file} in the file)"
                )
            }
            None => format!("algorithm {name}"),
        }
    }

    /// Searches on the GPU; `None` if the CPU has to answer.
    pub fn ask<T>(
        &mut self,
        ask: impl FnOnce(&GpuTable<'a>, Algorithm) -> Result<T, GpuError>,
    ) -> Result<Option<T>, Failure> {
        let Some(answer) = self.table.as_ref().map(|table| ask(table, self.algorithm)) else {
            return Ok(None);
        };
        let answer = self.result(answer)?;
        if answer.is_none() {
            self.table = None;
        }
        Ok(answer)
    }

    /// Returns an error, or under `auto` prints it as a warning.
    fn result<T>(&self, result: Result<T, GpuError>) -> Result<Option<T>, Failure> {
        match result {
            Ok(answer) => Ok(Some(answer)),
            Err(GpuError::Read(error)) => Err(errors::reading(&self.args.file)(error)),
            Err(error) if self.is_auto => {
                failure::say(&format!("warning: {error}: the CPU answers"));
                Ok(None)
            }
            Err(error) => Err(errors::device(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    /// Returns the effect of a device that is lost, or has no room, on `get --device DEVICE`.
    fn after(device: &str, error: GpuError) -> Result<Option<()>, Failure> {
        let cli =
            Cli::try_parse_from(["pleach", "get", "t.pleach", "1", "--device", device]).expect("arguments");
        let Command::Get(args) = &cli.command else { panic!("it is get") };
        let is_auto = args.device == Device::Auto;
        let on = OnDevice { table: None, algorithm: Algorithm::Auto, section_bytes: None, is_auto, args };
        on.result(Err(error))
    }

    #[test]
    fn auto_falls_back_and_cuda_is_an_error() {
        let lost = || GpuError::Lost { call: "waiting for its work", cause: "gone".to_owned() };
        let full = || GpuError::Memory { needed: 2, free: 1 };
        assert!(matches!(after("auto", lost()), Ok(None)));
        assert!(matches!(after("auto", full()), Ok(None)));
        assert!(after("cuda", lost()).is_err() && after("cuda:1", full()).is_err());
    }
}
