//! The static search tree as a map: the rank of a key, then the tuple of that rank, which is prefetched.

use crate::prefetch::prefetch;
use crate::{Built, Number, Peer, PeerError, Reader, SearchTree, answer_each, timed};

/// Keys between the prefetch and the read of a tuple.
const AHEAD: usize = 32;

struct Ranked<K, V> {
    tree: SearchTree,
    tuples: Vec<(K, V)>,
}

impl<K: Number, V: Number> Peer<K, V> for Ranked<K, V> {
    fn bytes(&self) -> u64 {
        self.tree.bytes() + (self.tuples.len() * size_of::<(K, V)>()) as u64
    }
    fn reader(&self) -> Result<Box<dyn Reader<K, V> + '_>, PeerError> {
        Ok(Box::new(RankedReader { table: self, keys: Vec::new(), ranks: Vec::new() }))
    }
}

struct RankedReader<'a, K, V> {
    table: &'a Ranked<K, V>,
    keys: Vec<u32>,
    ranks: Vec<u32>,
}

impl<K: Number, V: Number> Reader<K, V> for RankedReader<'_, K, V> {
    fn get_batch(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, PeerError> {
        self.keys.clear();
        self.keys.extend(keys.iter().map(|key| key.widen() as u32));
        self.ranks.resize(keys.len(), 0);
        self.table.tree.ranks(&self.keys, &mut self.ranks);
        let tuples = &self.table.tuples;
        let ask = |rank: u32| prefetch(tuples.as_ptr().wrapping_add(rank as usize));
        self.ranks.iter().take(AHEAD).for_each(|&rank| ask(rank));
        let ranks = &self.ranks;
        answer_each(keys.iter().copied().enumerate(), values, present, |(at, key)| {
            if let Some(&rank) = ranks.get(at + AHEAD) {
                ask(rank);
            }
            let tuple = tuples.get(ranks[at] as usize).filter(|tuple| tuple.0 == key);
            Ok(tuple.map(|tuple| tuple.1))
        })
    }
}

/// Builds the map from tuples with ascending, distinct keys of 4 bytes.
pub(crate) fn build<K: Number, V: Number>(tuples: &[(K, V)]) -> Result<Built<K, V>, PeerError> {
    if K::BYTES != 4 {
        let cause = "its keys have 4 bytes".into();
        return Err(PeerError { engine: "search-tree", operation: "build", cause });
    }
    let (table, build) = timed(|| {
        let keys: Vec<u32> = tuples.iter().map(|tuple| tuple.0.widen() as u32).collect();
        Ok::<_, PeerError>(Ranked { tree: SearchTree::new(&keys)?.0, tuples: tuples.to_vec() })
    });
    Ok(Built { peer: Box::new(table?), build, open: None })
}
