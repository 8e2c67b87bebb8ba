//! The scalar search in FAST sections, over trees that a slow builder made slot by slot, and over forged bytes.

use pleach_format::classic::TreeWord;
use pleach_format::classic::paged::Form;
use pleach_format::classic::search::Section;
use pleach_format::view::Bytes;
use pleach_kit::classic::{Case, each_dropped_nibble, each_forged, each_full, each_packed};

/// The gaps of all queries; lines are whole.
fn gaps<W: TreeWord>(case: &Case<'_, W>) -> Vec<u64> {
    let bytes = &case.bytes[..case.bytes.len() / 64 * 64];
    let section = Section { geometry: case.geometry, form: case.form, offset: 0, bytes: bytes.len() as u64 };
    let gap = |query: &W| section.gap(&Bytes(bytes), query.widen()).expect("inside");
    case.queries.iter().map(gap).collect()
}

fn check<W: TreeWord>(case: &Case<'_, W>) {
    let last_gap = case.geometry.tree().expect("sound").last_gap();
    for ((gap, rank), query) in gaps(case).into_iter().zip(case.ranks()).zip(case.queries) {
        // In the last gap of 2^k keys the last key decides.
        let exact = gap == rank || gap == last_gap && rank == gap + 1;
        assert!(exact || matches!(case.form, Form::Partial | Form::Auto), "{} {query:?}", case.what);
        assert!(gap <= case.geometry.keys);
    }
}

#[test]
fn full_trees() {
    each_full(check::<u32>);
    each_full(check::<u64>);
    each_full(check::<u128>);
}

#[test]
fn compressed_trees() {
    let forms = [Form::Delta, Form::Partial, Form::Auto];
    each_packed(&[Form::Delta, Form::Auto], check::<u32>);
    each_packed(&forms, check::<u64>);
    each_packed(&forms, check::<u128>);
    each_dropped_nibble(|case| {
        let ranks = case.ranks();
        let exact = gaps(case).iter().zip(&ranks).filter(|(gap, rank)| gap == rank).count();
        assert!(case.form == Form::Auto || exact == ranks.len(), "{}", case.what);
    });
}

#[test]
fn forged_trees() {
    fn inside<W: TreeWord>(case: &Case<'_, W>) {
        assert!(gaps(case).iter().all(|&gap| gap <= case.geometry.keys), "{}", case.what);
    }
    each_forged(inside, inside);
}
