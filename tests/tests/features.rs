//! CPU features are detected before code that is compiled for them is called: one list of CPU features for
//! both, in `format/src/cpu.rs`, and a look at all sources that nothing goes past it.

use pleach_format::cpu::SETS;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Features that code of a file is compiled for, and where they are detected: file and text.
#[rustfmt::skip]
const GUARDS: &[(&str, &str, &str, &str)] = &[
    ("bench/peers/src/search_tree.rs", "avx2,popcnt", "bench/peers/src/search_tree.rs", "cpu::avx2_popcnt()"),
    ("bench/src/range.rs", "avx2", "bench/src/range.rs", "cpu::avx2()"),
    ("builder/src/classic/avx2.rs", "avx2", "builder/src/classic/keys.rs", "cpu::avx2_bmi2()"),
    ("builder/src/classic/narrow.rs", "avx2,bmi2", "builder/src/classic/keys.rs", "cpu::avx2_bmi2()"),
    ("papers/src/fast/engine.rs", AVX2, ISA, "Self::Avx2 => cpu::avx2_search()"),
    ("papers/src/fast/engine.rs", AVX512, ISA, "Self::Avx512 => cpu::avx512_search()"),
    ("papers/src/fast/engine.rs", "neon", ISA, "Self::Neon => cpu::neon()"),
    ("papers/src/harmonia/arch.rs", "avx2,bmi2", "papers/src/harmonia/arch.rs", "cpu::avx2_bmi2()"),
    ("papers/src/kary/engine.rs", "sse4.2,popcnt", KARY, "Self::Sse => pleach_format::cpu::sse42()"),
    ("papers/src/kary/engine.rs", AVX2, ISA, "Self::Avx2 => cpu::avx2_search()"),
    ("papers/src/kary/engine.rs", AVX512, ISA, "Self::Avx512 => cpu::avx512_search()"),
    ("papers/src/kary/engine.rs", "neon", ISA, "Self::Neon => cpu::neon()"),
    ("reader/src/arch/mod.rs", "bmi1,bmi2", "reader/src/arch/mod.rs", "cpu::bmi()"),
    ("reader/src/arch/mod.rs", "bmi2", "reader/src/arch/mod.rs", "cpu::bmi2()"),
    ("reader/src/classic/engine.rs", AVX2, ISA, "Self::Avx2 => cpu::avx2_search()"),
    ("reader/src/classic/engine.rs", AVX512, ISA, "Self::Avx512 => cpu::avx512_search()"),
    ("reader/src/classic/engine.rs", "neon", ISA, "Self::Neon => cpu::neon()"),
    ("reader/src/nodes.rs", AVX2, ISA, "Self::Avx2 => cpu::avx2_search()"),
    ("reader/src/nodes.rs", AVX512, ISA, "Self::Avx512 => cpu::avx512_search()"),
    ("reader/src/nodes.rs", "neon", ISA, "Self::Neon => cpu::neon()"),
    ("reader/src/search/engine.rs", AVX2, ISA, "Self::Avx2 => cpu::avx2_search()"),
    ("reader/src/search/engine.rs", AVX512, ISA, "Self::Avx512 => cpu::avx512_search()"),
    ("reader/src/search/engine.rs", "neon", ISA, "Self::Neon => cpu::neon()"),
    ("relation/src/memory/ordered.rs", "avx512f", "relation/src/memory/ordered.rs", "cpu::avx512f()"),
    ("relation/src/memory/distinct.rs", "avx2", "relation/src/memory/distinct.rs", "cpu::avx2()"),
    ("relation/src/memory/vector.rs", "avx512f", "relation/src/memory/vector.rs", "cpu::avx512f_popcnt()"),
    ("relation/src/memory/vector.rs", "avx512f,popcnt", "relation/src/memory/vector.rs", "cpu::avx512f_popcnt()"),
];
const AVX2: &str = "avx2,bmi1,bmi2,popcnt";
const AVX512: &str = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,popcnt";
const ISA: &str = "reader/src/arch/mod.rs";
const KARY: &str = "papers/src/kary/mod.rs";

/// Files that detect CPU features: the list, and a report that names those of a machine.
const DETECTS: [&str; 2] = ["format/src/cpu.rs", "bench/src/machine.rs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace folder").to_owned()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && name != "target" && name != ".git" {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn code_is_compiled_for_what_was_detected() {
    let root = root();
    let (mut files, mut broken, mut used) = (Vec::new(), Vec::new(), BTreeSet::new());
    sources(&root, &mut files);
    assert!(files.len() > 40, "the sources are found");
    for path in files {
        let name = path.strip_prefix(&root).expect("inside").to_string_lossy().into_owned();
        if name.ends_with("tests/features.rs") || name == "format/src/cpu.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).expect("UTF-8");
        for (at, _) in text.match_indices("target_feature(enable = \"") {
            let list = text[at..].split('"').nth(1).expect("a list");
            let Some(guard) = GUARDS.iter().position(|guard| (guard.0, guard.1) == (&*name, list)) else {
                broken.push(format!("{name}: compiled for `{list}`: where is that detected?"));
                continue;
            };
            used.insert(guard);
        }
        if text.contains("_feature_detected!(") && !DETECTS.contains(&&*name) {
            broken.push(format!("{name}: asks the CPU past `pleach_format::cpu`"));
        }
    }
    for (number, (name, list, place, detection)) in GUARDS.iter().enumerate() {
        let there = fs::read_to_string(root.join(place)).expect("UTF-8");
        if !there.contains(detection) {
            broken.push(format!("{name}: {place} has no {detection}"));
        }
        if !used.contains(&number) {
            broken.push(format!("{name}: nothing is compiled for `{list}` any more"));
        }
        let set =
            detection.rsplit_once("cpu::").and_then(|(_, call)| call.strip_suffix("()")).expect("a call");
        let detected =
            if set == "neon" { "neon" } else { SETS.iter().find(|it| it.0 == set).expect("a set").1 };
        let detected: BTreeSet<&str> = detected.split(',').collect();
        if let Some(missing) = list.split(',').find(|feature| !detected.contains(feature)) {
            broken.push(format!("{name}: compiled for {missing}, which {detection} does not ask for"));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Elements of any type are copied, also those with bytes that are not initialised: not through vectors of the
/// language.
#[test]
fn padding_is_not_read_as_vectors() {
    for file in ["relation/src/memory/ordered.rs"] {
        let text = fs::read_to_string(root().join(file)).expect("UTF-8");
        for word in ["_load", "_loadu", "__m128i", "__m256i", "__m512i"] {
            assert!(!text.contains(word), "{file}: {word}");
        }
    }
}

/// The features of a machine are reported from the same list.
#[test]
fn sets_detect_all_of_their_features() {
    assert!(
        SETS.iter()
            .all(|(name, list)| !name.is_empty() && list.split(',').all(|feature| !feature.is_empty()))
    );
    #[cfg(target_arch = "x86_64")]
    {
        use pleach_format::cpu;
        assert!(!cpu::avx512_search() || cpu::avx512f() && cpu::avx2_search() && cpu::avx512f_popcnt());
        assert!(
            !cpu::avx2_search()
                || cpu::avx2() && cpu::bmi() && cpu::bmi2() && cpu::avx2_popcnt() && cpu::avx2_bmi2()
        );
    }
}
