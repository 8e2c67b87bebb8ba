//! Tests of the list of rows, of their record, and of whole texts.

use super::Text;
use super::row::whole_text;
use super::rows::{ROWS, limits};

/// Every text of a kernel has a row, and names differ.
#[test]
fn every_text_has_one_row() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels");
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").file_name());
    let mut files: Vec<String> = files.map(|name| name.into_string().expect("UTF-8")).collect();
    files.retain(|name| name.ends_with(".cu"));
    files.sort_unstable();
    let mut names: Vec<&str> = ROWS.iter().map(|row| row.text.name).collect();
    names.sort_unstable();
    assert_eq!(names, files);
}

#[test]
fn the_record_has_no_search_of_ours_that_spills() {
    let (_, limits) = limits::recorded();
    for ((source, entry, word), uses) in limits.iter().filter(|(row, _)| row.0 == "spine.cu") {
        for used in uses {
            let what = format!("{source} {entry} {word}: {used}");
            assert!(used.stack_bytes + used.spilled_bytes == 0, "{what}");
        }
    }
}

#[test]
fn messages_name_the_right_file() {
    let part = |name, text| Text { name, text };
    let text = whole_text(&[part("a.cuh", "1\n2"), part("b.cuh", "3")], ("c.cu", "4"));
    let names = text.lines().filter(|line| line.starts_with("#line"));
    let wanted = ["common.cuh", "a.cuh", "b.cuh", "c.cu"].map(|name| format!("#line 1 \"{name}\""));
    assert!(names.eq(wanted.iter().map(String::as_str)));
    assert!(text.ends_with("#line 1 \"a.cuh\"\n1\n2\n#line 1 \"b.cuh\"\n3\n#line 1 \"c.cu\"\n4\n"));
}
