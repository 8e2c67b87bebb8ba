//! `pleach demo`: builds, searches, checks and explains files with realistic data, in seconds.
//!
//! For each business of [`orders`] it builds a file from unordered orders, checks it by `fsck`, opens it
//! mapped, and searches it; a hash map, a B-tree map and a binary search answer the same questions. Every
//! answer of each engine is compared with an oracle that is independent of Pleach: a sorted vector with a
//! binary search of its own. A wrong answer ends the demo with exit code 8.

mod orders;
mod table;

use crate::cli::{DemoArgs, Global};
use crate::errors::{self, build_failure};
use crate::failure::{Code, ExitStatus, Failure};
use crate::interrupt::Guard;
use crate::message::Message;
use crate::random::{Random, mix64};
use crate::render::json;
use crate::render::table::aligned;
use crate::render::text::shown;
use crate::stdout;
use orders::{Business, Order, SHOP_DAY_IDS};
use pleach::{FsckOptions, Index, ReadError, Typed, Verdict};
use pleach_builder::{BuildOptions, remains};
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use table::Table;

/// Orders per business, unless `--tuples` specifies another number.
const ORDERS: u64 = 1 << 21;
/// Maximum orders per business: they fit into the shop's days, and into the memory of a laptop.
const ORDERS_MAX: u64 = 1 << 27;
/// Number of ids to look up.
const QUESTIONS: usize = 1 << 20;
/// Ids per call.
const BATCH: usize = 1 << 14;
/// Number of ranges that are compared.
const RANGES: usize = 300;
/// Longest range, in orders.
const RANGE_ORDERS: u64 = 3000;
/// Time limit for repeating the questions to an engine, up to three times.
const ASK_AGAIN: Duration = Duration::from_millis(300);

pub fn run(args: &DemoArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let count = args.tuples.unwrap_or(ORDERS);
    if !(1..=ORDERS_MAX).contains(&count) {
        let message = Message::new(format!("--tuples {count}")).at("pleach demo");
        return Err(Failure::usage(message.advise("use 1 to 2^27")));
    }
    let start = Instant::now();
    let guard = Guard::new();
    let _token;
    let temporary;
    let folder: &Path = match &args.keep {
        Some(folder) => {
            fs::create_dir_all(folder).map_err(|error| Failure::io("cannot create", folder, &error))?;
            folder
        }
        None => {
            let parent = std::env::temp_dir();
            let made = tempfile::Builder::new().prefix("pleach-demo-").tempdir_in(&parent);
            let made = made.map_err(|error| Failure::io("cannot create a folder in", &parent, &error))?;
            // Forgotten last: the thread that ends the process knows the folder until it is removed.
            _token = remains::register_folder(made.path());
            temporary = made;
            temporary.path()
        }
    };
    let told = Told { is_json: global.json };
    told.line(&format!(
        "Pleach turns a table of keys and values into one file that is searched in place.\n\
         Here are orders of three businesses, {count} each: order id to customer number.\n"
    ))?;
    let mut scenes = Vec::new();
    for business in Business::ALL {
        if guard.is_interrupted() {
            return Err(Failure::Interrupted);
        }
        scenes.push(Scene::play(business, count, args.seed, folder, &guard, &told)?);
    }
    told.line(&table(&scenes))?;
    let elapsed = start.elapsed();
    let wrong: u64 = scenes.iter().map(|scene| scene.wrong).sum();
    let checked: u64 = scenes.iter().map(|scene| scene.checked).sum();
    if global.json {
        let mut document = json::document("demo");
        document.insert("orders".to_owned(), json::int(count));
        document.insert("answers_checked".to_owned(), json::int(checked));
        document.insert("answers_wrong".to_owned(), json::int(wrong));
        document.insert("seconds".to_owned(), rounded(elapsed.as_secs_f64()));
        document.insert("isa".to_owned(), pleach::Isa::best().name().into());
        document.insert("scenes".to_owned(), scenes.iter().map(Scene::to_json).collect());
        stdout::print_json(document)?;
    }
    if wrong > 0 {
        let message = Message::new(format!("{wrong} of {checked} answers are wrong"))
            .at(format!("pleach demo --seed {} --tuples {count}", args.seed));
        return Err(Failure::new(Code::Failed, message.advise("please report this")));
    }
    told.line(&format!(
        "{checked} answers in {:.1} s, every one compared with a naive oracle, none wrong.\n",
        elapsed.as_secs_f64()
    ))?;
    if cfg!(debug_assertions) {
        told.line("This is a debug build: `cargo run --release -- demo` is several times faster.\n")?;
    }
    told.line(&next_steps(args.keep.as_deref()))?;
    Ok(ExitStatus::Success)
}

/// Prints each step when it happens; with `--json` the document at the end has everything.
struct Told {
    is_json: bool,
}

impl Told {
    fn line(&self, text: &str) -> Result<(), Failure> {
        if self.is_json { Ok(()) } else { stdout::print(format!("{text}\n").as_bytes()) }
    }
}

/// The oracle: orders sorted by their ids, and a handwritten binary search.
struct Oracle(Vec<Order>);

impl Oracle {
    fn new(orders: &[Order]) -> Self {
        let mut sorted = orders.to_vec();
        sorted.sort_unstable();
        Self(sorted)
    }

    /// Returns the number of ids below this one.
    fn below(&self, id: u64) -> usize {
        let (mut low, mut high) = (0, self.0.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.0[middle].0 < id {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn get(&self, id: u64) -> Option<u32> {
        self.0.get(self.below(id)).filter(|order| order.0 == id).map(|order| order.1)
    }
}

/// Speed of an engine, and memory of its table.
struct Timed {
    name: String,
    ns: f64,
    build: Duration,
    bytes: u64,
    is_parallel: bool,
}

/// Results for the orders of one business.
struct Scene {
    business: Business,
    orders: u64,
    file: PathBuf,
    open: Duration,
    fsck: Duration,
    present: usize,
    ranges: u64,
    engines: Vec<Timed>,
    checked: u64,
    wrong: u64,
}

impl Scene {
    fn play(
        business: Business,
        count: u64,
        seed: u64,
        folder: &Path,
        guard: &Guard,
        told: &Told,
    ) -> Result<Self, Failure> {
        let interrupted = || if guard.is_interrupted() { Err(Failure::Interrupted) } else { Ok(()) };
        let orders = business.orders(count, seed);
        let oracle = Oracle::new(&orders);
        let questions = orders::questions(&orders, QUESTIONS, seed ^ 0xA5C);
        let expected: Vec<Option<u32>> = questions.iter().map(|&id| oracle.get(id)).collect();
        let present = expected.iter().flatten().count();
        told.line(&format!("{}: {}, such as {}", business.name(), business.ids(), examples(&orders)))?;
        interrupted()?;

        let file = folder.join(format!("{}.pleach", business.name()));
        let start = Instant::now();
        let summary = pleach_builder::build_slice(&orders, &file, &BuildOptions::default())
            .map_err(|error| build_failure(&error))?;
        let build = start.elapsed();
        told.line(&format!(
            "  built    {} in {}: {} orders that came unsorted, {:.2} bytes each ({} of them order and customer)",
            file_name(&file),
            seconds(build),
            summary.tuples,
            summary.file_bytes as f64 / summary.tuples as f64,
            size_of::<u64>() + size_of::<u32>(),
        ))?;

        let start = Instant::now();
        let report = pleach::fsck(&file, &FsckOptions::default())
            .map_err(|error| Failure::io("cannot read", &file, &error))?;
        let fsck = start.elapsed();
        let is_clean = report.verdict == Verdict::Clean && report.tuples == Some(summary.tuples);
        told.line(&format!(
            "  fsck     {} in {}: {} bytes under {} checksums, order, separators and padding",
            if is_clean { "clean" } else { "DAMAGED" },
            seconds(fsck),
            report.bytes,
            report.blocks,
        ))?;

        pleach::contain_sigbus();
        let start = Instant::now();
        let index = Index::open(&file).map_err(|error| errors::opening(&error))?;
        let view = index.typed::<u64, u32>().map_err(errors::typing(&file))?;
        let failed = errors::reading(&file);
        view.get(questions[0]).map_err(failed)?;
        let open = start.elapsed();
        told.line(&format!("  opened   mapped, and first answer, in {}", milliseconds(open)))?;

        let mut scene = Self {
            business,
            orders: summary.tuples,
            file: file.clone(),
            open,
            fsck,
            present,
            ranges: 0,
            engines: Vec::new(),
            checked: 0,
            wrong: u64::from(!is_clean),
        };
        scene.ask_pleach(&view, &questions, &expected, build, summary.file_bytes).map_err(failed)?;
        interrupted()?;
        let Ok(()) = scene.ask_tables(&oracle, &questions, &expected);
        interrupted()?;
        scene.compare_ranges(&view, &oracle, seed).map_err(failed)?;
        scene.compare_whole(&view, &oracle).map_err(failed)?;
        let verdict = if scene.wrong == 0 { "all answers right" } else { "WRONG ANSWERS" };
        told.line(&format!(
            "  searched {} ids, {present} of them present; {} ranges, forwards and backwards; \
             all {} orders: {verdict}\n",
            questions.len(),
            scene.ranges,
            scene.orders,
        ))?;
        Ok(scene)
    }

    /// Compares answers with those of the oracle.
    fn compare(&mut self, values: &[u32], present: &[u64], expected: &[Option<u32>]) {
        for (i, (&value, &expected)) in values.iter().zip(expected).enumerate() {
            let is_present = present[i / 64] >> (i % 64) & 1 == 1;
            self.checked += 1;
            self.wrong += u64::from(is_present.then_some(value) != expected);
        }
    }

    /// Asks all questions up to three times and keeps the median time; compares the answers of each time.
    fn ask<E>(
        &mut self,
        questions: &[u64],
        expected: &[Option<u32>],
        mut answer: impl FnMut(&[u64], &mut [u32], &mut [u64]) -> Result<usize, E>,
    ) -> Result<f64, E> {
        let mut values = vec![0; questions.len()];
        let mut present = vec![0; questions.len().div_ceil(64)];
        let mut times = Vec::new();
        let mut spent = Duration::ZERO;
        while times.is_empty() || times.len() < 3 && spent < ASK_AGAIN {
            // Answers of an earlier turn must not count as new ones.
            values.fill(u32::MAX);
            present.fill(0x5555_5555_5555_5555);
            let mut found = 0;
            let start = Instant::now();
            let calls = values.chunks_mut(BATCH).zip(present.chunks_mut(BATCH / 64));
            for (questions, (values, present)) in questions.chunks(BATCH).zip(calls) {
                found += answer(questions, values, present)?;
            }
            let elapsed = start.elapsed();
            spent += elapsed;
            times.push(elapsed);
            self.compare(&values, &present, expected);
            self.wrong += u64::from(found != expected.iter().flatten().count());
        }
        times.sort_unstable();
        Ok(times[times.len() / 2].as_nanos() as f64 / questions.len() as f64)
    }

    fn ask_pleach(
        &mut self,
        view: &Typed<'_, u64, u32>,
        questions: &[u64],
        expected: &[Option<u32>],
        build: Duration,
        bytes: u64,
    ) -> Result<(), ReadError> {
        let ns =
            self.ask(questions, expected, |ids, values, present| view.get_batch(ids, values, present))?;
        self.engines.push(Timed { name: "pleach".to_owned(), ns, build, bytes, is_parallel: false });
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        if threads > 1 {
            let ns = self
                .ask(questions, expected, |ids, values, present| view.par_get_batch(ids, values, present))?;
            self.engines.push(Timed {
                name: format!("pleach, {threads} threads"),
                ns,
                build,
                bytes,
                is_parallel: true,
            });
        }
        Ok(())
    }

    fn ask_tables(
        &mut self,
        oracle: &Oracle,
        questions: &[u64],
        expected: &[Option<u32>],
    ) -> Result<(), Infallible> {
        for (name, build) in Table::ALL {
            let start = Instant::now();
            let table = build(&oracle.0);
            let build = start.elapsed();
            let ns = self.ask(questions, expected, |ids, values, present| {
                Ok::<_, Infallible>(table.get_batch(ids, values, present))
            })?;
            self.engines.push(Timed {
                name: name.to_owned(),
                ns,
                build,
                bytes: table.bytes(),
                is_parallel: false,
            });
        }
        Ok(())
    }

    /// Compares ranges with ends on orders and between them; for the shop, whole days too.
    fn compare_ranges(
        &mut self,
        view: &Typed<'_, u64, u32>,
        oracle: &Oracle,
        seed: u64,
    ) -> Result<(), ReadError> {
        let mut random = Random::new(mix64(seed ^ 0x4A6E));
        let sorted = &oracle.0;
        let days = orders::shop_days();
        for number in 0..RANGES {
            let (low, high) = if self.business == Business::Shop && number % 2 == 0 {
                let date = days[random.below(days.len() as u64) as usize];
                (date * SHOP_DAY_IDS, (date + 1) * SHOP_DAY_IDS)
            } else {
                let first = random.below(sorted.len() as u64);
                let last = (first + random.below(RANGE_ORDERS)).min(sorted.len() as u64 - 1);
                let ends = (sorted[first as usize].0, sorted[last as usize].0);
                (ends.0.saturating_sub(random.below(3)), ends.1.saturating_add(random.below(3)))
            };
            let expected = &sorted[oracle.below(low)..oracle.below(high).max(oracle.below(low))];
            let range = view.range(low..high)?;
            let mut is_right = view.count(low..high)? == expected.len() as u64;
            is_right &= range.remaining() == expected.len() as u64;
            let found: Vec<Order> = if number % 3 == 0 {
                let mut backwards = range.rev().collect::<Result<Vec<_>, _>>()?;
                backwards.reverse();
                backwards
            } else {
                range.collect::<Result<_, _>>()?
            };
            is_right &= found == expected;
            self.ranges += 1;
            self.checked += 1;
            self.wrong += u64::from(!is_right);
        }
        Ok(())
    }

    /// Compares all orders in order, each order by its id, and the ends.
    fn compare_whole(&mut self, view: &Typed<'_, u64, u32>, oracle: &Oracle) -> Result<(), ReadError> {
        let sorted = &oracle.0;
        let mut ids = vec![0; BATCH];
        let mut values = vec![0; BATCH];
        let mut present = vec![0; BATCH / 64];
        let mut rank = 0;
        for part in sorted.chunks(BATCH) {
            let (ids, values) = (&mut ids[..part.len()], &mut values[..part.len()]);
            let present = &mut present[..part.len().div_ceil(64)];
            let copied = view.copy_range(rank, ids, values)?;
            let scanned = ids.iter().copied().zip(values.iter().copied());
            self.wrong += u64::from(copied != part.len() || !scanned.eq(part.iter().copied()));
            rank += part.len() as u64;
            ids.iter_mut().zip(part).for_each(|(id, order)| *id = order.0);
            view.get_batch(ids, values, present)?;
            let expected: Vec<Option<u32>> = part.iter().map(|order| Some(order.1)).collect();
            self.compare(values, present, &expected);
        }
        let is_right = view.len() == sorted.len() as u64
            && view.min()?.as_ref() == sorted.first()
            && view.max()?.as_ref() == sorted.last();
        self.wrong += u64::from(!is_right);
        Ok(())
    }

    /// Names the business and its fastest engine, of those that use one thread.
    fn fastest(&self) -> Option<String> {
        let single = self.engines.iter().filter(|engine| !engine.is_parallel);
        let fastest = single.min_by(|a, b| a.ns.total_cmp(&b.ns))?;
        Some(format!("{} {}", self.business.name(), fastest.name))
    }

    fn to_json(&self) -> Value {
        let engines = self.engines.iter().map(|engine| {
            json!({
                "engine": engine.name,
                "ns_per_query": rounded(engine.ns),
                "build_s": rounded(engine.build.as_secs_f64()),
                "bytes": json::int(engine.bytes),
            })
        });
        let mut scene = Map::new();
        let mut insert = |name: &str, value: Value| scene.insert(name.to_owned(), value);
        insert("business", self.business.name().into());
        insert("ids", self.business.ids().into());
        insert("file", self.file.display().to_string().into());
        insert("orders", json::int(self.orders));
        insert("open_ms", rounded(self.open.as_secs_f64() * 1e3));
        insert("fsck_s", rounded(self.fsck.as_secs_f64()));
        insert("questions", json::int(QUESTIONS as u64));
        insert("questions_present", json::int(self.present as u64));
        insert("ranges", json::int(self.ranges));
        insert("answers_checked", json::int(self.checked));
        insert("answers_wrong", json::int(self.wrong));
        insert("engines", engines.collect());
        Value::Object(scene)
    }
}

/// Returns three ids as text.
fn examples(orders: &[Order]) -> String {
    let ids: Vec<String> = orders.iter().take(3).map(|order| order.0.to_string()).collect();
    ids.join(", ")
}

/// Returns the name of a file without its folder.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn seconds(time: Duration) -> String {
    if time < Duration::from_millis(100) {
        milliseconds(time)
    } else {
        format!("{:.2} s", time.as_secs_f64())
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// Rounds to six decimals, which are enough for all times here.
fn rounded(number: f64) -> Value {
    ((number * 1e6).round() / 1e6).into()
}

/// Returns the table of nanoseconds per look-up, engines by businesses, with the time until the first one.
fn table(scenes: &[Scene]) -> String {
    let mut lines = vec![
        ["ns a look-up", "shop", "market", "partner", "ready after", "bytes an order"].map(str::to_owned),
    ];
    let Some(last) = scenes.last() else { return String::new() };
    for (place, engine) in last.engines.iter().enumerate() {
        let ns = |scene: usize| {
            let timed = scenes.get(scene).and_then(|scene| scene.engines.get(place));
            timed.map_or("-".to_owned(), |timed| format!("{:.1}", timed.ns))
        };
        // The file exists already when a program starts; the others are built each time.
        let ready = if engine.name.starts_with("pleach") { last.open } else { engine.build };
        lines.push([
            engine.name.clone(),
            ns(0),
            ns(1),
            ns(2),
            milliseconds(ready),
            format!("{:.1}", engine.bytes as f64 / last.orders as f64),
        ]);
    }
    let mut text = String::from(
        "Every engine answered the same questions, about ids that are there and ids that are not:\n\n",
    );
    text.push_str(&aligned(&lines));
    let fastest = scenes.iter().filter_map(Scene::fastest).collect::<Vec<_>>().join(", ");
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\nFastest of those that use one thread: {fastest}.\n\n\
         Pleach searched the mapped file in batches of {BATCH}; it was ready as soon as it was opened. The others\n\
         live in memory and are built again, from sorted orders, whenever a program starts. A hash map has no\n\
         order: it cannot answer the ranges.\n"
    );
    text
}

fn next_steps(kept: Option<&Path>) -> String {
    let kept = kept.map_or(String::new(), |folder| {
        let file = folder.join("shop.pleach");
        format!(
            "The files are kept:\n  pleach inspect {0}\n  pleach range {0} .. .. --limit 5\n\n",
            shown(&file)
        )
    });
    format!(
        "{kept}Your own table is next:\n  \
         pleach build orders.parquet -o orders.pleach --key o_orderkey --value o_custkey\n  \
         pleach get orders.pleach 7 32 33\n  \
         pleach range orders.pleach 100 200\n  \
         pleach fsck orders.pleach\n  \
         pleach bench lookup --quick          how fast it is on this machine, beside other engines"
    )
}
