//! `pleach get`: prints the values of keys, in the order of the request.
//!
//! Keys from a file are streamed: the keys of one read are parsed, searched as a batch, and printed. So
//! memory is bounded, and a program on the other end of a pipe gets its answers. The first 100,000 keys are
//! searched with every touched block verified, the rest without, unless `--verify` specifies otherwise. The
//! planner determines the search and the size of a batch.

use crate::any::{Any, AnyKey, put_line};
use crate::cli::{GetArgs, Global, Verify};
use crate::cmd::tune;
use crate::device::{self, BATCH, OnDevice};
use crate::errors;
use crate::failure::{self, ExitStatus, Failure};
use crate::keys::{KeyLines, not_a_key};
use crate::meant::Meant;
use crate::message::Message;
use crate::parse::{Device, FromText};
use crate::place;
use crate::render::text::{Text, counted, put_meant, put_meant_json, shown};
use crate::search::{self, Opened};
use crate::stdout::{self, Output};
use pleach::{Choice, Costs, Datum, Index, Key, Near, Request, Strategy, Structure, Typed, Value};
use pleach_format::logical::Form;
use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;

/// Maximum number of keys for which each touched block is verified by default.
const TOUCHED_KEYS_MAX: u64 = 100_000;
/// Number of missing keys that a person is told.
const MISSING_SHOWN: usize = 5;
/// Minimum size of a batch that is searched on all threads.
const PARALLEL: usize = 1 << 15;

pub fn run(args: &GetArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let few = args.keys.is_some() || args.key.len() as u64 <= TOUCHED_KEYS_MAX;
    let verify = match args.device {
        // The whole table is copied to the GPU, so the whole file is verified first.
        Device::Cuda(_) => Verify::Full,
        _ if few => Verify::Touched,
        _ => Verify::Header,
    };
    let structure = args.strategy.structure;
    if let Device::Cuda(_) = args.device {
        // Refused before the file is read.
        device::algorithm(structure)?;
    }
    if place::is_set(&args.file, global)? {
        return run_set(args, global, verify);
    }
    let index = search::open_by(&args.file, global, verify, structure)?;
    // For few keys, reading the cache folder does not pay.
    let costs =
        if args.keys.is_some() || args.key.len() >= 64 { tune::load(global) } else { Costs::default() };
    let record = search::record(&index, &args.file)?;
    let meant = Meant::of_file(&index, &args.file, global)?;
    let is_any = Any::is_needed(&index, record.as_ref(), &meant) || args.near().is_some();
    let is_interval = index.ends().map_err(errors::reading(&args.file))?.is_some() && !args.all;
    if args.nearest && index.key_type().is_bytes() {
        let message = Message::new("--nearest is for keys that are numbers");
        let message = message.more(format!("the keys are {}", index.key_type()));
        return Err(Failure::usage(message.advise("use --floor or --ceiling")));
    }
    let choice = choose(args, &index, is_any, &costs)?;
    let is_near = is_interval || args.near().is_some();
    let device = OnDevice::open(args, &index, &costs, is_near)?;
    if args.explain {
        let keys = args.keys.as_ref().map_or(format!("{} keys", args.key.len()), |from| {
            format!("keys from {}, in batches of up to {}", from.display(), choice.batch)
        });
        search::explain(&[
            index.describe(),
            if device.is_used() {
                format!("{keys}, device {}, {}, answers in query order", device.name(), device.search())
            } else {
                format!("{keys}, device cpu, strategy {}, answers in query order", choice.strategy)
            },
            told_device(&index, &costs, global.json),
            told(&choice, global.json),
        ]);
        if let Some(found) = meant.approximate {
            search::explain(&[found.describe()]);
        }
    }
    let is_on_device = device.is_used();
    let mut answers = Answers::new(args, global, choice, costs, device);
    answers.is_interval = is_interval;
    if is_any {
        answers.any(&Any::new(&index, &args.file, record.as_ref(), &meant))?;
        return answers.finish(global);
    }
    match &args.keys {
        None => pleach::with_typed!(&index, |view| answers.arguments(&view, &args.key))
            .map_err(errors::typing(&args.file))??,
        Some(from) => {
            let mut lines = KeyLines::open(from, &index)?;
            let is_touched = global.verify.is_none() && !is_on_device;
            let until = if is_touched { TOUCHED_KEYS_MAX } else { u64::MAX };
            let flow = pleach::with_typed!(&index, |view| answers.stream(&view, &mut lines, until))
                .map_err(errors::typing(&args.file))??;
            if flow.is_continue() {
                // The same index, even if another file has its name by now.
                index.trust();
                let _: ControlFlow<()> =
                    pleach::with_typed!(&index, |view| answers.stream(&view, &mut lines, u64::MAX))
                        .map_err(errors::typing(&args.file))??;
            }
        }
    }
    answers.finish(global)
}

/// Looks keys up in a set: one batch in each file that can have some of them.
fn run_set(args: &GetArgs, global: &Global, verify: Verify) -> Result<ExitStatus, Failure> {
    let is_default = args.strategy.structure == Structure::Auto
        && matches!(args.strategy.strategy, Strategy::Auto | Strategy::Unbuffered);
    if matches!(args.device, Device::Cuda(_)) || !is_default {
        let option = if is_default { "--device" } else { "--strategy" };
        let message = Message::new("files of a set are searched on the CPU, as they come").at(option);
        return Err(Failure::usage(message.advise("leave it out, or name one file of the set")));
    }
    let opened = Opened::new(&args.file, global, verify)?;
    let index = opened.index();
    let record = search::record(index, &args.file)?;
    let meant = Meant::of_file(index, &args.file, global)?;
    let is_interval = index.ends().map_err(errors::reading(&args.file))?.is_some() && !args.all;
    if args.nearest && index.key_type().is_bytes() {
        let message = Message::new("--nearest is for keys that are numbers");
        let message = message.more(format!("the keys are {}", index.key_type()));
        return Err(Failure::usage(message.advise("use --floor or --ceiling")));
    }
    let costs = Costs::default();
    let choice = choose(args, index, true, &costs)?;
    if args.explain {
        search::explain(&[opened.describe()]);
    }
    let any = Any::new(index, &args.file, record.as_ref(), &meant).of_set(opened.set());
    let mut answers = Answers::new(args, global, choice, costs, OnDevice::cpu(args));
    answers.is_interval = is_interval;
    answers.any(&any)?;
    let status = answers.finish(global)?;
    opened.end(status, global)
}

/// Chooses the search for the number of keys, or for a full batch of a file.
fn choose(args: &GetArgs, index: &Index, is_any: bool, costs: &Costs) -> Result<Choice, Failure> {
    let strategy = args.strategy.strategy;
    if index.key_type().is_bytes() && !matches!(strategy, Strategy::Auto | Strategy::Unbuffered) {
        let message = Message::new("byte keys are searched unbuffered").at(format!("--strategy {strategy}"));
        return Err(Failure::usage(message.advise("use auto or unbuffered")));
    }
    // Byte values are stored outside of the lines, and byte keys have only one search.
    let strategy = if is_any { Strategy::Unbuffered } else { strategy };
    let batch = if args.keys.is_some() { BATCH } else { args.key.len().min(BATCH) };
    let request = Request { response_ns: args.response, strategy, ..Request::new(batch) };
    Ok(index.plan_batch(&request, costs))
}

/// Describes the choice in one line.
fn told(choice: &Choice, json: bool) -> String {
    let (ns, call) = (choice.estimate_ns_per_query, choice.estimate_response_ns);
    if json {
        let choice = serde_json::json!({
            "strategy": choice.strategy.name(),
            "batch": choice.batch,
            "estimate_ns_per_query": ns,
            "estimate_response_ns": call,
            "why": choice.why,
        });
        return serde_json::json!({ "choice": choice }).to_string();
    }
    let why = &choice.why;
    format!("expected {ns:.1} ns a key, {:.3} ms a batch of {}: {why}", call / 1e6, choice.batch)
}

/// Describes in one line how many keys pay for copying the table to a GPU.
fn told_device(index: &Index, costs: &Costs, json: bool) -> String {
    let plan = device::plan(index, costs);
    let factor = plan.reuse_factor();
    if json {
        let plan = serde_json::json!({
            "batch": BATCH,
            "cpu_ns": plan.cpu_ns,
            "gpu_ns": plan.gpu_ns,
            "copy_ns": plan.copy_ns,
            "reuse_factor": factor,
        });
        return serde_json::json!({ "gpu_plan": plan }).to_string();
    }
    match factor {
        Some(factor) => {
            format!("copying to a GPU is expected to pay after {factor:.0} batches of {BATCH} keys")
        }
        None => format!("copying to a GPU is not expected to pay for batches of {BATCH} keys"),
    }
}

/// Buffers of a batch.
struct Scratch<K: Key, V: Value> {
    order: pleach::Scratch<K, V>,
    keys: Vec<K>,
    values: Vec<V>,
    ranks: Vec<u64>,
    present: Vec<u64>,
}

impl<K: Key, V: Value> Scratch<K, V> {
    fn new(costs: Costs) -> Self {
        let order = pleach::Scratch::new(costs);
        Self { order, keys: Vec::new(), values: Vec::new(), ranks: Vec::new(), present: Vec::new() }
    }
}

/// Searches batches and prints what they find.
struct Answers<'a> {
    args: &'a GetArgs,
    choice: Choice,
    costs: Costs,
    json: bool,
    /// Text after the tab for a missing key; a JSON string under `--json`.
    missing_text: Option<Vec<u8>>,
    /// Keys, or tuples, that were found.
    found: u64,
    /// Keys that are missing, and the first of them as they are printed.
    missing: u64,
    missing_first: Vec<String>,
    output: Output,
    device: OnDevice<'a>,
    /// Keys are answered by the intervals that hold them.
    is_interval: bool,
}

impl<'a> Answers<'a> {
    fn new(args: &'a GetArgs, global: &Global, choice: Choice, costs: Costs, device: OnDevice<'a>) -> Self {
        let missing_text = args.missing.as_ref().map(|text| match global.json {
            true => serde_json::Value::String(text.clone()).to_string().into_bytes(),
            // Unchanged: databases read `\N` as null.
            false => text.clone().into_bytes(),
        });
        Self {
            args,
            choice,
            costs,
            json: global.json,
            missing_text,
            found: 0,
            missing: 0,
            missing_first: Vec::new(),
            output: Output::new(),
            device,
            is_interval: false,
        }
    }

    /// Ends the output. A person is told about missing keys, which data do not show.
    fn finish(mut self, global: &Global) -> Result<ExitStatus, Failure> {
        self.output.flush()?;
        if self.args.count {
            stdout::print_count("get", self.found, self.json)?;
        }
        if self.missing == 0 {
            return Ok(ExitStatus::Success);
        }
        let is_told = self.missing_text.is_some() || self.args.exists;
        if !is_told && !global.quiet && !self.json && stderr().is_terminal() {
            let more = if self.missing > self.missing_first.len() as u64 { ", ..." } else { "" };
            let which = self.missing_first.join(", ");
            let (path, count) = (shown(&self.args.file), counted(self.missing, "key"));
            failure::say(&format!("{count} not in {path}: {which}{more}"));
        }
        Ok(ExitStatus::Missing)
    }

    /// Counts a missing key, and keeps the first ones; `put` writes it.
    fn miss(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        self.missing += 1;
        if self.missing_first.len() < MISSING_SHOWN {
            let mut key = Vec::new();
            put(&mut key);
            self.missing_first.push(String::from_utf8_lossy(&key).into_owned());
        }
    }

    /// Searches for keys in a file with byte strings or records.
    fn any(&mut self, any: &Any<'_>) -> Result<(), Failure> {
        let Some(from) = &self.args.keys else {
            let keys = self.args.key.iter().map(|key| any.parse(key.as_bytes()));
            let keys: Vec<AnyKey> = keys
                .collect::<Result<_, _>>()
                .map_err(|message: Message| Failure::usage(message.first_at("argument KEY")))?;
            return keys.chunks(self.choice.batch).try_for_each(|keys| self.any_batch(any, keys));
        };
        let mut lines = any.lines(from)?;
        let mut keys = Vec::new();
        loop {
            let bad = lines.next_batch_of(&mut keys, self.choice.batch, |text| any.parse(text))?;
            if keys.is_empty() && bad.is_none() {
                return Ok(());
            }
            self.any_batch(any, &keys)?;
            self.output.flush()?;
            if let Some(failure) = bad {
                return Err(failure);
            }
        }
    }

    /// Prints the tuple near each key, or the interval that holds it.
    fn near_batch(&mut self, any: &Any<'_>, near: Option<Near>, keys: &[AnyKey]) -> Result<(), Failure> {
        let asked = self.device.ask(|table, by| match near {
            Some(near) => any.near_on(table, by, near, keys),
            None => any.holding_on(table, by, keys),
        })?;
        let ranks = match (asked, near) {
            (Some(ranks), _) => ranks,
            (None, Some(near)) => any.near(near, keys)?,
            (None, None) => any.holding(keys)?,
        };
        for (key, rank) in keys.iter().zip(ranks) {
            match rank {
                Some(_) if self.args.count => self.found += 1,
                Some(rank) => {
                    let out = &mut self.output.buffer;
                    any.put_near(&any.shown(key), rank, self.args.rank, self.json, out)?;
                }
                None => self.any_missing(&any.shown(key), any.key_form()),
            }
            self.output.relieve()?;
        }
        Ok(())
    }

    fn any_batch(&mut self, any: &Any<'_>, keys: &[AnyKey]) -> Result<(), Failure> {
        if self.is_interval || self.args.near().is_some() {
            return self.near_batch(any, self.args.near(), keys);
        }
        let ranks = match self.device.ask(|table, by| any.ranks_on(table, by, keys))? {
            Some(ranks) => ranks,
            None => any.ranks(keys)?,
        };
        for (key, rank) in keys.iter().zip(ranks) {
            if self.args.exists {
                let key = (&any.shown(key), any.key_form());
                self.missing += u64::from(rank.is_none());
                let is_there = Datum::U32(u32::from(rank.is_some()));
                let is_there = (&is_there, Some(Form::Boolean));
                put_line(key, is_there, "exists", self.json, &mut self.output.buffer);
                self.output.relieve()?;
                continue;
            }
            let Some(first) = rank else {
                self.any_missing(&any.shown(key), any.key_form());
                self.output.relieve()?;
                continue;
            };
            let end = if self.args.all { any.upper_bound(key)? } else { first + 1 };
            if self.args.count {
                self.found += end - first;
                continue;
            }
            for rank in first..end {
                let (json, out) = (self.json, &mut self.output.buffer);
                if self.args.rank {
                    let key = any.shown(key);
                    put_line((&key, any.key_form()), (&Datum::U64(rank), None), "rank", json, out);
                } else {
                    let (key, value) = any.tuple(rank)?;
                    any.put(&key, &value, json, out);
                }
                self.output.relieve()?;
            }
        }
        Ok(())
    }

    fn any_missing(&mut self, key: &Datum<'_>, form: Option<Form>) {
        self.miss(|out| put_meant(key, form, out));
        let Some(text) = &self.missing_text else { return };
        let out = &mut self.output.buffer;
        if self.json {
            out.extend_from_slice(b"{\"key\":");
            put_meant_json(key, form, out);
            out.extend_from_slice(b",\"missing\":");
            out.extend_from_slice(text);
            out.extend_from_slice(b"}\n");
        } else {
            put_meant(key, form, out);
            out.push(b'\t');
            out.extend_from_slice(text);
            out.push(b'\n');
        }
    }

    /// Searches for the keys of the command line.
    fn arguments<K: Key + FromText + Text, V: Value + Text>(
        &mut self,
        view: &Typed<'_, K, V>,
        keys: &[String],
    ) -> Result<(), Failure> {
        let keys = keys.iter().map(|key| K::from_text(key.as_bytes()).ok_or(key));
        let keys: Vec<K> = keys
            .collect::<Result<_, _>>()
            .map_err(|key| Failure::usage(not_a_key::<K>(key.as_bytes()).at("argument KEY")))?;
        let mut scratch = Scratch::new(self.costs);
        for batch in keys.chunks(self.choice.batch) {
            scratch.keys.clear();
            scratch.keys.extend_from_slice(batch);
            self.batch(view, &mut scratch)?;
        }
        Ok(())
    }

    /// Searches for the keys of a file, until it ends (`Break`) or about `keys_max` of them are answered.
    fn stream<K: Key + FromText + Text, V: Value + Text>(
        &mut self,
        view: &Typed<'_, K, V>,
        lines: &mut KeyLines,
        keys_max: u64,
    ) -> Result<ControlFlow<()>, Failure> {
        let mut scratch = Scratch::new(self.costs);
        let mut answered = 0;
        while answered < keys_max {
            let bad = lines.next_batch(&mut scratch.keys, self.choice.batch)?;
            if scratch.keys.is_empty() && bad.is_none() {
                return Ok(ControlFlow::Break(()));
            }
            self.batch(view, &mut scratch)?;
            // The next read may block: a program that waits for these answers gets them now.
            self.output.flush()?;
            if let Some(failure) = bad {
                return Err(failure);
            }
            answered += scratch.keys.len() as u64;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn batch<K: Key + Text, V: Value + Text>(
        &mut self,
        view: &Typed<'_, K, V>,
        scratch: &mut Scratch<K, V>,
    ) -> Result<(), Failure> {
        match (self.args.all, self.args.rank) {
            (false, false) if self.args.exists || self.args.count => self.exists(view, scratch),
            (false, false) => self.values(view, scratch),
            (false, true) => self.ranks(view, scratch),
            (true, _) => self.duplicates(view, scratch),
        }
    }

    fn values<K: Key + Text, V: Value + Text>(
        &mut self,
        view: &Typed<'_, K, V>,
        scratch: &mut Scratch<K, V>,
    ) -> Result<(), Failure> {
        let Scratch { order, keys, values, present, .. } = scratch;
        values.resize(keys.len(), V::default());
        present.resize(keys.len().div_ceil(64), 0);
        let asked = self.device.ask(|table, by| table.get_batch_by(by, keys, values, present))?;
        if asked.is_none() {
            if keys.len() >= PARALLEL && self.choice.strategy == Strategy::Unbuffered {
                view.par_get_batch(keys, values, present)
            } else {
                view.get_batch_by(self.choice.strategy, keys, values, present, order)
            }
            .map_err(errors::reading(&self.args.file))?;
        }
        for (i, (&key, &value)) in keys.iter().zip(values.iter()).enumerate() {
            if present[i / 64] >> (i % 64) & 1 == 1 {
                self.found(key, value, b"value");
            } else {
                self.missing(key);
            }
            self.output.relieve()?;
        }
        Ok(())
    }

    /// Finds out which keys are there. Reads no values.
    fn exists<K: Key + Text, V: Value>(
        &mut self,
        view: &Typed<'_, K, V>,
        scratch: &mut Scratch<K, V>,
    ) -> Result<(), Failure> {
        let Scratch { keys, present, .. } = scratch;
        present.resize(keys.len().div_ceil(64), 0);
        let asked =
            self.device.ask(|table, by| table.get_batch_by(by, keys, &mut vec![(); keys.len()], present))?;
        if asked.is_none() {
            view.contains_batch(keys, present).map_err(errors::reading(&self.args.file))?;
        }
        for (i, &key) in keys.iter().enumerate() {
            let is_there = present[i / 64] >> (i % 64) & 1 == 1;
            self.found += u64::from(is_there);
            if self.args.count {
                if !is_there {
                    self.miss(|out| key.put(out));
                }
                continue;
            }
            self.missing += u64::from(!is_there);
            let (word, out) = (if is_there { "true" } else { "false" }, &mut self.output.buffer);
            if self.json {
                out.extend_from_slice(b"{\"key\":");
                key.put_json(out);
                out.extend_from_slice(format!(",\"exists\":{word}}}\n").as_bytes());
            } else {
                key.put(out);
                out.extend_from_slice(format!("\t{word}\n").as_bytes());
            }
            self.output.relieve()?;
        }
        Ok(())
    }

    fn ranks<K: Key + Text, V: Value>(
        &mut self,
        view: &Typed<'_, K, V>,
        scratch: &mut Scratch<K, V>,
    ) -> Result<(), Failure> {
        let Scratch { order, keys, ranks, present, .. } = scratch;
        ranks.resize(keys.len(), 0);
        present.resize(keys.len().div_ceil(64), 0);
        let asked = self.device.ask(|table, by| {
            table.get_batch_by(by, keys, &mut vec![(); keys.len()], present)?;
            table.lower_bound_batch_by::<K, V>(by, keys, ranks)
        })?;
        if asked.is_none() {
            view.contains_batch(keys, present).map_err(errors::reading(&self.args.file))?;
            view.lower_bound_batch_by(self.choice.strategy, keys, ranks, order)
                .map_err(errors::reading(&self.args.file))?;
        }
        for (i, (&key, &rank)) in keys.iter().zip(ranks.iter()).enumerate() {
            if present[i / 64] >> (i % 64) & 1 == 1 {
                self.found(key, rank, b"rank");
            } else {
                self.missing(key);
            }
            self.output.relieve()?;
        }
        Ok(())
    }

    fn duplicates<K: Key + Text, V: Value + Text>(
        &mut self,
        view: &Typed<'_, K, V>,
        scratch: &mut Scratch<K, V>,
    ) -> Result<(), Failure> {
        let failed = errors::reading(&self.args.file);
        let keys = &scratch.keys;
        if let Some(all) = self.device.ask(|table, by| table.get_all_by::<K, V>(by, keys))? {
            return self.duplicates_of(keys, &all);
        }
        for &key in keys {
            let first = view.lower_bound(key).map_err(failed)?;
            let end = view.upper_bound(key).map_err(failed)?;
            if first >= end {
                self.missing(key);
            } else if self.args.rank {
                for rank in first..end {
                    self.found(key, rank, b"rank");
                    self.output.relieve()?;
                }
            } else {
                for tuple in view.ranks(first..end) {
                    let (key, value) = tuple.map_err(failed)?;
                    self.found(key, value, b"value");
                    self.output.relieve()?;
                }
            }
            self.output.relieve()?;
        }
        Ok(())
    }

    /// Prints all tuples of keys that a device found.
    fn duplicates_of<K: Key + Text, V: Value + Text>(
        &mut self,
        keys: &[K],
        all: &pleach_gpu::AllTuples<V>,
    ) -> Result<(), Failure> {
        for (at, &key) in keys.iter().enumerate() {
            let (first, end) = (all.offsets[at], all.offsets[at + 1]);
            if first == end {
                self.missing(key);
            }
            for place in first..end {
                if self.args.rank {
                    self.found(key, all.ranks[at] + (place - first), b"rank");
                } else {
                    // Files without values store no value bytes.
                    self.found(key, all.values.get(place as usize).copied().unwrap_or_default(), b"value");
                }
                self.output.relieve()?;
            }
            self.output.relieve()?;
        }
        Ok(())
    }

    #[inline]
    fn found<K: Text, V: Text>(&mut self, key: K, value: V, name: &[u8]) {
        if self.args.count {
            self.found += 1;
            return;
        }
        put_tuple(key, value, name, self.json, &mut self.output.buffer);
    }

    fn missing<K: Text>(&mut self, key: K) {
        self.miss(|out| key.put(out));
        let Some(text) = &self.missing_text else { return };
        let out = &mut self.output.buffer;
        if self.json {
            out.extend_from_slice(b"{\"key\":");
            key.put_json(out);
            out.extend_from_slice(b",\"missing\":");
            out.extend_from_slice(text);
            out.extend_from_slice(b"}\n");
        } else {
            key.put(out);
            out.push(b'\t');
            out.extend_from_slice(text);
            out.push(b'\n');
        }
    }
}

/// Writes one answer on one line: `KEY<TAB>VALUE`, `KEY` where there are no values, or an object.
#[inline]
pub fn put_tuple<K: Text, V: Text>(key: K, value: V, name: &[u8], json: bool, out: &mut Vec<u8>) {
    if json {
        out.extend_from_slice(b"{\"key\":");
        key.put_json(out);
        if V::IS_SOMETHING {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name);
            out.extend_from_slice(b"\":");
            value.put_json(out);
        }
        out.push(b'}');
    } else {
        key.put(out);
        if V::IS_SOMETHING {
            out.push(b'\t');
            value.put(out);
        }
    }
    out.push(b'\n');
}
