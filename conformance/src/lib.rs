//! The conformance kit: what shows that a reader of Pleach files is right, whoever wrote it.
//!
//! A *file of the kit* is a Pleach file, whole or broken, with a *sheet*: the requests of the protocol, and the
//! answers that are due ([`case`]). The answers come from a sorted list ([`model`]), never from a reader. A
//! [`plan`] makes a valid file by the builder; [`valid`] has the plans of the fixed kit, [`random`] makes any number
//! of others, and [`broken`] breaks one rule in each of its files.
//!
//! [`run`] asks a driver, a program that speaks the protocol over pipes, and judges its answers. [`serve`] is the
//! driver of the product. `spec/PROTOCOL.md` describes the protocol.

pub mod broken;
pub mod case;
mod damage;
pub mod model;
pub mod plan;
pub mod random;
pub mod requests;
pub mod run;
pub mod serve;
pub mod valid;
pub mod word;

use anyhow::Result;
use std::path::Path;

/// Returns all files of the fixed kit.
#[must_use]
pub fn kit() -> Vec<case::Case> {
    let mut all: Vec<case::Case> = valid::plans().iter().map(plan::Plan::case).collect();
    all.extend(broken::cases());
    all
}

/// Writes the fixed kit, and a table of it, into a folder.
///
/// # Errors
/// Those of the file system.
pub fn write_kit(folder: &Path) -> Result<()> {
    let all = kit();
    for case in &all {
        case.write(folder)?;
    }
    std::fs::write(folder.join("README.md"), readme(&all))?;
    Ok(())
}

/// Returns the table of the files of the kit.
fn readme(all: &[case::Case]) -> String {
    use std::fmt::Write as _;
    let mut text = [
        "# Files of the conformance kit",
        "",
        "`pleach-conformance kit spec/vectors` writes this folder. Each file `NAME.pleach` has a sheet",
        "`NAME.json`: what it is asked, and which answers are due. [PROTOCOL.md](../PROTOCOL.md) describes",
        "both. `pleach-conformance vectors SEED FOLDER` writes more files, which are not kept.",
        "",
        "## Valid files",
        "",
        "| file | level | what it is |",
        "|---|---|---|",
        "",
    ]
    .join("\n");
    for case in all.iter().filter(|case| !case.sheet.is_broken()) {
        let _ = writeln!(text, "| {} | {} | {} |", case.name, case.sheet.level, case.sheet.about);
    }
    text.push_str(
        &[
            "",
            "## Broken files",
            "",
            "A file that is refused breaks the rule that is named here. One that opens has the fault that a check",
            "of the whole file finds. All sums are right, except where a sum is the fault.",
            "",
            "| file | level | rule | code | what is wrong |",
            "|---|---|---|---|---|",
            "",
        ]
        .join("\n"),
    );
    for case in all.iter().filter(|case| case.sheet.is_broken()) {
        let sheet = &case.sheet;
        let word = |word: &Option<String>| word.clone().unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            case.name,
            sheet.level,
            word(&sheet.rule),
            word(&sheet.code),
            sheet.about
        );
    }
    text
}
