//! Figures with their dates in `docs/trust.json`, and the table that docs/TRUST.md shows of them.

use crate::targets::TARGETS;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The table is between these lines.
const BEGIN: &str = "<!-- The table is made by `cargo trust --write`. -->";
const END: &str = "<!-- End of the table. -->";

fn kept(root: &Path) -> Result<Map<String, Value>> {
    let path = root.join("docs/trust.json");
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).with_context(|| path.display().to_string()),
        Err(_) => Ok(Map::new()),
    }
}

/// Puts a figure in the place of the last one of its target.
pub fn keep(root: &Path, number: u32, figure: &str, seconds: u64) -> Result<()> {
    let mut figures = kept(root)?;
    let date = crate::lab::succeed("date", &["-u", "+%Y-%m-%d"])?.trim().to_owned();
    figures.insert(number.to_string(), json!({ "figure": figure, "date": date, "seconds": seconds }));
    put(root, figures)
}

/// Takes a figure out: its target falls short.
pub fn forget(root: &Path, number: u32) -> Result<()> {
    let mut figures = kept(root)?;
    figures.remove(&number.to_string());
    put(root, figures)
}

fn put(root: &Path, figures: Map<String, Value>) -> Result<()> {
    let mut sorted: Vec<(u32, Value)> =
        figures.into_iter().map(|(number, row)| Ok((number.parse()?, row))).collect::<Result<_>>()?;
    sorted.sort_by_key(|row| row.0);
    let figures: Map<String, Value> =
        sorted.into_iter().map(|(number, row)| (number.to_string(), row)).collect();
    fs::write(root.join("docs/trust.json"), format!("{}\n", serde_json::to_string_pretty(&figures)?))?;
    Ok(())
}

/// The table, from figures and targets.
fn table(root: &Path) -> Result<String> {
    let figures = kept(root)?;
    let mut text = String::from(
        "| command | target | method | figure | date | limits of the method |\n|---|---|---|---|---|---|\n",
    );
    for target in TARGETS {
        let row = figures.get(&target.number.to_string());
        let part =
            |name: &str| row.and_then(|row| row[name].as_str()).unwrap_or("*open*").replace('|', "\\|");
        let date = if row.is_some() { part("date") } else { String::new() };
        let method = target.method;
        writeln!(
            text,
            "| `cargo trust {}` | {} | {method} | {} | {date} | {} |",
            target.number,
            target.name,
            part("figure"),
            target.limits
        )?;
    }
    Ok(text)
}

/// The document with a new table.
fn document(root: &Path) -> Result<(String, String)> {
    let old = fs::read_to_string(root.join("docs/TRUST.md"))?;
    let (before, rest) = old.split_once(BEGIN).context("docs/TRUST.md has no place for the table")?;
    let (_, after) = rest.split_once(END).context("docs/TRUST.md has no end of the table")?;
    let new = format!("{before}{BEGIN}\n\n{}\n{END}{after}", table(root)?);
    Ok((old, new))
}

/// Puts the table into docs/TRUST.md.
pub fn write(root: &Path) -> Result<()> {
    let (_, new) = document(root)?;
    fs::write(root.join("docs/TRUST.md"), new)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_shows_what_was_measured() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the sources");
        let (old, new) = document(root).expect("readable");
        assert!(old == new, "make the table anew: cargo trust --write --short 24");
        let numbers: Vec<u32> = TARGETS.iter().map(|target| target.number).collect();
        assert_eq!(numbers, (1..=30).collect::<Vec<_>>());
        let figures = kept(root).expect("readable");
        assert!(figures.keys().all(|number| number.parse().is_ok_and(|number| numbers.contains(&number))));
    }
}
