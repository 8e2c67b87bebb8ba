//! Look-ups a second on a device: `rate [LOG2_OF_TUPLES]...`, keys and values of 4 and of 8 bytes.

use pleach::{Index, Key, Value};
use pleach_builder::{BuildOptions, build_slice};
use pleach_format::Word;
use pleach_gpu::{Algorithm, Answers, DeviceBuffer, Gpu, GpuTable, Stream};

fn mix(i: u64) -> u64 {
    let x = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ x >> 31
}

fn rate<T: Key + Value + Ord>(
    gpu: &Gpu,
    count: u64,
    narrow: impl Fn(u64) -> T,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut tuples: Vec<(T, T)> = (0..count).map(|i| (narrow(mix(i)), narrow(i))).collect();
    tuples.sort_unstable();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("table.pleach");
    build_slice(&tuples, &path, &BuildOptions { sorted: true, ..BuildOptions::default() })?;
    let queries: Vec<T> = (0..1u64 << 26).map(|i| tuples[(mix(!i) % count) as usize].0).collect();
    drop(tuples);
    let index = Index::open(&path)?;
    let table = GpuTable::new(&index, gpu)?;
    let some = &queries[..1 << 20];
    let (mut values, mut present) = (vec![T::default(); some.len()], vec![0; some.len() / 64]);
    let (mut wanted, mut there) = (values.clone(), present.clone());
    index.typed::<T, T>()?.get_batch(some, &mut wanted, &mut there)?;
    let stream = Stream::new(gpu)?;
    let bytes: Vec<u8> = queries
        .iter()
        .flat_map(|key| key.encode().to_u128().to_le_bytes()[..size_of::<T>()].to_vec())
        .collect();
    let keys = DeviceBuffer::from_host(&stream, &bytes)?;
    let answers = DeviceBuffer::new(gpu, keys.bytes())?;
    let bitmap = DeviceBuffer::new(gpu, queries.len() as u64 / 8)?;
    let asked = Answers { values: Some(&answers), present: Some(&bitmap), ..Answers::default() };
    for algorithm in [Algorithm::Spine, Algorithm::Sweep] {
        let mut times = Vec::new();
        for turn in 0..8 {
            let start = stream.mark()?;
            let pending = table.search_on(&stream, algorithm, &keys, queries.len() as u64, asked)?;
            let end = stream.mark()?;
            pending.wait()?;
            if turn > 0 {
                times.push(start.milliseconds_to(&end)?);
            }
        }
        table.get_batch_by(algorithm, some, &mut values, &mut present)?;
        let is_right = values == wanted && present == there;
        times.sort_by(f32::total_cmp);
        let rate = |ms: f32| queries.len() as f32 / ms / 1e6;
        println!(
            "{algorithm:?} {} 2^{}: {:.1} G/s (best {:.1}), answers {}",
            <T as Key>::TYPE,
            count.ilog2(),
            rate(times[times.len() / 2]),
            rate(times[0]),
            if is_right { "right" } else { "WRONG" }
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = Gpu::open(0)?;
    for size in std::env::args().skip(1) {
        let count = 1 << size.parse::<u32>()?;
        rate(&gpu, count, |x| x as u32)?;
        rate(&gpu, count, |x| x)?;
    }
    Ok(())
}
