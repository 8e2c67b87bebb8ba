//! The kit itself: every file is what its sheet says, by the product and by the second builder.

use pleach::{FsckOptions, Index, OpenError, fsck};
use pleach_conformance::broken;
use pleach_conformance::case::Case;
use pleach_format::Rule;
use pleach_fsck::Code;
use std::collections::BTreeSet;

/// Every broken file is refused by its rule, or opens and has the one fault that its sheet names.
#[test]
fn broken_files_have_one_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut wrong = Vec::new();
    let mut all = broken::cases();
    all.extend(broken::large());
    for Case { name, sheet, bytes } in &all {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        let rule = match Index::open(&path) {
            Ok(_) => None,
            Err(OpenError::Format { source, .. }) => {
                Some(source.rule().map_or_else(|| format!("none: {source}"), |rule| rule.to_string()))
            }
            Err(other) => panic!("{name}: {other}"),
        };
        if rule != sheet.rule {
            wrong.push(format!("{name}: refused by {rule:?}, wanted {:?}", sheet.rule));
        }
        let findings = fsck(&path, &FsckOptions::default()).expect("readable").findings;
        let codes: BTreeSet<&str> = findings.iter().map(|finding| finding.code.name()).collect();
        let wanted: BTreeSet<&str> = sheet.code.iter().map(String::as_str).collect();
        // A file that opens has one fault; one that does not may be read through its copies.
        let is_found = if sheet.rule.is_some() { wanted.is_subset(&codes) } else { wanted == codes };
        if !is_found {
            wrong.push(format!("{name}: found {findings:#?}, wanted {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
    let names: BTreeSet<&str> = all.iter().map(|case| &*case.name).collect();
    assert_eq!(names.len(), all.len(), "names differ");
    // Every rule and every code is in the kit.
    let rules: BTreeSet<&str> = all.iter().filter_map(|case| case.sheet.rule.as_deref()).collect();
    let missing: Vec<&Rule> = Rule::ALL.iter().filter(|rule| !rules.contains(rule.name())).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let codes: BTreeSet<&str> = all.iter().filter_map(|case| case.sheet.code.as_deref()).collect();
    let missing: Vec<&Code> = Code::ALL.iter().filter(|code| !codes.contains(code.name())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
