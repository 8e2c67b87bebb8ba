//! META: column names and logical types, so that an export restores the columns as they were.
//!
//! The section is a list of records: `tag u16, zero u16, length u32`, then `length` bytes of UTF-8, padded
//! with zeros to a multiple of 8. Readers skip tags that they do not know.

/// Names and logical types of the columns of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Name of the key column; empty if it has no name.
    pub key_name: String,
    /// Name of the value column.
    pub value_name: String,
    /// Logical type of the key column in Arrow's notation (`Date32`, `Timestamp(Microsecond, None)`); empty
    /// if the words have their plain meaning.
    pub key_logical: String,
    /// Logical type of the value column.
    pub value_logical: String,
    /// The layout requested from the build, as on the command line, so that a rebuild makes the same
    /// sections; empty for `lines,spine,grid`. A requested section may still be missing, if it would not
    /// help.
    pub layout: String,
    /// `inclusive` if keys begin intervals, and the first field of each value is the last key of its interval;
    /// empty if keys are keys. See [`crate::interval`].
    pub interval: String,
    /// Number of different keys, in decimal digits, if the keys of the file are shorter than those they stand for;
    /// else empty. See [`crate::approximate`].
    pub approximate: String,
}

/// Maximum bytes of the text of a record.
pub const TEXT_BYTES_MAX: usize = 1 << 16;
/// Maximum bytes of the section. There is room for three times the records of this version at full length,
/// and the section is small enough to be read as a whole.
pub const META_BYTES_MAX: u64 = 1 << 20;

impl Meta {
    fn records(&self) -> [(u16, &str); 7] {
        [
            (1, &self.key_name),
            (2, &self.value_name),
            (3, &self.key_logical),
            (4, &self.value_logical),
            (5, &self.layout),
            (6, &self.interval),
            (7, &self.approximate),
        ]
    }

    /// Returns the bytes of the section. Empty texts are not written.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (tag, text) in self.records().into_iter().filter(|(_, text)| !text.is_empty()) {
            bytes.extend_from_slice(&tag.to_le_bytes());
            bytes.extend_from_slice(&[0, 0]);
            bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes
    }

    /// Returns the number of records that [`Meta::encode`] writes.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.records().iter().filter(|(_, text)| !text.is_empty()).count() as u64
    }

    /// Reads the section as far as it can be read.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut meta = Self::default();
        let mut rest = bytes;
        while let Some((head, tail)) = rest.split_at_checked(8) {
            let tag = u16::from_le_bytes([head[0], head[1]]);
            let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
            let Some(text) = tail.get(..length).filter(|_| length <= TEXT_BYTES_MAX) else { break };
            let text = String::from_utf8_lossy(text).into_owned();
            match tag {
                1 => meta.key_name = text,
                2 => meta.value_name = text,
                3 => meta.key_logical = text,
                4 => meta.value_logical = text,
                5 => meta.layout = text,
                6 => meta.interval = text,
                7 => meta.approximate = text,
                _ => {}
            }
            rest = tail.get(length.next_multiple_of(8)..).unwrap_or_default();
        }
        meta
    }
}
