//! Ranges of addresses that a signal handler looks up without locks, each with a flag.
//!
//! A slot's range is valid only while its sequence number is odd. Taking the slot makes the number odd after
//! the range was written. Giving it back makes the number even before anything is written again. A reader
//! that sees the same odd number before and after reading the range has therefore seen one registered range,
//! and not the start of one and the end of another.
//!
//! Slots are in blocks; a full block has a next one, and none is ever freed.
//!
//! `tests/tests/slots.rs` runs this source under a model checker for weakly ordered memory.

use super::sync::{AtomicBool, AtomicUsize, Ordering, fence};
use std::ops::Range;
use std::sync::OnceLock;

/// A range and its flag.
pub(crate) struct Slot {
    is_taken: AtomicBool,
    /// Odd while the range is valid.
    sequence: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    pub(crate) is_lost: AtomicBool,
}

/// A range read from a slot. It may be torn unless [`Slot::is_still`] returns true for it.
pub(crate) struct Seen {
    sequence: usize,
    pub(crate) range: Range<usize>,
}

impl Slot {
    fn new() -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            sequence: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_lost: AtomicBool::new(false),
        }
    }

    /// Takes the slot for a range, if it is free.
    fn take(&self, range: &Range<usize>) -> bool {
        if self.is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        // After the even number: a reader that sees the following stores does not see the previous odd
        // number.
        fence(Ordering::Release);
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        self.is_lost.store(false, Ordering::Relaxed);
        self.sequence.store(self.sequence.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        true
    }

    /// Gives the slot back; the caller does this before the range is used for anything else.
    pub(crate) fn give_back(&self) {
        self.sequence.store(self.sequence.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.is_taken.store(false, Ordering::Release);
    }

    /// Reads the slot's range; `None` while the slot is free.
    pub(crate) fn look(&self) -> Option<Seen> {
        let sequence = self.sequence.load(Ordering::Acquire);
        let range = self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed);
        (!sequence.is_multiple_of(2)).then_some(Seen { sequence, range })
    }

    /// Returns true if `seen` is the range of one registration.
    pub(crate) fn is_still(&self, seen: &Seen) -> bool {
        fence(Ordering::Acquire);
        self.sequence.load(Ordering::Relaxed) == seen.sequence
    }

    /// Sets the flag; called before the bytes of the range are replaced.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Returns true if the range was lost. False guarantees that all earlier reads of this thread got its
    /// original bytes.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        // Earlier reads must stay before this. The compiler must not move them, since a fault sets the flag
        // in the middle of a read; nor must the CPU, since another thread may have met the fault and this one
        // its zeros.
        fence(Ordering::Acquire);
        self.is_lost.load(Ordering::Relaxed)
    }
}

/// An array of slots, and the next blocks, for when all of these are taken.
struct Block<const LENGTH: usize> {
    slots: [Slot; LENGTH],
    more: Slots<LENGTH>,
}

/// All slots, in blocks of `LENGTH`.
pub(crate) struct Slots<const LENGTH: usize>(OnceLock<Box<Block<LENGTH>>>);

impl<const LENGTH: usize> Slots<LENGTH> {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Takes a free slot, whose sequence continues after that of its earlier registrations. Allocates a block
    /// if all slots are taken.
    pub(crate) fn take(&self, range: &Range<usize>) -> &Slot {
        let mut slots = self;
        loop {
            let block = slots.0.get_or_init(|| {
                Box::new(Block { slots: std::array::from_fn(|_| Slot::new()), more: Self::new() })
            });
            if let Some(slot) = block.slots.iter().find(|slot| slot.take(range)) {
                return slot;
            }
            slots = &block.more;
        }
    }

    /// Iterates over all slots, without locks or allocation, as a signal handler requires.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Slot> {
        let blocks = std::iter::successors(self.0.get(), |block| block.more.0.get());
        blocks.flat_map(|block| &block.slots)
    }

    /// Returns the slot whose range contains `address`, and the end of the range.
    pub(crate) fn covering(&self, address: usize) -> Option<(&Slot, usize)> {
        self.all().find_map(|slot| {
            let seen = slot.look().filter(|seen| seen.range.contains(&address))?;
            slot.is_still(&seen).then_some((slot, seen.range.end))
        })
    }
}
