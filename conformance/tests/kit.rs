//! The kit itself: every file is what its sheet says, by the product and by the second builder.

use pleach::{FsckOptions, Index, OpenError, fsck};
use pleach_conformance::case::{Case, find};
use pleach_conformance::plan::{Plan, stamp, word};
use pleach_conformance::serve::Server;
use pleach_conformance::{broken, random, valid, write_kit};
use pleach_format::meta::Meta;
use pleach_format::{Bits, Key, KeyType, Rule, Value, ValueType, Word};
use pleach_fsck::Code;
use pleach_kit::naive;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Most bytes of the folder of the kit, which is kept in the repository.
const KIT_BYTES_MAX: u64 = 6 << 20;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/vectors")
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            let below = files(&path).into_iter();
            all.extend(
                below.map(|(name, bytes)| (Path::new(path.file_name().expect("a name")).join(name), bytes)),
            );
        } else {
            all.insert(path.file_name().expect("a name").into(), fs::read(&path).expect("readable"));
        }
    }
    all
}

/// The folder of the kit is what `kit` writes. `PLEACH_BLESS=1` writes it.
#[test]
fn the_kit_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    write_kit(folder.path()).expect("written");
    if std::env::var_os("PLEACH_BLESS").is_some_and(|value| value == "1") {
        fs::remove_dir_all(vectors()).or_else(|_| fs::create_dir_all(vectors())).expect("removed");
        write_kit(&vectors()).expect("written");
    }
    let (made, kept) = (files(folder.path()), files(&vectors()));
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&made), names(&kept));
    let other: Vec<&PathBuf> =
        made.iter().filter(|(name, bytes)| kept[*name] != **bytes).map(|(name, _)| name).collect();
    assert!(other.is_empty(), "written otherwise today: {other:?}");
    assert!(kept.values().map(|bytes| bytes.len() as u64).sum::<u64>() < KIT_BYTES_MAX);
    let all = find(&vectors()).expect("a kit");
    let broken = all.iter().filter(|(_, sheet)| sheet.is_broken()).count();
    assert!(all.len() - broken >= 30 && broken >= 40, "{} files, {broken} broken", all.len());
    for level in 1..=3 {
        assert!(all.iter().any(|(_, sheet)| sheet.level == level && sheet.is_broken()), "{level}");
    }
}

/// What a driver of the product answers about a file, where it differs from the sheet.
fn differences(case: &Case, folder: &Path) -> Vec<String> {
    let path = folder.join(&case.name);
    fs::write(&path, &case.bytes).expect("written");
    let mut server = Server::default();
    assert_eq!(server.answer(&format!("open {}", path.display())), "ok", "{}", case.name);
    let findings = fsck(&path, &FsckOptions::default()).expect("readable").findings;
    assert_eq!(findings, [], "{}", case.name);
    let wrong = case.sheet.exchange.iter().filter_map(|(request, wanted)| {
        let got = server.answer(request);
        (got != *wanted).then(|| format!("{}: {request}: wanted {wanted}, got {got}", case.name))
    });
    wrong.collect()
}

#[test]
fn valid_files_are_clean_and_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sections = BTreeSet::new();
    let mut types = BTreeSet::new();
    let mut wrong = Vec::new();
    for plan in valid::plans().into_iter().chain(valid::more()) {
        let case = plan.case();
        sections.extend(
            pleach_kit::mutate::header(&case.bytes).sections.iter().map(|it| it.entry.tag.to_string()),
        );
        types
            .extend([format!("key {:?}", plan.model.key_type), format!("value {:?}", plan.model.value_type)]);
        wrong.extend(differences(&case, folder.path()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for kind in pleach_format::section::SECTIONS {
        assert!(sections.contains(kind.name), "{}", kind.name);
    }
    let keys =
        KeyType::NUMERIC.iter().chain(&[KeyType::Bytes, KeyType::Utf8]).map(|key| format!("key {key:?}"));
    let values = ValueType::NUMERIC.iter().chain(&[ValueType::Bytes, ValueType::Utf8]);
    for name in keys.chain(values.map(|value| format!("value {value:?}"))) {
        assert!(types.contains(&name), "{name}");
    }
}

#[test]
fn files_of_chance_are_clean_and_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    for (seed, number) in
        [(1, 0..30), (u64::MAX, 0..20)].into_iter().flat_map(|(seed, all)| all.map(move |at| (seed, at)))
    {
        let plan = random::plan(seed, number);
        let wrong = differences(&plan.case_of(plan.build(), 200), folder.path());
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// The file of a plan by the second builder, or `None` if it does not make such files.
fn second(plan: &Plan) -> Option<Vec<u8>> {
    if plan.change.is_some() {
        return None;
    }
    let with = match &*plan.layout {
        "lines,spine,grid" => naive::Grid::Suited,
        "lines,spine" | "lines,spine,wide" => naive::Grid::No,
        _ => return None,
    };
    macro_rules! values {
        ($key:ty) => {
            match plan.model.value_type {
                ValueType::None => second_of::<$key, ()>(plan, with),
                ValueType::U32 => second_of::<$key, u32>(plan, with),
                ValueType::U64 => second_of::<$key, u64>(plan, with),
                ValueType::I32 => second_of::<$key, i32>(plan, with),
                ValueType::I64 => second_of::<$key, i64>(plan, with),
                ValueType::F32 => second_of::<$key, f32>(plan, with),
                ValueType::F64 => second_of::<$key, f64>(plan, with),
                ValueType::Fixed(_) | ValueType::Bytes | ValueType::Utf8 => return None,
            }
        };
    }
    Some(match plan.model.key_type {
        KeyType::U32 => values!(u32),
        KeyType::U64 => values!(u64),
        KeyType::I32 => values!(i32),
        KeyType::I64 => values!(i64),
        KeyType::U128 => values!(u128),
        KeyType::F64 => values!(f64),
        KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => return None,
    })
}

fn second_of<K: Key, V: Value>(plan: &Plan, with: naive::Grid) -> Vec<u8> {
    let model = &plan.model;
    let tuple = |(key, value): &(_, _)| {
        let (key, value) = (word(key, Some(K::TYPE)), word(value, None));
        (K::decode(K::Word::from_u128(key)), V::from_bits(V::Bits::from_u64(value as u64)))
    };
    let tuples: Vec<(K, V)> = model.tuples.iter().map(tuple).collect();
    let meta = Meta {
        key_name: model.key_name.clone(),
        value_name: model.value_name.clone(),
        key_logical: model.key_logical.clone(),
        value_logical: model.value_logical.clone(),
        layout: if plan.layout == "lines,spine,grid" { String::new() } else { plan.layout.clone() },
        interval: if plan.interval { "inclusive".to_owned() } else { String::new() },
        approximate: plan.approximate.map(|count| count.to_string()).unwrap_or_default(),
    };
    let mut bytes = naive::build_with(&tuples, &meta, plan.unique, with);
    stamp(&mut bytes);
    bytes
}

/// What the second builder makes is the same, byte for byte; with another spine and a grid in any case it answers
/// alike.
#[test]
fn the_second_builder_makes_the_same_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut same, mut wrong) = (0, Vec::new());
    for plan in valid::plans().into_iter().chain(valid::more()) {
        let Some(bytes) = second(&plan) else { continue };
        if bytes != plan.build() {
            wrong.push(format!("{}: the second builder writes other bytes", plan.name));
        }
        same += 1;
        wrong.extend(differences(&plan.case_of(bytes, 100), folder.path()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(same >= 20, "{same} files");
}

/// Every broken file is refused by its rule, or opens and has the one fault that its sheet names.
#[test]
fn broken_files_have_one_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut wrong = Vec::new();
    let mut all = broken::cases();
    all.extend(broken::more());
    for Case { name, sheet, bytes } in &all {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        let rule = match Index::open(&path) {
            Ok(_) => None,
            Err(OpenError::Format { source, .. }) => {
                Some(source.rule().map_or_else(|| format!("none: {source}"), |rule| rule.to_string()))
            }
            Err(other) => panic!("{name}: {other}"),
        };
        if rule != sheet.rule {
            wrong.push(format!("{name}: refused by {rule:?}, wanted {:?}", sheet.rule));
        }
        let findings = fsck(&path, &FsckOptions::default()).expect("readable").findings;
        let codes: BTreeSet<&str> = findings.iter().map(|finding| finding.code.name()).collect();
        let wanted: BTreeSet<&str> = sheet.code.iter().map(String::as_str).collect();
        let first = findings.iter().min_by_key(|finding| finding.offset).map(|finding| finding.code.name());
        // A file that opens has one fault, or two of which the first counts; one that does not may be read through
        // its copies.
        let is_found = match &sheet.rule {
            Some(_) => wanted.is_subset(&codes),
            None if name.starts_with("two-") => codes.len() == 2 && first == sheet.code.as_deref(),
            None => wanted == codes,
        };
        if !is_found {
            wrong.push(format!("{name}: found {findings:#?}, wanted {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
    let names: BTreeSet<&str> = all.iter().map(|case| &*case.name).collect();
    assert_eq!(names.len(), all.len(), "names differ");
    // Every rule and every code is in the kit.
    let rules: BTreeSet<&str> = all.iter().filter_map(|case| case.sheet.rule.as_deref()).collect();
    let missing: Vec<&Rule> = Rule::ALL.iter().filter(|rule| !rules.contains(rule.name())).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let codes: BTreeSet<&str> = all.iter().filter_map(|case| case.sheet.code.as_deref()).collect();
    let missing: Vec<&Code> = Code::ALL.iter().filter(|code| !codes.contains(code.name())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
