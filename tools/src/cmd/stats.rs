//! `pleach stats`: how the keys and values of a file are spread.
//!
//! Two passes over the tuples in key order: the first finds ends, duplicates, gaps and bits, the second fills the
//! histograms between the ends. Numbers are put into ranges of equal width, texts and bytes into ranges of lengths.
//! The tuples are read as a scan; memory does not depend on their number.

use crate::any::{Any, number, order, string};
use crate::cli::{Global, StatsArgs, Verify};
use crate::errors;
use crate::failure::{ExitStatus, Failure};
use crate::meant::Meant;
use crate::progress::Progress;
use crate::render::json;
use crate::render::picture::{datum_json, datum_text};
use crate::render::table::{Side, table};
use crate::render::terminal;
use crate::render::text::{counted, grouped, printable, shown};
use crate::search::{self, Opened};
use crate::stdout;
use pleach::{Datum, Record};
use pleach_format::Meaning;
use pleach_format::logical::Form;
use serde_json::{Map, Value};
use std::fmt::Write;

/// Ranges of a histogram.
const RANGES: usize = 16;

/// Columns of the bar of the most frequent range.
const BAR_COLUMNS: usize = 24;

/// What is known of a column of numbers or byte strings.
struct Column {
    name: String,
    form: Option<Form>,
    /// Smallest and largest number; for byte strings, the first and the last by bytes.
    ends: Option<(Datum<'static>, Datum<'static>)>,
    /// Sum of numbers, or of lengths.
    sum: f64,
    /// Shortest and longest byte string.
    lengths: Option<(usize, usize)>,
    /// NaN values, which have no place among the others.
    nans: u64,
    counts: [u64; RANGES],
}

/// What is known of the keys as such.
#[derive(Default)]
struct Keys {
    distinct: u64,
    /// Keys with several tuples.
    repeated: u64,
    most: u64,
    most_key: Option<Datum<'static>>,
    /// Largest distance between neighbours, and the key before it.
    gap: f64,
    gap_key: Option<Datum<'static>>,
    /// Bits that are one in some keys, and those that are one in all keys.
    any_bits: u128,
    all_bits: u128,
    /// Bytes with which all keys begin.
    common: Option<Vec<u8>>,
}

pub fn run(args: &StatsArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let opened = Opened::whole(&args.file, global, Verify::Touched)?;
    let index = opened.index();
    let record = search::record(index, &args.file)?;
    let meant = Meant::of_file(index, &args.file, global)?;
    let any = Any::new(index, &args.file, record.as_ref(), &meant).of_set(opened.set());
    let tuples = opened.len();
    let mut key = Column::new("keys".to_owned(), meant.key_form());
    let mut values: Vec<Column> = match &record {
        Some(record) => record
            .fields()
            .iter()
            .enumerate()
            .map(|(at, field)| {
                Column::new(format!("field {}", field.name), meant.fields.get(at).copied().flatten())
            })
            .collect(),
        None if index.value_type() == pleach::ValueType::None => Vec::new(),
        None => vec![Column::new("values".to_owned(), meant.value)],
    };
    let mut keys = Keys { all_bits: u128::MAX, ..Keys::default() };
    let progress = Progress::new(global);
    let walk = |visit: &mut dyn FnMut(Datum<'static>, &[Datum<'_>]), pass: u64| {
        for rank in 0..tuples {
            if any.is_left_out(rank)? {
                continue;
            }
            let (key, value) = any.tuple(rank)?;
            let fields = fields_of(record.as_ref(), value);
            visit(key.into_owned(), &fields);
            if rank.is_multiple_of(1 << 14) {
                progress.show("counting", pass * tuples + rank, Some(2 * tuples));
                if progress.is_interrupted() {
                    return Err(Failure::Interrupted);
                }
            }
        }
        Ok(())
    };
    let mut before: Option<Datum<'static>> = None;
    let mut run = 0_u64;
    walk(
        &mut |datum, fields| {
            key.see(&datum);
            values.iter_mut().zip(fields).for_each(|(column, field)| column.see(field));
            let is_new = before.as_ref() != Some(&datum);
            run = if is_new { 1 } else { run + 1 };
            keys.see(&datum, before.as_ref(), run);
            before = Some(datum);
        },
        0,
    )?;
    walk(
        &mut |datum, fields| {
            key.count(&datum);
            values.iter_mut().zip(fields).for_each(|(column, field)| column.count(field));
        },
        1,
    )?;
    drop(progress);
    let meta = index.meta().map_err(errors::reading(&args.file))?;
    let value = Meaning::new(index.value_type(), &meta.value_logical);
    let types = (
        Meaning::new(index.key_type(), &meta.key_logical).to_string(),
        record.as_ref().map_or_else(
            || value.to_string(),
            |record| if global.json { record.to_string() } else { printable(&value.to_string()) },
        ),
    );
    if global.json {
        let mut document = json::document("stats");
        document.insert("file".to_owned(), args.file.display().to_string().into());
        document.insert("tuples".to_owned(), json::int(tuples));
        document.insert("key_type".to_owned(), types.0.into());
        let mut told = key.document();
        keys.document(&key, &mut told);
        document.insert("keys".to_owned(), told.into());
        let columns: Vec<Value> = values.iter().map(|column| column.document().into()).collect();
        document.insert("values".to_owned(), columns.into());
        stdout::print_json(document)?;
    } else {
        let mut text =
            format!("{}: {}, {} to {}\n", shown(&args.file), counted(tuples, "tuple"), types.0, types.1);
        key.draw(tuples, &keys.lines(&key), &mut text);
        values.iter().for_each(|column| column.draw(tuples, &[], &mut text));
        stdout::print_people(&text)?;
    }
    opened.end(ExitStatus::Success, global)
}

/// Returns the fields of a value, or the value itself.
fn fields_of<'a>(record: Option<&Record>, value: Datum<'a>) -> Vec<Datum<'a>> {
    match record {
        None => vec![value],
        Some(record) => {
            let packed = value.packed();
            record.values(&packed).map(|field| Datum::of_field(field).into_owned()).collect()
        }
    }
}

/// Returns the bits of a number.
fn bits(datum: &Datum<'_>) -> Option<(u128, u32)> {
    match datum {
        Datum::U32(number) => Some(((*number).into(), 32)),
        Datum::U64(number) => Some(((*number).into(), 64)),
        Datum::U128(number) => Some((*number, 128)),
        Datum::I32(number) => Some((number.cast_unsigned().into(), 32)),
        Datum::I64(number) => Some((number.cast_unsigned().into(), 64)),
        Datum::F64(number) => Some((number.to_bits().into(), 64)),
        Datum::F32(_) | Datum::None | Datum::Bytes(_) | Datum::Utf8(_) => None,
    }
}

impl Column {
    fn new(name: String, form: Option<Form>) -> Self {
        Self { name, form, ends: None, sum: 0.0, lengths: None, nans: 0, counts: [0; RANGES] }
    }

    /// Takes an element of the first pass.
    fn see(&mut self, datum: &Datum<'_>) {
        if let Some(bytes) = string(datum) {
            let (shortest, longest) = self.lengths.unwrap_or((bytes.len(), bytes.len()));
            self.lengths = Some((shortest.min(bytes.len()), longest.max(bytes.len())));
            self.sum += bytes.len() as f64;
        } else if let Some(number) = number(datum) {
            if number.is_nan() {
                self.nans += 1;
                return;
            }
            self.sum += number;
        } else {
            return;
        }
        match &mut self.ends {
            None => self.ends = Some((datum.clone().into_owned(), datum.clone().into_owned())),
            Some((low, high)) => {
                if order(datum, low).is_lt() {
                    *low = datum.clone().into_owned();
                } else if order(datum, high).is_gt() {
                    *high = datum.clone().into_owned();
                }
            }
        }
    }

    /// Returns the ends of the histogram.
    fn span(&self) -> Option<(f64, f64)> {
        if let Some((shortest, longest)) = self.lengths {
            return Some((shortest as f64, longest as f64));
        }
        let (low, high) = self.ends.as_ref()?;
        Some((number(low)?, number(high)?)).filter(|(low, high)| low.is_finite() && high.is_finite())
    }

    /// Returns the width of a range of the histogram: a whole number for whole numbers and lengths.
    fn step(&self, low: f64, high: f64) -> f64 {
        let width = high / RANGES as f64 - low / RANGES as f64;
        let is_float = matches!(self.ends, Some((Datum::F32(_) | Datum::F64(_), _)));
        if is_float && width > 0.0 { width } else { (width + 1.0 / RANGES as f64).ceil().max(1.0) }
    }

    /// Takes an element of the second pass.
    fn count(&mut self, datum: &Datum<'_>) {
        let Some((low, high)) = self.span() else { return };
        let at = match string(datum) {
            Some(bytes) => bytes.len() as f64,
            None => match number(datum).filter(|number| !number.is_nan()) {
                Some(number) => number,
                None => return,
            },
        };
        let range = (at / 2.0 - low / 2.0) / (self.step(low, high) / 2.0);
        self.counts[(range as usize).min(RANGES - 1)] += 1;
    }

    /// Returns the first element of a range of the histogram, as text.
    fn edge(&self, range: usize) -> String {
        let Some((low, high)) = self.span() else { return String::new() };
        let at = low + self.step(low, high) * range as f64;
        if self.lengths.is_some() {
            return counted(at.ceil() as u64, "byte");
        }
        let datum = match self.ends.as_ref().map(|(low, _)| low) {
            Some(Datum::U32(_)) => Datum::U32(at as u32),
            Some(Datum::U64(_)) => Datum::U64(at as u64),
            Some(Datum::U128(_)) => Datum::U128(at as u128),
            Some(Datum::I32(_)) => Datum::I32(at as i32),
            Some(Datum::I64(_)) => Datum::I64(at as i64),
            Some(Datum::F32(_)) => Datum::F32(at as f32),
            _ => Datum::F64(at),
        };
        datum_text(&datum, self.form)
    }

    fn draw(&self, tuples: u64, more: &[(&str, String)], text: &mut String) {
        let _ = writeln!(text, "\n{}", self.name);
        let seen = (tuples - self.nans).max(1) as f64;
        let mut facts: Vec<(&str, String)> = Vec::new();
        if let Some((low, high)) = &self.ends {
            let cut = |datum| datum_text(datum, self.form).chars().take(60).collect::<String>();
            facts.push((if self.lengths.is_some() { "first" } else { "smallest" }, cut(low)));
            facts.push((if self.lengths.is_some() { "last" } else { "largest" }, cut(high)));
        }
        match self.lengths {
            Some((shortest, longest)) => facts.push((
                "length",
                format!(
                    "{shortest} to {}, {:.1} on average",
                    counted(longest as u64, "byte"),
                    self.sum / seen
                ),
            )),
            // The mean of addresses and dates says little.
            None if self.form.is_none() && self.ends.is_some() => {
                facts.push(("mean", datum_text(&Datum::F64(self.sum / seen), None)));
            }
            None => {}
        }
        if self.nans > 0 {
            facts.push(("NaN", grouped(self.nans)));
        }
        for (name, fact) in facts.iter().chain(more) {
            let _ = writeln!(text, "  {name:<9} {fact}");
        }
        let most = self.counts.iter().copied().max().unwrap_or(0).max(1);
        // One value needs no histogram.
        let is_flat = self.span().is_none_or(|(low, high)| low >= high);
        if is_flat {
            return;
        }
        let edges: Vec<String> = (0..RANGES).map(|range| self.edge(range)).collect();
        let mut lines = Vec::new();
        for (range, &count) in self.counts.iter().enumerate() {
            // Whole numbers may need fewer ranges.
            let is_needed =
                self.span().is_some_and(|(low, high)| low + self.step(low, high) * range as f64 <= high);
            if !is_needed {
                break;
            }
            let bar = terminal::bar(count as f64 / most as f64, BAR_COLUMNS);
            lines.push([edges[range].clone(), grouped(count), bar]);
        }
        let head = [("  from", Side::Right), ("tuples", Side::Right), ("", Side::Left)];
        text.push_str(&table(&head, &lines, None));
    }

    fn document(&self) -> Map<String, Value> {
        let mut document = Map::new();
        document.insert("name".to_owned(), self.name.clone().into());
        if let Some((low, high)) = &self.ends {
            document.insert("min".to_owned(), datum_json(low, self.form));
            document.insert("max".to_owned(), datum_json(high, self.form));
        }
        if let Some((shortest, longest)) = self.lengths {
            document.insert("bytes_min".to_owned(), shortest.into());
            document.insert("bytes_max".to_owned(), longest.into());
        }
        document.insert(if self.lengths.is_some() { "bytes" } else { "sum" }.to_owned(), self.sum.into());
        document.insert("nan".to_owned(), json::int(self.nans));
        let ranges: Vec<Value> = self.counts.iter().map(|&count| json::int(count)).collect();
        if let Some((low, high)) = self.span() {
            document.insert("histogram_from".to_owned(), low.into());
            document.insert("histogram_step".to_owned(), self.step(low, high).into());
            document.insert("histogram".to_owned(), ranges.into());
        }
        document
    }
}

impl Keys {
    /// Takes a key, the key before it, and how many tuples have it so far.
    fn see(&mut self, key: &Datum<'static>, before: Option<&Datum<'static>>, run: u64) {
        if run == 1 {
            self.distinct += 1;
        }
        self.repeated += u64::from(run == 2);
        if run > self.most {
            self.most = run;
            self.most_key = Some(key.clone());
        }
        if let Some((word, _)) = bits(key) {
            self.any_bits |= word;
            self.all_bits &= word;
        }
        if let Some(bytes) = string(key) {
            match &mut self.common {
                None => self.common = Some(bytes.to_vec()),
                Some(common) => {
                    let length = common.iter().zip(bytes).take_while(|(one, two)| one == two).count();
                    common.truncate(length);
                }
            }
        }
        if let (Some(one), Some(two)) = (before.and_then(number), number(key))
            && two - one > self.gap
        {
            self.gap = two - one;
            self.gap_key = before.cloned();
        }
    }

    /// Returns what is told of the keys as such.
    fn lines(&self, column: &Column) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let Some((low, high)) = &column.ends else { return lines };
        let text = |datum: &Datum<'_>| datum_text(datum, column.form).chars().take(60).collect::<String>();
        lines.push(("different", grouped(self.distinct)));
        if let Some(key) = self.most_key.as_ref().filter(|_| self.most > 1) {
            lines.push((
                "repeated",
                format!("{}, {} at most ({})", counted(self.repeated, "key"), grouped(self.most), text(key)),
            ));
        }
        if let (Some(key), Some(_)) = (&self.gap_key, number(low)) {
            lines.push(("gaps", format!("{} at most (behind {})", self.gap, text(key))));
        }
        if let Some((_, width)) = bits(high) {
            let varying = self.varying(width);
            lines.push(("bits", format!("{} of {width} differ between keys", varying.count_ones())));
        }
        if let Some(common) = self.common.as_ref().filter(|common| !common.is_empty()) {
            let text = String::from_utf8_lossy(common).chars().take(60).collect::<String>();
            lines.push(("begin", format!("{} in common: {text:?}", counted(common.len() as u64, "byte"))));
        }
        lines
    }

    fn varying(&self, width: u32) -> u128 {
        let mask = if width == 128 { u128::MAX } else { (1 << width) - 1 };
        (self.any_bits & !self.all_bits) & mask
    }

    fn document(&self, column: &Column, document: &mut Map<String, Value>) {
        document.insert("distinct".to_owned(), json::int(self.distinct));
        document.insert("repeated".to_owned(), json::int(self.repeated));
        document.insert("tuples_of_a_key_max".to_owned(), json::int(self.most));
        if let Some((_, width)) = column.ends.as_ref().and_then(|(_, high)| bits(high)) {
            document.insert("varying_bits".to_owned(), format!("{:x}", self.varying(width)).into());
            document.insert("gap_max".to_owned(), self.gap.into());
        }
        if let Some(common) = &self.common {
            document.insert("common_bytes".to_owned(), common.len().into());
        }
    }
}
