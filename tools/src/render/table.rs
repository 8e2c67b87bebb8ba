//! Tables for people: no borders, a head, and texts that are broken where a line would be too long.

use super::terminal::{HEAD, painted, styled};
use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};

/// Side of a column on which its cells begin or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// Returns a table with a head, a line for each row; cells that are wider than `columns` allows are broken into
/// several lines. Without `columns`, a row is always one line.
#[must_use]
pub fn table<R: AsRef<[String]>>(head: &[(&str, Side)], rows: &[R], columns: Option<usize>) -> String {
    let text = plain(head, rows, columns);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    format!("{}\n{}", styled(HEAD, first), painted(rest))
}

/// Returns rows without a head, in lines of at most so many columns.
#[must_use]
pub fn bare<R: AsRef<[String]>>(rows: &[R], columns: usize) -> String {
    let count = rows.first().map_or(0, |row| row.as_ref().len());
    let text = plain(&vec![("", Side::Left); count], rows, Some(columns));
    text.trim_end().to_owned()
}

/// Returns such a table without styles.
fn plain<R: AsRef<[String]>>(head: &[(&str, Side)], rows: &[R], columns: Option<usize>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    match columns {
        Some(columns) => {
            // The space behind the last column is not printed.
            let width = u16::try_from(columns + 2).unwrap_or(u16::MAX);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    if head.iter().any(|(name, _)| !name.is_empty()) {
        table.set_header(Row::from(head.iter().map(|(name, _)| *name).collect::<Vec<_>>()));
    }
    for row in rows {
        table.add_row(Row::from(row.as_ref().to_vec()));
    }
    for (column, (_, side)) in table.column_iter_mut().zip(head) {
        column.set_padding((0, 2));
        column.set_cell_alignment(match side {
            Side::Left => CellAlignment::Left,
            Side::Right => CellAlignment::Right,
        });
    }
    table.to_string().lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Returns a table of lines, the first of which is the head: the first column is aligned to the left, the others to
/// the right. It has no styles.
#[must_use]
pub fn aligned<L: AsRef<[String]>>(lines: &[L]) -> String {
    let Some((head, rows)) = lines.split_first() else { return String::new() };
    let sides = std::iter::once(Side::Left).chain(std::iter::repeat(Side::Right));
    let head: Vec<(&str, Side)> = head.as_ref().iter().map(String::as_str).zip(sides).collect();
    plain(&head, rows, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstream::adapter::strip_str;

    const HEADS: [(&str, Side); 2] = [("name", Side::Left), ("bytes", Side::Right)];

    fn rows(note: &str) -> [[String; 2]; 2] {
        [["a".to_owned(), "1,234".to_owned()], [note.to_owned(), "5".to_owned()]]
    }

    #[test]
    fn columns_are_aligned() {
        let text = table(&HEADS, &rows("longer"), None);
        assert_eq!(strip_str(&text).to_string(), "name    bytes\na       1,234\nlonger      5\n");
        assert_eq!(
            aligned(&rows("b")),
            plain(&[("a", Side::Left), ("1,234", Side::Right)], &rows("b")[1..], None)
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let note = "words ".repeat(40) + &"w".repeat(200);
        for columns in [60, 100, 200] {
            let text = strip_str(&table(&HEADS, &rows(&note), Some(columns))).to_string();
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{text}");
            assert!(text.lines().count() > 3, "{text}");
        }
        assert_eq!(table(&HEADS, &rows(&note), None).lines().count(), 3);
    }
}
