//! Look-ups a second between device buffers, in a file of i64 keys and values: `search_on FILE LOG2_OF_KEYS...`.
//!
//! Half of the keys are in the file. What other interfaces to a device reach is compared with this.

use pleach::Index;
use pleach_gpu::{Algorithm, Answers, DeviceBuffer, Gpu, GpuTable, Stream};

fn mix(i: u64) -> u64 {
    let x = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ x >> 31
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("search_on FILE LOG2_OF_KEYS...")?;
    let gpu = Gpu::open(0)?;
    let index = Index::open(path)?;
    let typed = index.typed::<i64, i64>()?;
    let table = GpuTable::new(&index, &gpu)?;
    let stream = Stream::new(&gpu)?;
    for size in arguments {
        let count = 1u64 << size.parse::<u32>()?;
        let ranks: Vec<u64> = (0..count).map(|i| mix(i) % index.len().max(1)).collect();
        let (mut keys, mut values) = (vec![0i64; ranks.len()], vec![0i64; ranks.len()]);
        typed.select_batch(&ranks, &mut keys, &mut values)?;
        keys.iter_mut().step_by(2).for_each(|key| *key ^= 0x55);
        let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
        let keys = DeviceBuffer::from_host(&stream, &bytes)?;
        let answers = DeviceBuffer::new(&gpu, count * 8)?;
        let bitmap = DeviceBuffer::new(&gpu, count.div_ceil(32) * 4)?;
        let asked = Answers { values: Some(&answers), present: Some(&bitmap), ..Answers::default() };
        for calls in [1, 32] {
            let mut times = Vec::new();
            for turn in 0..24 {
                let start = stream.mark()?;
                let pending: Vec<_> = (0..calls)
                    .map(|_| table.search_on(&stream, Algorithm::Auto, &keys, count, asked))
                    .collect::<Result<_, _>>()?;
                let end = stream.mark()?;
                pending.into_iter().try_for_each(pleach_gpu::Pending::wait)?;
                if turn > 3 {
                    times.push(start.milliseconds_to(&end)? / calls as f32);
                }
            }
            times.sort_by(f32::total_cmp);
            let rate = count as f32 / times[times.len() / 2] / 1e6;
            println!("search_on 2^{size}, {calls} in a row: {rate:.2} G/s");
        }
    }
    Ok(())
}
