//! The geometry of the section FAST in its 64 bytes of the section table.
//!
//! `line_bytes`, `key_bytes` and `levels` have the same meaning as in other sections, and N is the element
//! count of the entry. The first bytes of `encodings` are: form, d_K, d_L, d_P, padded, bytes per word of the
//! first page. Stored numbers are checked: a forged geometry gives `None`.

use super::Geometry;
use super::packed::Form;
use crate::section::Geometry as Stored;
use zerocopy::little_endian::U32;

const LINE_BYTES: u32 = 64;

/// Returns the geometry for the section table. Depths above 255 do not fit, and no tree has them.
#[must_use]
pub fn store(geometry: &Geometry, form: Form) -> Stored {
    let (code, first) = match form {
        Form::Full => (0, 0),
        Form::Delta => (1, 0),
        Form::Partial { first } => (2, first as u8),
    };
    let mut stored = Stored {
        line_bytes: U32::new(LINE_BYTES),
        key_bytes: U32::new(geometry.key_bytes),
        levels: U32::new(geometry.levels()),
        ..Stored::default()
    };
    let depths = [geometry.d_k as u8, geometry.d_l as u8, geometry.d_p as u8];
    stored.encodings[0] = code;
    stored.encodings[1..4].copy_from_slice(&depths);
    stored.encodings[4] = u8::from(geometry.padded);
    stored.encodings[5] = first;
    stored
}

/// Reads the geometry of a section of `keys` elements, as written by [`store`]. Returns `None` for anything
/// else.
#[must_use]
pub fn load(stored: &Stored, keys: u64) -> Option<(Geometry, Form)> {
    let [code, d_k, d_l, d_p, padded, first, ..] = stored.encodings;
    let form = match (code, first) {
        (0, 0) => Form::Full,
        (1, 0) => Form::Delta,
        (2, 4 | 8 | 16) => Form::Partial { first: u32::from(first) },
        _ => return None,
    };
    let geometry = Geometry {
        keys,
        key_bytes: stored.key_bytes.get(),
        d_k: d_k.into(),
        d_l: d_l.into(),
        d_p: d_p.into(),
        padded: padded == 1,
    };
    let sound = if form == Form::Full {
        geometry.tree().is_some()
    } else {
        super::packed::Paged::new(geometry, form).is_some()
    };
    (sound && store(&geometry, form) == *stored).then_some((geometry, form))
}
