//! Values that are kept once: the different values of a table, and their codes.
//!
//! Values come in the order of the keys. Each new one gets the next code, so the codes depend on nothing but
//! the tuples. The values are held in memory. Unless a dictionary was asked for, the work ends at a limit that
//! is the same for all builds: it neither depends on the memory nor exceeds it. Then, and where the dictionary
//! would not be shorter, the values are stored as they are.

use crate::columns;
use crate::error::BuildError;
use crate::layout::Values;
use crate::options::BuildOptions;
use crate::records::Sorted;
use crate::section::Extra;
use pleach_format::ValueType;
use pleach_format::codes::{CODED_BYTES_MAX, CODED_VALUES_MAX, code_bytes, is_shorter};
use pleach_format::column::ColumnGeometry;
use pleach_format::section::Tag;
use std::collections::HashMap;

/// Maximum number of values of a dictionary that was not asked for.
const AUTO_VALUES_MAX: u64 = 1 << 16;
/// Maximum bytes of these values.
const AUTO_BYTES_MAX: u64 = 16 << 20;

/// The different values of a table.
pub(crate) struct Once {
    is_asked: bool,
    /// Maximum bytes of the values, and of a dictionary that was asked for 64 more for each.
    limit_bytes: u64,
    codes: HashMap<Box<[u8]>, u32>,
    /// Bytes of all values.
    bytes: u64,
    /// Bytes of each value; 0 if they vary.
    element_bytes: u64,
}

impl Once {
    /// Returns no values; `None` if they are to be stored as they are.
    pub(crate) fn new(options: &BuildOptions, value_type: ValueType) -> Option<Self> {
        let is_asked = match options.values {
            Values::Plain => return None,
            // Columns are asked for to be read as they are.
            Values::Auto if options.columns => return None,
            Values::Auto => false,
            Values::Dictionary => true,
        };
        let limit_bytes = if is_asked { options.memory_bytes / 4 } else { AUTO_BYTES_MAX };
        let element_bytes = value_type.bytes() as u64;
        let this = Self { is_asked, limit_bytes, codes: HashMap::new(), bytes: 0, element_bytes };
        value_type.is_bytes().then_some(this)
    }

    /// Adds the value of the next tuple. Returns false if there are too many for a dictionary that was not
    /// asked for.
    pub(crate) fn add(&mut self, value: &[u8]) -> Result<bool, BuildError> {
        if self.codes.contains_key(value) {
            return Ok(true);
        }
        let count = self.codes.len() as u64;
        let bytes = self.bytes + value.len() as u64;
        if !self.is_asked {
            if count == AUTO_VALUES_MAX || bytes > self.limit_bytes {
                return Ok(false);
            }
        } else if bytes + 64 * (count + 1) > self.limit_bytes {
            let what = "bytes of different values, 64 more for each, in a quarter of the memory";
            return Err(BuildError::TooManyValues { what, limit: self.limit_bytes });
        } else if count == CODED_VALUES_MAX {
            return Err(BuildError::TooManyValues { what: "different values", limit: CODED_VALUES_MAX });
        } else if bytes > CODED_BYTES_MAX {
            return Err(BuildError::TooManyValues {
                what: "bytes of different values",
                limit: CODED_BYTES_MAX,
            });
        }
        self.bytes = bytes;
        self.codes.insert(value.into(), count as u32);
        Ok(true)
    }

    /// Decides, after the last tuple: returns `None` if the values are shorter as they are.
    pub(crate) fn decided(self, tuples: u64, value_bytes: u64) -> Option<Self> {
        let all = ColumnGeometry::of_elements(tuples, self.element_bytes, value_bytes)?;
        (self.is_asked || is_shorter(self.shape()?, all)).then_some(self)
    }

    /// Returns the shape of the column of values.
    fn shape(&self) -> Option<ColumnGeometry> {
        ColumnGeometry::of_elements(self.codes.len() as u64, self.element_bytes, self.bytes)
    }

    /// Makes the sections of the values and of their codes.
    pub(crate) fn sections<'a>(&'a self, sorted: &'a Sorted<'a>, tuples: u64) -> Option<[Extra<'a>; 2]> {
        let shape = self.shape()?;
        let mut values: Vec<(&[u8], u32)> =
            self.codes.iter().map(|(value, &code)| (&**value, code)).collect();
        values.sort_unstable_by_key(|&(_, code)| code);
        let width = code_bytes(shape.elements);
        Some([
            columns::section(Tag::VALUES, true, shape, move |add| {
                values.iter().try_for_each(|(value, _)| add(value))
            }),
            columns::section(Tag::CODES, true, ColumnGeometry::fixed(tuples, width)?, move |add| {
                sorted.each(&mut |_, value| {
                    // Every value was added.
                    let code = self.codes.get(value).copied().unwrap_or_default();
                    add(&code.to_le_bytes()[..width as usize])
                })
            }),
        ])
    }
}
