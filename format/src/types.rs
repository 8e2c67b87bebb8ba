//! Key and value types: their codes in the file, names on the command line, and widths in bytes.
//!
//! Both enums are exhaustive until 1.0, and no match on them has a wildcard arm (`tests/tests/tidy.rs`). So
//! the compiler lists every place that a new type affects.

use core::fmt;

macro_rules! types {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $code:literal, $text:literal, $bytes:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`, stored in ", stringify!($bytes), " bytes.")] $variant,)*
            /// Byte strings of one length, 1 to 65,535: `bytes16` and so on.
            Fixed(u16),
            /// Byte strings of any length.
            Bytes,
            /// UTF-8 texts of any length, ordered by their bytes.
            Utf8,
        }
        impl $name {
            /// The numeric types, in the order of their codes. With [`Self::Fixed`], [`Self::Bytes`] and
            /// [`Self::Utf8`] these are all the types of this version.
            pub const NUMERIC: &'static [$name] = &[$($name::$variant),*];
            /// Returns the code stored in the file.
            #[must_use]
            pub const fn code(self) -> u16 {
                match self {
                    $($name::$variant => $code,)*
                    $name::Fixed(_) => 7,
                    $name::Bytes => 8,
                    $name::Utf8 => 9,
                }
            }
            /// Returns the type with this code and width, or `None` if this version does not know it.
            #[must_use]
            pub const fn from_code(code: u16, bytes: u32) -> Option<Self> {
                match (code, bytes) {
                    $(($code, $bytes) => Some($name::$variant),)*
                    (7, 1..=65_535) => Some($name::Fixed(bytes as u16)),
                    (8, 0) => Some($name::Bytes),
                    (9, 0) => Some($name::Utf8),
                    _ => None,
                }
            }
            /// Returns the type with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some($name::$variant),)*
                    "bytes" => Some($name::Bytes),
                    "utf8" => Some($name::Utf8),
                    _ => {
                        let digits = name.strip_prefix("bytes")?;
                        let plain = !digits.starts_with(['0', '+']);
                        digits.parse().ok().filter(|_| plain).map($name::Fixed)
                    }
                }
            }
            /// Returns the bytes per element; 0 if elements vary in length.
            #[must_use]
            pub const fn bytes(self) -> usize {
                match self {
                    $($name::$variant => $bytes,)*
                    $name::Fixed(bytes) => bytes as usize,
                    $name::Bytes | $name::Utf8 => 0,
                }
            }
            /// Returns the bytes per element of a type of byte strings of one length, else `None`.
            #[must_use]
            pub const fn fixed_bytes(self) -> Option<usize> {
                if let $name::Fixed(bytes) = self { Some(bytes as usize) } else { None }
            }
            /// Reports whether the type is one of byte strings: [`Self::Fixed`], [`Self::Bytes`] or
            /// [`Self::Utf8`].
            #[must_use]
            pub const fn is_bytes(self) -> bool {
                matches!(self, $name::Fixed(_) | $name::Bytes | $name::Utf8)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($name::$variant => f.write_str($text),)*
                    $name::Fixed(bytes) => write!(f, "bytes{bytes}"),
                    $name::Bytes => f.write_str("bytes"),
                    $name::Utf8 => f.write_str("utf8"),
                }
            }
        }
    };
}

/// Maximum bytes of a key.
pub const KEY_BYTES_MAX: usize = 65_535;

types! {
    /// Type of the keys of a file.
    KeyType {
        U32 = 1, "u32", 4;
        U64 = 2, "u64", 8;
        I32 = 3, "i32", 4;
        I64 = 4, "i64", 8;
        U128 = 5, "u128", 16;
        F64 = 6, "f64", 8;
    }
}
types! {
    /// Type of the values of a file. With `none` the file is a set of keys.
    ValueType {
        None = 0, "none", 0;
        U32 = 1, "u32", 4;
        U64 = 2, "u64", 8;
        I32 = 3, "i32", 4;
        I64 = 4, "i64", 8;
        F32 = 5, "f32", 4;
        F64 = 6, "f64", 8;
    }
}

impl KeyType {
    /// Reports whether keys of this type are unsigned numbers, which are their own words.
    #[must_use]
    pub const fn is_unsigned(self) -> bool {
        match self {
            Self::U32 | Self::U64 | Self::U128 => true,
            Self::I32 | Self::I64 | Self::F64 => false,
            Self::Fixed(_) | Self::Bytes | Self::Utf8 => false,
        }
    }

    /// Reports whether every word is the word of a key: see [`KeyType::has_word`].
    #[must_use]
    pub const fn has_all_words(self) -> bool {
        match self {
            Self::F64 => false,
            Self::U32 | Self::U64 | Self::U128 | Self::I32 | Self::I64 => true,
            Self::Fixed(_) | Self::Bytes | Self::Utf8 => true,
        }
    }

    /// Returns the word that -0.0 would have, if keys of this type are floats. It is not used: -0.0 is
    /// encoded as 0.0.
    #[must_use]
    pub const fn minus_zero(self) -> Option<u64> {
        match self {
            Self::F64 => Some((1 << 63) - 1),
            Self::U32 | Self::U64 | Self::U128 | Self::I32 | Self::I64 => None,
            Self::Fixed(_) | Self::Bytes | Self::Utf8 => None,
        }
    }
}

impl ValueType {
    /// Returns the bytes per value in a tuple line; 0 for byte strings, which are stored in a section of
    /// their own.
    #[must_use]
    pub const fn line_bytes(self) -> usize {
        if self.is_bytes() { 0 } else { self.bytes() }
    }
}
