//! Measures k-ary search: `kary throughput|response|scaling [--json] [--wide] [EXPONENT [REPETITIONS]]`.
//! `throughput` and `response` take sizes up to 2^EXPONENT, `--wide` keys of 8 bytes instead of 4.

use pleach_bench::kary;

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let json = args.iter().any(|arg| arg == "--json");
    let wide = args.iter().any(|arg| arg == "--wide");
    args.retain(|arg| !matches!(arg.as_str(), "--json" | "--wide"));
    let number = |at: usize, default: u32| args.get(at).and_then(|arg| arg.parse().ok()).unwrap_or(default);
    let name = args.first().map_or("throughput", String::as_str);
    let Some(what) = kary::What::named(name) else {
        eprintln!("error: arguments: {name}: throughput, response or scaling is expected");
        std::process::exit(2);
    };
    let (exponent, repetitions) = (number(1, 27).clamp(1, 31), number(2, 9) as usize);
    let table = if wide {
        kary::run::<u64>(what, exponent, repetitions)
    } else {
        kary::run::<u32>(what, exponent, repetitions)
    };
    if json {
        println!("{}", table.to_json());
    } else {
        print!("{}", table.to_text());
    }
}
