//! The searches of papers: all forms, and what is asked of each.

use crate::suite;
use pleach::Index;
use pleach_builder::{BuildOptions, build_slice};
use pleach_gpu::internal::External;
use pleach_gpu::{Algorithm, Gpu, GpuError, GpuTable};
use pleach_papers::gpu::search::{BinaryForm, PAryForm, binary, pary, pary_tree, regular_tree};

/// Algorithms that search numbers, in every form; fewer for a quick look.
pub fn algorithms(is_quick: bool) -> Vec<Algorithm> {
    let mut all = vec![binary(BinaryForm::Top)];
    let threads: &[u16] = if is_quick { &[4, 128] } else { &[4, 8, 16, 32, 64, 256, 1024] };
    for &threads in threads {
        all.push(pary(threads, PAryForm::List));
        if threads <= 32 {
            all.push(pary(threads, PAryForm::Ballot));
        }
        all.push(pary_tree(threads, threads.clamp(4, 128)));
    }
    all.push(regular_tree(8, 69, 64));
    if !is_quick {
        all.push(regular_tree(64, 100, 256));
    }
    all
}

/// Forms of binary search that take 16-byte strings as they lie.
pub fn of_strings() -> [Algorithm; 3] {
    BinaryForm::STRINGS.map(binary)
}

/// Algorithms that ought to be recorded.
pub fn recorded() -> [Algorithm; 2] {
    [pary(8, PAryForm::List), binary(BinaryForm::Top)]
}

/// Wrong parameters and types are refused under the algorithm's name, and strings that are turned are not recorded.
pub fn refusals(gpu: &Gpu) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    let tuples: Vec<(u64, u64)> = (0..50).map(|i| (i, i)).collect();
    build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let table = GpuTable::new(&index, gpu).expect("fits");
    for wrong in [
        pary(12, PAryForm::List),
        pary(64, PAryForm::Ballot),
        pary_tree(12, 16),
        pary_tree(4, 0),
        pary_tree(4, 3),
        pary_tree(4, 1026),
        regular_tree(7, 100, 64),
        regular_tree(129, 100, 64),
        regular_tree(8, 49, 64),
        regular_tree(8, 101, 64),
        regular_tree(8, 100, 48),
        binary(BinaryForm::Swap),
    ] {
        let Algorithm::External(External { name, .. }) = wrong else { panic!("{wrong:?}") };
        let refused = table.prepare(wrong);
        let is_named = matches!(refused, Err(GpuError::Algorithm { algorithm, .. }) if algorithm == name);
        assert!(is_named, "{wrong:?}: {refused:?}");
    }
    let mut strings: Vec<(u128, u32)> =
        (0..50).map(|i| (u128::from(suite::mix(i)) << 64, i as u32)).collect();
    strings.sort_unstable();
    build_slice(&strings, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let table = GpuTable::new(&index, gpu).expect("fits");
    let refused = table.record_batch::<u128, u32>(binary(BinaryForm::Swap), 4);
    assert!(matches!(refused, Err(GpuError::Algorithm { .. })));
}
