//! Ranges of addresses that a signal handler looks up without locks, each with a flag.
//!
//! A slot's range is one only while its sequence number is odd. Who takes the slot makes it odd behind what it wrote,
//! who gives it back makes it even before anything is written again; so a reader that sees the same odd number
//! before and behind the range has seen a range that was registered, and not the start of one and the end of another.
//! Slots stand in blocks; a block that is full has a next one, and none is ever freed.
//!
//! `tests/tests/slots.rs` runs this text under a model checker that knows weakly ordered memory.

use super::sync::{AtomicBool, AtomicUsize, Ordering, fence};
use std::ops::Range;
use std::sync::OnceLock;

/// A range and its flag.
pub(crate) struct Slot {
    is_taken: AtomicBool,
    /// Odd while the range is one.
    sequence: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    pub(crate) is_lost: AtomicBool,
}

/// What a slot said, which may be torn until [`Slot::is_still`] says that it is not.
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
        // Behind the even number that stands here: who reads what follows does not find the odd one of before.
        fence(Ordering::Release);
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        self.is_lost.store(false, Ordering::Relaxed);
        self.sequence.store(self.sequence.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        true
    }

    /// Gives the slot back, before the range means anything else.
    pub(crate) fn give_back(&self) {
        self.sequence.store(self.sequence.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.is_taken.store(false, Ordering::Release);
    }

    /// What the slot says now; nothing while it is free.
    pub(crate) fn look(&self) -> Option<Seen> {
        let sequence = self.sequence.load(Ordering::Acquire);
        let range = self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed);
        (!sequence.is_multiple_of(2)).then_some(Seen { sequence, range })
    }

    /// Whether what was seen is one registration.
    pub(crate) fn is_still(&self, seen: &Seen) -> bool {
        fence(Ordering::Acquire);
        self.sequence.load(Ordering::Relaxed) == seen.sequence
    }

    /// Says that the range is lost: before its bytes are replaced.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Whether the range was lost before what this thread has read of it.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        // What was read stays before this: by the compiler, since a fault sets the flag in the middle of a read, and
        // by the CPU, since another thread may have met the fault and this one its zeros.
        fence(Ordering::Acquire);
        self.is_lost.load(Ordering::Relaxed)
    }
}

/// Slots side by side, and more of them where these are taken.
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

    /// Takes a free slot, whose sequence starts behind all that it said before.
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

    /// Every slot, without locks and without memory: for a signal handler.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Slot> {
        let blocks = std::iter::successors(self.0.get(), |block| block.more.0.get());
        blocks.flat_map(|block| &block.slots)
    }

    /// The slot whose range holds an address, and where the range ends.
    pub(crate) fn covering(&self, address: usize) -> Option<(&Slot, usize)> {
        self.all().find_map(|slot| {
            let seen = slot.look().filter(|seen| seen.range.contains(&address))?;
            slot.is_still(&seen).then_some((slot, seen.range.end))
        })
    }
}
