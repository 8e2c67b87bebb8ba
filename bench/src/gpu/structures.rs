//! The trees of a file's sections, searched as they lie on the device, beside the spine's image and the trees that are
//! derived from the tuple lines, of the same shape: all on one table of a rule, size and key type.
//!
//! Rows are of one query, of random batches and of ascending ones. Layouts are built one after the other from the same
//! keys; each row names its layout, with the bytes of its structure on the device and in the file.

use super::case::Asked;
use super::measure::Drawn;
use super::tables::{self, Cell, Keys, kind_name, size_name};
use super::{Bench, GpuReport, checked_case};
use crate::BenchError;
use pleach::{Key, Structure};
use pleach_format::section::Tag;
use pleach_gpu::{
    Algorithm, BtreeForm, FastForm, HarmoniaForm, HarmoniaSearch, QuerySort, Scan, SectionTree,
};

/// FAST as it lies.
const FAST: Algorithm = Algorithm::Section(SectionTree::Fast);
/// The contiguous B+tree as it lies.
const BTREE: Algorithm = Algorithm::Section(SectionTree::Btree);

/// The layouts, and what is searched in each.
fn layouts(is_narrow: bool) -> Vec<(&'static str, Vec<Algorithm>)> {
    let derived = |form| Algorithm::Fast { form, simultaneous: 2 };
    let btree = |order| Algorithm::Btree { order, form: BtreeForm::Grid };
    let mut all = vec![
        ("fast:full", vec![Algorithm::Spine, FAST, derived(FastForm::Ballot)]),
        ("fast:delta", vec![FAST]),
        ("fast:auto", vec![FAST]),
        ("btree:16", vec![BTREE, btree(16)]),
        ("btree:64", vec![BTREE, btree(64)]),
        ("harmonia:64:100", harmonia(64)),
        ("harmonia:16:100", harmonia(16)),
    ];
    if is_narrow {
        let forms = [FastForm::Paper, FastForm::Grid, FastForm::Ballot].map(derived);
        all.push(("fast:full:packed:dk=4:dl=4:dp=4", [&[FAST], &forms[..]].concat()));
    } else {
        all.push(("fast:partial", vec![FAST]));
    }
    all
}

/// Harmonia's section and its derived twin: the paper's search, and the one by halves of queries as they come.
fn harmonia(fanout: u16) -> Vec<Algorithm> {
    let paper = HarmoniaSearch::default();
    let halves = HarmoniaSearch { sort: QuerySort::None, scan: Scan::Halves, ..paper };
    let sorted = HarmoniaSearch { scan: Scan::Halves, ..paper };
    [paper, halves, sorted]
        .into_iter()
        .flat_map(|search| {
            let HarmoniaSearch { sort, group, scan, children } = search;
            let form = HarmoniaForm { fanout, fill: 100, sort, group, scan, children };
            [Algorithm::Section(SectionTree::Harmonia(search)), Algorithm::Harmonia(form)]
        })
        .collect()
}

/// Returns the section that an algorithm searches as it lies.
fn section(algorithm: Algorithm) -> Option<Tag> {
    let Algorithm::Section(tree) = algorithm else { return None };
    tree.name().parse().ok().and_then(Structure::tag)
}

/// Batches of random queries, and one in order.
fn asked_of(most: u64) -> Vec<(Drawn, u64)> {
    let mut all: Vec<(Drawn, u64)> = [1, 1 << 16, 1 << 20]
        .into_iter()
        .filter(|&few| few < most)
        .map(|few| (Drawn::Present, few))
        .collect();
    all.extend([(Drawn::Present, most), (Drawn::Ascending, most)]);
    all
}

/// All rows of a table.
pub(super) fn measure<T: Cell>(
    bench: &Bench<'_>,
    kind: Keys,
    tuples: u64,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let options = bench.options;
    let (key_type, size) = (<T as Key>::TYPE.to_string(), size_name(tuples));
    let mut keys = kind.make::<T>(tuples);
    for (layout, algorithms) in layouts(T::BYTES == 4) {
        options.told.step(&format!("{size} x {key_type}, {}: building {layout}", kind.name()))?;
        let made = tables::make_as(keys, layout, options.dir.as_deref())?;
        let names = [key_type.as_str(), &size];
        if let Some(case) = checked_case(bench, &made, kind, names, report)? {
            for algorithm in algorithms {
                let filed = section(algorithm).and_then(|tag| made.index.header().section(tag));
                let filed = filed.map(|section| section.entry.length.get());
                for (drawn, most) in asked_of(options.batch) {
                    let kind_of = kind_name(drawn);
                    let (count, asked) = (size_name(most), Asked::new(bench, algorithm, drawn, most));
                    let parts = [&key_type, &size, kind.name(), layout, kind_of, &count];
                    let asked = Asked { is_whole: most > 1, ..asked };
                    let mut row = case.row("structures", &parts, asked)?;
                    if let Some(bytes) = filed {
                        row = row.with("section_bytes", bytes);
                    }
                    bench.push(report, row)?;
                }
                case.table.release(algorithm);
            }
        }
        keys = made.keys;
    }
    Ok(())
}
