//! Times in the user's time zone, and ages such as `10m`.

use haft_tool::now_ms;

use super::duration::milliseconds;

/// A time as people write it, for example `2026-11-18 09:30:05`.
pub(super) fn local_time(at_ms: u64) -> String {
    let time = broken_down(at_ms);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        time.tm_year + 1900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec
    )
}

/// The same with the offset from UTC, for example `2026-11-18 09:30:05 +0100`.
pub(super) fn local_time_with_offset(at_ms: u64) -> String {
    let minutes = broken_down(at_ms).tm_gmtoff / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.abs();
    format!("{} {sign}{:02}{:02}", local_time(at_ms), minutes / 60, minutes % 60)
}

/// Reads a point in time: an age such as `10m`, or a local date with or without a time. In milliseconds since 1970.
pub(super) fn point_in_time(text: &str) -> Result<u64, String> {
    if let Ok(age) = age(text) {
        return Ok(now_ms().saturating_sub(age));
    }
    date(text).ok_or_else(|| {
        format!(
            "{text:?} is neither an age nor a time. Examples: 10m, 2h, 3d, 2026-11-18, '2026-11-18 09:30'"
        )
    })
}

/// Reads an age such as `30d`, in milliseconds.
pub(crate) fn age(text: &str) -> Result<u64, String> {
    let invalid = || format!("{text:?} is not an age. Examples: 30d, 12h, 45m");
    // A plain number has no unit, and nothing is recorded to the millisecond.
    if text.ends_with("ms") || text.ends_with(|c: char| c.is_ascii_digit()) {
        return Err(invalid());
    }
    milliseconds(text).map_err(|_| invalid())
}

/// Reads `YYYY-MM-DD`, then nothing, or a space or a T and `HH:MM` or `HH:MM:SS`.
fn date(text: &str) -> Option<u64> {
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let numbers = |text: &str, separator: char| -> Option<Vec<i32>> {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        text.split(separator).map(|part| part.parse().ok().filter(|_| is_number(part))).collect()
    };
    let (day, time) = (numbers(day, '-')?, numbers(time, ':')?);
    let [year @ 1970..=9999, month @ 1..=12, day @ 1..=31] = day[..] else { return None };
    let (hour, minute, second) = match time[..] {
        [hour @ 0..=23, minute @ 0..=59] => (hour, minute, 0),
        [hour @ 0..=23, minute @ 0..=59, second @ 0..=59] => (hour, minute, second),
        _ => return None,
    };
    let mut parts = broken_down(0);
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day);
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second);
    // Whether it is summer time then is for the system to find out.
    parts.tm_isdst = -1;
    #[expect(unsafe_code, reason = "only the C library knows the time zone")]
    // SAFETY: the pointer is to a live, initialized value.
    let seconds = unsafe { libc::mktime(&raw mut parts) };
    // The system normalizes a day that does not exist.
    (parts.tm_mday == day).then(|| u64::try_from(seconds).ok()?.checked_mul(1_000)).flatten()
}

fn broken_down(at_ms: u64) -> libc::tm {
    let seconds = libc::time_t::try_from(at_ms / 1_000).unwrap_or(0);
    #[expect(unsafe_code, reason = "only the C library knows the time zone")]
    // SAFETY: tm is plain numbers and a pointer, for which zero is valid; both arguments point to live values. For a year
    // that does not fit, the function leaves the value as it is.
    unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const seconds, &raw mut parts);
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for at in [86_400_000, 1_700_000_000_000, 1_794_000_005_000] {
            assert_eq!(point_in_time(&local_time(at)), Ok(at));
            assert_eq!(point_in_time(&local_time(at).replace(' ', "T")), Ok(at));
        }
        let midnight = point_in_time("2026-02-28").unwrap();
        assert_eq!(local_time(midnight), "2026-02-28 00:00:00");
        for text in ["", "x", "2026-02-30", "2026-13-01", "2026-01-01 24:00", "2026-01-01 1", "-1-1-1", "10"]
        {
            assert!(point_in_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ages_are_read_or_refused() {
        assert_eq!(age("30d"), Ok(2_592_000_000));
        assert_eq!(age("10m"), Ok(600_000));
        assert!(age("30").is_err() && age("").is_err() && age("99999999999999999w").is_err());
        let before = now_ms() - 600_000;
        assert!((before..=before + 60_000).contains(&point_in_time("10m").unwrap()));
    }
}
