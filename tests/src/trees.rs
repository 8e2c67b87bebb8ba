//! Files whose FAST tree is replaced by one of another form or shape.

use crate::mutate::{contents, header};
use crate::naive;
use pleach_builder::classic::{Compressed, TreeKey, Vectors};
use pleach_format::Word;
use pleach_format::classic::paged::{Form, Prefix};
use pleach_format::classic::section::{load, store};
use pleach_format::classic::{Geometry, TreeWord};
use pleach_format::section::Tag;

/// A compressed tree.
pub fn compressed<W: TreeKey>(form: Form) -> impl Fn(&[W], &Geometry) -> (Form, Vec<u8>) {
    move |keys, geometry| {
        let how = (form, Prefix::Noncontiguous);
        let planned = Compressed::plan(keys, geometry, how, Vectors::Best).expect("a plan");
        let mut bytes = vec![0; planned.bytes() as usize];
        planned.build(keys, &mut bytes).expect("builds");
        (form, bytes)
    }
}

/// The same file with another form of its classic tree.
pub fn with_compressed_tree<W: TreeWord + Word>(
    whole: &[u8],
    make: impl Fn(&[W], &Geometry) -> (Form, Vec<u8>),
) -> Vec<u8> {
    with_compressed_pages(whole, |full| full, make)
}

/// The same, of another shape.
pub fn with_compressed_pages<W: TreeWord + Word>(
    whole: &[u8],
    shape: impl Fn(Geometry) -> Geometry,
    make: impl Fn(&[W], &Geometry) -> (Form, Vec<u8>),
) -> Vec<u8> {
    let there = header(whole);
    let keys: Vec<W> = (0..there.tuples)
        .map(|rank| {
            let (line, slot) = there.geometry.place(rank);
            let at = there.line_offset(line) as usize + slot * <W as Word>::BYTES;
            <W as Word>::read(&whole[at..])
        })
        .collect();
    let mut contents = contents(whole);
    for (_, _, bytes, _, parameters) in contents.iter_mut().filter(|content| content.0 == Tag::FAST) {
        let (full, _) = load(parameters, there.tuples).expect("a tree");
        let full = shape(full);
        let (form, made) = make(&keys, &full);
        (*bytes, *parameters) = (made, store(&full, form));
    }
    naive::assemble(there.superblock, contents)
}
