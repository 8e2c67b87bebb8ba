//! A list of columns as bit fields of words, in the form that devices use: shifts and masks. It has no sign
//! extension, no floats as keys, and no ranks (a device counts from the beginning of a piece).

use super::column::{Kind, Leaf, Side};
use super::item::{Item, Part, Source, Values};
use pleach_format::{KeyType, Record};

/// Bits of a word: shifted right, masked, shifted left to their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField {
    /// True for bits of the value, false for bits of the key.
    pub of_value: bool,
    /// Low bits that are dropped.
    pub right: u32,
    /// Bits that are kept after the shift.
    pub mask: u64,
    /// Shift to the left after the mask.
    pub left: u32,
}

/// Both columns of a projection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitFields {
    /// Bit fields of the new key's word.
    pub key: Vec<BitField>,
    /// Bit fields of the new value's word.
    pub value: Vec<BitField>,
}

fn mask(bits: u32) -> u64 {
    u64::MAX.checked_shr(64 - bits.min(64)).unwrap_or(0)
}

/// Returns the field for `length` bits of an operand from bit `offset` on.
fn field(leaf: &Leaf, offset: u32, length: u32, left: u32) -> Option<BitField> {
    let of_value = match leaf.side {
        Side::Key => false,
        Side::Value => true,
        Side::Rank => return None,
    };
    if leaf.in_bytes || leaf.kind == Kind::U128 || leaf.kind.bits() == 0 || leaf.flip() != 0 {
        return None;
    }
    let right = u32::try_from(leaf.at.unwrap_or(0)).ok()? * 8 + offset;
    Some(BitField { of_value, right, mask: mask(length), left })
}

/// Returns the fields of parts side by side, `total` bits together, from bit `at` on.
fn side_by_side(parts: &[Part], total: u32, at: u32) -> Option<Vec<BitField>> {
    let mut end = total;
    parts
        .iter()
        .map(|part| {
            end = end.checked_sub(part.length)?;
            field(&part.leaf, part.offset, part.length, at + end)
        })
        .collect()
}

fn of_key(item: &Item, key_type: KeyType) -> Option<Vec<BitField>> {
    match &item.what {
        Source::Bits(parts, total) => side_by_side(parts, *total, 0),
        Source::Whole(leaf) if leaf.side == Side::Key => {
            let whole = BitField { of_value: false, right: 0, mask: u64::MAX, left: 0 };
            matches!(key_type.bytes(), 4 | 8).then(|| vec![whole])
        }
        Source::Whole(leaf) => {
            let is_unsigned = matches!(leaf.kind, Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64);
            is_unsigned.then(|| field(leaf, 0, leaf.kind.bits(), 0).map(|field| vec![field])).flatten()
        }
    }
}

/// Returns the fields of an item as a value of `bits` bits, from bit `at` on.
fn of_value(item: &Item, bits: u32, at: u32) -> Option<Vec<BitField>> {
    match &item.what {
        Source::Bits(parts, total) => side_by_side(parts, *total, at),
        Source::Whole(leaf) => {
            let is_signed = leaf.kind.bounds().is_some_and(|bounds| bounds.0 < 0);
            // A float key is encoded; a narrow signed number would be extended.
            let is_as_it_stands = (leaf.side == Side::Value || !matches!(leaf.kind, Kind::F32 | Kind::F64))
                && (!is_signed || leaf.kind.bits() == bits);
            is_as_it_stands.then(|| field(leaf, 0, leaf.kind.bits(), at).map(|field| vec![field])).flatten()
        }
    }
}

fn of_record(record: &Record, items: &[Item]) -> Option<Vec<BitField>> {
    if record.storage().is_bytes() {
        return None;
    }
    let mut all = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let bits = 8 * record.fields()[index].kind.bytes() as u32;
        all.extend(of_value(item, bits, 8 * record.offset(index) as u32)?);
    }
    Some(all)
}

/// Returns the bit fields of a projection, if they can express it.
pub(super) fn parts(key: &Item, key_type: KeyType, values: &Values) -> Option<BitFields> {
    let key = of_key(key, key_type)?;
    let value = match values {
        Values::None => Vec::new(),
        Values::Same(value_type, _, _) => {
            let whole = BitField { of_value: true, right: 0, mask: u64::MAX, left: 0 };
            if value_type.is_bytes() { return None } else { vec![whole] }
        }
        Values::One(value_type, _) if value_type.is_bytes() => return None,
        Values::One(value_type, item) => of_value(item, 8 * value_type.bytes() as u32, 0)?,
        Values::Record(record, items) => of_record(record, items)?,
    };
    Some(BitFields { key, value })
}
