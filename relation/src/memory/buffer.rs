//! Buffers for the tuples that a walk emits, and the columns that they are copied to.

use super::ordered::Target;
use super::ranks::ABSENT;
use super::walk::Emit;

/// A thread's buffer for the tuples that a walk emits.
pub(crate) trait Buffer<K>: Emit<K> {
    /// Reserves room for `room` tuples.
    fn reserve(&mut self, room: usize);
    /// Returns the address for keys, if only the key of a tuple is kept.
    fn keys_alone(&mut self) -> Option<*mut K> {
        None
    }
    /// Copies `count` emitted tuples from `from` on to place `to` of the output.
    ///
    /// # Safety
    /// `count` tuples were emitted there; no other thread writes to these places.
    unsafe fn place(&self, from: usize, count: usize, to: u64);
}

/// Elements in a buffer, and the column that they are copied to.
pub(super) struct Held<'t, T> {
    elements: Vec<T>,
    target: &'t Target<T>,
}

impl<'t, T: Copy> Held<'t, T> {
    pub(super) fn new(target: &'t Target<T>) -> Self {
        Self { elements: Vec::new(), target }
    }

    pub(super) fn reserve(&mut self, room: usize) {
        self.elements.reserve(room);
    }

    /// Returns the address of the first place.
    pub(super) fn start(&mut self) -> *mut T {
        self.elements.as_mut_ptr()
    }

    /// # Safety
    /// `at` is below the room that was reserved.
    #[inline(always)]
    pub(super) unsafe fn write_at(&mut self, at: usize, element: T) {
        // SAFETY: the caller guarantees that `at` is below the reserved room, so it is inside the vector's
        // allocation.
        unsafe { self.elements.as_mut_ptr().add(at).write(element) };
    }

    /// # Safety
    /// The elements were put; no other thread writes to these places.
    pub(super) unsafe fn place(&self, from: usize, count: usize, to: u64) {
        // SAFETY: the caller guarantees that they were put there, and that no other thread writes to these
        // places.
        unsafe {
            let elements = std::slice::from_raw_parts(self.elements.as_ptr().add(from), count);
            self.target.write(to, elements);
        }
    }
}

/// Pairs of elements in a buffer, and the two columns that they are copied to.
pub(super) struct HeldPairs<'t, A, B> {
    first: Held<'t, A>,
    second: Held<'t, B>,
}

impl<'t, A: Copy, B: Copy> HeldPairs<'t, A, B> {
    pub(super) fn new((first, second): &'t (Target<A>, Target<B>)) -> Self {
        Self { first: Held::new(first), second: Held::new(second) }
    }

    pub(super) fn reserve(&mut self, room: usize) {
        self.first.reserve(room);
        self.second.reserve(room);
    }

    /// # Safety
    /// `at` is below the room that was reserved.
    #[inline(always)]
    pub(super) unsafe fn write_at(&mut self, at: usize, first: A, second: B) {
        // SAFETY: the caller guarantees room at `at`, which was reserved for both.
        unsafe {
            self.first.write_at(at, first);
            self.second.write_at(at, second);
        }
    }

    /// # Safety
    /// The pairs were put; no other thread writes to these places.
    pub(super) unsafe fn place(&self, from: usize, count: usize, to: u64) {
        // SAFETY: the caller guarantees that the pairs were put, and that no other thread writes to these
        // places.
        unsafe {
            self.first.place(from, count, to);
            self.second.place(from, count, to);
        }
    }
}

/// A buffer that only counts.
pub(super) struct Nothing;

impl<K> Emit<K> for Nothing {
    #[inline(always)]
    unsafe fn write_at(&mut self, _: usize, _: usize, _: usize, _: K, _: bool, _: bool) {}
}

impl<K> Buffer<K> for Nothing {
    fn reserve(&mut self, _: usize) {}
    unsafe fn place(&self, _: usize, _: usize, _: u64) {}
}

/// Pairs of ranks.
pub(super) struct Pairs<'t>(HeldPairs<'t, u64, u64>);

impl<'t> Pairs<'t> {
    pub(super) fn new(targets: &'t (Target<u64>, Target<u64>)) -> Self {
        Self(HeldPairs::new(targets))
    }
}

impl<K> Emit<K> for Pairs<'_> {
    #[inline(always)]
    unsafe fn write_at(&mut self, at: usize, i: usize, j: usize, _: K, left: bool, right: bool) {
        let (i, j) = (if left { i as u64 } else { ABSENT }, if right { j as u64 } else { ABSENT });
        // SAFETY: the caller guarantees room at `at`.
        unsafe { self.0.write_at(at, i, j) };
    }
}

impl<K> Buffer<K> for Pairs<'_> {
    fn reserve(&mut self, room: usize) {
        self.0.reserve(room);
    }
    unsafe fn place(&self, from: usize, count: usize, to: u64) {
        // SAFETY: the caller guarantees that the pairs were emitted, and that no other thread writes to these
        // places.
        unsafe { self.0.place(from, count, to) };
    }
}

/// Tuples of the left side or, if `EITHER`, of either side, whose values then have one type.
pub(super) struct Tuples<'a, 't, K, V, const EITHER: bool> {
    left: &'a [V],
    right: &'a [V],
    held: HeldPairs<'t, K, V>,
}

impl<'a, 't, K: Copy, V: Copy> Tuples<'a, 't, K, V, false> {
    pub(super) fn of_left(left: &'a [V], targets: &'t (Target<K>, Target<V>)) -> Self {
        Self { left, right: &[], held: HeldPairs::new(targets) }
    }
}

impl<'a, 't, K: Copy, V: Copy> Tuples<'a, 't, K, V, true> {
    pub(super) fn of_either(left: &'a [V], right: &'a [V], targets: &'t (Target<K>, Target<V>)) -> Self {
        Self { left, right, held: HeldPairs::new(targets) }
    }
}

impl<K: Copy, V: Copy, const EITHER: bool> Emit<K> for Tuples<'_, '_, K, V, EITHER> {
    #[inline(always)]
    unsafe fn write_at(&mut self, at: usize, i: usize, j: usize, key: K, left: bool, _: bool) {
        // SAFETY: only walks that emit no right tuple alone write left tuples alone, so `i` is a left rank
        // then; a tuple of either side without a left part has a right one. There are as many values as keys;
        // the caller guarantees the ranks, and room at `at`.
        unsafe {
            let from = if EITHER && !left { self.right.as_ptr().add(j) } else { self.left.as_ptr().add(i) };
            self.held.write_at(at, key, *from);
        }
    }
}

impl<K: Copy, V: Copy, const EITHER: bool> Buffer<K> for Tuples<'_, '_, K, V, EITHER> {
    fn reserve(&mut self, room: usize) {
        self.held.reserve(room);
    }
    fn keys_alone(&mut self) -> Option<*mut K> {
        (size_of::<V>() == 0).then(|| self.held.first.start())
    }
    unsafe fn place(&self, from: usize, count: usize, to: u64) {
        // SAFETY: the caller guarantees that the tuples were emitted, and that no other thread writes to
        // these places.
        unsafe { self.held.place(from, count, to) };
    }
}

/// Runs with vectors as outputs of at most `capacity` elements. Returns the number of elements, which the
/// vectors hold if it is at most `capacity`.
pub(super) fn into_two<A: Copy, B: Copy>(
    first: &mut Vec<A>,
    second: &mut Vec<B>,
    capacity: usize,
    run: impl FnOnce(&(Target<A>, Target<B>)) -> u64,
) -> u64 {
    let count = run(&(Target::new(first, capacity), Target::new(second, capacity)));
    if let Some(length) = usize::try_from(count).ok().filter(|&length| length <= capacity) {
        // SAFETY: `run` wrote all places below `count` of both, which are inside the capacity.
        unsafe {
            first.set_len(length);
            second.set_len(length);
        }
    }
    count
}
