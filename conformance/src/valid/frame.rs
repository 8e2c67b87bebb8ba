//! Files that say more than this version knows, in places that readers skip.

use super::cells::pairs;
use crate::plan::Plan;
use pleach_format::section::{Parameters, Tag};
use pleach_format::version::{self, VERSION_MAJOR, VERSION_MINOR};
use pleach_format::{KeyType, ValueType};
use pleach_kit::generate::mix;
use pleach_kit::mutate::{contents, header, put, reseal_head};
use pleach_kit::naive::{Content, assemble};

const TYPES: (KeyType, ValueType) = (KeyType::U32, ValueType::U32);
/// Offsets in the superblock.
const MINOR: usize = 18;
const WRITER_FEATURES: usize = 32;
const IGNORABLE_FEATURES: usize = 40;
const GENERATION: usize = 64;
const LINEAGE: usize = 296;
const RESERVED: usize = 1000;

fn plan(name: &str, about: &str) -> Plan {
    Plan::new(name, TYPES, pairs(20, |at| mix(at) >> 32, |at| at), about)
        .layout("lines")
        .names("id", "number")
}

/// Adds sections.
fn with_sections(bytes: &[u8], sections: impl IntoIterator<Item = Content>) -> Vec<u8> {
    let mut all = contents(bytes);
    all.extend(sections);
    assemble(header(bytes).superblock, all)
}

/// Adds a record to META.
pub(crate) fn with_record(bytes: &[u8], tag: u16, text: &str) -> Vec<u8> {
    let mut all = contents(bytes);
    for (_, _, meta, records, _) in all.iter_mut().filter(|content| content.0 == Tag::META) {
        meta.extend(tag.to_le_bytes());
        meta.extend([0, 0]);
        meta.extend((text.len() as u32).to_le_bytes());
        meta.extend(text.as_bytes());
        meta.resize(meta.len().next_multiple_of(8), 0);
        *records += 1;
    }
    assemble(header(bytes).superblock, all)
}

pub(super) fn plans() -> Vec<Plan> {
    let content = |tag: &[u8; 4]| -> Content { (Tag(*tag), false, vec![7; 5000], 3, Parameters([9; 64])) };
    let nothing = |number: usize| -> Content {
        let tag = format!("X{number:03}").into_bytes();
        (Tag(tag.try_into().expect("four bytes")), false, Vec::new(), 0, Parameters::NONE)
    };
    let mut all = vec![
        plan("section-unknown", "A section that nobody knows yet, and that readers skip.")
            .change(move |bytes| with_sections(&bytes, [content(b"NEWS")])),
        plan("section-private", "A private section, whose tag begins with x.")
            .change(move |bytes| with_sections(&bytes, [content(b"xkit")])),
        plan("section-31", "As many sections as the table holds; most of them are empty.")
            .change(move |bytes| with_sections(&bytes, (4..31).map(nothing))),
        plan("meta-unknown", "Records of META that nobody knows yet, and a private one.")
            .change(|bytes| with_record(&with_record(&bytes, 99, "later"), 40_000, "private")),
        plan("generation", "The seventh generation of an index, with its lineage.").change(|mut bytes| {
            put(&mut bytes, GENERATION, 8, 7);
            bytes[LINEAGE..LINEAGE + 16].fill(0xAB);
            reseal_head(&mut bytes);
            bytes
        }),
        plan("features", "Features that a reader need not know.").change(|mut bytes| {
            put(&mut bytes, WRITER_FEATURES, 8, 1 << 40);
            put(&mut bytes, IGNORABLE_FEATURES, 8, 1 << 63 | 1);
            reseal_head(&mut bytes);
            bytes
        }),
    ];
    // Before 1.0 a reader opens only its own version.
    if version::reads(VERSION_MAJOR, VERSION_MINOR + 3) {
        all.push(
            plan("later-minor", "A later minor version: reserved bytes of the superblock are set.").change(
                |mut bytes| {
                    put(&mut bytes, MINOR, 2, u64::from(VERSION_MINOR) + 3);
                    put(&mut bytes, IGNORABLE_FEATURES, 8, 1 << 5);
                    put(&mut bytes, RESERVED, 8, 0x1234_5678_9ABC_DEF0);
                    reseal_head(&mut bytes);
                    bytes
                },
            ),
        );
    }
    all
}
