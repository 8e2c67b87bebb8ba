//! Damage of chance: files of chance with a change that a check of the whole file finds, under right sums.
//!
//! What is wrong with such a file is said by the check of the product. So these files show where a reader and the
//! product differ, and not what is right; the broken files of the kit show that.

use crate::case::{ANY, Case, Sheet};
use crate::plan::level;
use crate::random;
use crate::requests;
use anyhow::Result;
use pleach::{FsckOptions, Index, OpenOptions, Verify, fsck};
use pleach_format::section::Tag;
use pleach_fsck::Code;
use pleach_kit::generate::Random;
use pleach_kit::mutate::{content, header, reseal};
use std::fs;
use std::path::Path;

/// Files of which damaged ones are made.
const PLANS: u64 = 36;
/// Changes that are tried of a section, and of one whose checks have many conditions.
const CHANGES: u64 = 3;
const CHANGES_MANY: u64 = 16;
/// Requests about a damaged file, beside its check.
const REQUESTS: usize = 2;

/// Sections that can be changed. Sums are made right, and META decides on the other ones.
const TAGS: [Tag; 13] = [
    Tag::LINE,
    Tag::SPINE,
    Tag::GRID,
    Tag::KEYS,
    Tag::VALUES,
    Tag::CODES,
    Tag::TAIL,
    Tag::TEXT,
    Tag::TRIE,
    Tag::PACK,
    Tag::FAST,
    Tag::HARMONIA,
    Tag::BTREE,
];

/// Writes damaged files that depend on a seed.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write(seed: u64, folder: &Path) -> Result<()> {
    for number in 0..PLANS {
        let plan = random::rich(seed, number);
        let whole = plan.build();
        let mut random = Random(seed.wrapping_mul(0xD134_2543_DE82_EF95) ^ number << 24);
        let there = header(&whole);
        for tag in TAGS {
            if there.section(tag).is_none() || content(&whole, tag).is_empty() {
                continue;
            }
            let is_many = matches!(tag, Tag::GRID | Tag::KEYS | Tag::TAIL);
            let changes = match tag {
                Tag::TEXT | Tag::TRIE => 4 * CHANGES_MANY,
                _ if is_many => CHANGES_MANY,
                _ => CHANGES,
            };
            for change in 0..changes {
                let mut bytes = whole.clone();
                damage(&mut bytes[content(&whole, tag)], &mut random);
                if bytes == whole {
                    continue;
                }
                reseal(&mut bytes);
                let requests = requests::of(&plan.model_of(&whole), 1).into_iter().take(REQUESTS);
                let sheet = Sheet {
                    level: level(&there).max(3),
                    about: format!("A change of chance in {tag}. {}", plan.about),
                    rule: None,
                    code: None,
                    exchange: requests.map(|request| (request, ANY.to_owned())).collect(),
                };
                let name = format!("damage-{seed}-{number:03}-{}-{change}", format!("{tag}").to_lowercase());
                write_found(Case { name, sheet, bytes }, folder)?;
            }
        }
    }
    Ok(())
}

/// Changes some bytes of a section.
fn damage(bytes: &mut [u8], random: &mut Random) {
    let at = random.below(bytes.len() as u64) as usize;
    match random.below(8) {
        // A bit, a byte, or the next number.
        0 | 1 => bytes[at] ^= 1 << random.below(8),
        2 => bytes[at] = random.next() as u8,
        3 => bytes[at] = bytes[at].wrapping_add(1),
        4 => bytes[at] = bytes[at].wrapping_sub(1),
        // Bytes of two places of the section, exchanged or equal.
        kind => {
            let length = [1, 2, 4, 8, 16][random.below(5) as usize];
            let count = (bytes.len() / length) as u64;
            if count < 2 {
                return;
            }
            let one = random.below(count) as usize;
            // Mostly neighbours.
            let other = match kind {
                5 => random.below(count) as usize,
                _ if one == 0 => 1,
                _ => one - 1,
            };
            for byte in 0..length {
                let (one, other) = (one * length + byte, other * length + byte);
                if kind == 6 {
                    bytes[one] = bytes[other];
                } else {
                    bytes.swap(one, other);
                }
            }
        }
    }
}

/// Writes a file if it opens, and a check finds that it is damaged.
fn write_found(mut case: Case, folder: &Path) -> Result<()> {
    let path = folder.join("broken").join(format!("{}.pleach", case.name));
    fs::create_dir_all(folder.join("broken"))?;
    fs::write(&path, &case.bytes)?;
    let options: OpenOptions = Index::options().verify(Verify::Header);
    let found: Vec<Code> = match options.open(&path) {
        Ok(_) => fsck(&path, &FsckOptions::default())?.findings.iter().map(|finding| finding.code).collect(),
        Err(_) => Vec::new(),
    };
    // Where columns and lines differ, either of them may be the one to compare the outermost keys with.
    let is_clear = found.len() == 1 || !found.contains(&Code::MinMax);
    let Some(code) = found.first().filter(|_| is_clear) else {
        fs::remove_file(&path)?;
        return Ok(());
    };
    case.sheet.code = Some(code.name().to_owned());
    case.sheet.exchange.push(("check".to_owned(), format!("damaged {code}")));
    case.write(folder)
}
