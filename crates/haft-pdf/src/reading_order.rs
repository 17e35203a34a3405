//! Reading order: divides runs of text into columns, columns into lines.

use std::collections::HashMap;

use crate::PdfError;
use crate::budget::WorkBudget;
use crate::layout::{SPACE_GAP_EMS, TextRun};

/// Nesting of columns in columns.
const MAX_COLUMN_DEPTH: u32 = 3;
/// Candidates for the left edge of a column that are tried.
const MAX_EDGES: usize = 8;
/// Runs that must begin at the same position to make it the edge of a column.
const MIN_COLUMN_RUNS: usize = 4;
/// Positions are the same for this purpose if they differ by less, in points.
const EDGE_TOLERANCE_POINTS: f64 = 3.0;
/// A run in the right column may begin this much left of the edge, in points.
const LEFT_OF_EDGE_POINTS: f64 = 0.5;
/// A run in the left column may reach this far over the edge.
const MAX_OVERLAP_EMS: f64 = 0.2;
/// The mean width of runs in running text. Those of tables are narrower.
const MIN_PROSE_WIDTH_EMS: f64 = 7.0;
/// Runs in a row of their own at the top or bottom: running heads and page numbers.
const MAX_MARGIN_RUNS: usize = 3;
/// The distance from such a row to the rest of the page.
const MIN_MARGIN_EMS: f64 = 1.7;
/// Base lines that are closer are the same.
const SAME_LINE_EMS: f64 = 0.2;
/// Runs whose base lines are closer are on one line, raised or lowered.
const MAX_LINE_SHIFT_EMS: f64 = 0.45;
/// A paragraph begins where lines are further apart, relative to the median distance and to the font size.
const PARAGRAPH_GAP_RATIO: f64 = 1.3;
const PARAGRAPH_GAP_EMS: f64 = 1.4;
/// A gap in a line that is wider separates cells of a table.
const CELL_GAP_EMS: f64 = 1.5;
const CELL_SEPARATOR: &str = "   ";
/// The same text at this distance is drawn twice, as a shadow or to look bold.
const SAME_TEXT_EMS: f64 = 0.3;

/// Returns the text of the runs as a person would read it.
pub(crate) fn text(runs: &[TextRun], budget: &WorkBudget<'_>) -> Result<String, PdfError> {
    let mut head: Vec<&TextRun> = runs.iter().collect();
    sort_from_top(&mut head);
    // Heads and page numbers belong to no column.
    let foot = head.split_off(head.len() - margin_runs(head.iter().rev().copied()));
    let body = head.split_off(margin_runs(head.iter().copied()));
    let mut blocks = vec![head];
    split_columns(body, 0, budget, &mut blocks)?;
    blocks.push(foot);
    let texts: Vec<String> =
        blocks.iter().map(|block| block_text(block)).filter(|text| !text.is_empty()).collect();
    Ok(texts.join("\n\n"))
}

fn sort_from_top(runs: &mut [&TextRun]) {
    runs.sort_by(|one, two| two.base.total_cmp(&one.base).then(one.left.total_cmp(&two.left)));
}

/// Returns the number of runs in the first row if it is short and apart from the rest.
fn margin_runs<'r>(mut runs: impl Iterator<Item = &'r TextRun>) -> usize {
    let Some(first) = runs.next() else { return 0 };
    for (count, run) in (1..=MAX_MARGIN_RUNS).zip(runs) {
        let distance = (run.base - first.base).abs();
        if distance > MIN_MARGIN_EMS * first.size.max(run.size) {
            return count;
        }
        if distance > SAME_LINE_EMS * first.size {
            return 0;
        }
    }
    0
}

/// Divides runs, sorted from the top, into blocks that are each read line by line.
fn split_columns<'r>(
    runs: Vec<&'r TextRun>,
    depth: u32,
    budget: &WorkBudget<'_>,
    blocks: &mut Vec<Vec<&'r TextRun>>,
) -> Result<(), PdfError> {
    let edge = if depth < MAX_COLUMN_DEPTH { column_edge(&runs, budget)? } else { None };
    let Some(edge) = edge else {
        blocks.push(runs);
        return Ok(());
    };
    let mut columns = (Vec::new(), Vec::new());
    let mut across = Vec::new();
    for run in runs {
        match column_side(run, edge) {
            ColumnSide::Across => {
                push_columns(std::mem::take(&mut columns), depth, budget, blocks)?;
                across.push(run);
                continue;
            }
            ColumnSide::Left => columns.0.push(run),
            ColumnSide::Right => columns.1.push(run),
        }
        if !across.is_empty() {
            blocks.push(std::mem::take(&mut across));
        }
    }
    push_columns(columns, depth, budget, blocks)?;
    if !across.is_empty() {
        blocks.push(across);
    }
    Ok(())
}

/// Adds two columns one after the other, or row by row if they are those of a table.
fn push_columns<'r>(
    (left, right): (Vec<&'r TextRun>, Vec<&'r TextRun>),
    depth: u32,
    budget: &WorkBudget<'_>,
    blocks: &mut Vec<Vec<&'r TextRun>>,
) -> Result<(), PdfError> {
    if is_prose(&left) && is_prose(&right) {
        split_columns(left, depth + 1, budget, blocks)?;
        return split_columns(right, depth + 1, budget, blocks);
    }
    let mut rows = left;
    rows.extend(right);
    if !rows.is_empty() {
        sort_from_top(&mut rows);
        blocks.push(rows);
    }
    Ok(())
}

enum ColumnSide {
    Left,
    Right,
    Across,
}

fn column_side(run: &TextRun, edge: f64) -> ColumnSide {
    if run.left >= edge - LEFT_OF_EDGE_POINTS {
        ColumnSide::Right
    } else if run.right <= edge + MAX_OVERLAP_EMS * run.size {
        ColumnSide::Left
    } else {
        ColumnSide::Across
    }
}

/// Returns the left edge of a second column if there is one.
fn column_edge(runs: &[&TextRun], budget: &WorkBudget<'_>) -> Result<Option<f64>, PdfError> {
    budget.spend(1 + runs.len() as u64)?;
    let mut starts: HashMap<i64, (usize, f64)> = HashMap::new();
    for run in runs {
        let start = starts.entry((run.left / EDGE_TOLERANCE_POINTS).round() as i64).or_insert((0, run.left));
        start.0 += 1;
        start.1 = start.1.min(run.left);
    }
    let mut edges: Vec<(usize, f64)> =
        starts.into_values().filter(|(count, _)| *count >= MIN_COLUMN_RUNS).collect();
    edges.sort_by(|one, two| two.0.cmp(&one.0).then(one.1.total_cmp(&two.1)));
    let mut best: Option<(usize, f64)> = None;
    for (_, edge) in edges.into_iter().take(MAX_EDGES) {
        budget.spend(runs.len() as u64)?;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for run in runs {
            match column_side(run, edge) {
                ColumnSide::Left => left.push(*run),
                ColumnSide::Right => right.push(*run),
                ColumnSide::Across => {}
            }
        }
        let score = left.len().min(right.len());
        if score >= MIN_COLUMN_RUNS
            && is_prose(&left)
            && is_prose(&right)
            && best.is_none_or(|(best_score, _)| score > best_score)
        {
            best = Some((score, edge));
        }
    }
    Ok(best.map(|(_, edge)| edge))
}

fn is_prose(runs: &[&TextRun]) -> bool {
    let total_ems: f64 = runs.iter().map(|run| (run.right - run.left) / run.size).sum();
    runs.len() > 1 && total_ems / runs.len() as f64 >= MIN_PROSE_WIDTH_EMS
}

/// The runs of one line.
struct TextLine<'r> {
    base: f64,
    size: f64,
    runs: Vec<&'r TextRun>,
}

/// Returns a block's text line by line; `runs` are sorted from the top.
fn block_text(runs: &[&TextRun]) -> String {
    let mut lines: Vec<TextLine<'_>> = Vec::new();
    for run in runs {
        match lines.last_mut() {
            Some(line) if line.base - run.base <= MAX_LINE_SHIFT_EMS * line.size.max(run.size) => {
                // The base line is that of the largest run.
                if run.size > line.size {
                    (line.base, line.size) = (run.base, run.size);
                }
                line.runs.push(run);
            }
            _ => lines.push(TextLine { base: run.base, size: run.size, runs: vec![run] }),
        }
    }
    let mut gaps: Vec<f64> = lines.windows(2).map(|pair| pair[0].base - pair[1].base).collect();
    gaps.sort_by(f64::total_cmp);
    let median_gap = gaps.get(gaps.len() / 2).copied().unwrap_or(0.0);
    let mut text = String::new();
    let mut previous: Option<(f64, f64)> = None;
    for line in &mut lines {
        if let Some((base, size)) = previous {
            let paragraph_gap =
                (PARAGRAPH_GAP_RATIO * median_gap).max(PARAGRAPH_GAP_EMS * size.max(line.size));
            text.push_str(if base - line.base > paragraph_gap { "\n\n" } else { "\n" });
        }
        previous = Some((line.base, line.size));
        line.runs.sort_by(|one, two| one.left.total_cmp(&two.left));
        push_line(&mut text, &line.runs);
    }
    text
}

fn push_line(text: &mut String, runs: &[&TextRun]) {
    let mut previous: Option<&TextRun> = None;
    for run in runs {
        if let Some(previous) = previous {
            if previous.text == run.text && run.left - previous.left < SAME_TEXT_EMS * run.size {
                continue;
            }
            let em = run.size.min(previous.size);
            let gap = run.left - previous.right;
            if gap > CELL_GAP_EMS * em {
                text.push_str(CELL_SEPARATOR);
            } else if gap > SPACE_GAP_EMS * em {
                text.push(' ');
            }
        }
        text.push_str(run.text.trim());
        previous = Some(run);
    }
}
