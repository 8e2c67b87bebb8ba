//! A scanner of Thrift's compact protocol, in which Parquet writes its footer and the headers of its pages.

/// Maximum nesting.
const DEPTH_MAX: usize = 32;

/// The reason why bytes are not valid Thrift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// They end too early.
    Short,
    /// They are invalid.
    Bad,
}

/// A scanner of Thrift's compact protocol that discards the values.
pub(crate) struct Thrift<'a> {
    pub(crate) rest: &'a [u8],
}

/// Types of fields and elements.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
pub(crate) const I16: u8 = 4;
pub(crate) const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
pub(crate) const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
pub(crate) const STRUCT: u8 = 12;
const UUID: u8 = 13;

impl Thrift<'_> {
    fn byte(&mut self) -> Result<u8, Broken> {
        let (&byte, rest) = self.rest.split_first().ok_or(Broken::Short)?;
        self.rest = rest;
        Ok(byte)
    }

    /// Skips bytes.
    pub(crate) fn pass(&mut self, bytes: u64) -> Result<(), Broken> {
        let bytes = usize::try_from(bytes).map_err(|_| Broken::Bad)?;
        self.rest = self.rest.get(bytes..).ok_or(Broken::Short)?;
        Ok(())
    }

    /// Returns an unsigned number.
    pub(crate) fn number(&mut self) -> Result<u64, Broken> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Broken::Bad)
    }

    /// Returns a signed number.
    pub(crate) fn signed(&mut self) -> Result<i64, Broken> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Returns the type and the number of the next field of a structure; `None` at its end.
    pub(crate) fn field(&mut self, last: &mut i64) -> Result<Option<(u8, i64)>, Broken> {
        let head = self.byte()?;
        if head & 0x0f == STOP {
            return Ok(None);
        }
        *last = match head >> 4 {
            0 => self.signed()?,
            step => last.saturating_add(i64::from(step)),
        };
        Ok(Some((head & 0x0f, *last)))
    }

    /// Returns the type and the number of the elements of a list.
    pub(crate) fn list(&mut self) -> Result<(u8, u64), Broken> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
        Ok((head & 0x0f, count))
    }

    /// Skips an element of a list, or the value of a field.
    pub(crate) fn skip(&mut self, kind: u8, in_list: bool, depth: usize) -> Result<(), Broken> {
        if depth > DEPTH_MAX {
            return Err(Broken::Bad);
        }
        match kind {
            // The type of a field contains its value.
            TRUE | FALSE => self.pass(u64::from(in_list)),
            BYTE => self.pass(1),
            I16..=I64 => self.number().map(drop),
            DOUBLE => self.pass(8),
            UUID => self.pass(16),
            BINARY => {
                let bytes = self.number()?;
                self.pass(bytes)
            }
            LIST | SET => {
                let (kind, count) = self.list()?;
                // Each element has at least one byte.
                (0..count).try_for_each(|_| self.skip(kind, true, depth + 1))
            }
            MAP => {
                let count = self.number()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.skip(kinds >> 4, true, depth + 1)?;
                    self.skip(kinds & 0x0f, true, depth + 1)
                })
            }
            STRUCT => {
                let mut last = 0;
                while let Some((kind, _)) = self.field(&mut last)? {
                    self.skip(kind, false, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(Broken::Bad),
        }
    }
}
