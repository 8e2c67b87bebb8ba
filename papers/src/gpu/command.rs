//! Commands that measure the tables and figures of papers on a GPU.

use super::tables::{Options, Paper, run};
use clap::{Args, Subcommand};
use pleach_bench::gpu::{GpuBenchOptions, GpuReport};
use pleach_bench::{BenchError, Told};
use std::io::Write;
use std::path::PathBuf;

/// A paper on a GPU.
#[derive(Clone, Debug, Subcommand)]
pub enum GpuPaper {
    /// Searches of papers on a GPU, next to those of Pleach
    GpuAlgorithms(GpuArgs),
    /// P-ary and binary search on a GPU: the tables of the slides
    GpuSlides(GpuArgs),
    /// FAST on a GPU: what each step of Figure 8 gains, Figure 9, and how many queries are needed
    GpuFast(GpuArgs),
    /// B+trees on an APU, Figures 5 to 8, and the smallest batch that matches the CPU
    GpuApu(GpuArgs),
    /// Harmonia on a GPU: its tree, sorted queries, narrowed groups
    GpuHarmonia(GpuArgs),
    /// Relational algebra on a GPU: the paper's stages, and its five joins in a block
    GpuRelation(GpuArgs),
}

/// Arguments of [`GpuPaper`].
#[derive(Clone, Debug, Args)]
pub struct GpuArgs {
    /// Use smaller tables, to finish in a minute or two
    #[arg(long)]
    pub quick: bool,
    /// Tuples of each table, where the paper does not state them [default: several sizes]
    #[arg(long)]
    pub tuples: Option<u64>,
    /// JSON report, which is written anew after each row
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// Replace that file even if it is a Pleach file
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Folder for the files that are built [default: shared memory, or the system's temporary folder]
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

impl GpuPaper {
    /// Measures the paper on the first device. Rows are printed on standard error when they are measured.
    ///
    /// # Errors
    /// [`BenchError`] without a device, or if tables cannot be built.
    pub fn run(self) -> Result<GpuReport, BenchError> {
        let (paper, args) = match self {
            Self::GpuAlgorithms(args) => (Paper::Algorithms, args),
            Self::GpuSlides(args) => (Paper::Slides, args),
            Self::GpuFast(args) => (Paper::Fast, args),
            Self::GpuApu(args) => (Paper::Apu, args),
            Self::GpuHarmonia(args) => (Paper::Harmonia, args),
            Self::GpuRelation(args) => (Paper::Relation, args),
        };
        let mut options = Options::new(paper, args.quick);
        if let Some(tuples) = args.tuples {
            options.bench.tuples = vec![tuples];
            options.relation.swept = vec![tuples];
            options.relation.operators = vec![tuples];
        }
        let tell = |line: &str| {
            // A line that cannot be written does not stop the run.
            let _ = writeln!(std::io::stderr(), "{line}");
        };
        let bench = GpuBenchOptions {
            output: args.output,
            force: args.force,
            dir: args.dir,
            row: Some(&tell),
            told: Told { progress: Some(&tell), cancelled: None },
            ..options.bench
        };
        run(&Options { bench, ..options })
    }
}
