//! Key and value types: codes in the file, names on the command line, widths in bytes.

use core::fmt;

macro_rules! types {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $code:literal, $text:literal, $bytes:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`, stored in ", stringify!($bytes), " bytes.")] $variant,)*
        }
        impl $name {
            /// Every type of this version, in the order of their codes.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// The code that stands in the file.
            #[must_use]
            pub const fn code(self) -> u16 { match self { $($name::$variant => $code),* } }
            /// The type with this code, if this version knows it.
            #[must_use]
            pub const fn from_code(code: u16) -> Option<Self> {
                match code { $($code => Some($name::$variant),)* _ => None }
            }
            /// Name on the command line and in `inspect`.
            #[must_use]
            pub const fn name(self) -> &'static str { match self { $($name::$variant => $text),* } }
            /// The type of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
            /// Bytes of one in a tuple line.
            #[must_use]
            pub const fn bytes(self) -> usize { match self { $($name::$variant => $bytes),* } }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.name()) }
        }
    };
}

types! {
    /// Type of the keys of a file. Codes 5 to 9 are kept for u128, f64, fixed bytes, bytes, utf8.
    KeyType {
        U32 = 1, "u32", 4;
        U64 = 2, "u64", 8;
        I32 = 3, "i32", 4;
        I64 = 4, "i64", 8;
    }
}
types! {
    /// Type of the values of a file. `none` means a set of keys.
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
