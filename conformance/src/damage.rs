//! Damage of chance: files of chance with a change that a check of the whole file finds, under right sums.
//!
//! What is wrong with such a file is said by the check of the product. So these files show where a reader and the
//! product differ, and not what is right; the broken files of the kit show that.

use crate::case::{ANY, Case, Sheet};
use crate::plan::level;
use crate::random;
use crate::requests;
use crate::serve::cell;
use anyhow::Result;
use pleach::{AnyMap, FsckOptions, Index, OpenError, OpenOptions, Verify, fsck};
use pleach_format::section::Tag;
use pleach_fsck::Code;
use pleach_kit::generate::Random;
use pleach_kit::mutate::{content, entry_at, header, reseal};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Files of which damaged ones are made.
const PLANS: u64 = 36;
/// Changes that are tried of a section, and of one whose checks have many conditions.
const CHANGES: u64 = 3;
const CHANGES_MANY: u64 = 16;
/// Changes that are tried of what the section table says of a section.
const CHANGES_ENTRY: u64 = 2;
/// Requests about a damaged file, beside its check: each has an answer, whatever it is.
const REQUESTS: usize = 5;

/// Sections that can be changed. Sums are made right, and META decides on the other ones.
const TAGS: [Tag; 14] = [
    Tag::LINE,
    Tag::MASK,
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

/// Bytes of a node of TRIE, and where its slices begin.
const NODE_BYTES: usize = 128;
const SLICES_AT: usize = 48;
/// Bytes at the start of TEXT, before the places of its pages.
const SYMBOLS_BYTES: usize = 2304;
/// Bytes of a page of TEXT before its head, if no length needs two of them.
const PAGE_HEAD_BYTES: usize = 66;
/// Where an entry of the section table has its number of elements, and its parameters.
const ELEMENTS_AT: usize = 24;
const PARAMETERS_AT: usize = 56;

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
        let ends = plan.model_of(&whole).outermost();
        for tag in TAGS {
            if there.section(tag).is_none() {
                continue;
            }
            let is_many = matches!(tag, Tag::GRID | Tag::KEYS | Tag::TAIL);
            let changes = match tag {
                _ if content(&whole, tag).is_empty() => 0,
                Tag::TEXT | Tag::TRIE => 4 * CHANGES_MANY,
                _ if is_many => CHANGES_MANY,
                _ => CHANGES,
            };
            for change in 0..changes + CHANGES_ENTRY {
                let is_entry = change >= changes;
                let mut bytes = whole.clone();
                if is_entry {
                    damage_entry(&mut bytes, entry_at(&whole, tag), &mut random);
                } else {
                    damage(&mut bytes[content(&whole, tag)], tag, &mut random);
                }
                if bytes == whole {
                    continue;
                }
                reseal(&mut bytes);
                let mut requests = requests::of(&plan.model_of(&whole), 9);
                requests.retain(|request| request != "check");
                let from = random.below(requests.len().saturating_sub(REQUESTS).max(1) as u64) as usize;
                let requests = requests.into_iter().skip(from).take(REQUESTS);
                let what = if is_entry { "the section table, of " } else { "" };
                let sheet = Sheet {
                    level: level(&there).max(3),
                    about: format!("A change of chance in {what}{tag}. {}", plan.about),
                    rule: None,
                    code: None,
                    exchange: requests.map(|request| (request, ANY.to_owned())).collect(),
                };
                let name = format!("damage-{seed}-{number:03}-{}-{change}", format!("{tag}").to_lowercase());
                write_found(Case { name, sheet, bytes }, &ends, folder)?;
            }
        }
    }
    Ok(())
}

/// Changes some bytes of a section.
fn damage(bytes: &mut [u8], tag: Tag, random: &mut Random) {
    match random.below(4) {
        0 => exchange(bytes, random),
        1 => any_byte(bytes, random),
        _ => match field(bytes, tag, random) {
            Some(place) => change_number(&mut bytes[place], random),
            None => any_byte(bytes, random),
        },
    }
}

/// Changes a bit or a byte.
fn any_byte(bytes: &mut [u8], random: &mut Random) {
    let at = random.below(bytes.len() as u64) as usize;
    match random.below(4) {
        0 | 1 => bytes[at] ^= 1 << random.below(8),
        2 => bytes[at] = random.next() as u8,
        _ => bytes[at] = bytes[at].wrapping_add(1),
    }
}

/// Exchanges the bytes of two places of the section, or makes them equal.
fn exchange(bytes: &mut [u8], random: &mut Random) {
    let length = [1, 2, 4, 8, 16][random.below(5) as usize];
    let count = (bytes.len() / length) as u64;
    if count < 2 {
        return;
    }
    let one = random.below(count) as usize;
    // Mostly neighbours.
    let other = match random.below(3) {
        0 => random.below(count) as usize,
        _ if one == 0 => 1,
        _ => one - 1,
    };
    let is_copy = random.below(2) == 0;
    for byte in 0..length {
        let (one, other) = (one * length + byte, other * length + byte);
        if is_copy {
            bytes[one] = bytes[other];
        } else {
            bytes.swap(one, other);
        }
    }
}

/// Returns the place of a number that means something in itself: a field of a node or a page, or a word.
fn field(bytes: &[u8], tag: Tag, random: &mut Random) -> Option<Range<usize>> {
    let mut pick = |count: usize| random.below(count as u64) as usize;
    let (at, length) = match tag {
        Tag::TRIE => {
            let at = pick(bytes.len() / NODE_BYTES) * NODE_BYTES;
            let slots = usize::from(bytes[at + 2]).min(10);
            match pick(8) {
                0 => (at, 2),
                1 => (at + 2, 1),
                2 => (at + 3, 1),
                3..=5 => (at + 4 + 4 * pick(slots + 2), 4),
                _ => (at + SLICES_AT + 8 * pick(slots + 1), 8),
            }
        }
        Tag::TEXT => {
            // All places are of 4 bytes here. The pages begin where the next multiple of 128 is.
            let place = |page: usize| {
                let at = SYMBOLS_BYTES + 4 * page;
                bytes.get(at..at + 4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]) as usize)
            };
            let data = bytes.len().checked_sub(64)?;
            // The last place is the end of the last page.
            let last = (1..).take_while(|page| place(page - 1) < place(*page)).last()?;
            let page = pick(last);
            let at = (SYMBOLS_BYTES + 4 * (last + 1)).next_multiple_of(128) + place(page)?;
            if at + 81 > data {
                return None;
            }
            match pick(8) {
                0 => (SYMBOLS_BYTES + 4 * page, 4),
                1 => (at, 2),
                2 => (at + 2, 2),
                3 => (at + 4, 1),
                // Fingerprints, what followers share, their first bytes, their lengths.
                _ => (at + 5 + pick(PAGE_HEAD_BYTES - 5), 1),
            }
        }
        _ => {
            let length = [1, 2, 4, 8][pick(4)];
            (pick((bytes.len() / length).max(1)) * length, length)
        }
    };
    bytes.get(at..at + length).map(|_| at..at + length)
}

/// Changes a number a little, or makes it one that is special.
fn change_number(bytes: &mut [u8], random: &mut Random) {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    let number = u64::from_le_bytes(whole);
    let near = 1 + random.below(17);
    let changed = match random.below(8) {
        0 | 1 => number.wrapping_add(1),
        2 | 3 => number.wrapping_sub(1),
        4 => number.wrapping_add(near),
        5 => number.wrapping_sub(near),
        6 => [0, u64::MAX][random.below(2) as usize],
        _ => number ^ 1 << (8 * bytes.len() - 1),
    };
    bytes.copy_from_slice(&changed.to_le_bytes()[..bytes.len()]);
}

/// Changes a number of what the section table says of a section, but not where the section is.
fn damage_entry(bytes: &mut [u8], entry: usize, random: &mut Random) {
    let at = match random.below(8) {
        0 => ELEMENTS_AT,
        place => PARAMETERS_AT + 4 * (place as usize - 1),
    };
    change_number(&mut bytes[entry + at..entry + at + 4], random);
}

/// Returns the first and the last key of a file, if it tells them.
fn outermost(path: &Path) -> Result<[Option<String>; 2]> {
    let map = AnyMap::from_index(Arc::new(Index::options().verify(Verify::Header).open(path)?))?;
    let key = |rank| Some(cell(&map.select(rank).ok()??.0).to_string());
    Ok([key(0), key(map.len().saturating_sub(1))])
}

/// Writes a file if it is refused, or a check finds that it is damaged.
fn write_found(mut case: Case, ends: &[Option<String>; 2], folder: &Path) -> Result<()> {
    let path = folder.join("broken").join(format!("{}.pleach", case.name));
    fs::create_dir_all(folder.join("broken"))?;
    fs::write(&path, &case.bytes)?;
    let options: OpenOptions = Index::options().verify(Verify::Header);
    let found: Vec<Code> = match options.open(&path) {
        Ok(_) => fsck(&path, &FsckOptions::default())?.findings.iter().map(|finding| finding.code).collect(),
        Err(OpenError::Format { source, .. }) => {
            case.sheet.rule = source.rule().map(|rule| rule.name().to_owned());
            Vec::new()
        }
        Err(error) => return Err(error.into()),
    };
    if case.sheet.rule.is_some() {
        case.sheet.exchange.clear();
        return case.write(folder);
    }
    // Where parts of a file differ, either of them may be the one to compare the outermost keys with.
    let is_clear = if found.contains(&Code::MinMax) { found.len() == 1 } else { outermost(&path)? == *ends };
    let Some(code) = found.first().filter(|_| is_clear) else {
        fs::remove_file(&path)?;
        return Ok(());
    };
    case.sheet.code = Some(code.name().to_owned());
    case.sheet.exchange.push(("check".to_owned(), format!("damaged {code}")));
    case.write(folder)
}
