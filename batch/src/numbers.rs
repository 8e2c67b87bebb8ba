//! Numbers in memory of any layout.

use crate::nulls::Nulls;
use pleach_format::logical::Ratio;
use std::marker::PhantomData;

/// Type of the numbers of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Unsigned, 8 bytes.
    U64,
    /// Unsigned, 16 bytes.
    U128,
    /// Signed, 1 byte.
    I8,
    /// Signed, 2 bytes.
    I16,
    /// Signed, 4 bytes.
    I32,
    /// Signed, 8 bytes.
    I64,
    /// Float, 4 bytes.
    F32,
    /// Float, 8 bytes.
    F64,
}

impl Lane {
    /// Returns the bytes of a number.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::U128 => 16,
        }
    }

    /// Returns the name: `u8`, `f64`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::U128 => "u128",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A type of Rust that a [`Lane`] names.
pub trait LaneType:
    Copy + Default + Send + Sync + sealed::Sealed + zerocopy::IntoBytes + zerocopy::Immutable + 'static
{
    /// Its lane.
    const LANE: Lane;
    /// Reads a number from bytes in this machine's order, which is little-endian.
    ///
    /// # Panics
    /// If `bytes` is shorter than a number.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! lanes {
    ($($type:ident $lane:ident;)*) => {$(
        impl sealed::Sealed for $type {}
        impl LaneType for $type {
            const LANE: Lane = Lane::$lane;
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut raw = [0; size_of::<Self>()];
                raw.copy_from_slice(&bytes[..size_of::<Self>()]);
                Self::from_le_bytes(raw)
            }
        }
    )*};
}
lanes! {
    u8 U8; u16 U16; u32 U32; u64 U64; u128 U128;
    i8 I8; i16 I16; i32 I32; i64 I64;
    f32 F32; f64 F64;
}

/// An array of numbers that is only read, and may change while it is read.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    start: *const u8,
    len: usize,
    stride: isize,
    lane: Lane,
    is_swapped: bool,
    nulls: Option<Nulls<'a>>,
    ratio: Option<Ratio>,
    memory: PhantomData<&'a [u8]>,
}

// SAFETY: the numbers are only read, by copying; `new` has the caller guarantee that they stay readable for `'a`, from
// every thread.
unsafe impl Send for Numbers<'_> {}
// SAFETY: as above.
unsafe impl Sync for Numbers<'_> {}

impl<'a> Numbers<'a> {
    /// Describes `len` numbers, the first of them at `start`, each `stride` bytes after the one before. `is_swapped`
    /// says that their bytes have the other order than those of this machine.
    ///
    /// # Safety
    /// The caller guarantees that the bytes of all these numbers can be read for `'a`, by any thread. They need not be
    /// aligned, and others may write to them: answers about numbers that change may then be wrong.
    #[must_use]
    pub const unsafe fn new(
        start: *const u8,
        len: usize,
        stride: isize,
        lane: Lane,
        is_swapped: bool,
    ) -> Self {
        Self { start, len, stride, lane, is_swapped, nulls: None, ratio: None, memory: PhantomData }
    }

    /// Describes a slice.
    #[must_use]
    pub const fn of<T: LaneType>(numbers: &'a [T]) -> Self {
        let stride = size_of::<T>().cast_signed();
        // SAFETY: the reference guarantees that the numbers can be read for `'a`.
        unsafe { Self::new(numbers.as_ptr().cast(), numbers.len(), stride, T::LANE, false) }
    }

    /// Describes the numbers in bytes, one after the other. Bytes after the last whole number are ignored.
    #[cfg(feature = "set")]
    pub(crate) const fn in_bytes(bytes: &'a [u8], lane: Lane) -> Self {
        let each = lane.bytes();
        // SAFETY: the reference guarantees that these bytes can be read for `'a`.
        unsafe { Self::new(bytes.as_ptr(), bytes.len() / each, each.cast_signed(), lane, false) }
    }

    /// Marks some of the numbers as nulls.
    #[must_use]
    pub const fn with_nulls(mut self, nulls: Option<Nulls<'a>>) -> Self {
        self.nulls = nulls;
        self
    }

    /// Gives the ratio by which the numbers become words of the file: they have another unit or scale. Only
    /// signed numbers have units.
    #[must_use]
    pub const fn with_ratio(mut self, ratio: Option<Ratio>) -> Self {
        self.ratio = ratio;
        self
    }

    /// Returns the ratio.
    pub(crate) const fn ratio(&self) -> Option<Ratio> {
        self.ratio
    }

    /// Returns the count of numbers.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the type of the numbers.
    #[must_use]
    pub const fn lane(&self) -> Lane {
        self.lane
    }

    /// Returns true if number `at` is null.
    #[inline]
    pub(crate) fn is_null(&self, at: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(at))
    }

    /// Returns true if no number is null.
    pub(crate) const fn has_no_nulls(&self) -> bool {
        self.nulls.is_none()
    }

    /// Copies numbers `first ..` into `to`, in this machine's byte order, until it is full.
    ///
    /// # Panics
    /// If there are fewer numbers.
    pub fn read<T: LaneType>(&self, first: usize, to: &mut [T]) {
        assert!(self.lane == T::LANE && first.checked_add(to.len()).is_some_and(|end| end <= self.len));
        let bytes = size_of::<T>();
        let at = |number: usize| self.start.wrapping_offset(self.stride.wrapping_mul(number.cast_signed()));
        if self.stride == bytes.cast_signed() {
            // SAFETY: `new` has the caller guarantee that these bytes, whose number was just checked, can be read. `to`
            // is a slice of as many bytes, and of numbers, for which all bytes are valid. The C library copies, so
            // a write by somebody else is no race of Rust's.
            unsafe { libc::memcpy(to.as_mut_ptr().cast(), at(first).cast(), size_of_val(to)) };
        } else {
            for (number, to) in (first..).zip(to.iter_mut()) {
                // SAFETY: as above, for one number.
                unsafe { libc::memcpy(std::ptr::from_mut(to).cast(), at(number).cast(), bytes) };
            }
        }
        if self.is_swapped {
            for number in to {
                let mut raw = [0; 16];
                raw[..bytes].copy_from_slice(zerocopy::IntoBytes::as_bytes(number));
                raw[..bytes].reverse();
                *number = T::read(&raw);
            }
        }
    }
}

/// Evaluates an expression with the type of Rust that a lane names.
#[cfg(feature = "set")]
macro_rules! each_lane {
    ($lane:expr, $type:ident => $body:expr) => {
        each_lane!(@ $lane, $type => $body; U8 u8, U16 u16, U32 u32, U64 u64, U128 u128, I8 i8, I16 i16, I32 i32,
            I64 i64, F32 f32, F64 f64)
    };
    (@ $lane:expr, $type:ident => $body:expr; $($name:ident $own:ty),*) => {
        match $lane {
            $($crate::numbers::Lane::$name => {
                type $type = $own;
                $body
            })*
        }
    };
}
#[cfg(feature = "set")]
pub(crate) use each_lane;
