//! Who may change what while a batch is applied: Algorithm 1 of Harmonia (Yan et al., PPoPP 2019, 3.2.2).
//!
//! A coarse lock guards the whole tree and the count of those who change leaves one by one; each leaf has a
//! fine lock, a byte that also says that the leaf is split. Whoever changes single leaves takes a [`Seat`]
//! (the count goes up under the coarse lock) and then locks leaf by leaf; whoever splits or merges waits
//! until the count is zero and keeps the coarse lock meanwhile ([`Exclusive`]).
//!
//! The paper decides before any lock whether an operation splits: by then its leaf may have filled. Here all
//! are taken for plain ones; under the leaf's lock that is decided again, and one that is not plain
//! gives the leaf and the seat back and takes the coarse path, where it is decided once more. A seat serves
//! many operations; it is given back as soon as someone waits for all of them, so that a split never
//! starves. The text is generic over its atomics: the same code runs under a model checker.

use std::sync::atomic::Ordering;

/// An atomic number.
pub(super) trait Atomic<T>: Send + Sync {
    fn new(value: T) -> Self;
    fn load(&self, order: Ordering) -> T;
    fn store(&self, value: T, order: Ordering);
    fn add(&self, value: T, order: Ordering);
    fn sub(&self, value: T, order: Ordering);
    /// Whether `from` was replaced by `to`: then acquired, else relaxed. It may fail without reason.
    fn replace(&self, from: T, to: T) -> bool;
}

/// Atomics and waiting: the machine's, or a model's.
pub(super) trait Machine: 'static {
    type Byte: Atomic<u8>;
    type Word: Atomic<u32>;
    /// Waits a little; `turn` counts how often.
    fn pause(turn: u32);
}

/// The machine as it is.
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
    /// Seats that are taken; changed under the coarse lock only.
    count: M::Word,
    /// Those that wait for all seats to be given back.
    wanted: M::Word,
    leaves: Vec<M::Byte>,
}

/// The right to lock single leaves: one of the count. Nobody has an [`Exclusive`] meanwhile.
pub(super) struct Seat<'a, M: Machine>(&'a Protocol<M>);

/// A leaf that is locked.
pub(super) struct Guard<'a, M: Machine> {
    protocol: &'a Protocol<M>,
    leaf: u32,
    status: u8,
}

/// The whole tree: the coarse lock, taken while the count is zero.
pub(super) struct Exclusive<'a, M: Machine>(&'a Protocol<M>);

impl<M: Machine> Protocol<M> {
    /// For so many leaves, none of them split.
    pub fn new(leaves: u32) -> Self {
        let word = || M::Word::new(0);
        let leaves = (0..leaves).map(|_| M::Byte::new(0)).collect();
        Self { coarse: word(), count: word(), wanted: word(), leaves }
    }

    /// Number of leaves.
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

    /// Whether someone waits for the whole tree.
    #[inline(always)]
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Takes a seat. Waits for those who have or want the whole tree; the caller must have neither.
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

    /// Takes the whole tree. The caller must have no seat.
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

/// Proof that a seat is taken, hence that nobody has the whole tree.
pub(super) trait Seated<M: Machine> {
    /// The protocol whose seat it is.
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
    /// Whether a leaf is split; as long as the seat is taken that does not change.
    #[inline(always)]
    pub fn is_split(&self, leaf: u32) -> bool {
        self.0.leaves[leaf as usize].load(Ordering::Relaxed) & SPLIT != 0
    }

    /// Locks a leaf. The caller must have no other.
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
    /// Which leaf is locked.
    pub fn leaf(&self) -> u32 {
        self.leaf
    }

    /// Whether it is split.
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
    /// The protocol that is taken as a whole.
    pub fn protocol(&self) -> &Protocol<M> {
        self.0
    }

    /// Whether a leaf is split.
    pub fn is_split(&self, leaf: u32) -> bool {
        self.0.leaves[leaf as usize].load(Ordering::Relaxed) & SPLIT != 0
    }

    /// From now on the leaf's tuples are in an auxiliary node.
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

/// What the locks are for.
pub(super) trait Store<M: Machine>: Sync {
    /// An operation.
    type Change;
    /// Where a key is, or would be.
    type Place;
    /// What was done.
    type Tally;
    /// The locks.
    fn protocol(&self) -> &Protocol<M>;
    /// The leaf whose lock guards what `leaf` leads to.
    fn owner(&self, seat: &Seat<'_, M>, leaf: u32) -> u32;
    /// Looks for the operation's key.
    fn find(&self, guard: &mut Guard<'_, M>, change: &Self::Change) -> Self::Place;
    /// Whether the operation needs neither split nor merge.
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

/// Applies runs of operations, each with the leaf of all of them. With `literal` the seat is given back after
/// each run, as the paper has it. `AGAIN` is `false` in a test alone, which shows that then tuples are lost.
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
