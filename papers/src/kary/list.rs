//! K-ary search in a sorted list: at each step k - 1 separators, spread over the remaining keys.
//!
//! The remaining lengths depend only on the number of keys. A step of length l reads every
//! ceil((l + 1) / k)-th key and leaves one part between two of them.
//!
//! If the last part is shorter, its search begins earlier, among keys already known to be below the query.
//! All queries therefore take the same ceil(log_k(n + 1)) steps, which a [`Plan`] holds, and several queries
//! take turns. Bounds do not depend on keys: each step ends inside the length that the previous step left.
//!
//! The last step has at most k - 1 keys, which are contiguous. If the list is long enough to hold a vector,
//! the step loads them and counts from the vector's start.

use super::vector::{Forms, LANES_MAX, Places, Vector};

/// One step.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Step {
    /// Places of the separators, from the start of the remaining keys; all below `length`.
    places: Places,
    /// Number of keys that remain before the step.
    length: usize,
    /// Number of keys from one separator to the next.
    stride: usize,
    /// Maximum distance that the start moves: `length` less the keys that remain after the step.
    most: usize,
}

/// The steps of a list.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Number of keys.
    keys: usize,
    /// Lengths of the halves to skip while a gather cannot reach all remaining keys.
    halves: Vec<usize>,
    steps: Vec<Step>,
    /// True if the last step loads a vector.
    loads: bool,
}

impl Plan {
    /// Creates the plan for `keys` keys and vectors of `lanes <= 16`, whose gathers reach `reach >= 1` keys.
    /// O(log keys).
    pub(crate) fn new(keys: usize, lanes: usize, reach: usize) -> Self {
        let (mut halves, mut steps) = (Vec::new(), Vec::new());
        let mut length = keys;
        while length > reach {
            halves.push(length / 2);
            length -= length / 2;
        }
        while length > 0 {
            let stride = (length + 1).div_ceil(lanes + 1);
            // Clamped separators repeat the last key, and lanes beyond `lanes` are not used.
            let place = |lane: usize| ((lane.min(LANES_MAX - 1) + 1) * stride - 1).min(length - 1) as u32;
            let places = std::array::from_fn(place);
            steps.push(Step { places, length, stride, most: length - (stride - 1) });
            length = stride - 1;
        }
        Self { keys, halves, steps, loads: keys >= lanes }
    }
}

/// Returns the ranks of a group's queries, which take turns.
///
/// # Safety
/// The caller guarantees the CPU features of `V`, as [`Vector`] requires, and that the plan is for vectors of
/// `V::LANES` lanes and a reach of at most [`super::vector::REACH`].
#[inline(always)]
pub(crate) unsafe fn group<V: Vector<W>, W: Forms, const S: usize>(
    plan: &Plan,
    keys: &[W],
    queries: &[W; S],
) -> [u64; S] {
    let mut starts = [0usize; S];
    for &half in &plan.halves {
        for s in 0..S {
            let below = keys.get(starts[s] + half - 1).is_some_and(|&key| key < queries[s]);
            starts[s] += if below { half } else { 0 };
        }
    }
    let (last, steps) = match plan.steps.split_last() {
        Some((last, steps)) if plan.loads => (Some(last), steps),
        _ => (None, plan.steps.as_slice()),
    };
    for step in steps {
        for s in 0..S {
            // A start is never beyond `keys - length`; this check guarantees it.
            let Some(left) = keys.get(starts[s]..starts[s] + step.length) else { continue };
            // SAFETY: the caller guarantees the CPU features of `V` and the plan's lanes and reach;
            // `Plan::new` guarantees that all places are below `length`, the length of `left`.
            let below = unsafe { V::below_at(left, &step.places, queries[s]) };
            starts[s] += (below * step.stride).min(step.most);
        }
    }
    if last.is_some() {
        for s in 0..S {
            // Keys before a start are below its query, so they count; keys after the remaining ones do not.
            let start = starts[s].min(plan.keys - V::LANES);
            let Some(left) = keys.get(start..start + V::LANES) else { continue };
            // SAFETY: the caller guarantees the CPU features of `V`; `left` has `LANES` words.
            starts[s] = start + unsafe { V::below(left, queries[s]) };
        }
    }
    std::array::from_fn(|s| starts[s] as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever keys decide, every step stays inside and the steps end.
    #[test]
    fn steps_stay_inside() {
        for lanes in [1usize, 2, 4, 8, 16] {
            for keys in (0..600).chain([4095, 4096, 4913, 6561, 1 << 20, (1 << 27) + 3]) {
                let plan = Plan::new(keys, lanes, usize::MAX);
                let least = (0..).find(|&steps| (lanes + 1).pow(steps) > keys).expect("a power");
                assert_eq!(plan.steps.len(), least as usize, "{keys} keys, {lanes} lanes");
                let mut length = keys;
                for step in &plan.steps {
                    assert_eq!(step.length, length);
                    assert!(step.places[..lanes].iter().all(|&place| (place as usize) < length));
                    assert!(step.places[..lanes].is_sorted());
                    length -= step.most;
                }
                assert_eq!(length, 0);
            }
        }
    }
}
