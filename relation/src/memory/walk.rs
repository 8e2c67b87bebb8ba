//! Steps through two sorted columns: one kernel for every operator.
//!
//! A walk reads the next key of each side. Two compares decide which tuple it emits and which sides advance:
//! no branch depends on a key, so that none is mispredicted. The rest is a chain of dependent instructions, a
//! load and some arithmetic per step. Therefore a thread takes [`LANES`] independent parts of the inputs (see
//! [`super::cut`]) and makes one step of each in turn; the chains overlap, and a step costs only its
//! instructions. When one side of a part is used up, the rest of the other is walked alone.
//!
//! `rules.rs` specifies which tuples a walk emits; the comment of each type says it too.

use super::cut::gallop;
use super::part::{Part, Parting};
use super::vector::{Blocks, SLACK};
use pleach_format::Word;

/// Number of parts that a thread steps through in turn.
pub(crate) const LANES: usize = 4;

/// State of a walk between steps.
#[derive(Clone, Copy)]
pub(crate) struct State<K> {
    /// The key that was taken last (of either side for a union, else of the left one); never that of the first step
    /// of a relation.
    last: K,
    /// True if the next right tuple already has a left partner.
    matched: bool,
}

/// Result of a step.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// True if a tuple is emitted.
    pub emit: bool,
    /// True if it has a left part.
    pub left: bool,
    /// True if it has a right part.
    pub right: bool,
    /// True if the left side advances.
    pub next_left: bool,
    /// True if the right side advances.
    pub next_right: bool,
}

/// Rule for emitting tuples.
pub(crate) trait Walk: Copy + Send + Sync + 'static {
    const PARTING: Parting;
    /// True if the key that was taken last is of either side; else it is of the left one.
    const LAST_OF_BOTH: bool;
    /// A faster walk with the same result if no key is duplicated on a side.
    type Unique: Walk;
    /// True if `Unique` is another walk.
    const HAS_UNIQUE: bool;
    /// True if left tuples may be emitted when there are no more right ones.
    const LEFT_ALONE: bool;
    /// True if right tuples may be emitted when there are no more left ones.
    const RIGHT_ALONE: bool;
    /// The equivalent for keys that are unique on each side, if vectors can do it.
    const BLOCKS: Option<Blocks>;
    /// Returns the number of tuples that the walk may write for a part. Each emitted tuple advances a side:
    /// the left one unless right tuples are emitted alone, and the right one may be one tuple after its part.
    /// One more tuple is written without being emitted; for whole vectors, [`SLACK`].
    fn room(part: &Part) -> usize {
        let (left, right) = part.tuples();
        left + if Self::RIGHT_ALONE { right } else { 0 } + 2 + SLACK
    }
    /// Makes one step at keys `a` and `b`; `below` is `a < b`, and `above` is `a > b`.
    fn step<K: Word>(below: bool, above: bool, a: K, b: K, state: &mut State<K>) -> Step;
}

macro_rules! walks {
    ($($(#[$doc:meta])* $name:ident ($unique:ident, $has_unique:literal, $blocks:expr) $parting:ident
        $both:literal $left:literal $right:literal
        |$below:ident, $above:ident, $a:ident, $b:ident, $state:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        impl Walk for $name {
            const PARTING: Parting = Parting::$parting;
            const LAST_OF_BOTH: bool = $both;
            type Unique = $unique;
            const HAS_UNIQUE: bool = $has_unique;
            const BLOCKS: Option<Blocks> = $blocks;
            const LEFT_ALONE: bool = $left;
            const RIGHT_ALONE: bool = $right;
            #[inline(always)]
            #[allow(unused_variables, reason = "not every walk looks at everything")]
            fn step<K: Word>($below: bool, $above: bool, $a: K, $b: K, $state: &mut State<K>) -> Step {
                $body
            }
        }
    )*};
}

/// Advances both sides at equal keys.
#[inline(always)]
fn paired(below: bool, above: bool, emit: bool) -> Step {
    Step { emit, left: !above, right: !below, next_left: !above, next_right: !below }
}

/// Keeps the right side at equal keys, so that it meets the next left tuple too.
#[inline(always)]
fn lasting(below: bool, above: bool, emit: bool) -> Step {
    Step { emit, left: !above, right: !below, next_left: !above, next_right: above }
}

walks! {
    /// Emits max(m, n) tuples per key.
    UnionMultiset (UnionMultiset, false, Some(Blocks::Either)) Balanced
        false true true |below, above, a, b, state| paired(below, above, true);
    /// Emits min(m, n) tuples per key.
    IntersectionMultiset (IntersectionMultiset, false, Some(Blocks::Both)) Balanced
        false false false |below, above, a, b, state| {
        paired(below, above, !(below | above))
    };
    /// Emits max(m - n, 0) tuples per key: pairs are left out, and the last of left remain.
    DifferenceMultiset (DifferenceMultiset, false, Some(Blocks::LeftAlone)) Balanced
        false true false |below, above, a, b, state| {
        paired(below, above, below)
    };
    /// Emits one tuple per key: left ones come first, and keys equal to the last one are skipped.
    UnionSet (UnionMultiset, true, Some(Blocks::Either)) Balanced
        true true true |below, above, a, b, state| {
        let key = if above { b } else { a };
        let emit = key != state.last;
        state.last = key;
        paired(below, above, emit)
    };
    /// Emits the first left tuple of each key of both sides.
    IntersectionSet (IntersectionMultiset, true, Some(Blocks::Both)) Balanced
        false false false |below, above, a, b, state| {
        let emit = !(below | above) & (a != state.last);
        state.last = if above { state.last } else { a };
        lasting(below, above, emit)
    };
    /// Emits the first tuple of each key of left alone.
    DifferenceSet (DifferenceMultiset, true, Some(Blocks::LeftAlone)) Balanced
        false true false |below, above, a, b, state| {
        let emit = below & (a != state.last);
        state.last = if above { state.last } else { a };
        lasting(below, above, emit)
    };
    /// Left tuples with a partner, each with the first of them.
    Semi (Semi, false, None) Merge
        false false false |below, above, a, b, state| lasting(below, above, !(below | above));
    /// Left tuples without one.
    Anti (Anti, false, None) Merge
        false true false |below, above, a, b, state| lasting(below, above, below);
    /// All left tuples, each with its first partner.
    LeftOuter (LeftOuter, false, None) Merge
        false true false |below, above, a, b, state| {
        Step { right: !(below | above), ..lasting(below, above, !above) }
    };
    /// Left tuples with their first partner, and right tuples without one.
    RightOuter (RightOuter, false, None) Merge
        false false true |below, above, a, b, state| {
        let emit = !(below | above) | (above & !state.matched);
        state.matched = (state.matched | !(below | above)) & !above;
        lasting(below, above, emit)
    };
    /// All left tuples, each with its first partner, and right tuples without one.
    FullOuter (FullOuter, false, None) Merge
        false true true |below, above, a, b, state| {
        let emit = !above | !state.matched;
        state.matched = (state.matched | !(below | above)) & !above;
        lasting(below, above, emit)
    };
}

/// Receiver of emitted tuples.
pub(crate) trait Emit<K> {
    /// Writes a tuple of key `key` at `at`: left tuple `i` if `left`, right tuple `j` if `right`. The next call
    /// overwrites it, unless its step emits.
    ///
    /// `at` is below the reserved room; `i` is a left rank if `left`, or if the walk emits no right tuples
    /// alone; `j` is a right rank if `right`.
    unsafe fn write_at(&mut self, at: usize, i: usize, j: usize, key: K, left: bool, right: bool);
}

#[derive(Clone, Copy)]
struct Lane<K> {
    i: usize,
    i_end: usize,
    j: usize,
    j_end: usize,
    at: usize,
    state: State<K>,
}

impl<K: Word> Lane<K> {
    fn new<W: Walk>(a: &[K], b: &[K], part: Part, at: usize) -> Self {
        let (i, j) = (part.left.0, part.right.0);
        let other = |key: K| key ^ K::MAX;
        let before = |keys: &[K], at: usize| at.checked_sub(1).and_then(|at| keys.get(at)).copied();
        let last = if W::LAST_OF_BOTH {
            let first = [a.first(), b.first()].into_iter().flatten().min();
            before(a, i).max(before(b, j)).or_else(|| first.copied().map(other))
        } else {
            before(a, i).or_else(|| a.first().copied().map(other))
        };
        let matched = before(a, i).is_some_and(|key| b.get(j) == Some(&key));
        // A part's left keys are at most the first right key after it.
        let behind = usize::from(W::PARTING == Parting::Merge);
        let j_end = (part.right.1 + behind).min(b.len());
        let state = State { last: last.unwrap_or_default(), matched };
        Self { i, i_end: part.left.1, j, j_end, at, state }
    }

    /// Returns a number of steps for which both sides certainly have keys.
    #[inline(always)]
    fn safe(&self) -> usize {
        (self.i_end - self.i).min(self.j_end.saturating_sub(self.j))
    }

    /// # Safety
    /// `i < a.len()`, `j < b.len()`, and there is room at `at`.
    #[inline(always)]
    unsafe fn step<W: Walk>(&mut self, a: &[K], b: &[K], emit: &mut impl Emit<K>) {
        // SAFETY: the caller guarantees `i < a.len()` and `j < b.len()`.
        let (x, y) = unsafe { (*a.get_unchecked(self.i), *b.get_unchecked(self.j)) };
        let (below, above) = (x < y, x > y);
        let step = W::step(below, above, x, y, &mut self.state);
        let key = if above { y } else { x };
        // SAFETY: the caller guarantees that both are ranks, and that there is room at `at`.
        unsafe { emit.write_at(self.at, self.i, self.j, key, step.left, step.right) };
        self.at += usize::from(step.emit);
        self.i += usize::from(step.next_left);
        self.j += usize::from(step.next_right);
    }
}

/// Walks through up to [`LANES`] parts in turn. Part `l` is written after the room of the parts before it,
/// and `counts[l]` is the number of tuples that it emitted. O(steps).
///
/// # Panics
/// If a part is not inside the inputs, or if there are more than [`LANES`].
///
/// # Safety
/// `emit` has room for all parts together.
pub(crate) unsafe fn walk<W: Walk, K: Word>(
    a: &[K],
    b: &[K],
    parts: &[Part],
    emit: &mut impl Emit<K>,
) -> [usize; LANES] {
    let mut starts = [0; LANES];
    let mut room = 0;
    for (part, start) in parts.iter().zip(&mut starts) {
        assert!(part.left.0 <= part.left.1 && part.left.1 <= a.len(), "a part is inside the left input");
        assert!(part.right.0 <= part.right.1 && part.right.1 <= b.len(), "a part is inside the right input");
        *start = room;
        room += W::room(part);
    }
    let mut lanes: Vec<Lane<K>> =
        parts.iter().zip(starts).map(|(&part, at)| Lane::new::<W>(a, b, part, at)).collect();
    if let Ok(array) = <&mut [Lane<K>; LANES]>::try_from(lanes.as_mut_slice()) {
        let mut together = *array;
        loop {
            let safe = together.iter().map(Lane::safe).min().unwrap_or(0);
            if safe == 0 {
                break;
            }
            for _ in 0..safe {
                for lane in &mut together {
                    // SAFETY: a step moves each side on by at most one, and each lane has `safe` keys on both. A
                    // step that emits moves a side on, so that a lane, which ends at `i_end` and `j_end`,
                    // writes inside its room, whatever the keys are.
                    unsafe { lane.step::<W>(a, b, emit) };
                }
            }
        }
        *array = together;
    }
    let mut counts = [0; LANES];
    for (((lane, part), start), count) in lanes.iter_mut().zip(parts).zip(starts).zip(&mut counts) {
        // SAFETY: each part has room of its own, which the caller guarantees and which its lane has not left.
        unsafe { finish::<W, K>(lane, a, b, *part, emit) };
        *count = lane.at - start;
    }
    counts
}

/// Ratio of the lengths of the sides from which keys of the longer one are skipped by doubling steps.
pub(crate) const GALLOP_RATIO: usize = 32;

/// Does the same as [`walk`] for one part with one side much longer: keys without a counterpart are skipped
/// by doubling steps. O(shorter * log(longer / shorter)), and the emitted tuples.
///
/// # Panics
/// If the part is not inside the inputs.
///
/// # Safety
/// `emit` has room for the part.
pub(crate) unsafe fn leap<W: Walk, K: Word>(
    a: &[K],
    b: &[K],
    part: Part,
    at: usize,
    emit: &mut impl Emit<K>,
) -> usize {
    assert!(part.left.0 <= part.left.1 && part.left.1 <= a.len(), "a part is inside the left input");
    assert!(part.right.0 <= part.right.1 && part.right.1 <= b.len(), "a part is inside the right input");
    let mut lane = Lane::new::<W>(a, b, part, at);
    while lane.safe() > 0 {
        let (x, y) = (a[lane.i], b[lane.j]);
        let (below, above) = (x < y, x > y);
        let (to_i, to_j) = match (below, above) {
            (true, _) => (gallop(&a[..lane.i_end], lane.i, |key| *key < y), lane.j),
            (_, true) => (lane.i, gallop(&b[..lane.j_end], lane.j, |key| *key < x)),
            _ => (lane.i + 1, lane.j + 1),
        };
        // Only the last of the keys that are not emitted matters.
        if below && !W::LEFT_ALONE {
            lane.i = to_i - 1;
        }
        if above && !W::RIGHT_ALONE {
            lane.j = to_j - 1;
        }
        let steps = if below { to_i - lane.i } else { to_j - lane.j };
        for _ in 0..steps {
            // Only keys out of order can use up a side earlier.
            if lane.safe() == 0 {
                break;
            }
            // SAFETY: both sides have keys; for the room see `walk`.
            unsafe { lane.step::<W>(a, b, emit) };
        }
    }
    // SAFETY: the caller guarantees room for the part; for each step see `walk`.
    unsafe { finish::<W, K>(&mut lane, a, b, part, emit) };
    lane.at - at
}

/// Completes a lane.
///
/// # Safety
/// `emit` has room for the part.
unsafe fn finish<W: Walk, K: Word>(
    lane: &mut Lane<K>,
    a: &[K],
    b: &[K],
    part: Part,
    emit: &mut impl Emit<K>,
) {
    loop {
        let safe = lane.safe();
        if safe == 0 {
            break;
        }
        for _ in 0..safe {
            // SAFETY: both sides have `safe` keys; for the room see `walk`.
            unsafe { lane.step::<W>(a, b, emit) };
        }
    }
    if W::LEFT_ALONE {
        for (i, &key) in a.iter().enumerate().take(lane.i_end).skip(lane.i) {
            let step = W::step(true, false, key, key, &mut lane.state);
            // SAFETY: `i` is a left rank; there is room for a tuple of each left rank of the part.
            unsafe { emit.write_at(lane.at, i, 0, key, true, false) };
            lane.at += usize::from(step.emit);
        }
    }
    if W::RIGHT_ALONE {
        for (j, &key) in b.iter().enumerate().take(part.right.1).skip(lane.j) {
            let step = W::step(false, true, key, key, &mut lane.state);
            // SAFETY: `j` is a right rank; there is room for a tuple of each right rank of the part.
            unsafe { emit.write_at(lane.at, 0, j, key, false, true) };
            lane.at += usize::from(step.emit);
        }
    }
}

/// Evaluates an expression with a type as the walk of a set operation.
macro_rules! with_set_walk {
    ($operation:expr, $rule:expr, $walk:ident => $body:expr) => {{
        use $crate::rules::{SetOperation, SetRule};
        match ($operation, $rule) {
            (SetOperation::Union, SetRule::Set) => with_set_walk!(@one UnionSet, $walk => $body),
            (SetOperation::Union, SetRule::Multiset) => with_set_walk!(@one UnionMultiset, $walk => $body),
            (SetOperation::Intersection, SetRule::Set) => {
                with_set_walk!(@one IntersectionSet, $walk => $body)
            }
            (SetOperation::Intersection, SetRule::Multiset) => {
                with_set_walk!(@one IntersectionMultiset, $walk => $body)
            }
            (SetOperation::Difference, SetRule::Set) => with_set_walk!(@one DifferenceSet, $walk => $body),
            (SetOperation::Difference, SetRule::Multiset) => {
                with_set_walk!(@one DifferenceMultiset, $walk => $body)
            }
        }
    }};
    (@one $one:ident, $walk:ident => $body:expr) => {{
        type $walk = $crate::memory::walk::$one;
        $body
    }};
}
pub(crate) use with_set_walk;

/// Evaluates an expression with a type as the walk of a join of unique right keys.
macro_rules! with_join_walk {
    ($how:expr, $walk:ident => $body:expr) => {{
        use $crate::rules::How;
        match $how {
            How::Inner | How::Semi => with_join_walk!(@one Semi, $walk => $body),
            How::Left => with_join_walk!(@one LeftOuter, $walk => $body),
            How::Right => with_join_walk!(@one RightOuter, $walk => $body),
            How::Full => with_join_walk!(@one FullOuter, $walk => $body),
            How::Anti => with_join_walk!(@one Anti, $walk => $body),
        }
    }};
    (@one $one:ident, $walk:ident => $body:expr) => {{
        type $walk = $crate::memory::walk::$one;
        $body
    }};
}
pub(crate) use with_join_walk;
