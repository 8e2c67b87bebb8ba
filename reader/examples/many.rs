//! Looks up many keys at once: as a vector, from an iterator, and into buffers that are used again.

use pleach::{Bitmap, Builder, Map};

pub(crate) fn main() -> pleach::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("orders.pleach");
    // Every third order exists.
    Builder::new().build(&path, (0..200_000u64).map(|order| (order * 3, order as u32)))?;
    let customers: Map<u64, u32> = Map::open(&path)?;

    // The simple form. The misses of many look-ups overlap, so this takes a fraction of the time of single ones.
    let found = customers.get_many(&[0, 1, 2, 3, 600_000])?;
    assert_eq!(found, [Some(0), None, None, Some(1), None]);

    // On all cores.
    let keys: Vec<u64> = (0..300_000).collect();
    let found = customers.par_get_many(&keys)?;
    assert_eq!(found.iter().flatten().count(), 100_000);

    // From an iterator, a few thousand keys at a time.
    let mut sum = 0u64;
    for tuple in customers.many((0..300_000u64).step_by(6)) {
        let (key, value) = tuple?;
        assert_eq!(value, Some((key / 3) as u32));
        sum += u64::from(value.unwrap_or_default());
    }

    // Into buffers of the caller, which are allocated once.
    let mut values = vec![0; 1000];
    let mut present = Bitmap::default();
    for keys in keys.chunks(1000) {
        let count = customers.get_batch(keys, &mut values, &mut present)?;
        assert_eq!((present.len(), present.count_ones()), (1000, count));
        assert!(present.ones().all(|at| u64::from(values[at]) * 3 == keys[at]));
    }

    // Presence and ranks alone.
    assert_eq!(customers.contains_many(&[3, 4])?, [true, false].into_iter().collect());
    assert_eq!(customers.rank_many(&[3, 4])?, [Some(1), None]);
    println!("the sum is {sum}");
    Ok(())
}
