//! Numbers of any type as keys of a file's type.

use crate::numbers::{Lane, LaneType, Numbers};
use pleach::Key;
use pleach_format::logical::Ratio;

/// Keys of a piece; a multiple of 64.
pub(crate) const PIECE: usize = 1024;
/// Maximum keys of a task: some pieces.
pub(crate) const TASK: usize = 16 * PIECE;

/// Where a number is among the keys of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place<K> {
    /// It is a key.
    At(K),
    /// It is not a key; this is the smallest key above it.
    Before(K),
    /// It is not a key, and there is no key above it.
    AfterAll,
}

/// A number that has a place among the keys of type `K`.
pub(crate) trait PlaceIn<K>: LaneType {
    /// Returns its place.
    fn place(self) -> Place<K>;

    /// Returns the place of a number just below this one, which is the smallest of its type.
    fn place_before(self) -> Place<K> {
        match self.place() {
            Place::At(above) | Place::Before(above) => Place::Before(above),
            Place::AfterAll => Place::AfterAll,
        }
    }
}

macro_rules! integers {
    ($($key:ident: $($lane:ident)*;)*) => {$($(
        impl PlaceIn<$key> for $lane {
            #[inline(always)]
            #[allow(irrefutable_let_patterns, unused_comparisons, reason = "for types of all widths and signs")]
            fn place(self) -> Place<$key> {
                if let Ok(key) = $key::try_from(self) {
                    Place::At(key)
                } else if self < 0 {
                    Place::Before($key::MIN)
                } else {
                    Place::AfterAll
                }
            }
        }
    )*)*};
}
integers! {
    u32: u8 u16 u32 u64 u128 i8 i16 i32 i64;
    u64: u8 u16 u32 u64 u128 i8 i16 i32 i64;
    u128: u8 u16 u32 u64 u128 i8 i16 i32 i64;
    i32: u8 u16 u32 u64 u128 i8 i16 i32 i64;
    i64: u8 u16 u32 u64 u128 i8 i16 i32 i64;
}

macro_rules! exact_floats {
    ($($lane:ident)*) => {$(
        impl PlaceIn<f64> for $lane {
            #[inline(always)]
            fn place(self) -> Place<f64> {
                Place::At(f64::from(self))
            }
        }
    )*};
}
exact_floats! { u8 u16 u32 i8 i16 i32 }

macro_rules! wide_floats {
    ($($lane:ident)*) => {$(
        impl PlaceIn<f64> for $lane {
            #[inline(always)]
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss,
                reason = "the result is compared with the number")]
            fn place(self) -> Place<f64> {
                let near = self as f64;
                // The nearest float of a number near the end of the type may be beyond it; `as` then saturates.
                let back = near as $lane;
                if back == self && (back != $lane::MAX || near < $lane::MAX as f64) {
                    Place::At(near)
                } else if back < self {
                    Place::Before(near.next_up())
                } else {
                    Place::Before(near)
                }
            }
        }
    )*};
}
wide_floats! { u64 u128 i64 }

macro_rules! floats {
    ($($lane:ident)*) => {$(
        impl PlaceIn<f64> for $lane {
            #[inline(always)]
            fn place(self) -> Place<f64> {
                // Not a number has its place after all others, as in every sort.
                if self.is_nan() { Place::AfterAll } else { Place::At(f64::from(self)) }
            }
        }
    )*};
}
floats! { f32 f64 }

/// Keys of one piece, and which of them are not what was asked for.
pub(crate) struct Piece<K> {
    pub(crate) keys: [K; PIECE],
    /// Bit `i` is 1 if number `i` is not a key; `keys[i]` is then the smallest key above it.
    pub(crate) misses: [u64; PIECE / 64],
    /// Bit `i` is 1 if number `i` is above all keys. It is a miss, too.
    pub(crate) above: [u64; PIECE / 64],
    /// True if there is a miss.
    pub(crate) any: bool,
}

impl<K: Key> Piece<K> {
    pub(crate) fn new() -> Self {
        Self { keys: [K::default(); PIECE], misses: [0; _], above: [0; _], any: false }
    }

    fn fill<T: PlaceIn<K>>(&mut self, numbers: &Numbers<'_>, first: usize, count: usize) {
        let mut raw = [T::default(); PIECE];
        numbers.read(first, &mut raw[..count]);
        self.put(numbers, first, &raw[..count], T::place);
    }

    /// Fills the piece with numbers of another unit.
    fn fill_scaled<T: PlaceIn<K> + Into<i64>>(
        &mut self,
        numbers: &Numbers<'_>,
        first: usize,
        count: usize,
        ratio: Ratio,
    ) where
        i64: PlaceIn<K>,
    {
        let mut raw = [T::default(); PIECE];
        numbers.read(first, &mut raw[..count]);
        self.put(numbers, first, &raw[..count], |number| {
            let product = i128::from(number.into()) * i128::from(ratio.times);
            let whole = product.div_euclid(i128::from(ratio.over));
            let is_exact = whole * i128::from(ratio.over) == product;
            match i64::try_from(whole).map(PlaceIn::place) {
                Ok(place) if is_exact => place,
                // The place is that of the next word.
                Ok(Place::At(_) | Place::Before(_)) => match i64::try_from(whole + 1).map(PlaceIn::place) {
                    Ok(Place::At(above) | Place::Before(above)) => Place::Before(above),
                    Ok(Place::AfterAll) | Err(_) => Place::AfterAll,
                },
                Ok(Place::AfterAll) => Place::AfterAll,
                Err(_) if whole < 0 => i64::MIN.place_before(),
                Err(_) => Place::AfterAll,
            }
        });
    }

    fn put<T: LaneType>(
        &mut self,
        numbers: &Numbers<'_>,
        first: usize,
        raw: &[T],
        place: impl Fn(T) -> Place<K>,
    ) {
        if self.any {
            (self.misses, self.above, self.any) = ([0; _], [0; _], false);
        }
        let no_nulls = numbers.has_no_nulls();
        for (at, (key, &number)) in self.keys.iter_mut().zip(raw.iter()).enumerate() {
            let place = place(number);
            if let Place::At(exact) = place
                && (no_nulls || !numbers.is_null(first + at))
            {
                *key = exact;
                continue;
            }
            let (bit, word) = (1 << (at % 64), at / 64);
            self.any = true;
            self.misses[word] |= bit;
            match place {
                Place::At(above) | Place::Before(above) => *key = above,
                Place::AfterAll => {
                    *key = K::default();
                    self.above[word] |= bit;
                }
            }
        }
    }

    /// Replaces each number that is a key by the smallest key above it.
    pub(crate) fn step(&mut self)
    where
        K: FromNumbers,
    {
        for at in 0..PIECE {
            if self.is_miss(at) {
                continue;
            }
            match self.keys[at].next() {
                Some(next) => self.keys[at] = next,
                None => {
                    self.above[at / 64] |= 1 << (at % 64);
                    self.any = true;
                }
            }
        }
    }

    /// Returns true if number `at` is not a key.
    #[inline]
    pub(crate) fn is_miss(&self, at: usize) -> bool {
        self.misses[at / 64] >> (at % 64) & 1 != 0
    }
}

/// A key type to which arrays of numbers are converted.
pub(crate) trait FromNumbers: Key {
    /// Reports whether numbers of this type may be asked for: no float is an integer key.
    fn takes(lane: Lane) -> bool;
    /// Converts `count` numbers from number `first` on.
    fn convert(piece: &mut Piece<Self>, numbers: &Numbers<'_>, first: usize, count: usize);
    /// Returns the smallest key above this one; `None` if there is none.
    fn next(self) -> Option<Self>;
}

macro_rules! keys {
    ($($key:ident $floats:literal [$($lane:ident $type:ident),*] $next:expr;)*) => {$(
        impl FromNumbers for $key {
            fn takes(lane: Lane) -> bool {
                $floats || !matches!(lane, Lane::F32 | Lane::F64)
            }
            fn convert(piece: &mut Piece<Self>, numbers: &Numbers<'_>, first: usize, count: usize) {
                if let Some(ratio) = numbers.ratio() {
                    match numbers.lane() {
                        Lane::I32 => return piece.fill_scaled::<i32>(numbers, first, count, ratio),
                        Lane::I64 => return piece.fill_scaled::<i64>(numbers, first, count, ratio),
                        _ => {}
                    }
                }
                match numbers.lane() {
                    Lane::U8 => piece.fill::<u8>(numbers, first, count),
                    Lane::U16 => piece.fill::<u16>(numbers, first, count),
                    Lane::U32 => piece.fill::<u32>(numbers, first, count),
                    Lane::U64 => piece.fill::<u64>(numbers, first, count),
                    Lane::U128 => piece.fill::<u128>(numbers, first, count),
                    Lane::I8 => piece.fill::<i8>(numbers, first, count),
                    Lane::I16 => piece.fill::<i16>(numbers, first, count),
                    Lane::I32 => piece.fill::<i32>(numbers, first, count),
                    Lane::I64 => piece.fill::<i64>(numbers, first, count),
                    $(Lane::$lane => piece.fill::<$type>(numbers, first, count),)*
                    #[allow(unreachable_patterns, reason = "floats are matched above where they are keys")]
                    Lane::F32 | Lane::F64 => unreachable!("`takes` refuses floats"),
                }
            }
            #[inline(always)]
            fn next(self) -> Option<Self> {
                ($next)(self)
            }
        }
    )*};
}
keys! {
    u32 false [] |key: u32| key.checked_add(1);
    u64 false [] |key: u64| key.checked_add(1);
    u128 false [] |key: u128| key.checked_add(1);
    i32 false [] |key: i32| key.checked_add(1);
    i64 false [] |key: i64| key.checked_add(1);
    f64 true [F32 f32, F64 f64] |key: f64| (key < f64::INFINITY).then(|| key.next_up());
}
