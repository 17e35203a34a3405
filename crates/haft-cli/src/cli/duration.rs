//! Durations as people type them: `30s`, `5m`.

/// Reads a time limit in milliseconds.
pub(super) fn timeout(text: &str) -> Result<u64, String> {
    match milliseconds(text)? {
        0 => Err("nothing can run in no time. Leave the flag out for no limit".to_owned()),
        limit => Ok(limit),
    }
}

/// Reads a duration with its unit, or a plain number of milliseconds; in milliseconds.
pub(super) fn milliseconds(text: &str) -> Result<u64, String> {
    let invalid = || format!("{text:?} is not a duration. Examples: 30s, 5m, 1500ms");
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let factor: u64 = match unit {
        "" | "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 604_800_000,
        _ => return Err(invalid()),
    };
    let number: u64 = number.parse().map_err(|_| invalid())?;
    number.checked_mul(factor).ok_or_else(|| format!("{text:?} is too long"))
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn durations_are_read_or_refused() {
        assert_eq!(milliseconds("30s"), Ok(30_000));
        assert_eq!(milliseconds("5m"), Ok(300_000));
        assert_eq!(milliseconds("1500"), Ok(1_500));
        for text in ["", "s", "1.5s", "-1s", "5 m", "5x", "99999999999999999999s", "9999999999999999w"] {
            assert!(milliseconds(text).is_err(), "{text}");
        }
    }
}
