//! The command `pleach-papers`: measures a table or a figure of a paper.

use clap::{Args, Parser, Subcommand};
use pleach_bench::gpu::GpuReport;
use pleach_bench::{BenchError, BenchOptions, Report, Told};
use pleach_papers::gpu::command::GpuPaper;
use pleach_papers::report::Table;
use pleach_papers::tables::batches::BatchSizes;
use pleach_papers::tables::kary::What;
use pleach_papers::tables::{ablation, batches, build, compress, files, kary, table3, updates};
use std::path::PathBuf;

/// Measure a table or a figure of a paper.
#[derive(Parser)]
#[command(name = "pleach-papers")]
struct Cli {
    /// Print a JSON document
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    paper: Paper,
}

/// One variant for each table: its arguments, and what [`Paper::run`] calls.
#[derive(Subcommand)]
enum Paper {
    /// FAST: builds, next to a copy of the same bytes
    FastBuild(Sizes),
    /// FAST, Figure 8: blocking by pages, lines and SIMD blocks, and software pipelining, one by one
    FastAblation(Sizes),
    /// FAST, Figures 11 and 12: compressed trees, by width, size and entropy of the keys
    FastCompress(Sizes),
    /// FAST, Table III: the forms of CPUs and of Knights Ferry, on one thread and on all
    FastTable3(Sizes),
    /// FAST from files: Figures 8, 11 and 12 and Table III by the section of a file
    FastFiles(FileSizes),
    /// K-ary search: queries a second, by the number of keys
    KaryThroughput(KarySizes),
    /// K-ary search: time to one answer and to those of a batch
    KaryResponse(KarySizes),
    /// K-ary search: queries a second, by the number of threads
    KaryScaling(KarySizes),
    /// Harmonia: the batch update by phase
    HarmoniaBatch(BatchArgs),
    /// Harmonia, Figure 14: the batch update next to rebuilds of a file and other stores
    HarmoniaUpdate(UpdateArgs),
    #[command(flatten)]
    Gpu(GpuPaper),
}

#[derive(Args)]
struct Sizes {
    /// Logarithm of the number of keys [default: 26; of fast-table3: 24]
    #[arg(value_parser = clap::value_parser!(u32).range(4..=31))]
    exponent: Option<u32>,
    /// Repetitions, of which the median is printed [default: as many as the table needs]
    repetitions: Option<usize>,
}

#[derive(Args)]
struct FileSizes {
    #[command(flatten)]
    sizes: Sizes,
    /// Folder for the files [default: the system's temporary folder]
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Args)]
struct KarySizes {
    /// Use keys of 8 bytes instead of 4
    #[arg(long)]
    wide: bool,
    /// Logarithm of the largest number of keys
    #[arg(default_value_t = 27, value_parser = clap::value_parser!(u32).range(1..=31))]
    exponent: u32,
    /// Repetitions, of which the median is printed
    #[arg(default_value_t = 9)]
    repetitions: usize,
}

#[derive(Args)]
struct BatchArgs {
    /// Tuples of the tree
    #[arg(default_value = "2^24", value_parser = count)]
    tuples: u64,
    /// Operations of the batch
    #[arg(default_value = "2^22", value_parser = count)]
    operations: u64,
    /// Percent of the operations that insert
    #[arg(default_value_t = 5)]
    inserts: u64,
    /// Percent of the places of a node that are filled when the tree is loaded
    #[arg(default_value_t = 69)]
    fill: u32,
    /// Maximum number of children of a node
    #[arg(default_value_t = 64)]
    fanout: u32,
    /// Number of threads
    #[arg(default_value_t = 2)]
    threads: usize,
}

#[derive(Args)]
struct UpdateArgs {
    /// Tuples of the tables [default: 2^26, or 2^22 with --quick]
    #[arg(value_parser = count)]
    tuples: Vec<u64>,
    /// Leave out what takes long
    #[arg(long)]
    quick: bool,
    /// Folder for the files [default: the system's temporary folder]
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Parses `1000000` or `2^20`.
fn count(text: &str) -> Result<u64, String> {
    let parsed = match text.split_once('^') {
        Some((base, power)) => {
            base.parse().ok().zip(power.parse().ok()).and_then(|(base, power)| u64::checked_pow(base, power))
        }
        None => text.parse().ok(),
    };
    parsed.filter(|&count| count > 0).ok_or_else(|| format!("invalid count '{text}': use 1000000 or 2^20"))
}

/// A result, for people and for scripts.
struct Printed {
    text: String,
    json: String,
}

impl From<Table> for Printed {
    fn from(table: Table) -> Self {
        Self { text: table.to_text(), json: table.to_json().to_string() }
    }
}

impl From<Report> for Printed {
    fn from(report: Report) -> Self {
        Self { text: report.to_text(), json: report.to_json().to_string() }
    }
}

impl From<GpuReport> for Printed {
    fn from(report: GpuReport) -> Self {
        Self { text: report.to_text(), json: report.to_json().to_string() }
    }
}

impl Paper {
    fn run(self) -> Result<Printed, BenchError> {
        match self {
            Self::FastBuild(sizes) => {
                let exponent = sizes.exponent.unwrap_or(26);
                Ok(build::run(exponent, exponent - 1, sizes.repetitions.unwrap_or(9)).into())
            }
            Self::FastAblation(sizes) => {
                let exponent = sizes.exponent.unwrap_or(26);
                let exponents = [exponent.min(16), exponent];
                Ok(ablation::run(&exponents, sizes.repetitions.unwrap_or(7)).into())
            }
            Self::FastCompress(sizes) => {
                Ok(compress::run(sizes.exponent.unwrap_or(26), sizes.repetitions.unwrap_or(5)).into())
            }
            Self::FastTable3(sizes) => {
                let exponent = sizes.exponent.unwrap_or(24);
                let exponents = [exponent.min(16), exponent];
                Ok(table3::run(&exponents, sizes.repetitions.unwrap_or(15)).into())
            }
            Self::FastFiles(FileSizes { sizes, dir }) => {
                let (exponent, repetitions) = (sizes.exponent.unwrap_or(24), sizes.repetitions.unwrap_or(7));
                Ok(files::run(exponent, repetitions, dir.as_deref())?.into())
            }
            Self::KaryThroughput(sizes) => Ok(sizes.run(What::Throughput)),
            Self::KaryResponse(sizes) => Ok(sizes.run(What::Response)),
            Self::KaryScaling(sizes) => Ok(sizes.run(What::Scaling)),
            Self::HarmoniaBatch(args) => Ok(batches::run(&args.sizes())?.into()),
            Self::HarmoniaUpdate(args) => args.run(),
            Self::Gpu(paper) => Ok(paper.run()?.into()),
        }
    }
}

impl KarySizes {
    fn run(&self, what: What) -> Printed {
        if self.wide {
            kary::run::<u64>(what, self.exponent, self.repetitions).into()
        } else {
            kary::run::<u32>(what, self.exponent, self.repetitions).into()
        }
    }
}

impl BatchArgs {
    fn sizes(&self) -> BatchSizes {
        let Self { tuples, operations, inserts, fill, fanout, threads } = *self;
        BatchSizes {
            tuples: tuples as usize,
            operations: operations as usize,
            inserts,
            fill,
            fanout,
            threads,
        }
    }
}

impl UpdateArgs {
    fn run(self) -> Result<Printed, BenchError> {
        let progress = |step: &str| eprintln!("{step}");
        let told = Told { progress: Some(&progress), cancelled: None };
        let mut options = BenchOptions { dir: self.dir, told, ..BenchOptions::new(self.quick) };
        if !self.tuples.is_empty() {
            options.tuples = self.tuples;
        }
        Ok(updates::run(&options)?.into())
    }
}

fn main() {
    let Cli { json, paper } = Cli::parse();
    match paper.run() {
        Ok(printed) if json => println!("{}", printed.json),
        Ok(printed) => print!("{}", printed.text),
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn counts_are_numbers_or_powers() {
        assert_eq!((count("1000000"), count("2^20")), (Ok(1_000_000), Ok(1 << 20)));
        for wrong in ["", "0", "2^", "^2", "2^64", "-1", "2^-1"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    /// The tables of FAST are small ones of few keys; a wrong answer panics.
    #[test]
    fn tables_of_fast_are_measured() {
        for table in ["fast-build", "fast-ablation", "fast-compress", "fast-table3", "fast-files"] {
            let cli = Cli::parse_from([
                "pleach-papers",
                table,
                if table == "fast-files" { "14" } else { "4" },
                "1",
            ]);
            let printed = cli.paper.run().expect("a table");
            let engine = printed.json.contains("\"classic\"") || printed.json.contains("\"fast\"");
            assert!(printed.text.lines().count() > 5 && engine, "{table}");
        }
    }
}
