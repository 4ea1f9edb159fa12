//! Tables in plain text, as wide as the terminal.

use std::iter::once;

use super::html::{ColumnHead, Row, count, in_table};

/// Mark of rows that are left out.
const LEFT_OUT: &str = "…";
/// Blanks between columns.
const GAP: usize = 2;

/// A column as texts of one width.
struct Column {
    cells: Vec<String>,
    width: usize,
}

impl Column {
    fn new(head: &ColumnHead, cells: impl Iterator<Item = String>) -> Self {
        let cells: Vec<_> = once(head.name.to_owned()).chain(cells).collect();
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let padded = cells
            .into_iter()
            .map(|cell| if head.is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") });
        Self { cells: padded.collect(), width }
    }
}

/// A table of the columns that fit `width`, at least one, and how many do not.
pub fn table(head: &[ColumnHead], rows: &[Row], width: usize) -> String {
    let mut columns = Vec::new();
    let mut used = 0;
    for (index, head) in head.iter().enumerate() {
        let cells = rows.iter().map(|row| match row.as_ref().map(|cells| &cells[index]) {
            None => LEFT_OUT.to_owned(),
            Some(None) => "null".to_owned(),
            Some(Some(text)) => in_table(text),
        });
        let column = Column::new(head, cells);
        used += column.width + if index > 0 { GAP } else { 0 };
        if index > 0 && used > width {
            break;
        }
        columns.push(column);
    }
    let lines = (0..=rows.len()).map(|row| {
        let cells: Vec<&str> = columns.iter().map(|column| column.cells[row].as_str()).collect();
        cells.join(&" ".repeat(GAP)).trim_end().to_owned()
    });
    let lines: Vec<String> = lines.collect();
    let more = match head.len() - columns.len() {
        0 => String::new(),
        1 => "\n1 more column".into(),
        more => format!("\n{} more columns", count(more as u64)),
    };
    lines.join("\n") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(name: &'static str, is_number: bool) -> ColumnHead {
        ColumnHead { name, kind: "", is_number }
    }

    #[test]
    fn columns_that_do_not_fit_are_counted() {
        let heads = [head("name", false), head("n", true), head("third", false)];
        let row = |name: &str, n: Option<&str>| Some(vec![Some(name.into()), n.map(Into::into), Some("x".into())]);
        let rows = [row("a", Some("1")), None, row("\u{1b}b", None)];
        assert_eq!(table(&heads, &rows, 80), "name     n  third\na        1  x\n…        …  …\n\u{fffd}b    null  x");
        assert_eq!(table(&heads, &rows, 10), "name     n\na        1\n…        …\n\u{fffd}b    null\n1 more column");
        assert_eq!(table(&heads, &[], 1), "name\n2 more columns");
    }
}
