//! A file of the kit with the answers that are due: `NAME.pleach` and `NAME.json`.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Answer to a request about a damaged file: any, but a driver must give one.
pub const ANY: &str = "any";

/// What a file is asked, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// The lowest level that reads the file, or that finds its fault.
    pub level: u8,
    /// What is special about the file, in one sentence.
    pub about: String,
    /// The rule by which it is refused.
    pub rule: Option<String>,
    /// What a check of the whole file finds.
    pub code: Option<String>,
    /// Requests, and the answers that are due.
    pub exchange: Vec<(String, String)>,
}

/// A file of the kit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name, without a suffix.
    pub name: String,
    /// What it is asked.
    pub sheet: Sheet,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Sheet {
    /// Reports whether something is wrong with the file.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.rule.is_some() || self.code.is_some()
    }

    /// Returns the text of the JSON file: a line for each pair.
    #[must_use]
    pub fn to_json(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let mut text = format!("{{\n\"level\": {},\n\"about\": {},\n", self.level, quoted(&self.about));
        for (name, member) in [("rule", &self.rule), ("code", &self.code)] {
            if let Some(member) = member {
                let _ = writeln!(text, "\"{name}\": {},", quoted(member));
            }
        }
        let pairs: Vec<String> =
            self.exchange.iter().map(|(request, answer)| json!([request, answer]).to_string()).collect();
        let _ = writeln!(text, "\"exchange\": [\n{}\n]\n}}", pairs.join(",\n"));
        text
    }

    /// Reads the text of a JSON file.
    ///
    /// # Errors
    /// If it is no JSON, or a member is missing.
    pub fn from_json(text: &str) -> Result<Self> {
        let all: Value = serde_json::from_str(text)?;
        let word = |name: &str| all[name].as_str().map(str::to_owned);
        let pairs = all["exchange"].as_array().context("no `exchange`")?;
        let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
            Some([Value::String(request), Value::String(answer)]) => Ok((request.clone(), answer.clone())),
            _ => bail!("{pair} is no pair of a request and an answer"),
        };
        let level = all["level"].as_u64().and_then(|level| u8::try_from(level).ok());
        Ok(Self {
            level: level.context("no `level`")?,
            about: word("about").context("no `about`")?,
            rule: word("rule"),
            code: word("code"),
            exchange: pairs.iter().map(pair).collect::<Result<_>>()?,
        })
    }
}

impl Case {
    /// Returns the folder of the kit that the file belongs to.
    #[must_use]
    pub fn folder(&self) -> &'static str {
        if self.sheet.is_broken() { "broken" } else { "valid" }
    }

    /// Writes both files below a folder.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, root: &Path) -> Result<()> {
        let folder = root.join(self.folder());
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        for (suffix, bytes) in [("pleach", &self.bytes[..]), ("json", self.sheet.to_json().as_bytes())] {
            let path = folder.join(format!("{}.{suffix}", self.name));
            fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

/// Finds the files of a kit, in the order of their names, valid ones first. Returns the path of each file, and its
/// sheet.
///
/// # Errors
/// If there are none, a sheet is missing, or it cannot be read.
pub fn find(root: &Path) -> Result<Vec<(PathBuf, Sheet)>> {
    let mut found = Vec::new();
    for folder in ["valid", "broken"] {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut paths = paths?;
        paths.retain(|path| path.extension().is_some_and(|suffix| suffix == "pleach"));
        paths.sort();
        for path in paths {
            let sheet = path.with_extension("json");
            let text = fs::read_to_string(&sheet).with_context(|| sheet.display().to_string())?;
            found.push((path, Sheet::from_json(&text).with_context(|| sheet.display().to_string())?));
        }
    }
    if found.is_empty() {
        bail!("no files of a kit in {}: it has the folders valid and broken", root.display());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sheets_read_back() {
        let exchange = [("tuples", "tuples 0"), ("name key", "text x22")];
        let sheet = Sheet {
            level: 2,
            about: "A \"quoted\" word.".to_owned(),
            rule: Some("magic".to_owned()),
            code: None,
            exchange: exchange.map(|(request, answer)| (request.to_owned(), answer.to_owned())).to_vec(),
        };
        assert_eq!(Sheet::from_json(&sheet.to_json()).expect("reads"), sheet);
        for text in ["", "{}", "{\"level\": 1, \"about\": \"\", \"exchange\": [[\"tuples\"]]}"] {
            assert!(Sheet::from_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_kit_without_files_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(find(folder.path()).is_err());
    }
}
