//! Locking while a batch is applied: Algorithm 1 of Harmonia (Yan et al., PPoPP 2019, 3.2.2).
//!
//! A coarse lock guards the whole tree and the count of threads that change single leaves. Each leaf has a
//! fine lock: a byte that also tells whether the leaf is split. A thread that changes single leaves takes a
//! [`Seat`] (it increments the count under the coarse lock) and then locks leaf by leaf. A thread that splits
//! or merges waits until the count is zero, and keeps the coarse lock meanwhile ([`Exclusive`]).
//!
//! The paper decides before any lock whether an operation splits; its leaf may fill in between. Here every
//! operation starts as a plain one. Under the leaf's lock that is checked; an operation that is not plain
//! releases the leaf and the seat and takes the coarse path, where it is checked once more.
//!
//! A seat serves many operations. It is released as soon as another thread waits for the whole tree, so that
//! a split never starves. The text is generic over its atomics: the same code runs under a model checker.

use std::sync::atomic::Ordering;

/// An atomic number.
pub(super) trait Atomic<T>: Send + Sync {
    fn new(value: T) -> Self;
    fn load(&self, order: Ordering) -> T;
    fn store(&self, value: T, order: Ordering);
    fn add(&self, value: T, order: Ordering);
    fn sub(&self, value: T, order: Ordering);
    /// Replaces `from` by `to`; returns true on success (acquire), false otherwise (relaxed). It may fail
    /// spuriously.
    fn replace(&self, from: T, to: T) -> bool;
}

/// Atomics and waiting of the machine, or of a model.
pub(super) trait Machine: 'static {
    type Byte: Atomic<u8>;
    type Word: Atomic<u32>;
    /// Waits a little; `turn` counts the calls.
    fn pause(turn: u32);
}

/// The real machine.
pub(super) struct Native;

macro_rules! atomics {
    ($($atomic:ty: $t:ty),*) => {$(
        impl Atomic<$t> for $atomic {
            fn new(value: $t) -> Self { <$atomic>::new(value) }
            #[inline(always)]
            fn load(&self, order: Ordering) -> $t { <$atomic>::load(self, order) }
            #[inline(always)]
            fn store(&self, value: $t, order: Ordering) { <$atomic>::store(self, value, order); }
            #[inline(always)]
            fn add(&self, value: $t, order: Ordering) { self.fetch_add(value, order); }
            #[inline(always)]
            fn sub(&self, value: $t, order: Ordering) { self.fetch_sub(value, order); }
            #[inline(always)]
            fn replace(&self, from: $t, to: $t) -> bool {
                self.compare_exchange_weak(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
            }
        }
    )*};
}
#[cfg(test)]
pub(super) use atomics;
atomics!(std::sync::atomic::AtomicU8: u8, std::sync::atomic::AtomicU32: u32);

impl Machine for Native {
    type Byte = std::sync::atomic::AtomicU8;
    type Word = std::sync::atomic::AtomicU32;
    fn pause(turn: u32) {
        // There may be more threads than cores.
        if turn < 64 { std::hint::spin_loop() } else { std::thread::yield_now() }
    }
}

const LOCKED: u8 = 1;
const SPLIT: u8 = 2;

/// The locks of one tree.
pub(super) struct Protocol<M: Machine> {
    coarse: M::Word,
    /// Number of seats taken; changed under the coarse lock only.
    count: M::Word,
    /// Number of threads that wait for all seats to be released.
    wanted: M::Word,
    leaves: Vec<M::Byte>,
}

/// The right to lock single leaves: one of the count. No thread holds an [`Exclusive`] meanwhile.
pub(super) struct Seat<'a, M: Machine>(&'a Protocol<M>);

/// A locked leaf.
pub(super) struct Guard<'a, M: Machine> {
    protocol: &'a Protocol<M>,
    leaf: u32,
    status: u8,
}

/// Exclusive access to the whole tree: the coarse lock, taken while the count is zero.
pub(super) struct Exclusive<'a, M: Machine>(&'a Protocol<M>);

impl<M: Machine> Protocol<M> {
    /// Creates the locks of `leaves` leaves, none of them split.
    pub fn new(leaves: u32) -> Self {
        let word = || M::Word::new(0);
        let leaves = (0..leaves).map(|_| M::Byte::new(0)).collect();
        Self { coarse: word(), count: word(), wanted: word(), leaves }
    }

    /// Returns the number of leaves.
    pub fn leaves(&self) -> u32 {
        self.leaves.len() as u32
    }

    fn lock_coarse(&self) {
        let mut turn = 0;
        while self.coarse.load(Ordering::Relaxed) != 0 || !self.coarse.replace(0, 1) {
            M::pause(turn);
            turn += 1;
        }
    }

    fn release_coarse(&self) {
        self.coarse.store(0, Ordering::Release);
    }

    /// Returns true if a thread waits for the whole tree.
    #[inline(always)]
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Takes a seat. Waits for threads that have or want the whole tree; the caller must have neither.
    pub fn seat(&self) -> Seat<'_, M> {
        let mut turn = 0;
        while self.is_wanted() {
            M::pause(turn);
            turn += 1;
        }
        self.lock_coarse();
        self.count.add(1, Ordering::Relaxed);
        self.release_coarse();
        Seat(self)
    }

    /// Takes the whole tree. The caller must not have a seat.
    pub fn exclusive(&self) -> Exclusive<'_, M> {
        self.wanted.add(1, Ordering::Relaxed);
        let mut turn = 0;
        loop {
            self.lock_coarse();
            if self.count.load(Ordering::Relaxed) == 0 {
                return Exclusive(self);
            }
            self.release_coarse();
            while self.count.load(Ordering::Relaxed) != 0 {
                M::pause(turn);
                turn += 1;
            }
        }
    }
}

impl<M: Machine> Drop for Seat<'_, M> {
    fn drop(&mut self) {
        self.0.lock_coarse();
        self.0.count.sub(1, Ordering::Relaxed);
        self.0.release_coarse();
    }
}

/// Proof that a seat is taken, so that no thread has the whole tree.
pub(super) trait Seated<M: Machine> {
    /// Returns the protocol of the seat.
    fn protocol(&self) -> &Protocol<M>;
}

impl<M: Machine> Seated<M> for Seat<'_, M> {
    #[inline(always)]
    fn protocol(&self) -> &Protocol<M> {
        self.0
    }
}

impl<M: Machine> Seated<M> for Guard<'_, M> {
    #[inline(always)]
    fn protocol(&self) -> &Protocol<M> {
        self.protocol
    }
}

impl<M: Machine> Seat<'_, M> {
    /// Returns true if a leaf is split; while the seat is taken that does not change.
    #[inline(always)]
    pub fn is_split(&self, leaf: u32) -> bool {
        self.0.leaves[leaf as usize].load(Ordering::Relaxed) & SPLIT != 0
    }

    /// Locks a leaf. The caller must not hold another one.
    #[inline(always)]
    pub fn lock(&self, leaf: u32) -> Guard<'_, M> {
        let byte = &self.0.leaves[leaf as usize];
        let mut turn = 0;
        loop {
            let status = byte.load(Ordering::Relaxed);
            if status & LOCKED == 0 && byte.replace(status, status | LOCKED) {
                return Guard { protocol: self.0, leaf, status };
            }
            M::pause(turn);
            turn += 1;
        }
    }
}

impl<M: Machine> Guard<'_, M> {
    /// Returns the locked leaf.
    pub fn leaf(&self) -> u32 {
        self.leaf
    }

    /// Returns true if the leaf is split.
    pub fn is_split(&self) -> bool {
        self.status & SPLIT != 0
    }
}

impl<M: Machine> Drop for Guard<'_, M> {
    #[inline(always)]
    fn drop(&mut self) {
        self.protocol.leaves[self.leaf as usize].store(self.status, Ordering::Release);
    }
}

impl<M: Machine> Exclusive<'_, M> {
    /// Returns the protocol that is held exclusively.
    pub fn protocol(&self) -> &Protocol<M> {
        self.0
    }

    /// Returns true if a leaf is split.
    pub fn is_split(&self, leaf: u32) -> bool {
        self.0.leaves[leaf as usize].load(Ordering::Relaxed) & SPLIT != 0
    }

    /// Marks a leaf as split: its tuples are now in an auxiliary node.
    pub fn mark_split(&mut self, leaf: u32) {
        self.0.leaves[leaf as usize].store(SPLIT, Ordering::Relaxed);
    }
}

impl<M: Machine> Drop for Exclusive<'_, M> {
    fn drop(&mut self) {
        self.0.release_coarse();
        self.0.wanted.sub(1, Ordering::Relaxed);
    }
}

/// The data guarded by the locks.
pub(super) trait Store<M: Machine>: Sync {
    /// An operation.
    type Change;
    /// The place where a key is, or would be.
    type Place;
    /// Counts of what was done.
    type Tally;
    /// Returns the locks.
    fn protocol(&self) -> &Protocol<M>;
    /// Returns the leaf whose lock guards the tuples of `leaf`.
    fn owner(&self, seat: &Seat<'_, M>, leaf: u32) -> u32;
    /// Finds the operation's key.
    fn find(&self, guard: &mut Guard<'_, M>, change: &Self::Change) -> Self::Place;
    /// Returns true if the operation needs neither split nor merge.
    fn is_plain(&self, guard: &mut Guard<'_, M>, change: &Self::Change, place: &Self::Place) -> bool;
    /// Does a plain operation.
    fn plain(
        &self,
        guard: &mut Guard<'_, M>,
        change: &Self::Change,
        place: Self::Place,
        tally: &mut Self::Tally,
    );
    /// Does an operation of any kind.
    fn any(&self, all: &mut Exclusive<'_, M>, leaf: u32, change: &Self::Change, tally: &mut Self::Tally);
}

/// Applies runs of operations; each run has one leaf. With `literal` the seat is released after each run, as
/// in the paper. `AGAIN` is `false` only in a test, which shows that tuples are then lost.
#[inline(always)]
pub(super) fn apply<'c, M: Machine, S: Store<M>, const AGAIN: bool>(
    store: &S,
    runs: impl Iterator<Item = (u32, &'c [S::Change])>,
    literal: bool,
    tally: &mut S::Tally,
) where
    S::Change: 'c,
{
    let protocol = store.protocol();
    let mut taken = None;
    for (leaf, mut left) in runs {
        while !left.is_empty() {
            if protocol.is_wanted() {
                taken = None;
            }
            let seat = taken.get_or_insert_with(|| protocol.seat());
            let mut guard = seat.lock(store.owner(seat, leaf));
            while let Some((change, rest)) = left.split_first() {
                let place = store.find(&mut guard, change);
                if AGAIN && !store.is_plain(&mut guard, change, &place) {
                    break;
                }
                store.plain(&mut guard, change, place, tally);
                left = rest;
            }
            drop(guard);
            if let Some((change, rest)) = left.split_first() {
                taken = None;
                store.any(&mut protocol.exclusive(), leaf, change, tally);
                left = rest;
            }
        }
        if literal {
            taken = None;
        }
    }
}
