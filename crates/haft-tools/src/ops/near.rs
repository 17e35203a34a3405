//! When a text is not in a file: what comes nearest to it, where, and how it differs.

use haft_tool::clip_chars;

/// More lines than this are not compared; the answer would come too late to help.
const MOST_LINES: usize = 200_000;
/// Below this likeness (from 0 to 1) a line is not worth showing.
const LIKENESS: f64 = 0.5;

/// The sentence to add to "not found", if anything comes near.
pub(crate) fn nearest(text: &str, wanted: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(MOST_LINES).collect();
    let wanted: Vec<&str> = wanted.lines().collect();
    let (anchor, key) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    if key.trim().len() < 2 {
        return None;
    }
    let key_pairs = pairs(key);
    let (best, likeness) = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (at, alike(line, key, &key_pairs)))
        .fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best });
    if likeness < LIKENESS {
        return None;
    }
    let start = best.saturating_sub(anchor);
    let found = &lines[start..(start + wanted.len()).min(lines.len())];
    let shown: Vec<String> =
        found.iter().take(8).map(|line| format!("  {}", clip_chars(line, 200, 0))).collect();
    Some(format!(
        "The nearest text is at line {} and differs {}:\n{}",
        start + 1,
        difference(found, &wanted),
        shown.join("\n")
    ))
}

/// How two stretches of lines differ, in words; the first explanation that makes them equal is the one.
fn difference(found: &[&str], wanted: &[&str]) -> String {
    type Normal = fn(&str) -> String;
    let explanations: [(&str, Normal); 6] = [
        ("in white space at the ends of lines", |line| line.trim_end().to_owned()),
        ("in indentation: tabs and spaces are mixed up", |line| {
            line.replace('\t', "    ").trim_end().to_owned()
        }),
        ("in indentation", |line| line.trim().to_owned()),
        ("in white space", |line| line.split_whitespace().collect()),
        ("in quotes or dashes: one of them has typographic ones", |line| plain_marks(line.trim())),
        ("in upper and lower case", |line| line.trim().to_lowercase()),
    ];
    for (words, normal) in explanations {
        if found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| normal(a) == normal(b)) {
            return words.to_owned();
        }
    }
    let at = found.iter().zip(wanted).position(|(a, b)| a != b).unwrap_or(found.len().min(wanted.len()));
    match (found.get(at), wanted.get(at)) {
        (Some(_), Some(wanted)) => format!("from your line {} ({:?})", at + 1, clip_chars(wanted, 80, 0)),
        _ => "in its end: the file stops earlier".to_owned(),
    }
}

fn plain_marks(line: &str) -> String {
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

/// The pairs of neighbouring letters, white space left out, sorted.
fn pairs(line: &str) -> Vec<(char, char)> {
    let chars: Vec<char> =
        line.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).take(400).collect();
    let mut pairs: Vec<_> = chars.windows(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.sort_unstable();
    pairs
}

/// How many of their pairs two lines share.
fn alike(line: &str, key: &str, key_pairs: &[(char, char)]) -> f64 {
    let (line, key) = (line.trim(), key.trim());
    if line == key {
        return 1.0;
    }
    if line.len() > key.len() * 3 || key.len() > line.len() * 3 {
        return 0.0;
    }
    let line_pairs = pairs(line);
    let (mut a, mut b, mut shared) = (0, 0, 0_u32);
    while a < line_pairs.len() && b < key_pairs.len() {
        match line_pairs[a].cmp(&key_pairs[b]) {
            std::cmp::Ordering::Less => a += 1,
            std::cmp::Ordering::Greater => b += 1,
            std::cmp::Ordering::Equal => (a, b, shared) = (a + 1, b + 1, shared + 1),
        }
    }
    let all = u32::try_from(line_pairs.len() + key_pairs.len()).unwrap_or(u32::MAX).max(1);
    f64::from(2 * shared) / f64::from(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn main() {\n\tlet total = sum(items);\n    println!(\u{201c}{total}\u{201d});\n}\n";

    #[test]
    fn the_nearest_text_is_named_with_its_line_and_its_difference() {
        let said = |wanted| nearest(FILE, wanted).unwrap_or_default();
        assert_eq!(
            said("    let total = sum(items);"),
            "The nearest text is at line 2 and differs in indentation: tabs and spaces are mixed up:\n  \tlet total = sum(items);"
        );
        assert!(said("Fn Main() {").contains("line 1 and differs in upper and lower case"));
        assert!(said("    println!(\"{total}\");").contains("line 3 and differs in quotes or dashes"));
        assert!(said("let totals = sum(item);").contains("line 2 and differs from your line 1"));
        assert_eq!(nearest(FILE, "nothing like it at all, really"), None);
        assert_eq!(nearest("", "x"), None);
    }
}
