//! Tables: a row a line, cells without padding. A table that holds another is only there for its layout.

use super::writer::Writer;

#[derive(Default)]
pub(super) struct Table {
    rows: usize,
    /// How many cells the open row has; nothing between rows.
    cells: Option<usize>,
    in_cell: bool,
    /// It holds a table, so its cells are blocks.
    layout: bool,
}

/// Tables in tables in tables are layout whatever they hold.
const DEEPEST: usize = 16;

impl Writer {
    /// Whether the next words belong into a cell.
    pub(super) fn in_cell(&self) -> bool {
        self.tables.last().is_some_and(|table| table.in_cell && !table.layout)
    }

    pub(super) fn start_table(&mut self) {
        if let Some(outer) = self.tables.last_mut() {
            if outer.in_cell && !outer.layout && self.out.ends_with("| ") {
                self.out.truncate(self.out.len() - 2);
            }
            outer.layout = true;
        }
        self.paragraph();
        if self.tables.len() < DEEPEST {
            self.tables.push(Table::default());
        }
    }

    pub(super) fn end_table(&mut self) {
        self.end_row();
        self.tables.pop();
        self.paragraph();
    }

    pub(super) fn start_row(&mut self) {
        self.end_row();
        if let Some(table) = self.tables.last_mut() {
            table.cells = Some(0);
        }
        self.line();
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
            self.line();
            self.before_words();
            self.out.push_str(&format!("|{}", "---|".repeat(cells)));
        }
        self.line();
    }

    pub(super) fn start_cell(&mut self) {
        self.end_cell();
        let Some(table) = self.tables.last_mut() else { return };
        if table.layout {
            self.line();
            return;
        }
        let first = table.cells.is_none_or(|cells| cells == 0);
        *table.cells.get_or_insert(0) += 1;
        if first {
            self.line();
            self.before_words();
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
