//! Narrowed thread groups: how many lanes of a warp search for a query together (Harmonia, section 4.2).
//!
//! Fewer lanes compare fewer keys that need not be compared, but more queries share a warp, which takes as many steps at
//! a level as the query that takes most: S. The profile is of 1,000 queries as they stand after sorting: windows of a
//! warp's queries, at random places, as far apart as the batch's queries are, in any order within what partial sorting
//! leaves unsorted. As ranks say which slot of each node on its path a query meets, no key is read.
//!
//! The paper's rule (Equation 4) halves the group as long as 2 S_before / S_after is not below 1, over the last levels,
//! which counts comparisons alone. Ours adds, in units of a comparison step of a group, what a level costs however few keys
//! are compared (the step down, adding up within the group) and what a step costs however many groups share it, and takes
//! the group with the least time a query. Its three numbers are fitted to an H200: fanouts 8 to 128, fills of 50 to 100%,
//! 2^23 and 2^26 keys.

use super::Scan;
use pleach_format::harmonia::HarmoniaGeometry;

/// Queries of a window: those that a warp answers.
const WINDOW: u64 = 32;
/// Windows: about 1,000 queries.
const WINDOWS: u64 = 32;
/// Levels, from the leaves up, that the paper's rule looks at.
const LAST_LEVELS: usize = 2;
/// What a level costs beside its comparisons, in comparison steps.
const LEVEL_STEPS: f64 = 3.0;
/// What adding up costs for each doubling of a group, a level.
const FOLD_STEPS: f64 = 3.5;
/// Share of a step that does not get less when more queries share a warp.
const SHARED_STEPS: f64 = 1.0;

/// Numbers in no order.
fn mix(i: u64) -> u64 {
    let x = i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ x >> 31
}

/// How queries of a batch stand beside each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbours {
    /// Queries of the batch.
    pub(crate) queries: u64,
    /// Tuples among which queries stand in any order: all of them if nothing is sorted.
    pub(crate) unsorted: u64,
}

/// Keys of the nodes on a query's path that are below it, of the root first, for windows of queries.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    windows: Vec<Vec<Vec<u32>>>,
    slots: u32,
}

impl Profile {
    pub(crate) fn new(geometry: &HarmoniaGeometry, neighbours: Neighbours) -> Self {
        let tuples = geometry.tuples.max(1);
        let unsorted = neighbours.unsorted.clamp(1, tuples);
        let window = |number: u64| {
            let start = mix(number) % tuples;
            let query = |at: u64| {
                // The at-th query behind the first one of the window.
                let ahead = u128::from(at) * u128::from(tuples) / u128::from(neighbours.queries.max(1));
                let sorted = (start + ahead as u64) % tuples;
                let within = mix(mix(number) ^ at) % unsorted;
                let rank = (sorted / unsorted * unsorted + within).min(tuples - 1);
                Self::path(geometry, rank)
            };
            (0..WINDOW).map(query).collect()
        };
        Self { windows: (0..WINDOWS).map(window).collect(), slots: geometry.fanout - 1 }
    }

    /// Keys below the key of a rank, in each node on the way to it.
    fn path(geometry: &HarmoniaGeometry, rank: u64) -> Vec<u32> {
        let full = u64::from(geometry.node_keys);
        let mut below = vec![(rank % full) as u32];
        let mut node = rank / full;
        for _ in 1..geometry.levels.len() {
            below.push((node % (full + 1)) as u32);
            node /= full + 1;
        }
        below.reverse();
        below
    }

    /// Keys below the queries at each level, root first.
    #[cfg(test)]
    fn levels(&self) -> usize {
        self.windows[0][0].len()
    }

    /// S of each level for groups of so many lanes, each of which compares `keys` at a step: steps of the slowest
    /// query of those that share a warp, on average.
    pub(crate) fn steps(&self, lanes: u32, keys: u32) -> Vec<f64> {
        let levels = self.windows.first().and_then(|window| window.first()).map_or(0, Vec::len);
        let together = (WINDOW / u64::from(lanes)).max(1) as usize;
        let mut sums = vec![0u64; levels];
        let mut rounds = 0;
        for round in self.windows.iter().flat_map(|window| window.chunks(together)) {
            rounds += 1;
            for (level, sum) in sums.iter_mut().enumerate() {
                let most = round.iter().map(|path| (path[level] + 1).min(self.slots)).max();
                *sum += u64::from(most.unwrap_or(1).div_ceil(lanes * keys));
            }
        }
        sums.into_iter().map(|sum| sum as f64 / f64::from(rounds.max(1))).collect()
    }

    /// Lanes of a group by the paper's rule.
    pub(crate) fn by_equation_4(&self, fanout: u32, keys: u32) -> u32 {
        let last = |lanes: u32| -> f64 { self.steps(lanes, keys).iter().rev().take(LAST_LEVELS).sum() };
        let mut lanes = most_lanes(fanout);
        while lanes > 1 && 2.0 * last(lanes) / last(lanes / 2) >= 1.0 {
            lanes /= 2;
        }
        lanes
    }

    /// Lanes of a group by ours.
    pub(crate) fn best(&self, fanout: u32, keys: u32) -> u32 {
        let cost = |lanes: u32| -> f64 {
            let (level, width) = (LEVEL_STEPS + FOLD_STEPS * f64::from(lanes.ilog2()), f64::from(lanes));
            let of_level = |steps: f64| width * (level + steps) + SHARED_STEPS * steps;
            self.steps(lanes, keys).into_iter().map(of_level).sum()
        };
        let groups = (0..=most_lanes(fanout).ilog2()).map(|bits| 1 << bits);
        groups.min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(1)
    }
}

/// Lanes of a group that was not narrowed: one for each child, but no more than a warp has.
pub(crate) fn most_lanes(fanout: u32) -> u32 {
    1 << fanout.min(32).ilog2()
}

/// Keys that a lane compares at a step.
pub(crate) fn keys_at_once(scan: Scan, word_bytes: u8) -> u32 {
    if scan == Scan::Vectors { 16 / u32::from(word_bytes) } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(fanout: u32, percent: u32, neighbours: Neighbours) -> (HarmoniaGeometry, Profile) {
        let keys = pleach_format::harmonia::node_keys(fanout, percent);
        let geometry = HarmoniaGeometry::new(1 << 20, (fanout, keys), 8, 8).expect("sound");
        let profile = Profile::new(&geometry, neighbours);
        (geometry, profile)
    }

    #[test]
    fn sorted_queries_take_the_steps_of_one() {
        let sorted = Neighbours { queries: 1 << 40, unsorted: 1 };
        let (geometry, profile) = profile(64, 100, sorted);
        assert_eq!(profile.levels(), geometry.levels.len());
        // All queries of a warp go the same way: half as many lanes take at most twice the steps.
        for lanes in [2, 4, 8, 16, 32] {
            for (wide, narrow) in profile.steps(lanes, 1).iter().zip(profile.steps(lanes / 2, 1)) {
                assert!(narrow <= 2.0 * wide);
            }
        }
        assert_eq!(profile.by_equation_4(64, 1), 1);
    }

    #[test]
    fn unsorted_queries_want_wider_groups() {
        let unsorted = Neighbours { queries: 1 << 20, unsorted: 1 << 20 };
        let (_, profile) = profile(64, 100, unsorted);
        assert!(profile.by_equation_4(64, 1) >= 1 && profile.best(64, 1) >= 1);
        let steps = profile.steps(32, 1);
        assert!(steps.iter().all(|&steps| (1.0..=2.0).contains(&steps)));
        assert_eq!(most_lanes(8), 8);
        assert_eq!(most_lanes(100), 32);
    }
}
