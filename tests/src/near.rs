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
