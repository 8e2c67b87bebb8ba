//! Measures the classic FAST tree: `classic build|ablation|compress|table3 [--json] [EXPONENT [REPETITIONS]]`.

use pleach_bench::classic;

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let json = args.iter().any(|arg| arg == "--json");
    args.retain(|arg| arg != "--json");
    let number = |at: usize, default: u32| args.get(at).and_then(|arg| arg.parse().ok()).unwrap_or(default);
    let what = args.first().map_or("build", String::as_str);
    let exponent = number(1, 26);
    let table = match what {
        "build" => classic::build::run(exponent, exponent - 1, number(2, 9) as usize),
        "ablation" => classic::ablation::run(&[16, exponent], number(2, 7) as usize),
        "compress" => classic::compress::run(exponent.max(4), number(2, 5) as usize),
        "table3" => classic::table3::run(&[16, number(1, 24)], number(2, 15) as usize),
        _ => {
            eprintln!("error: arguments: {what}: build, ablation, compress or table3 is expected");
            std::process::exit(2);
        }
    };
    if json {
        println!("{}", table.to_json());
    } else {
        print!("{}", table.to_text());
    }
}
