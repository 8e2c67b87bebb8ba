//! Keys as tables have them: distinct, ascending numbers of 64 bits by named formulas.
//!
//! `u` is drawn evenly from (0, 1), `g` from the normal distribution. All draws of a table come from one seeded
//! generator, so that the same name and number give the same keys on every machine; powers and logarithms are those
//! of the system's library and may differ in their last bit.

use crate::data::mix64;
use rayon::slice::ParallelSliceMut;

/// A rule that keys follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Random words: hashes.
    Uniform,
    /// 1, 2, 3, ..., each kept with probability 0.8: row ids with deletions.
    Dense20,
    /// Runs of min(u^-0.8, 10^5) consecutive ids, and gaps of u^-0.7: ids of map objects.
    OsmIds,
    /// `ms << 22 | worker (64) << 12 | number (3)`; ms rises by 1 to 3; a ms has floor(3u (sin(day) + 1.2)) ids.
    Snowflake,
    /// A shard rises by 1 to 4096, and has the keys `shard << 40 | 0..c` with c from 1 to 8192.
    Shards,
    /// 10^12 exp(2g): sizes, prices.
    LogNormal,
    /// Random words of 50 bits, then 21 keys `2^63 + i * 2^58`: one bad import.
    Outliers,
    /// Cells of a map: over 31 levels, counts are split among 4 children by weights exp(1.1g); a lone key takes
    /// random lower bits.
    Cells,
    /// Microseconds: time moves by 10^6 u^-0.9, then comes a burst of min(1/u, 50,000) events 1 to 40 apart.
    Bursts,
    /// Each key is 1 + u^-1.2 after the last one: heavy tails.
    Gaps,
    /// 20,000 blocks of 32 bits, chosen by 20,000^u, with 20 random bits from bit 12 on: address tables.
    Ipv6,
    /// Each key is `2^(64 u)`: as many keys in each power of two.
    Powers,
    /// Random words with a random number of low bits cleared: addresses with alignments, prefixes of networks.
    Prefixes,
    /// Places of a chromosome in the upper bits (24 of different lengths), 8 bits of allele in the lower ones,
    /// clustered about 10^5 genes: variants.
    Variants,
    /// 1 + u^-2 after the last: gaps without a mean.
    Wild,
    /// Eight digits of 8 bits, each of them `2^d - 1` with a random `d` below 8: crowds in crowds, on every level of
    /// a grid. For the worst that segments can be.
    Nested,
}

/// The generator of all draws: a counter through a mixer.
struct Draws(u64);

impl Draws {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix64(self.0)
    }

    /// A number from (0, 1).
    fn even(&mut self) -> f64 {
        ((self.word() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// An integer below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        crate::data::below(self.word(), bound)
    }

    /// A number of the normal distribution (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.even().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.even()).cos()
    }
}

impl Distribution {
    /// All rules; the first one is what others are compared with.
    pub const ALL: [Self; 16] = [
        Self::Uniform,
        Self::Dense20,
        Self::OsmIds,
        Self::Snowflake,
        Self::Shards,
        Self::LogNormal,
        Self::Outliers,
        Self::Cells,
        Self::Bursts,
        Self::Gaps,
        Self::Ipv6,
        Self::Powers,
        Self::Prefixes,
        Self::Variants,
        Self::Wild,
        Self::Nested,
    ];

    /// Returns the name in reports and arguments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Dense20 => "dense20",
            Self::OsmIds => "osmids",
            Self::Snowflake => "snowflake",
            Self::Shards => "shards",
            Self::LogNormal => "lognormal",
            Self::Outliers => "outliers",
            Self::Cells => "cells",
            Self::Bursts => "bursts",
            Self::Gaps => "gaps",
            Self::Ipv6 => "ipv6",
            Self::Powers => "powers",
            Self::Prefixes => "prefixes",
            Self::Variants => "variants",
            Self::Wild => "wild",
            Self::Nested => "nested",
        }
    }

    /// Returns `count` keys, ascending and distinct. They are fewer where the rule has no more.
    #[must_use]
    pub fn keys(self, count: u64) -> Vec<u64> {
        let mut draws = Draws(0x1157 + self as u64 * 0x1_0001);
        match self {
            Self::Uniform => distinct(count, |_| draws.word()),
            Self::LogNormal => distinct(count, |_| (1e12 * (2.0 * draws.normal()).exp()) as u64),
            Self::Powers => distinct(count, |_| (64.0 * draws.even()).exp2() as u64),
            Self::Prefixes => distinct(count, |_| {
                let bits = draws.below(41);
                draws.word() >> bits << bits
            }),
            Self::Outliers => {
                let far = (0..21u64).map(|i| (1 << 63) + (i << 58)).take(count as usize);
                let mut keys = distinct(count.saturating_sub(21), |_| draws.word() >> 14);
                keys.extend(far);
                keys
            }
            Self::Ipv6 => {
                let blocks: Vec<u64> = (0..20_000).map(|_| draws.word() >> 32 << 32).collect();
                distinct(count, |_| {
                    let block = 20_000f64.powf(draws.even()) as usize;
                    blocks[block.min(blocks.len() - 1)] | draws.below(1 << 20) << 12
                })
            }
            Self::Variants => variants(&mut draws, count),
            Self::Nested => distinct(count, |_| {
                let digits = draws.word();
                (0..8).fold(0, |key, digit| key << 8 | ((1 << (digits >> (8 * digit) & 7)) - 1))
            }),
            Self::Cells => {
                let mut keys = Vec::with_capacity(count as usize);
                cells(&mut draws, 0, 62, count, &mut keys);
                keys
            }
            Self::Dense20 => ascending(count, &mut draws, |draws, key| {
                let mut next = key + 1;
                while draws.even() >= 0.8 {
                    next += 1;
                }
                next
            }),
            Self::Gaps => ascending(count, &mut draws, |draws, key| {
                key.saturating_add(1).saturating_add(draws.even().powf(-1.2) as u64)
            }),
            Self::Wild => ascending(count, &mut draws, |draws, key| {
                key.saturating_add(1).saturating_add(draws.even().powi(-2) as u64)
            }),
            Self::OsmIds | Self::Snowflake | Self::Shards | Self::Bursts => self.runs(&mut draws, count),
        }
    }

    /// Keys that come in runs.
    fn runs(self, draws: &mut Draws, count: u64) -> Vec<u64> {
        let count = count as usize;
        let (mut keys, mut at) = (Vec::with_capacity(count), 0u64);
        while keys.len() < count {
            let left = (count - keys.len()) as u64;
            match self {
                Self::OsmIds => {
                    let run = draws.even().powf(-0.8).min(1e5) as u64;
                    keys.extend(at + 1..=at + run.min(left));
                    at += run + draws.even().powf(-0.7) as u64;
                }
                Self::Snowflake => {
                    at += 1 + draws.below(3);
                    let day = at as f64 / 86_400_000.0 * std::f64::consts::TAU;
                    let ids = (3.0 * draws.even() * (day.sin() + 1.2)) as u64;
                    let mut of_ms: Vec<u64> = (0..ids.min(left))
                        .map(|_| at << 22 | draws.below(64) << 12 | draws.below(3))
                        .collect();
                    of_ms.sort_unstable();
                    of_ms.dedup();
                    keys.extend(of_ms);
                }
                Self::Shards => {
                    at += 1 + draws.below(4096);
                    let keys_of_shard = 1 + draws.below(8192);
                    keys.extend((0..keys_of_shard.min(left)).map(|number| at << 40 | number));
                    if at >= (1 << 24) - 4096 {
                        break;
                    }
                }
                _ => {
                    at += (1e6 * draws.even().powf(-0.9)) as u64;
                    let burst = (1.0 / draws.even()).min(50_000.0) as u64;
                    for _ in 0..burst.min(left) {
                        at += 1 + draws.below(40);
                        keys.push(at);
                    }
                }
            }
        }
        keys
    }
}

/// Draws until there are `count` different keys, or no more of them come.
fn distinct(count: u64, mut draw: impl FnMut(u64) -> u64) -> Vec<u64> {
    let count = count as usize;
    let mut keys: Vec<u64> = Vec::with_capacity(count + count / 8);
    let mut drawn = 0;
    loop {
        let before = keys.len();
        // A little more than is missing, for those that are there already.
        let missing = count - before;
        for _ in 0..missing + missing / 64 + 16 {
            keys.push(draw(drawn));
            drawn += 1;
        }
        keys.par_sort_unstable();
        keys.dedup();
        if keys.len() >= count {
            // Which are too many must not depend on their order.
            let mut extra = keys.len() - count;
            let every = (keys.len() / extra.max(1)).max(1);
            let mut number = 0;
            keys.retain(|_| {
                number += 1;
                let out = extra > 0 && number % every == 0;
                extra -= usize::from(out);
                !out
            });
            return keys;
        }
        if keys.len() - before < missing / 1000 {
            return keys;
        }
    }
}

/// Each key follows from the last one, up to the largest number.
fn ascending(count: u64, draws: &mut Draws, next: impl Fn(&mut Draws, u64) -> u64) -> Vec<u64> {
    let (mut keys, mut key) = (Vec::with_capacity(count as usize), 0);
    while (keys.len() as u64) < count && key < u64::MAX {
        key = next(draws, key);
        keys.push(key);
    }
    keys
}

/// Puts `count` keys below a prefix whose lowest bit is `bits`.
fn cells(draws: &mut Draws, prefix: u64, bits: u32, count: u64, keys: &mut Vec<u64>) {
    if count == 0 {
        return;
    }
    if bits == 0 || count == 1 {
        keys.push(prefix | if bits == 0 { 0 } else { draws.word() >> (64 - bits) });
        return;
    }
    let weights: [f64; 4] = std::array::from_fn(|_| (1.1 * draws.normal()).exp());
    let mut weight: f64 = weights.iter().sum();
    // A cell has no more keys than numbers.
    let room = 1u64 << (bits - 2).min(62);
    let mut left = count;
    for (child, own) in weights.into_iter().enumerate() {
        let others = (3 - child as u64).saturating_mul(room);
        let share = if child == 3 { left } else { (left as f64 * own / weight).round() as u64 };
        let share = share.clamp(left.saturating_sub(others), left).min(room);
        weight -= own;
        left -= share;
        cells(draws, prefix | (child as u64) << (bits - 2), bits - 2, share, keys);
    }
}

fn variants(draws: &mut Draws, count: u64) -> Vec<u64> {
    let genes: Vec<(u64, f64)> = (0..100_000)
        .map(|_| {
            let chromosome = draws.below(24);
            let place = draws.below(250_000_000 - chromosome * 8_000_000);
            (chromosome << 32 | place, 2_000.0 * draws.normal().exp())
        })
        .collect();
    distinct(count, |_| {
        let (place, width) = genes[draws.below(genes.len() as u64) as usize];
        let near = (draws.normal() * width) as i64;
        place.saturating_add_signed(near) << 8 | draws.below(4)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ascend_are_distinct_and_always_the_same() {
        for distribution in Distribution::ALL {
            for count in [1, 100, 50_000] {
                let keys = distribution.keys(count);
                let name = distribution.name();
                assert_eq!(keys.len() as u64, count, "{name}");
                assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{name}");
                assert_eq!(keys, distribution.keys(count), "{name}");
            }
        }
    }

    #[test]
    fn names_differ() {
        let names: std::collections::BTreeSet<&str> =
            Distribution::ALL.iter().map(|each| each.name()).collect();
        assert_eq!(names.len(), Distribution::ALL.len());
    }
}
