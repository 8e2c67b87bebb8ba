//! Where values are written: the caller's slice, or memory that others may write to meanwhile.

use crate::convert::PIECE;
use pleach::ValueType;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use zerocopy::{FromBytes, IntoBytes};

/// Memory for values that other threads may read and write meanwhile, such as an array of Python: what is then in it is
/// arbitrary, but nothing else goes wrong.
#[derive(Debug)]
pub struct Shared<'a> {
    start: *mut u8,
    len: usize,
    value_type: ValueType,
    life: PhantomData<&'a ()>,
}

// SAFETY: the memory is only written, by atomic stores, which any thread may do.
unsafe impl Send for Shared<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    /// Describes memory for `len` values of a type; `None` if such values are not numbers, or if it is not aligned.
    ///
    /// # Safety
    /// The memory must be there for as long as this value lives, and no Rust reference to it may be used meanwhile.
    #[must_use]
    pub unsafe fn new(value_type: ValueType, start: *mut u8, len: usize) -> Option<Self> {
        let bytes = value_type.bytes();
        let is_number = matches!(bytes, 4 | 8) && !value_type.is_bytes();
        (is_number && start.addr().is_multiple_of(bytes)).then_some(Self {
            start,
            len,
            value_type,
            life: PhantomData,
        })
    }

    pub(crate) fn value_type(&self) -> ValueType {
        self.value_type
    }

    /// Returns the memory as that of values of this type, which the caller checked.
    pub(crate) fn room<V>(&mut self) -> Room<'_, V> {
        debug_assert_eq!(size_of::<V>(), self.value_type.bytes());
        Room::Shared { start: self.start.cast(), len: self.len, life: PhantomData }
    }
}

/// Where the values of a batch or a part of it go.
pub(crate) enum Room<'a, V> {
    /// A slice.
    Slice(&'a mut [V]),
    /// A part of [`Shared`] memory.
    Shared { start: *mut V, len: usize, life: PhantomData<&'a ()> },
}

// SAFETY: a slice may be sent; shared memory is only written, by atomic stores.
unsafe impl<V: Send> Send for Room<'_, V> {}

impl<'a, V: Copy + Default + FromBytes + IntoBytes + zerocopy::Immutable> Room<'a, V> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Slice(values) => values.len(),
            Self::Shared { len, .. } => *len,
        }
    }

    /// Cuts it down to the first `keys` values; `None` if it has fewer.
    pub(crate) fn first(self, keys: usize) -> Option<Self> {
        match self {
            Self::Slice(values) => values.get_mut(..keys).map(Self::Slice),
            Self::Shared { start, len, life } => {
                (keys <= len).then_some(Self::Shared { start, len: keys, life })
            }
        }
    }

    /// Cuts it into parts of `each` values, and one of the rest.
    pub(crate) fn parts(self, each: usize) -> Box<dyn Iterator<Item = Self> + 'a>
    where
        V: 'a,
    {
        match self {
            Self::Slice(values) => Box::new(values.chunks_mut(each).map(Self::Slice)),
            Self::Shared { start, len, life } => Box::new((0..len).step_by(each).map(move |at| {
                let start = start.wrapping_add(at);
                Self::Shared { start, len: each.min(len - at), life }
            })),
        }
    }

    /// Has `fill` write `count` values from number `at` on, at most [`PIECE`].
    pub(crate) fn fill<R>(&mut self, at: usize, count: usize, fill: impl FnOnce(&mut [V]) -> R) -> R {
        match self {
            Self::Slice(values) => fill(&mut values[at..at + count]),
            Self::Shared { start, len, .. } => {
                assert!(at + count <= *len && count <= PIECE, "a piece lies inside its room");
                let mut piece = [V::default(); PIECE];
                let outcome = fill(&mut piece[..count]);
                put(start.wrapping_add(at), &piece[..count]);
                outcome
            }
        }
    }
}

/// Stores values one by one, so that other threads may use the memory.
fn put<V: FromBytes + IntoBytes + zerocopy::Immutable>(start: *mut V, values: &[V]) {
    if size_of::<V>() == 8 {
        let (words, _) = values.as_bytes().as_chunks::<8>();
        for (at, word) in words.iter().enumerate() {
            // SAFETY: `Room::fill` checked that the value is inside the memory, and `Shared::new` its alignment; who
            // made that guarantees the memory.
            let place = unsafe { AtomicU64::from_ptr(start.cast::<u64>().add(at)) };
            place.store(zerocopy::transmute!(*word), Ordering::Relaxed);
        }
    } else {
        let (words, _) = values.as_bytes().as_chunks::<4>();
        for (at, word) in words.iter().enumerate() {
            // SAFETY: as above.
            let place = unsafe { AtomicU32::from_ptr(start.cast::<u32>().add(at)) };
            place.store(zerocopy::transmute!(*word), Ordering::Relaxed);
        }
    }
}
