//! What a set of 10^12 tuples costs, before anyone has one: manifests of full size are made and measured, and
//! requests, skew and rebuilds are simulated with the bytes of a file that is built here.
//!
//! ```text
//! cargo run --release -p pleach-set --example scale [TUPLES_OF_A_FILE]
//! ```
//!
//! Prints Markdown. `docs/lab/sets.md` has its tables, and says what follows from them.

use pleach::{AnyMap, Index};
use pleach_builder::source::{Chunk, Column, Schema as Source};
use pleach_builder::{BuildOptions, ChunkSource, Silent};
use pleach_format::meta::Meta;
use pleach_format::section::Tag;
use pleach_format::{KeyType, ValueType};
use pleach_set::{
    Committer, Datum, Entry, Facts, Folder, MANIFESTS, Manifest, Partition, Schema, Set, Writer,
    manifest_name,
};
use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Tuples of the set that is simulated.
const TUPLES: u64 = 1_000_000_000_000;
/// Keys of a batch.
const KEYS: u64 = 1_000_000;
/// Bytes of a verified read: what one sum covers.
const BLOCK_BYTES: u64 = 8192;
/// Dollars for a GET, and seconds until its first byte: see docs/lab/sets.md for the sources.
const GET_DOLLARS: f64 = 0.0004 / 1000.0;
const GET_SECONDS: f64 = 0.1;
/// GETs a second that a prefix takes.
const GETS_A_SECOND: f64 = 5500.0;
/// Requests under way at a time.
const REQUESTS: f64 = 256.0;

fn main() -> Outcome {
    let file_tuples = std::env::args().nth(1).map_or(Ok(10_000_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let file = Measured::build(&folder.path().join("one"), file_tuples)?;
    file.print();
    println!("\n| files | manifest | encode | open | files of 10^6 keys | files of a range |");
    println!("|---|---|---|---|---|---|");
    for files in [1_000, 10_000, 100_000] {
        manifests(&folder.path().join(files.to_string()), files)?;
    }
    requests(&file);
    skew(file_tuples);
    rebuilds(&file);
    Ok(())
}

/// A file of the set, as it is built here.
struct Measured {
    tuples: u64,
    file_bytes: u64,
    line_bytes: u64,
    build_seconds: f64,
    open_seconds: f64,
}

impl Measured {
    fn build(path: &Path, tuples: u64) -> Outcome<Self> {
        let mut chunk = Chunk::new(KeyType::U64, ValueType::U64);
        let mut random = Random(1);
        let mut keys: Vec<u64> = (0..tuples).map(|_| random.next()).collect();
        keys.sort_unstable();
        chunk.values = Column::U64(keys.iter().map(|key| key ^ 1).collect());
        chunk.keys = Column::U64(keys);
        let mut source = ChunkSource::new(Source::plain(KeyType::U64, ValueType::U64, None), [chunk]);
        let store = Arc::new(Folder::create(path)?);
        let start = Instant::now();
        let writer = Writer::new(store.clone());
        let (written, _) =
            writer.write(&mut source, Partition::Files(1), &BuildOptions::default(), &Silent)?;
        let build_seconds = start.elapsed().as_secs_f64();
        let mut committer = Committer::begin(store)?;
        committer.add(&written)?;
        committer.publish()?;
        let name = path.join(&written.entries[0].name);
        let open_seconds = median(9, || {
            let start = Instant::now();
            let map =
                AnyMap::from_index(Arc::new(Index::open(&name).expect("it was built"))).expect("likewise");
            assert_eq!(map.index().len(), tuples);
            start.elapsed().as_secs_f64()
        });
        let index = Index::open(&name)?;
        let lines = index.header().section(Tag::LINE).map_or(0, |section| section.entry.length.get());
        let file_bytes = index.file_bytes();
        Ok(Self { tuples, file_bytes, line_bytes: lines, build_seconds, open_seconds })
    }

    /// Bytes of superblock, spine, grid and sums: what a reader of an object store keeps.
    fn index_bytes(&self) -> u64 {
        self.file_bytes - self.line_bytes
    }
    fn blocks(&self) -> u64 {
        self.line_bytes.div_ceil(BLOCK_BYTES)
    }

    fn print(&self) {
        println!(
            "| tuples of a file | bytes | of these index | written in | opened in |\n|---|---|---|---|---|"
        );
        println!(
            "| {} | {} | {} | {:.1} s | {:.2} ms |",
            self.tuples,
            self.file_bytes,
            self.index_bytes(),
            self.build_seconds,
            self.open_seconds * 1e3,
        );
    }
}

/// Makes a manifest of so many files, publishes it in a folder, and measures who reads it.
fn manifests(path: &Path, files: u64) -> Outcome {
    let step = u64::MAX / files;
    let mut random = Random(files);
    let entries: Vec<Entry> = (0..files)
        .map(|file| {
            let (low, high) = (random.next(), random.next());
            let mut digest = [0; 32];
            digest.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&random.next().to_le_bytes()));
            Entry {
                name: format!("files/{low:016x}{high:016x}.pleach"),
                file_bytes: 4096 * 40_000,
                digest,
                file_id: [7; 16],
                head_sum: low as u32,
                tuples: TUPLES / files,
                min: (file * step).to_be_bytes().into(),
                max: (file * step + step - 1).to_be_bytes().into(),
            }
        })
        .collect();
    let schema = Schema {
        key_type: KeyType::U64,
        value_type: ValueType::U64,
        meta: Meta { key_name: "key".into(), value_name: "value".into(), ..Meta::default() },
        unique: true,
        partition_tuples: TUPLES / files,
    };
    let facts = Facts { set_id: [1; 16], generation: 1, parent: 0, created_ms: 0, schema };
    let start = Instant::now();
    let manifest = Manifest::new(&facts, &entries)?;
    let encode_seconds = start.elapsed().as_secs_f64();
    std::fs::create_dir_all(path.join(MANIFESTS))?;
    std::fs::write(path.join(manifest_name(1)), manifest.as_bytes())?;
    let open_seconds = median(5, || {
        let start = Instant::now();
        let set = Set::open(path).expect("it was written");
        assert_eq!(set.manifest().files() as u64, files);
        start.elapsed().as_secs_f64()
    });
    let set = Set::open(path)?;
    let keys: Vec<Datum<'_>> = (0..KEYS).map(|_| Datum::U64(random.next())).collect();
    let group_seconds = median(3, || {
        let start = Instant::now();
        let groups = set.group(&keys).expect("keys of the type");
        assert!(groups.values().map(Vec::len).sum::<usize>() as u64 > KEYS - 100);
        start.elapsed().as_secs_f64()
    });
    let range_seconds = median(9, || {
        let start = Instant::now();
        let first = set.manifest().file_at_or_above(&(step * 10).to_be_bytes());
        let last = set.manifest().file_at_or_below(&(step * 30).to_be_bytes());
        assert!(last.is_some_and(|last| last > first));
        start.elapsed().as_secs_f64()
    });
    println!(
        "| {files} | {} bytes | {:.1} ms | {:.1} ms | {:.0} ms | {:.1} us |",
        manifest.as_bytes().len(),
        encode_seconds * 1e3,
        open_seconds * 1e3,
        group_seconds * 1e3,
        range_seconds * 1e6,
    );
    Ok(())
}

/// Counts what a batch of keys asks of an object store.
fn requests(file: &Measured) {
    let files = TUPLES / file.tuples;
    println!(
        "\n| 10^6 keys | files | blocks | GETs, nothing cached | bytes | dollars | seconds | GETs, index part cached \
         | bytes | dollars | seconds | whole files, bytes |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    type Draw = fn(&mut Random, u64, u64) -> u64;
    // Each draws the number of a block of the set.
    let draws: [(&str, Draw); 4] = [
        ("evenly spread", |random, files, blocks| random.below(files * blocks)),
        ("nine in ten in 1% of the files", |random, files, blocks| match random.below(10) {
            0 => random.below(files * blocks),
            _ => random.below(files / 100 * blocks),
        }),
        ("the newest thousandth", |random, files, blocks| {
            files * blocks - 1 - random.below(files * blocks / 1000)
        }),
        ("one file", |random, _, blocks| random.below(blocks)),
    ];
    for (name, draw) in draws {
        let mut random = Random(3);
        let blocks: BTreeSet<u64> = (0..KEYS).map(|_| draw(&mut random, files, file.blocks())).collect();
        let touched = blocks.iter().map(|block| block / file.blocks()).collect::<BTreeSet<_>>().len() as u64;
        let blocks = blocks.len() as u64;
        // Superblock and the rest of the index part: two requests a file.
        let (cold, warm) = (blocks + 2 * touched, blocks);
        let cost = |gets: u64| gets as f64 * GET_DOLLARS;
        let seconds =
            |gets: u64| (gets as f64 * GET_SECONDS / REQUESTS).max(gets as f64 / GETS_A_SECOND) + GET_SECONDS;
        let warm_bytes = blocks * BLOCK_BYTES;
        println!(
            "| {name} | {touched} | {blocks} | {cold} | {} | {:.2} | {:.0} | {warm} | {} | {:.2} | {:.0} | {} |",
            giga(warm_bytes + touched * file.index_bytes()),
            cost(cold),
            seconds(cold),
            giga(warm_bytes),
            cost(warm),
            seconds(warm),
            giga(touched * file.file_bytes),
        );
    }
}

/// Sizes of files whose keys have runs by Zipf's law: equal keys are never divided.
fn skew(file_tuples: u64) {
    println!("\n| keys | exponent | largest run | files it fills | runs above a file | tuples in them |");
    println!("|---|---|---|---|---|---|");
    for (keys, exponent) in [(1e9, 0.8), (1e9, 1.0), (1e9, 1.2), (1e11, 1.0)] {
        // The sum of k^-s: terms one by one, then the integral.
        let exact: f64 = (1..=1_000_000).map(|rank| f64::from(rank).powf(-exponent)).sum();
        let tail = |to: f64| {
            if (exponent - 1.0f64).abs() < 1e-9 {
                (to / 1e6).ln()
            } else {
                (to.powf(1.0 - exponent) - 1e6f64.powf(1.0 - exponent)) / (1.0 - exponent)
            }
        };
        let whole = exact + tail(keys);
        let run = |rank: f64| TUPLES as f64 * rank.powf(-exponent) / whole;
        let above = (1..=1_000_000).take_while(|&rank| run(f64::from(rank)) > file_tuples as f64).count();
        let inside: f64 = (1..=above).map(|rank| run(rank as f64)).sum();
        println!(
            "| {keys:.0e} | {exponent} | {:.2e} | {:.0} | {above} | {:.0}% |",
            run(1.0),
            run(1.0) / file_tuples as f64,
            100.0 * inside / TUPLES as f64,
        );
    }
}

/// Bytes that a rebuild reads and writes, by the number of changes, where they fall, and the tuples of a file.
fn rebuilds(file: &Measured) {
    println!("\n| changes | fall | tuples of a file | files | touched | bytes written | times the changes |");
    println!("|---|---|---|---|---|---|---|");
    let tuple_bytes = file.file_bytes as f64 / file.tuples as f64;
    for changes in [1_000_u64, 1_000_000, 1_000_000_000] {
        for (name, share) in [("everywhere", 1.0), ("in the newest thousandth", 0.001)] {
            for tuples in [1_000_000_u64, 10_000_000, 100_000_000] {
                let files = TUPLES / tuples;
                let reached = (files as f64 * share).max(1.0);
                let touched = reached * (1.0 - (-(changes as f64) / reached).exp());
                let bytes = touched * tuples as f64 * tuple_bytes;
                println!(
                    "| {changes} | {name} | {tuples} | {files} | {touched:.0} | {} | {:.0} |",
                    giga(bytes as u64),
                    bytes / (changes as f64 * 16.0),
                );
            }
        }
    }
}

fn giga(bytes: u64) -> String {
    match bytes as f64 / 1e9 {
        small if small < 1.0 => format!("{:.0} MB", small * 1e3),
        middle if middle < 1e4 => format!("{middle:.1} GB"),
        large => format!("{:.1} TB", large / 1e3),
    }
}

fn median(runs: usize, mut run: impl FnMut() -> f64) -> f64 {
    let mut seconds: Vec<f64> = (0..runs).map(|_| run()).collect();
    seconds.sort_by(f64::total_cmp);
    seconds[runs / 2]
}

/// Numbers that depend on a seed alone (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}
