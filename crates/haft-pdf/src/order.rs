//! Reading order: columns, lines, words.

use std::collections::HashMap;

use crate::Fault;
use crate::budget::Budget;
use crate::layout::{Piece, SPACE};

/// How often columns may be found inside columns.
const MOST_DEPTH: u32 = 3;
/// How many places a column could begin at are tried.
const MOST_EDGES: usize = 8;
/// How many pieces must begin at the same place to make it a column's edge.
const FEWEST: usize = 4;
/// Pieces of running text are this wide in the mean, in ems; those of tables are not.
const PROSE: f64 = 7.0;

/// The text of the pieces as a person would read it.
pub(crate) fn read(pieces: &[Piece], budget: &Budget<'_>) -> Result<String, Fault> {
    let mut all: Vec<&Piece> = pieces.iter().collect();
    all.sort_by(|one, two| two.base.total_cmp(&one.base).then(one.left.total_cmp(&two.left)));
    // Running heads and page numbers belong to no column.
    let foot = all.split_off(all.len() - alone(all.iter().rev().copied()));
    let body = all.split_off(alone(all.iter().copied()));
    let mut blocks = vec![all];
    columns(body, 0, budget, &mut blocks)?;
    blocks.push(foot);
    let texts: Vec<String> =
        blocks.iter().map(|block| lines(block)).filter(|text| !text.is_empty()).collect();
    Ok(texts.join("\n\n"))
}

/// How many pieces stand in a row of their own before the others.
fn alone<'p>(mut pieces: impl Iterator<Item = &'p Piece>) -> usize {
    const MOST: usize = 3;
    let Some(first) = pieces.next() else { return 0 };
    for (count, piece) in (1..=MOST).zip(pieces) {
        let apart = (piece.base - first.base).abs();
        if apart > 1.7 * first.size.max(piece.size) {
            return count;
        }
        if apart > 0.2 * first.size {
            return 0;
        }
    }
    0
}

/// Cuts pieces, sorted from above, into blocks that are each read line by line.
fn columns<'p>(
    pieces: Vec<&'p Piece>,
    depth: u32,
    budget: &Budget<'_>,
    blocks: &mut Vec<Vec<&'p Piece>>,
) -> Result<(), Fault> {
    let Some(edge) = (if depth < MOST_DEPTH { edge(&pieces, budget)? } else { None }) else {
        blocks.push(pieces);
        return Ok(());
    };
    let mut band = (Vec::new(), Vec::new());
    let mut across = Vec::new();
    for piece in pieces {
        match side(piece, edge) {
            Side::Across => {
                flush(std::mem::take(&mut band), depth, budget, blocks)?;
                across.push(piece);
                continue;
            }
            Side::Left => band.0.push(piece),
            Side::Right => band.1.push(piece),
        }
        if !across.is_empty() {
            blocks.push(std::mem::take(&mut across));
        }
    }
    flush(band, depth, budget, blocks)?;
    if !across.is_empty() {
        blocks.push(across);
    }
    Ok(())
}

/// Two columns between things that go across both.
fn flush<'p>(
    (left, right): (Vec<&'p Piece>, Vec<&'p Piece>),
    depth: u32,
    budget: &Budget<'_>,
    blocks: &mut Vec<Vec<&'p Piece>>,
) -> Result<(), Fault> {
    if is_prose(&left) && is_prose(&right) {
        columns(left, depth + 1, budget, blocks)?;
        return columns(right, depth + 1, budget, blocks);
    }
    let mut rows = left;
    rows.extend(right);
    if !rows.is_empty() {
        rows.sort_by(|one, two| two.base.total_cmp(&one.base).then(one.left.total_cmp(&two.left)));
        blocks.push(rows);
    }
    Ok(())
}

enum Side {
    Left,
    Right,
    Across,
}

fn side(piece: &Piece, edge: f64) -> Side {
    if piece.left >= edge - 0.5 {
        Side::Right
    } else if piece.right <= edge + 0.2 * piece.size {
        Side::Left
    } else {
        Side::Across
    }
}

/// Where a second column begins, if there is one.
fn edge(pieces: &[&Piece], budget: &Budget<'_>) -> Result<Option<f64>, Fault> {
    budget.steps(1 + pieces.len() as u64)?;
    let mut begins: HashMap<i64, (usize, f64)> = HashMap::new();
    for piece in pieces {
        let entry = begins.entry((piece.left / 3.0).round() as i64).or_insert((0, piece.left));
        entry.0 += 1;
        entry.1 = entry.1.min(piece.left);
    }
    let mut begins: Vec<(usize, f64)> = begins.into_values().filter(|begin| begin.0 >= FEWEST).collect();
    begins.sort_by(|one, two| two.0.cmp(&one.0).then(one.1.total_cmp(&two.1)));
    let mut best: Option<(usize, f64)> = None;
    for (_, edge) in begins.into_iter().take(MOST_EDGES) {
        budget.steps(pieces.len() as u64)?;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for piece in pieces {
            match side(piece, edge) {
                Side::Left => left.push(*piece),
                Side::Right => right.push(*piece),
                Side::Across => {}
            }
        }
        let fewer = left.len().min(right.len());
        if fewer >= FEWEST
            && is_prose(&left)
            && is_prose(&right)
            && best.is_none_or(|(score, _)| fewer > score)
        {
            best = Some((fewer, edge));
        }
    }
    Ok(best.map(|(_, edge)| edge))
}

fn is_prose(pieces: &[&Piece]) -> bool {
    let wide: f64 = pieces.iter().map(|piece| (piece.right - piece.left) / piece.size).sum();
    pieces.len() > 1 && wide / pieces.len() as f64 >= PROSE
}

/// A line while it is put together.
struct Line<'p> {
    base: f64,
    size: f64,
    pieces: Vec<&'p Piece>,
}

/// A block's text, line by line; `pieces` are sorted from above.
fn lines(pieces: &[&Piece]) -> String {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if line.base - piece.base <= 0.45 * line.size.max(piece.size) => {
                // The largest piece has the line's base; the others are raised or lowered.
                if piece.size > line.size {
                    (line.base, line.size) = (piece.base, piece.size);
                }
                line.pieces.push(piece);
            }
            _ => lines.push(Line { base: piece.base, size: piece.size, pieces: vec![piece] }),
        }
    }
    let mut gaps: Vec<f64> = lines.windows(2).map(|two| two[0].base - two[1].base).collect();
    gaps.sort_by(f64::total_cmp);
    let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(0.0);
    let mut text = String::new();
    let mut before: Option<(f64, f64)> = None;
    for line in &mut lines {
        if let Some((base, size)) = before {
            let apart = base - line.base > (1.3 * usual).max(1.4 * size.max(line.size));
            text.push_str(if apart { "\n\n" } else { "\n" });
        }
        before = Some((line.base, line.size));
        line.pieces.sort_by(|one, two| one.left.total_cmp(&two.left));
        write_line(&line.pieces, &mut text);
    }
    text
}

fn write_line(pieces: &[&Piece], text: &mut String) {
    let mut before: Option<&Piece> = None;
    for piece in pieces {
        if let Some(before) = before {
            // Shadows and false bold write the same words twice.
            if before.text == piece.text && piece.left - before.left < 0.3 * piece.size {
                continue;
            }
            let em = piece.size.min(before.size);
            let gap = piece.left - before.right;
            if gap > 1.5 * em {
                text.push_str("   ");
            } else if gap > SPACE * em {
                text.push(' ');
            }
        }
        text.push_str(piece.text.trim());
        before = Some(piece);
    }
}
