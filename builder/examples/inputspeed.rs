use pleach_builder::input::*;
use pleach_builder::source::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let raw = args[1].ends_with(".raw").then(|| {
        if args[1].contains("u32") {
            (pleach_format::KeyType::U32, pleach_format::ValueType::U32)
        } else {
            (pleach_format::KeyType::U64, pleach_format::ValueType::U64)
        }
    });
    let options = InputOptions { raw, value: args.get(2).cloned(), ..Default::default() };
    for _ in 0..5 {
        let t = std::time::Instant::now();
        let mut s = open(&[args[1].clone().into()], &options).unwrap();
        let mut chunk = Chunk::new(s.schema().key_type, s.schema().value_type);
        let mut rows = 0usize;
        let mut x = 0u64;
        loop {
            s.next_chunk(&mut chunk, 1 << 16).unwrap();
            if chunk.is_empty() {
                break;
            }
            rows += chunk.len();
            if let Column::U64(k) = &chunk.keys {
                x ^= k[k.len() - 1];
            }
        }
        let d = t.elapsed().as_secs_f64();
        let b = std::fs::metadata(&args[1]).unwrap().len() as f64;
        println!(
            "{rows} rows {:.3} s {:.1} Mrows/s {:.2} GB/s of file ({x:x})",
            d,
            rows as f64 / d / 1e6,
            b / d / 1e9
        );
    }
}
