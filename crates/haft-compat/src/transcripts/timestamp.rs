//! Times in RFC 3339, in UTC when written.

const DAY_SECONDS: i64 = 86_400;

/// Milliseconds since 1970 of a time such as `2026-11-18T09:30:05.120Z`; `None` if it is none or before 1970.
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let (time, offset_seconds) = split_offset(rest)?;
    let [year, month, day] = numbers(date, '-')?;
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = numbers(whole, ':')?;
    let is_valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !is_valid || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds = days(year, month, day) * DAY_SECONDS + hour * 3_600 + minute * 60 + second - offset_seconds;
    u64::try_from(seconds * 1_000 + thousandths).ok()
}

/// The time of these milliseconds since 1970, with milliseconds.
pub(super) fn rfc3339(at_ms: u64) -> String {
    let (seconds, thousandths) = (i64::try_from(at_ms / 1_000).unwrap_or(0), at_ms % 1_000);
    let (year, month, day) = date(seconds / DAY_SECONDS);
    let of_day = seconds % DAY_SECONDS;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{thousandths:03}Z",
        of_day / 3_600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// The time without its offset, and the offset in seconds.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let at = text.rfind(['+', '-'])?;
    let (time, offset) = text.split_at_checked(at)?;
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| (0..60).contains(number));
    Some((time, sign * (number(hours)? * 3_600 + number(minutes)? * 60)))
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let number = |part: &str| {
        let is_number = !part.is_empty() && part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i64>().ok().filter(|_| is_number)
    };
    let parts: Option<Vec<i64>> = text.split(separator).map(number).collect();
    parts?.try_into().ok()
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, in which a cycle of 400 years has 146,097 days. Years begin in March, so
/// that the day of a leap year comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (cycle, of_cycle) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    cycle * 146_097 + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - 719_468
}

/// The date of a day since 1970-01-01.
fn date(days_since: i64) -> (i64, i64, i64) {
    let shifted = days_since + 719_468;
    let (cycle, of_cycle) = (shifted / 146_097, shifted % 146_097);
    let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + cycle * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for (text, at) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-02-29T12:00:00.005Z", 951_825_600_005),
            ("2026-11-18T09:30:05.120Z", 1_794_994_205_120),
            ("2100-03-01T00:00:00.000Z", 4_107_542_400_000),
        ] {
            assert_eq!((milliseconds(text), rfc3339(at).as_str()), (Some(at), text));
        }
        assert_eq!(milliseconds("2026-11-18T10:30:05+01:00"), Some(1_794_994_205_000));
        assert_eq!(milliseconds("2026-11-18t09:30:05.12Z"), Some(1_794_994_205_120));
        for at in (0..200_000).map(|day| day * 86_400_000 / 7 * 3) {
            assert_eq!(milliseconds(&rfc3339(at)), Some(at));
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in
            ["", "T", "2026-11-18", "2026-13-01T00:00:00Z", "2026-11-18T25:00:00Z", "1969-12-31T23:59:59Z"]
        {
            assert_eq!(milliseconds(text), None, "{text}");
        }
        for text in ["2026-11-18T09:30:05", "2026-11-18T09:30:05é", "2026-11-18T09:30:05+é", "x-1-1T1:1:1Z"]
        {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
