//! Similar names, for "did you mean".

/// At most three of `known` that look like `name`, the closest first.
pub fn close_names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = plain(name);
    let most = (wanted.len() / 3).max(1);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| {
            let plain = plain(candidate);
            let inside = wanted.len() > 2
                && (plain.starts_with(&wanted) || wanted.starts_with(&plain) && plain.len() > 2);
            let steps = if inside { 1 } else { distance(&wanted, &plain, most)? };
            Some((steps, candidate))
        })
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, candidate)| candidate).take(3).collect()
}

/// Without case and separators, which people and models mix up most.
fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).take(64).collect()
}

/// The number of letters to add, drop, change or swap, unless it is more than `most`.
fn distance(a: &[char], b: &[char], most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut older = vec![0; b.len() + 1];
    let mut old: Vec<usize> = (0..=b.len()).collect();
    for (row, x) in a.iter().enumerate() {
        let mut new = vec![row + 1];
        for (column, y) in b.iter().enumerate() {
            let change = old[column] + usize::from(x != y);
            let mut best = change.min(old[column + 1] + 1).min(new[column] + 1);
            if row > 0 && column > 0 && *x == b[column - 1] && a[row - 1] == *y {
                best = best.min(older[column - 1] + 1);
            }
            new.push(best);
        }
        older = std::mem::replace(&mut old, new);
    }
    old.last().copied().filter(|steps| *steps <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_close() {
        let known = ["file_path", "offset", "limit", "Grep", "Glob"];
        assert_eq!(close_names("filepath", known), ["file_path"]);
        assert_eq!(close_names("filePath", known), ["file_path"]);
        assert_eq!(close_names("ofset", known), ["offset"]);
        assert_eq!(close_names("ilmit", known), ["limit"]);
        assert_eq!(close_names("file", known), ["file_path"]);
        assert_eq!(close_names("grep", known), ["Grep"]);
        assert!(close_names("command", known).is_empty());
        assert!(close_names("", known).is_empty());
    }
}
