//! More broken files, which are made when they are wanted: one for each check that a change of a reader could lose.
//!
//! `readers/mutate` changes a reader in one place after the other. What these files show is what that found missing.

mod bytes;
mod columns;
mod frame;
mod masks;
mod meta;
mod shapes;
mod text;
mod trees;

use super::fault::{Fault, sealed};
use pleach_format::section::Tag;
use pleach_kit::mutate::{contents, header};
use pleach_kit::naive::{Content, assemble};

pub(super) fn faults() -> Vec<Fault> {
    let mut all = shapes::faults();
    all.extend(masks::faults());
    all.extend(frame::faults());
    all.extend(columns::faults());
    all.extend(meta::faults());
    all.extend(text::faults());
    all.extend(bytes::faults());
    all.extend(trees::faults());
    all
}

/// Makes the file again of other sections.
fn again(change: impl Fn(&mut Vec<Content>) + 'static) -> impl Fn(&mut Vec<u8>) + 'static {
    move |b| {
        let mut all = contents(b);
        change(&mut all);
        *b = assemble(header(b).superblock, all);
    }
}

/// Makes the file again with another content, number of elements and parameters of a section.
fn changed(
    tag: Tag,
    change: impl Fn(&mut Vec<u8>, &mut u64, &mut [u8; 64]) + 'static,
) -> impl Fn(&mut Vec<u8>) + 'static {
    again(move |all| {
        assert!(all.iter().any(|content| content.0 == tag), "a section to be changed");
        for (_, _, bytes, elements, parameters) in all.iter_mut().filter(|content| content.0 == tag) {
            change(bytes, elements, &mut parameters.0);
        }
    })
}

/// Changes bytes under right sums.
fn edit(change: impl Fn(&mut Vec<u8>) + 'static) -> impl Fn(&mut Vec<u8>) + 'static {
    sealed(change)
}
