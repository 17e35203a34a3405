//! How often a request is made again, and how long to wait before that.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use crate::{ErrorKind, Http, HttpRequest, HttpResponse, ToolError, now_ms};

/// Statuses after which the same request may succeed.
pub const RETRY_STATUSES: &[u16] = &[408, 409, 429, 500, 502, 503, 504, 529];

/// How often a request is made again, and how long to wait before that.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// How often it is made in all.
    pub attempts: u32,
    /// Statuses after which it is made again, as after failed connections and timeouts.
    pub statuses: &'static [u16],
    /// The first wait if the server names none; each further one is twice as long.
    pub base: Duration,
    /// The longest wait that Haft itself chooses.
    pub cap: Duration,
    /// The longest wait that a server may ask for. If it asks for more, its answer is final.
    pub longest: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            statuses: RETRY_STATUSES,
            base: Duration::from_millis(200),
            cap: Duration::from_secs(5),
            longest: Duration::from_secs(30),
        }
    }
}

/// A wait before the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// How the last attempt failed.
    pub why: String,
    /// How long to wait.
    pub wait: Duration,
    /// Which attempt comes next, counted from 1.
    pub next: u32,
    /// How many there are at most.
    pub attempts: u32,
}

impl Pause {
    /// One line for people.
    pub fn line(&self) -> String {
        let Self { why, wait, next, attempts } = self;
        format!("{why}; attempt {next} of {attempts} in {:.1} s", wait.as_secs_f64())
    }
}

/// Whether the outcome of an attempt is final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptVerdict {
    /// It is: the attempt succeeded, or another one would fail in the same way.
    Final,
    /// Another attempt may succeed.
    Retry {
        /// How this attempt failed, for people.
        why: String,
        /// How long the server wants the client to wait.
        wait: Option<Duration>,
    },
}

impl RetryPolicy {
    /// Makes attempts until one has a final outcome, none is left, or the server asks for a longer wait than
    /// [`RetryPolicy::longest`]. `pause` waits; its error ends everything.
    pub fn run<T, E>(
        &self,
        mut attempt: impl FnMut() -> Result<T, E>,
        verdict: impl Fn(&Result<T, E>) -> AttemptVerdict,
        mut pause: impl FnMut(&Pause) -> Result<(), E>,
    ) -> Result<T, E> {
        let mut made = 1;
        loop {
            let outcome = attempt();
            let AttemptVerdict::Retry { why, wait } = verdict(&outcome) else { return outcome };
            if made >= self.attempts || wait.is_some_and(|wait| wait > self.longest) {
                return outcome;
            }
            let wait = wait.unwrap_or_else(|| self.own(made));
            made += 1;
            pause(&Pause { why, wait, next: made, attempts: self.attempts })?;
        }
    }

    /// Makes the request until it has a final answer. `asked` reads from an answer how long its server wants the client to
    /// wait; `pause` waits, and its error ends everything.
    pub fn send(
        &self,
        http: &dyn Http,
        request: &HttpRequest,
        asked: &dyn Fn(&HttpResponse) -> Option<Duration>,
        pause: &mut dyn FnMut(&Pause) -> Result<(), ToolError>,
    ) -> Result<HttpResponse, ToolError> {
        let verdict = |outcome: &Result<HttpResponse, ToolError>| match outcome {
            Ok(answer) if self.statuses.contains(&answer.status) => AttemptVerdict::Retry {
                why: format!("HTTP {} {}", answer.status, answer.status_text).trim_end().to_owned(),
                wait: asked(answer),
            },
            Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Timeout) => {
                AttemptVerdict::Retry { why: error.message.clone(), wait: None }
            }
            _ => AttemptVerdict::Final,
        };
        self.run(|| http.fetch(request), verdict, pause)
    }

    /// Haft's own wait: doubled each time, and spread so that many callers do not come back together.
    fn own(&self, attempt: u32) -> Duration {
        let doubled = self.base.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(self.cap);
        let spread = RandomState::new().build_hasher().finish() % 1_001;
        let thousandths = u32::try_from(500 + spread).unwrap_or(1_000);
        (doubled * thousandths / 1_000).min(self.cap)
    }
}

/// The wait that a response asks for by `Retry-After`, in seconds or as a date, or by `retry-after-ms`.
pub fn retry_after(answer: &HttpResponse) -> Option<Duration> {
    retry_after_of(|name| answer.header(name))
}

/// [`retry_after`] for a response of any kind, whose headers `header` looks up.
pub fn retry_after_of<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    if let Some(wait) = header("retry-after-ms").and_then(|value| seconds(value.trim())) {
        return Some(wait / 1_000);
    }
    let value = header("retry-after")?.trim();
    if let Some(wait) = seconds(value) {
        return Some(wait);
    }
    // The clocks may differ, so the time of the answer is taken from the server's.
    let now = header("date").and_then(http_date).unwrap_or(now_ms() / 1_000);
    http_date(value).map(|then| Duration::from_secs(then.saturating_sub(now)))
}

/// Whole or fractional seconds, as headers and bodies of rate limits give them, capped at the longest duration.
pub fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    (seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` in seconds since 1970.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok().filter(|part| *part < 61));
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    // Years begin in March here, so that the leap day is the last one.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - 719_468) * 86_400 + hours * 3_600 + minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn answer(status: u16, headers: &[(&str, &str)]) -> HttpResponse {
        HttpResponse {
            status,
            status_text: "Said".to_owned(),
            url: String::new(),
            headers: headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            body: Vec::new(),
            total_bytes: 0,
            more: false,
            redirect: None,
        }
    }

    struct Script(Mutex<Vec<Result<HttpResponse, ToolError>>>);

    impl Http for Script {
        fn fetch(&self, _: &HttpRequest) -> Result<HttpResponse, ToolError> {
            self.0.lock().unwrap().remove(0)
        }
    }

    fn send(answers: Vec<Result<HttpResponse, ToolError>>) -> (Result<HttpResponse, ToolError>, Vec<Pause>) {
        let mut pauses = Vec::new();
        let result = RetryPolicy::default().send(
            &Script(Mutex::new(answers)),
            &HttpRequest::get("http://x"),
            &retry_after,
            &mut |pause| {
                pauses.push(pause.clone());
                Ok(())
            },
        );
        (result, pauses)
    }

    #[test]
    fn dates_are_read_as_the_calendar_has_them() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(http_date("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        for bad in
            ["", "soon", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994", "Sun, 06 Nov 0 08:49:37 GMT"]
        {
            assert_eq!(http_date(bad), None, "{bad}");
        }
    }

    #[test]
    fn both_forms_of_retry_after_are_understood() {
        assert_eq!(retry_after(&answer(429, &[("retry-after", "1.5")])), Some(Duration::from_millis(1_500)));
        let dated =
            [("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")];
        assert_eq!(retry_after(&answer(503, &dated)), Some(Duration::from_secs(30)));
        let precise = [("retry-after", "9"), ("retry-after-ms", "250")];
        assert_eq!(retry_after(&answer(429, &precise)), Some(Duration::from_millis(250)));
        assert_eq!(retry_after(&answer(503, &[("retry-after", "-3")])), None);
        assert_eq!(retry_after(&answer(503, &[])), None);
    }

    #[test]
    fn what_may_pass_is_tried_again_after_the_wait_that_was_asked_for() {
        let limited = answer(429, &[("retry-after", "7")]);
        let (result, pauses) =
            send(vec![Ok(limited), Err(ToolError::new(ErrorKind::Io, "refused")), Ok(answer(200, &[]))]);
        assert_eq!(result.unwrap().status, 200);
        assert_eq!(pauses[0].wait, Duration::from_secs(7));
        assert_eq!(pauses[0].line(), "HTTP 429 Said; attempt 2 of 3 in 7.0 s");
        let own = pauses[1].wait.as_millis();
        assert!((200..=600).contains(&own), "{own}");
    }

    #[test]
    fn attempts_are_counted_and_final_answers_are_final() {
        let (result, pauses) = send(vec![Ok(answer(503, &[])), Ok(answer(503, &[])), Ok(answer(503, &[]))]);
        assert_eq!((result.unwrap().status, pauses.len()), (503, 2));
        let (result, pauses) = send(vec![Ok(answer(404, &[]))]);
        assert_eq!((result.unwrap().status, pauses.len()), (404, 0));
        let (result, pauses) = send(vec![Ok(answer(429, &[("retry-after", "3600")]))]);
        assert_eq!((result.unwrap().status, pauses.len()), (429, 0), "an hour is too long to wait");
        let (result, pauses) = send(vec![Err(ToolError::denied("no"))]);
        assert_eq!((result.unwrap_err().kind, pauses.len()), (ErrorKind::PermissionDenied, 0));
    }
}
