//! Pages of TEXT that say the right keys in another way than the one that there is.

use super::super::bases::Base;
use super::super::fault::{Fault, damaged};
use super::changed;
use pleach_format::section::Tag;
use pleach_fsck::Code;
use pleach_kit::mutate::{number, put};

/// Bytes of the symbols.
const SYMBOLS: usize = 2304;

/// Changes the only page, which has twelve keys, and makes places and length right.
fn page(name: &'static str, about: &'static str, change: fn(&mut [u8], &mut Vec<u8>)) -> Fault {
    page_of(Base::Valid("text-page"), name, about, change)
}

fn page_of(
    base: Base,
    name: &'static str,
    about: &'static str,
    change: fn(&mut [u8], &mut Vec<u8>),
) -> Fault {
    damaged(
        Code::Text,
        name,
        base,
        about,
        changed(Tag::TEXT, move |bytes, _, _| {
            let first = (SYMBOLS + 8usize).next_multiple_of(128);
            let (head, mut own) = (bytes[..first].to_vec(), bytes[first..bytes.len() - 64].to_vec());
            let mut head = head;
            change(&mut head, &mut own);
            head[SYMBOLS + 4..SYMBOLS + 8].copy_from_slice(&(own.len() as u32).to_le_bytes());
            *bytes = [head, own, vec![0; 64]].concat();
        }),
    )
}

/// Changes the page in the middle of several, which has 16 keys.
fn inside(name: &'static str, about: &'static str, change: fn(&mut Vec<u8>)) -> Fault {
    inside_of(Base::Text, name, about, change)
}

fn inside_of(base: Base, name: &'static str, about: &'static str, change: fn(&mut Vec<u8>)) -> Fault {
    damaged(
        Code::Text,
        name,
        base,
        about,
        changed(Tag::TEXT, move |bytes, keys, _| {
            let pages = keys.div_ceil(16) as usize;
            let first = (SYMBOLS + 4 * (pages + 1)).next_multiple_of(128);
            let place = |bytes: &[u8], page: usize| number(bytes, SYMBOLS + 4 * page, 4) as usize;
            let own = first + place(bytes, 1)..first + place(bytes, 2);
            let mut page = bytes[own.clone()].to_vec();
            change(&mut page);
            for after in 2..=pages {
                let moved = place(bytes, after) + page.len() - own.len();
                put(bytes, SYMBOLS + 4 * after, 4, moved as u64);
            }
            bytes.splice(own, page);
        }),
    )
}

/// Takes a byte less from the head than could be, for one of the first keys behind it.
fn share_less(own: &mut Vec<u8>, followers: usize) {
    // The first key after the head that shares more than the base, and has a rest.
    let base = usize::from(u16::from_le_bytes([own[2], own[3]]));
    let follower = (0..followers).find(|at| own[21 + at] > 0 && own[51 + at] > 0).expect("a follower");
    let head_bytes = usize::from(u16::from_le_bytes([own[0], own[1]]));
    let shared = base + usize::from(own[21 + follower]) - 1;
    let byte = own[66 + shared];
    let before: usize = (0..follower).map(|at| usize::from(own[51 + at]).saturating_sub(1)).sum();
    let at = 66 + head_bytes + before;
    let first = own[36 + follower];
    own[21 + follower] -= 1;
    own[36 + follower] = byte;
    own[51 + follower] += 2;
    // An escape stands for the byte that was the first.
    own.splice(at..at, [255, first]);
}

/// Place of the length of the last follower, of eleven.
const LAST_LENGTH: usize = 51 + 10;

pub(super) fn faults() -> Vec<Fault> {
    vec![
        page("text-wide", "Lengths of two bytes that have room in one.", |_, own| {
            own[4] |= 1;
            let lengths: Vec<u8> = own[51..66].iter().flat_map(|&length| [length, 0]).collect();
            own.splice(51..66, lengths);
        }),
        page("text-rest", "A byte behind the codes of the last key.", |_, own| own.push(0)),
        page("text-escape", "An escape at the end of the codes, behind which no byte is.", |_, own| {
            assert_eq!(own[4] & 2, 0, "codes");
            own[LAST_LENGTH] += 1;
            own.push(255);
        }),
        page("text-no-symbol", "A code at the end of the codes that has no symbol.", |head, own| {
            assert_eq!((own[4] & 2, head[254]), (0, 0), "codes, and a code without a symbol");
            own[LAST_LENGTH] += 1;
            own.push(254);
        }),
        page("text-symbol-late", "A symbol behind codes that have none.", |head, _| head[254] = 1),
        page("text-symbol-long", "A symbol of nine bytes behind codes that have none.", |head, _| {
            head[254] = 9
        }),
        page("text-symbol-escape", "The escape has a symbol.", |head, _| head[255] = 1),
        page("text-symbol-rest", "A byte behind a symbol is not zero.", |head, _| {
            head[256 + 8 * 254 + 7] = 1;
        }),
        page("text-symbol-first", "The first byte of no symbol is not zero.", |head, _| {
            head[256 + 8 * 254] = 1;
        }),
        page("text-base", "A key shares more with the head than all do, in its own bytes.", |_, own| {
            // The base is one less, and all keys share one byte more beyond it.
            let base = u16::from_le_bytes([own[2], own[3]]) - 1;
            own[2..4].copy_from_slice(&base.to_le_bytes());
            own[21..32].iter_mut().for_each(|shared| *shared += 1);
        }),
        inside("text-inside-flags", "A flag that there is not, in a page inside.", |own| own[4] |= 4),
        inside("text-inside-wide", "A page inside with lengths of two bytes that have room in one.", |own| {
            own[4] |= 1;
            let lengths: Vec<u8> = own[51..66].iter().flat_map(|&length| [length, 0]).collect();
            own.splice(51..66, lengths);
        }),
        inside("text-inside-rest", "A byte behind the last key of a page inside.", |own| own.push(0)),
        inside("text-inside-escape", "An escape at the end of a page inside.", |own| {
            own[65] += 1;
            own.push(255);
        }),
        inside("text-inside-no-symbol", "A code without a symbol at the end of a page inside.", |own| {
            own[65] += 1;
            own.push(254);
        }),
        inside("text-inside-base", "A base that is one less, and keys that share one byte more.", |own| {
            let base = u16::from_le_bytes([own[2], own[3]]) - 1;
            own[2..4].copy_from_slice(&base.to_le_bytes());
            own[21..36].iter_mut().for_each(|shared| *shared += 1);
        }),
        inside("text-inside-share", "A key inside does not share with the head all that it could.", |own| {
            share_less(own, 15);
        }),
        inside_of(Base::Runs, "text-inside-first", "A first byte of a rest that is empty.", |own| {
            assert_eq!(own[51], 0, "a key that is equal to the head");
            own[36] = b'x';
        }),
        page_of(
            Base::TextPage,
            "text-share",
            "A key does not share with the head all that it could.",
            |_, own| share_less(own, 8),
        ),
    ]
}
