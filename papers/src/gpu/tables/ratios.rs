//! Fields of rows that follow from other rows of the same report.

use pleach_bench::gpu::{GpuReport, GpuRow};

/// Returns the ratios of a row of a paper.
pub(super) fn of(report: &GpuReport, row: &GpuRow) -> Vec<(&'static str, Option<f64>)> {
    let parts: Vec<&str> = row.name().split('/').collect();
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    // The name with another part.
    let named = |at: usize, other: &str| {
        let parts = parts.iter().enumerate().map(|(i, part)| if i == at { other } else { part });
        parts.collect::<Vec<_>>().join("/")
    };
    let rate = |name: String| report.find(&name).and_then(|row| row.get("g_per_s"));
    let own = row.get("g_per_s");
    let over =
        |below: Option<f64>| own.zip(below.filter(|&below| below > 0.0)).map(|(own, below)| own / below);
    let (group, table) = (part(0), format!("{}/{}", part(2), part(3)));
    let mut ratios = Vec::new();
    if matches!(group, "slides" | "fast") && part(1) != "binary" {
        ratios.push(("of_binary", over(rate(named(1, "binary")))));
    }
    if group == "fast" && part(1) != "cpu" {
        ratios.push(("of_cpu", over(rate(named(1, "cpu")))));
    }
    if group == "harmonia" {
        // Queries in no order, of the tree of the same fanout and fill.
        let shape: Vec<&str> = part(1).trim_start_matches("regular-tree").split('-').skip(1).collect();
        if let [fanout, fill, ..] = shape[..] {
            let rival = format!("harmonia/regular-tree-{fanout}-{fill}-1024/{table}/asked");
            ratios.push(("of_regular", over(rate(rival))));
        }
        ratios.push(("of_thrust", over(rate(format!("peer/thrust/{table}/random")))));
        let ms = |name: String| report.find(&name).and_then(|row| row.get("ms"));
        let scatter = row.get("ms").zip(ms(named(4, "sorted")).filter(|_| part(4) == "asked"));
        ratios.push(("scatter_ms", scatter.map(|(all, sorted)| all - sorted)));
    }
    if group == "apu" {
        // The same tree on the CPU, whose rows have no place.
        let order = part(1).split('-').nth(1).unwrap_or_default();
        let rival =
            if part(1).starts_with("btree") { format!("cpu-btree-{order}") } else { "cpu".to_owned() };
        let rival = format!("apu/{rival}/{table}/{}/{}", part(4), part(5));
        ratios.push(("of_cpu", over(rate(rival)).filter(|_| !part(1).starts_with("cpu"))));
        ratios.push(("of_random", over(rate(named(5, "random"))).filter(|_| part(5) == "sorted")));
    }
    ratios
}
