//! Floor, ceiling and nearest against a naive oracle.

use pleach::{Key, KeyType, Near, Tuples, Typed, Value, Word};
use std::fmt::Debug;

/// Returns the rank of the nearest of two tuples, by the numbers themselves.
fn nearest<K: Key>(query: K, below: K, above: K) -> bool {
    let word = |key: K| key.encode().to_u128();
    if K::TYPE == KeyType::F64 {
        let float = |key: K| f64::decode(word(key) as u64);
        return query != below && float(above) - float(query) < float(query) - float(below);
    }
    word(query).abs_diff(word(above)) < word(query).abs_diff(word(below))
}

/// Compares the batches of a view with its sorted tuples. Returns the number of answers compared.
///
/// # Panics
/// If an answer is wrong.
pub fn check<K: Key, V: Value + Debug>(
    view: &Typed<'_, K, V>,
    tuples: &[(K, V)],
    queries: &[K],
    what: &str,
) -> u64 {
    let count = queries.len();
    for near in [Near::Floor, Near::Ceiling, Near::Nearest] {
        let (mut ranks, mut keys, mut values) =
            (vec![7; count], vec![K::default(); count], vec![V::default(); count]);
        let mut present = vec![u64::MAX; count.div_ceil(64)];
        let to = Tuples { ranks: &mut ranks, keys: &mut keys, values: &mut values, present: &mut present };
        let found = view.near_batch(near, queries, to).expect("readable");
        let (mut par_ranks, mut par_keys, mut par_values) = (ranks.clone(), keys.clone(), values.clone());
        let to =
            Tuples { ranks: &mut par_ranks, keys: &mut par_keys, values: &mut par_values, present: &mut [] };
        assert_eq!(view.par_near_batch(near, queries, to).expect("readable"), found, "{what}");
        assert!(
            par_ranks == ranks && par_values == values && par_keys == keys,
            "{what}: {near:?} on all threads"
        );
        // Any one of the buffers alone.
        let (mut lone, mut lone_present) = (vec![V::default(); count], vec![u64::MAX; present.len()]);
        let to = Tuples { values: &mut lone, ..Tuples::default() };
        assert_eq!(view.near_batch(near, queries, to).expect("readable"), found, "{what}");
        let to = Tuples { present: &mut lone_present, ..Tuples::default() };
        assert_eq!(view.near_batch(near, queries, to).expect("readable"), found, "{what}");
        assert!(lone == values && lone_present == present, "{what}: {near:?} with one buffer");
        par_ranks.fill(7);
        let to = Tuples { ranks: &mut par_ranks, ..Tuples::default() };
        assert_eq!(view.par_near_batch(near, queries, to).expect("readable"), found, "{what}");
        assert!(par_ranks == ranks, "{what}: {near:?} with ranks alone");
        // A few, which go without a batch.
        for (few, at) in [1, 2, 3, 4, 5].into_iter().cycle().zip((0..count).step_by(7)).take(300) {
            let few = few.min(count - at);
            let (mut few_ranks, mut few_keys) = ([7; 5], [K::default(); 5]);
            let (mut few_values, mut few_present) = ([V::default(); 5], [u64::MAX]);
            let to = Tuples {
                ranks: &mut few_ranks[..few],
                keys: &mut few_keys[..few],
                values: &mut few_values[..few],
                present: &mut few_present,
            };
            let found = view.near_batch(near, &queries[at..at + few], to).expect("readable");
            let range = at..at + few;
            assert_eq!(few_ranks[..few], ranks[range.clone()], "{what}: {near:?} of {few}");
            assert_eq!(
                (&few_keys[..few], &few_values[..few]),
                (&keys[range.clone()], &values[range.clone()])
            );
            assert_eq!(found, ranks[range].iter().filter(|&&rank| rank != u64::MAX).count());
            assert_eq!(found, few_present[0].count_ones() as usize);
        }
        let mut expected_found = 0;
        for (at, &query) in queries.iter().enumerate() {
            let below = tuples.partition_point(|(key, _)| key.encode() <= query.encode()).checked_sub(1);
            let above = tuples.partition_point(|(key, _)| key.encode() < query.encode());
            let above = (above < tuples.len()).then_some(above);
            let expected = match (near, below, above) {
                (Near::Floor, below, _) => below,
                (Near::Ceiling, _, above) => above,
                (Near::Nearest, Some(below), Some(above))
                    if !nearest(query, tuples[below].0, tuples[above].0) =>
                {
                    Some(below)
                }
                (Near::Nearest, below, above) => above.or(below),
            };
            let context = || format!("{what}: {near:?} of query {at} = {query:?}");
            let tuple = expected.map(|rank| tuples[rank]).unwrap_or_default();
            assert_eq!(ranks[at], expected.map_or(u64::MAX, |rank| rank as u64), "{}", context());
            assert_eq!((keys[at], values[at]), tuple, "{}", context());
            assert_eq!(present[at / 64] >> (at % 64) & 1 == 1, expected.is_some(), "{}", context());
            expected_found += usize::from(expected.is_some());
        }
        assert_eq!(found, expected_found, "{what}: {near:?}");
    }
    3 * count as u64
}
