//! The second reader: the bash grammar of tree-sitter. What the two readers take for different commands is unclear.
//!
//! Neither is enough alone. The grammar accepts text that bash refuses and misreads some that bash accepts; the crate's own
//! reader follows bash closely, and this check is against errors in it. It runs only on text that the own reader accepts.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use crate::script::UnclearReason;

/// The parser gets the text in pieces of this length, so that text which it scans again and again is counted.
const PIECE_BYTES: usize = 512;
/// Pieces that the parser may read for each piece of the text, beyond [`MIN_READS_COUNT`].
const MAX_READS_PER_PIECE_COUNT: usize = 20;
const MIN_READS_COUNT: usize = 1_000;
/// Bytes of text for each report of progress, which the parser makes every hundred operations, beyond
/// [`MIN_REPORTS_COUNT`].
const BYTES_PER_REPORT: usize = 10;
const MIN_REPORTS_COUNT: usize = 1_000;
/// Reserved words that the grammar takes for the names of commands.
const PREFIX_KEYWORDS: [&str; 2] = ["time", "coproc"];

/// Where and why the two readers disagree. `names` has the positions of the names of the commands that the own reader found.
pub(crate) fn disagreement(source: &str, names: &HashSet<usize>) -> Option<(UnclearReason, Range<usize>)> {
    let Some(tree) = parse(source) else { return Some((UnclearReason::TooMuchWork, 0..source.len())) };
    if tree.root_node().has_error() {
        return Some((UnclearReason::SecondReader, 0..source.len()));
    }
    let (mut starts, mut commands) = (HashSet::new(), Vec::new());
    walk(&tree, |node| {
        starts.insert(node.start_byte());
        let is_named = matches!(node.kind(), "command_name" | "declaration_command" | "unset_command")
            || node.kind() == "test_command" && source[node.byte_range()].starts_with("[ ");
        if is_named {
            commands.push(node.byte_range());
        }
        // The own reader reads the text of backticks on its own, after the removal of backslashes.
        node.kind() != "command_substitution" || !source[node.byte_range()].starts_with('`')
    });
    let is_unknown = |range: &Range<usize>| {
        !names.contains(&range.start)
            && !PREFIX_KEYWORDS.contains(&source.get(range.clone()).unwrap_or_default())
    };
    let unknown = commands.into_iter().find(is_unknown);
    let missing =
        names.iter().filter(|start| !starts.contains(*start)).min().map(|start| *start..source.len());
    unknown.or(missing).map(|range| (UnclearReason::SecondReader, range))
}

fn parse(source: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let reads_left = Cell::new(MIN_READS_COUNT + source.len() / PIECE_BYTES * MAX_READS_PER_PIECE_COUNT);
    let mut reports_left = MIN_REPORTS_COUNT + source.len() / BYTES_PER_REPORT;
    let mut read = |at: usize, _| {
        // The parser must not see a part of a character: it would read beyond an empty next piece.
        let end = source.floor_char_boundary(at.saturating_add(PIECE_BYTES));
        reads_left.set(reads_left.get().saturating_sub(1));
        // Without reads left the text ends here, and the next report of progress stops the parser.
        let is_spent = reads_left.get() == 0;
        source.get(at..end).filter(|_| !is_spent).unwrap_or_default()
    };
    let mut progress = |_: &ParseState| {
        reports_left = reports_left.saturating_sub(1);
        if reports_left == 0 || reads_left.get() == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let tree = parser.parse_with_options(&mut read, None, Some(options))?;
    (reads_left.get() > 0).then_some(tree)
}

/// Visits all nodes without recursion; `enter` says whether to descend.
fn walk<'a>(tree: &'a Tree, mut enter: impl FnMut(Node<'a>) -> bool) {
    let mut cursor = tree.walk();
    loop {
        if enter(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}
