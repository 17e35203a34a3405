//! A hint for text that is not in a file: the most similar lines, and how they differ.

use haft_tool::clip_chars;

/// Lines after these are not compared.
const MAX_COMPARED_LINES: usize = 200_000;
/// How much of a line is compared.
const MAX_COMPARED_CHARS: usize = 400;
/// How much of the similar text is shown.
const MAX_SHOWN_LINES: usize = 8;
const MAX_SHOWN_CHARS: usize = 200;
/// How much of a wanted line is quoted.
const MAX_QUOTED_CHARS: usize = 80;
/// A line that is less similar (from 0 to 1) is not shown.
const MIN_SIMILARITY: f64 = 0.5;

/// A sentence about the lines of `text` that are most similar to `wanted`.
pub(crate) fn nearest_text(text: &str, wanted: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(MAX_COMPARED_LINES).collect();
    let wanted: Vec<&str> = wanted.lines().collect();
    // The longest line is the most distinctive one.
    let (offset, longest) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    if longest.trim().len() < 2 {
        return None;
    }
    let bigrams = bigrams(longest);
    let (best, similarity) = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (at, similarity(line, longest, &bigrams)))
        .fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best });
    if similarity < MIN_SIMILARITY {
        return None;
    }
    let start = best.saturating_sub(offset);
    let found = &lines[start..(start + wanted.len()).min(lines.len())];
    let shown: Vec<String> = found
        .iter()
        .take(MAX_SHOWN_LINES)
        .map(|line| format!("  {}", clip_chars(line, MAX_SHOWN_CHARS, 0)))
        .collect();
    Some(format!(
        "The nearest text is at line {} and differs {}:\n{}",
        start + 1,
        difference(found, &wanted),
        shown.join("\n")
    ))
}

/// The first explanation under which all lines are equal, else the first line that differs.
fn difference(found: &[&str], wanted: &[&str]) -> String {
    type Normalize = fn(&str) -> String;
    let explanations: [(&str, Normalize); 6] = [
        ("in white space at the ends of lines", |line| line.trim_end().to_owned()),
        ("in indentation: tabs and spaces are mixed up", |line| {
            line.replace('\t', "    ").trim_end().to_owned()
        }),
        ("in indentation", |line| line.trim().to_owned()),
        ("in white space", |line| line.split_whitespace().collect()),
        ("in quotes or dashes: one of them has typographic ones", |line| ascii_punctuation(line.trim())),
        ("in upper and lower case", |line| line.trim().to_lowercase()),
    ];
    for (explanation, normalize) in explanations {
        let equal = |(a, b): (&&str, &&str)| normalize(a) == normalize(b);
        if found.len() == wanted.len() && found.iter().zip(wanted).all(equal) {
            return explanation.to_owned();
        }
    }
    let at = found.iter().zip(wanted).position(|(a, b)| a != b).unwrap_or(found.len().min(wanted.len()));
    match (found.get(at), wanted.get(at)) {
        (Some(_), Some(wanted)) => {
            format!("from your line {} ({:?})", at + 1, clip_chars(wanted, MAX_QUOTED_CHARS, 0))
        }
        _ => "in its end: the file stops earlier".to_owned(),
    }
}

fn ascii_punctuation(line: &str) -> String {
    line.chars()
        .map(|c| match c {
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201c}' | '\u{201d}' => '"',
            '\u{2013}' | '\u{2014}' | '\u{2212}' => '-',
            '\u{a0}' => ' ',
            c => c,
        })
        .collect()
}

/// The pairs of neighbouring characters in lower case and without white space, sorted.
fn bigrams(line: &str) -> Vec<(char, char)> {
    let chars = line.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase);
    let chars: Vec<char> = chars.take(MAX_COMPARED_CHARS).collect();
    let mut pairs: Vec<_> = chars.windows(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.sort_unstable();
    pairs
}

/// The Dice coefficient of the bigrams of two lines, from 0 to 1.
fn similarity(line: &str, wanted: &str, wanted_bigrams: &[(char, char)]) -> f64 {
    let (line, wanted) = (line.trim(), wanted.trim());
    if line == wanted {
        return 1.0;
    }
    if line.len() > wanted.len() * 3 || wanted.len() > line.len() * 3 {
        return 0.0;
    }
    let line_bigrams = bigrams(line);
    let (mut a, mut b, mut shared) = (0, 0, 0_u32);
    while a < line_bigrams.len() && b < wanted_bigrams.len() {
        match line_bigrams[a].cmp(&wanted_bigrams[b]) {
            std::cmp::Ordering::Less => a += 1,
            std::cmp::Ordering::Greater => b += 1,
            std::cmp::Ordering::Equal => (a, b, shared) = (a + 1, b + 1, shared + 1),
        }
    }
    let all = u32::try_from(line_bigrams.len() + wanted_bigrams.len()).unwrap_or(u32::MAX).max(1);
    f64::from(2 * shared) / f64::from(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn main() {\n\tlet total = sum(items);\n    println!(\u{201c}{total}\u{201d});\n}\n";

    #[test]
    fn nearest_text_has_its_line_and_difference() {
        let hint = |wanted| nearest_text(FILE, wanted).unwrap_or_default();
        assert_eq!(
            hint("    let total = sum(items);"),
            "The nearest text is at line 2 and differs in indentation: tabs and spaces are mixed up:\n  \tlet total = sum(items);"
        );
        assert!(hint("Fn Main() {").contains("line 1 and differs in upper and lower case"));
        assert!(hint("    println!(\"{total}\");").contains("line 3 and differs in quotes or dashes"));
        assert!(hint("let totals = sum(item);").contains("line 2 and differs from your line 1"));
        assert_eq!(nearest_text(FILE, "nothing like it at all, really"), None);
        assert_eq!(nearest_text("", "x"), None);
    }
}
