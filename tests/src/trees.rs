//! Files whose classic tree is compressed: our builder writes none, but readers and `fsck` know them.

use crate::mutate::{content, header};
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
    let there = header(whole);
    let keys: Vec<W> = (0..there.tuples)
        .map(|rank| {
            let (line, slot) = there.geometry.place(rank);
            let at = there.line_offset(line) as usize + slot * <W as Word>::BYTES;
            <W as Word>::read(&whole[at..])
        })
        .collect();
    let sections = there.sections.iter().filter(|it| !matches!(it.entry.tag, Tag::SUMS | Tag::SUM2));
    let contents = sections.map(|section| {
        let entry = &section.entry;
        let bytes = &whole[content(whole, entry.tag)];
        let (mut bytes, mut geometry) = (bytes.to_vec(), entry.geometry);
        if entry.tag == Tag::FAST {
            let (full, _) = load(&geometry, there.tuples).expect("a tree");
            let (form, made) = make(&keys, &full);
            (bytes, geometry) = (made, store(&full, form));
        }
        (entry.tag, entry.flags.get() == 1, bytes, entry.elements.get(), geometry)
    });
    naive::assemble(there.superblock, contents.collect())
}
