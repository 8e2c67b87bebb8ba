//! The list of refusals in FORMAT.md is that of the code.

use pleach_format::Rule;
use std::fs;
use std::path::Path;

#[test]
fn refusals_are_those_of_the_document() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/FORMAT.md");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cells = |line: &str| -> Vec<String> {
        line.trim()
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().trim_matches('`').to_owned())
            .collect()
    };
    let mut lines = text.lines();
    let is_head = |line: &&str| line.starts_with('|') && cells(line).iter().take(2).eq(["number", "name"]);
    lines.find(|line| is_head(line)).expect("a table of number and name");
    let rows: Vec<Vec<String>> = lines.skip(1).take_while(|line| line.starts_with('|')).map(cells).collect();
    let documented: Vec<(&str, &str)> = rows.iter().map(|row| (&*row[0], &*row[1])).collect();
    let numbers: Vec<String> = Rule::ALL.iter().map(|rule| rule.number().to_string()).collect();
    let known: Vec<(&str, &str)> =
        numbers.iter().zip(Rule::ALL).map(|(number, rule)| (&**number, rule.name())).collect();
    assert_eq!(documented, known);
}
