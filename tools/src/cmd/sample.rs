//! `pleach sample`: prints tuples drawn by chance, in key order.
//!
//! Ranks are drawn without repetition by Floyd's method (Bentley, Floyd, *A Sample of Brilliance*, 1987): N draws,
//! whatever the size of the file, and as many look-ups.

use crate::any::Any;
use crate::cli::{Global, SampleArgs, Verify};
use crate::failure::{ExitStatus, Failure};
use crate::meant::Meant;
use crate::random::Random;
use crate::search::{self, Opened};
use crate::stdout::Output;
use std::collections::BTreeSet;

pub fn run(args: &SampleArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let opened = Opened::new(&args.file, global, Verify::Touched)?;
    let (index, tuples) = (opened.index(), opened.len());
    let record = search::record(index, &args.file)?;
    let meant = Meant::of_file(index, &args.file, global)?;
    let any = Any::new(index, &args.file, record.as_ref(), &meant).of_set(opened.set());
    let mut output = Output::new();
    let mut put = |rank| {
        if any.is_left_out(rank)? {
            return Ok(());
        }
        let (key, value) = any.tuple(rank)?;
        any.put(&key, &value, global.json, &mut output.buffer);
        output.relieve()
    };
    if args.tuples >= tuples {
        (0..tuples).try_for_each(&mut put)?;
    } else {
        drawn(args.tuples, tuples, args.seed).into_iter().try_for_each(&mut put)?;
    }
    output.flush()?;
    opened.end(ExitStatus::Success, global)
}

/// Draws `count` different numbers below `end`, each set of them as probable as any other. O(count log count).
fn drawn(count: u64, end: u64, seed: u64) -> BTreeSet<u64> {
    let mut random = Random::new(seed);
    let mut ranks = BTreeSet::new();
    for last in end - count..end {
        let rank = random.below(last + 1);
        if !ranks.insert(rank) {
            ranks.insert(last);
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_drawn_as_often_as_the_others() {
        let mut counts = [0; 10];
        for seed in 0..10_000 {
            let ranks = drawn(3, 10, seed);
            assert_eq!(ranks.len(), 3);
            ranks.into_iter().for_each(|rank| counts[rank as usize] += 1);
        }
        // 3,000 of each are expected, with a deviation of 46.
        assert!(counts.iter().all(|&count| (2_700..3_300).contains(&count)), "{counts:?}");
        assert_eq!(drawn(5, 5, 1).len(), 5);
        assert!(drawn(0, 5, 1).is_empty());
        assert_eq!(drawn(2, u64::MAX, 7), drawn(2, u64::MAX, 7), "a seed gives one sample");
    }
}
