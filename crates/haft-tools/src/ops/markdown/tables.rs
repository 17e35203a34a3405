//! Tables: one line per row, cells without padding. A table that contains another one is treated as layout.

use super::writer::MarkdownWriter;

#[derive(Default)]
pub(super) struct HtmlTable {
    rows: usize,
    /// The number of cells in the open row; `None` between rows.
    cells: Option<usize>,
    in_cell: bool,
    /// It contains a table, so its cells are written as blocks.
    layout: bool,
}

const MAX_TABLE_DEPTH: usize = 16;

impl MarkdownWriter {
    /// Whether text is written into a cell.
    pub(super) fn in_cell(&self) -> bool {
        self.tables.last().is_some_and(|table| table.in_cell && !table.layout)
    }

    pub(super) fn start_table(&mut self) {
        self.end_link();
        if let Some(outer) = self.tables.last_mut() {
            if outer.in_cell && !outer.layout && self.out.ends_with("| ") {
                self.out.truncate(self.out.len() - 2);
            }
            outer.layout = true;
        }
        self.paragraph_break();
        if self.tables.len() < MAX_TABLE_DEPTH {
            self.tables.push(HtmlTable::default());
        }
    }

    pub(super) fn end_table(&mut self) {
        self.end_row();
        self.tables.pop();
        self.paragraph_break();
    }

    pub(super) fn start_row(&mut self) {
        self.end_row();
        if let Some(table) = self.tables.last_mut() {
            table.cells = Some(0);
        }
        self.line_break();
    }

    pub(super) fn end_row(&mut self) {
        self.end_cell();
        let Some(table) = self.tables.last_mut() else { return };
        let Some(cells) = table.cells.take().filter(|cells| *cells > 0) else { return };
        table.rows += 1;
        if table.layout {
            return;
        }
        let first = table.rows == 1;
        self.out.push('|');
        if first {
            self.line_break();
            self.flush_spacing();
            self.out.push_str(&format!("|{}", "---|".repeat(cells)));
        }
        self.line_break();
    }

    pub(super) fn start_cell(&mut self) {
        self.end_cell();
        let Some(table) = self.tables.last_mut() else { return };
        if table.layout {
            self.line_break();
            return;
        }
        let first = table.cells.is_none_or(|cells| cells == 0);
        *table.cells.get_or_insert(0) += 1;
        if first {
            self.line_break();
            self.flush_spacing();
        }
        self.out.push_str("| ");
        if let Some(table) = self.tables.last_mut() {
            table.in_cell = true;
        }
    }

    pub(super) fn end_cell(&mut self) {
        let Some(table) = self.tables.last_mut() else { return };
        if !std::mem::take(&mut table.in_cell) || table.layout {
            return;
        }
        self.end_link();
        self.out.truncate(self.out.trim_end_matches(' ').len());
        self.out.push(' ');
    }
}
