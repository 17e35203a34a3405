//! Ids and times in the forms that readers of the stream expect.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haft_tool::now_ms;

/// A random UUID (version 4).
pub(in crate::cli) fn new_uuid() -> String {
    let mut bytes = [0_u8; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // Unique within the process is enough for a message.
        bytes = u128::from(now_ms()).to_be_bytes();
    }
    let number = u128::from_be_bytes(bytes);
    let version = (number & !(0xf_u128 << 76)) | (0x4_u128 << 76);
    let number = (version & !(0x3_u128 << 62)) | (0x2_u128 << 62);
    let hex = format!("{number:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// Whether a text is a UUID.
pub(super) fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() == 36
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if dashes.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() })
}

/// The time now, as `2026-11-19T03:34:19.120Z`.
pub(super) fn timestamp() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date_of(days);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The date of a day since 1970, by the Gregorian calendar.
fn date_of(days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut left) = (1970, days);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(date_of(0), (1970, 1, 1));
        assert_eq!(date_of(11_016), (2000, 2, 29));
        assert_eq!(date_of(20_776), (2026, 11, 19));
    }

    #[test]
    fn uuids_are_of_version_4() {
        let uuid = new_uuid();
        assert!(is_uuid(&uuid), "{uuid}");
        assert_eq!(uuid.as_bytes()[14], b'4', "{uuid}");
        assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uuid}");
    }
}
