//! Files whose classic tree is compressed: our builder writes none, but readers and `fsck` know them.

use crate::mutate::{contents, header};
use crate::naive;
use pleach_builder::classic::packed::DeltaKey;
use pleach_builder::classic::{Packed, Vectors, build_delta, build_partial};
use pleach_format::Word;
use pleach_format::classic::packed::{Form, Prefix};
use pleach_format::classic::section::{load, store};
use pleach_format::classic::{Geometry, TreeWord};
use pleach_format::section::Tag;

/// Pages of delta-compressed keys.
pub fn delta<W: DeltaKey>(keys: &[W], geometry: &Geometry) -> (Form, Vec<u8>) {
    let packed = Packed::delta(keys, geometry).expect("a plan");
    let mut bytes = vec![0; packed.bytes() as usize];
    build_delta(&packed, keys, Vectors::Best, &mut bytes).expect("builds");
    (packed.paged().form(), bytes)
}

/// Pages of partial keys.
pub fn partial(keys: &[u128], geometry: &Geometry) -> (Form, Vec<u8>) {
    let packed = Packed::partial(keys, geometry, Prefix::Noncontiguous).expect("a plan");
    let mut bytes = vec![0; packed.bytes() as usize];
    build_partial(&packed, keys, Vectors::Best, &mut bytes).expect("builds");
    (packed.paged().form(), bytes)
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
