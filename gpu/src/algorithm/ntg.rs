//! Narrowed thread groups: the number of lanes of a warp that search for a query together (Harmonia, section
//! 4.2).
//!
//! Fewer lanes compare fewer keys in vain. But more queries share a warp, which takes as many steps at a
//! level as its slowest query: S.
//!
//! S is found from a profile of 1,000 queries in their order after sorting: windows of a warp's queries, at
//! random places, spaced as the batch's queries are, in any order within the ranges that partial sorting
//! leaves unsorted. Ranks determine which slot of each node on its path a query meets, so no key is read.
//!
//! The paper's rule (Equation 4) halves the group as long as 2 S_before / S_after is not below 1, over the
//! last levels. It counts comparisons only.
//!
//! Pleach's rule adds two costs that make Equation 4 miss here: the cost of a level however few keys are
//! compared, and the longer time of a step when the queries of a warp are in more nodes. It chooses the group
//! with the least time per query. Both numbers are fitted to an H200: fanouts 8 to 128, fills of 50 to 100%,
//! sorted and unsorted queries.

use super::Scan;
use pleach_format::harmonia::HarmoniaGeometry;

/// Queries per window: those that a warp answers.
const WINDOW: u64 = 32;
/// Number of windows: about 1,000 queries.
const WINDOWS: u64 = 32;
/// Number of levels, from the leaves up, that the paper's rule considers.
const LAST_LEVELS: usize = 2;
/// Cost of a level without its comparisons, in comparison steps.
const LEVEL_STEPS: f64 = 7.0;
/// Added cost of a step for each further node that the queries of a warp are in, as a share of a step.
const NODE_STEPS: f64 = 0.08;

/// Returns pseudorandom numbers.
fn mix(i: u64) -> u64 {
    let x = i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ x >> 31
}

/// Spacing and order of the queries of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbours {
    /// Number of queries of the batch.
    pub(crate) queries: u64,
    /// Length of the ranges of tuples within which queries are in any order: all tuples if nothing is sorted.
    pub(crate) unsorted: u64,
}

/// A node on a query's path: its number within its level, and the number of its keys below the query.
#[derive(Clone, Copy, Debug)]
struct Met {
    node: u64,
    below: u32,
}

/// The nodes on the paths of windows of queries, from the root.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    windows: Vec<Vec<Vec<Met>>>,
    slots: u32,
}

/// Average costs of a warp's groups at a level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LevelSteps {
    /// S: steps of the slowest query.
    pub(crate) steps: f64,
    /// Number of nodes that the queries are in.
    nodes: f64,
}

impl Profile {
    pub(crate) fn new(geometry: &HarmoniaGeometry, neighbours: Neighbours) -> Self {
        let tuples = geometry.tuples.max(1);
        let unsorted = neighbours.unsorted.clamp(1, tuples);
        let window = |number: u64| {
            let start = mix(number) % tuples;
            let query = |at: u64| {
                // The at-th query after the first one of the window.
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

    /// Returns the nodes on the path to a rank.
    fn path(geometry: &HarmoniaGeometry, rank: u64) -> Vec<Met> {
        let full = u64::from(geometry.node_keys);
        let mut node = rank / full;
        let mut path = vec![Met { node, below: (rank % full) as u32 }];
        for _ in 1..geometry.levels.len() {
            let below = (node % (full + 1)) as u32;
            node /= full + 1;
            path.push(Met { node, below });
        }
        path.reverse();
        path
    }

    /// Returns the costs of groups of `lanes` lanes at each level, if a lane compares `keys` per step.
    pub(crate) fn steps(&self, lanes: u32, keys: u32) -> Vec<LevelSteps> {
        let levels = self.windows.first().and_then(|window| window.first()).map_or(0, Vec::len);
        let together = (WINDOW / u64::from(lanes)).max(1) as usize;
        let rounds: Vec<_> = self.windows.iter().flat_map(|window| window.chunks(together)).collect();
        let of_level = |level: usize| {
            let mut sums = (0u64, 0u64);
            for round in &rounds {
                let compared = round.iter().map(|path| (path[level].below + 1).min(self.slots)).max();
                let mut nodes: Vec<u64> = round.iter().map(|path| path[level].node).collect();
                nodes.sort_unstable();
                nodes.dedup();
                sums.0 += u64::from(compared.unwrap_or(1).div_ceil(lanes * keys));
                sums.1 += nodes.len() as u64;
            }
            let average = |sum: u64| sum as f64 / rounds.len().max(1) as f64;
            LevelSteps { steps: average(sums.0), nodes: average(sums.1) }
        };
        (0..levels).map(of_level).collect()
    }

    /// Returns the lanes per group by the paper's rule.
    pub(crate) fn by_equation_4(&self, fanout: u32, keys: u32) -> u32 {
        let last = |lanes: u32| -> f64 {
            self.steps(lanes, keys).iter().rev().take(LAST_LEVELS).map(|level| level.steps).sum()
        };
        let mut lanes = most_lanes(fanout);
        while lanes > 1 && 2.0 * last(lanes) / last(lanes / 2) >= 1.0 {
            lanes /= 2;
        }
        lanes
    }

    /// Returns the lanes per group by Pleach's rule.
    pub(crate) fn best(&self, fanout: u32, keys: u32) -> u32 {
        let cost = |lanes: u32| -> f64 {
            let time =
                |level: LevelSteps| LEVEL_STEPS + level.steps * (1.0 + NODE_STEPS * (level.nodes - 1.0));
            f64::from(lanes) * self.steps(lanes, keys).into_iter().map(time).sum::<f64>()
        };
        let groups = (0..=most_lanes(fanout).ilog2()).map(|bits| 1 << bits);
        groups.min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(1)
    }
}

/// Returns the lanes of a group that was not narrowed: one per child, at most a warp.
pub(crate) fn most_lanes(fanout: u32) -> u32 {
    1 << fanout.min(32).ilog2()
}

/// Returns the number of keys that a lane compares per step.
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
    fn sorted_queries_go_the_same_way() {
        let sorted = Neighbours { queries: 1 << 40, unsorted: 1 };
        let (geometry, profile) = profile(64, 100, sorted);
        assert_eq!(profile.steps(1, 1).len(), geometry.levels.len());
        // Half as many lanes take at most twice the steps, in the same nodes.
        for lanes in [2, 4, 8, 16, 32] {
            for (wide, narrow) in profile.steps(lanes, 1).iter().zip(profile.steps(lanes / 2, 1)) {
                assert!(narrow.steps <= 2.0 * wide.steps && (narrow.nodes, wide.nodes) == (1.0, 1.0));
            }
        }
        assert_eq!((profile.by_equation_4(64, 1), profile.best(64, 1)), (1, 1));
    }

    /// The groups in the tables in docs/lab/gpu-harmonia.md, which were measured as the best.
    #[test]
    fn unsorted_queries_want_wider_groups() {
        let unsorted = Neighbours { queries: 100_000_000, unsorted: 1 << 20 };
        let (_, profile) = profile(64, 100, unsorted);
        assert!((2..=4).contains(&profile.best(64, 1)));
        assert!(profile.steps(32, 1).iter().all(|level| (1.0..=2.0).contains(&level.steps)));
        assert_eq!((most_lanes(8), most_lanes(100)), (8, 32));
    }
}
