//! Tables of named numbers: what most reproductions print.

use serde_json::{Map, Value, json};

/// One measured variant: its name and what was measured, in order.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What was measured.
    pub name: String,
    /// Numbers by name.
    pub numbers: Vec<(&'static str, f64)>,
}

/// A table of cells.
#[derive(Clone, Debug)]
pub struct Table {
    /// Engine and operation: `classic-build`, `classic-ablation`, `kary-scaling`.
    pub what: &'static str,
    /// Rows.
    pub cells: Vec<Cell>,
}

impl Table {
    /// For scripts: schema `pleach-bench-1`, rows as they are in [`Table::cells`].
    #[must_use]
    pub fn to_json(&self) -> Value {
        let row = |cell: &Cell| {
            let mut row = Map::new();
            let engine = self.what.split_once('-').map_or(self.what, |(engine, _)| engine);
            row.insert("engine".to_owned(), engine.into());
            row.insert("operation".to_owned(), self.what.into());
            row.insert("variant".to_owned(), cell.name.clone().into());
            for (name, number) in &cell.numbers {
                row.insert((*name).to_owned(), ((number * 1e6).round() / 1e6).into());
            }
            Value::Object(row)
        };
        json!({
            "schema": pleach_bench::report::SCHEMA,
            "machine": pleach_bench::Machine::this().to_json(),
            "rows": self.cells.iter().map(row).collect::<Vec<_>>(),
        })
    }

    /// For people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for cell in &self.cells {
            text.push_str(&format!("{:<54}", cell.name));
            for (name, number) in &cell.numbers {
                text.push_str(&format!("  {name} {number:.3}"));
            }
            text.push('\n');
        }
        text
    }
}

/// Zeroed bytes for a tree, behind huge pages where the system gives them.
pub(crate) fn huge(bytes: usize) -> Vec<u8> {
    let mut memory = Vec::with_capacity(bytes);
    pleach_builder::classic::advise_huge(memory.spare_capacity_mut());
    memory.resize(bytes, 0);
    memory
}

/// Median of some numbers; 0 of none.
pub(crate) fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}
