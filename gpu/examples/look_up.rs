//! Looks keys up on a GPU, and says so if there is none.

use pleach::{Bitmap, Builder, Map};
use pleach_gpu::{Gpu, GpuTable};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let devices = match pleach_gpu::devices() {
        Ok(devices) => devices,
        Err(unavailable) => {
            println!("{unavailable}");
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("squares.pleach");
    Builder::new().build(&path, (0..1_000_000u64).map(|number| (number, number * number)))?;
    let squares: Map<u64, u64> = Map::open(&path)?;

    // The tuple lines are copied to the device. The map stays usable beside it.
    let gpu = Gpu::open(devices[0].ordinal)?;
    let table = GpuTable::new(squares.index(), &gpu)?;
    let keys: Vec<u64> = (0..500_000).map(|number| number * 3).collect();
    let (mut values, mut present) = (vec![0; keys.len()], vec![0u64; keys.len().div_ceil(64)]);
    let found = table.get_batch(&keys, &mut values, &mut present)?;

    // The CPU gives the same answers.
    let (mut expected, mut there) = (vec![0; keys.len()], Bitmap::default());
    assert_eq!(squares.get_batch(&keys, &mut expected, &mut there)?, found);
    assert!(values == expected && present == there.as_words());
    println!("{}: {found} of {} keys", devices[0].name, keys.len());
    Ok(())
}
