//! The parameters of the section FAST ([`FastParameters`]).
//!
//! The number of keys is the element count of the entry. Stored numbers are checked: forged parameters give
//! `None`.

use super::Geometry;
use super::paged::{Form, Paged};
use crate::section::{FastParameters, Parameters};

const LINE_BYTES: u32 = 64;

/// Returns the parameters for the section table. Depths above 255 do not fit, and no tree has them.
#[must_use]
pub fn store(geometry: &Geometry, form: Form) -> Parameters {
    let parameters = FastParameters {
        line_bytes: LINE_BYTES.into(),
        word_bytes: geometry.key_bytes.into(),
        levels: geometry.levels().into(),
        form: form as u8,
        d_k: geometry.d_k as u8,
        d_l: geometry.d_l as u8,
        d_p: geometry.d_p as u8,
        padded: u8::from(geometry.padded) | u8::from(geometry.aligned) << 1,
        reserved: [0; 47],
    };
    parameters.into()
}

/// Reads the shape of a section of `keys` elements from parameters as written by [`store`]. Returns `None` for
/// anything else.
#[must_use]
pub fn load(stored: &Parameters, keys: u64) -> Option<(Geometry, Form)> {
    let parameters = FastParameters::from(*stored);
    let form = *Form::ALL.get(usize::from(parameters.form))?;
    let geometry = Geometry {
        keys,
        key_bytes: parameters.word_bytes.get(),
        d_k: parameters.d_k.into(),
        d_l: parameters.d_l.into(),
        d_p: parameters.d_p.into(),
        padded: parameters.padded & 1 == 1,
        aligned: parameters.padded & 2 == 2,
    };
    let sound =
        if form == Form::Full { geometry.tree().is_some() } else { Paged::new(geometry, form).is_some() };
    (sound && store(&geometry, form) == *stored).then_some((geometry, form))
}
