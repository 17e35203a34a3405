//! The protocol between Haft and the reaper: one byte down, a few numbers up.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use haft_tool::Exit;
use rustix::io::Errno;

/// Why Haft asks the reaper to end the process tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    Timeout = 1,
    Cancelled = 2,
}

impl StopReason {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Timeout, Self::Cancelled].into_iter().find(|reason| *reason as u8 == byte)
    }

    pub(super) fn exit(self) -> Exit {
        match self {
            Self::Timeout => Exit::TimedOut,
            Self::Cancelled => Exit::Cancelled,
        }
    }
}

/// A step of starting a command that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartStep {
    Pipes = 1,
    Fork = 2,
    Reaper = 3,
    Directory = 4,
    Program = 5,
    Limits = 6,
    Privileges = 7,
    Landlock = 8,
    Filter = 9,
    Namespaces = 10,
}

impl StartStep {
    fn from_number(number: i32) -> Option<Self> {
        use StartStep::{
            Directory, Filter, Fork, Landlock, Limits, Namespaces, Pipes, Privileges, Program, Reaper,
        };
        [Pipes, Fork, Reaper, Directory, Program, Limits, Privileges, Landlock, Filter, Namespaces]
            .into_iter()
            .find(|step| *step as i32 == number)
    }

    /// What was being done, for error messages.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Pipes => "creating its pipes",
            Self::Fork => "creating its process",
            Self::Reaper => "setting up the process that ends it with the call",
            Self::Directory => "entering its working directory",
            Self::Program => "executing it",
            Self::Limits => "setting its resource limits",
            Self::Privileges => "dropping its privileges",
            Self::Landlock => "restricting it with Landlock",
            Self::Filter => "installing its seccomp filter",
            Self::Namespaces => "entering the session's namespaces",
        }
    }
}

/// A command could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartError {
    pub(crate) step: StartStep,
    pub(crate) error: Errno,
}

impl StartStep {
    /// For `map_err`.
    pub(crate) fn failed(self) -> impl Fn(Errno) -> StartError {
        move |error| StartError { step: self, error }
    }
}

/// How a process tree ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeEnd {
    /// The command's raw wait status.
    pub(super) status: i32,
    /// What Haft had asked for while the command was still running.
    pub(super) stopped: Option<StopReason>,
    /// How many processes were ended after the command itself had ended.
    pub(super) left_behind: u32,
    /// How many processes could not be ended.
    pub(super) survivors: u32,
}

impl TreeEnd {
    pub(super) fn exit(&self) -> Exit {
        if let Some(reason) = self.stopped {
            return reason.exit();
        }
        let status = ExitStatus::from_raw(self.status);
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
        }
    }
}

/// The byte with which Haft asks the reaper to continue a command that was stopped at its terminal.
pub(super) const CONTINUE_CODE: u8 = 3;

/// A message in the report pipe; the first one that is neither `Paused` nor `Started` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReaperReport {
    /// The command was stopped at its terminal, by Ctrl-Z for example.
    Paused,
    /// The command is being executed. Comes after `NotStarted` if it is not.
    Started,
    NotStarted(StartError),
    Ended(TreeEnd),
}

/// Less than `PIPE_BUF`, so that a report is written atomically.
pub(super) const REPORT_BYTES: usize = 20;

impl ReaperReport {
    /// The encoded report. Does not allocate, because it runs between fork and exec.
    pub(super) fn to_bytes(self) -> [u8; REPORT_BYTES] {
        let numbers = match self {
            Self::Paused => [2, 0, 0, 0, 0],
            Self::Started => [3, 0, 0, 0, 0],
            Self::NotStarted(StartError { step, error }) => [0, step as i32, error.raw_os_error(), 0, 0],
            Self::Ended(TreeEnd { status, stopped, left_behind, survivors }) => [
                1,
                status,
                stopped.map_or(0, |reason| reason as i32),
                left_behind.cast_signed(),
                survivors.cast_signed(),
            ],
        };
        let mut bytes = [0; REPORT_BYTES];
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    /// The first complete report in `bytes`.
    pub(super) fn first(bytes: &[u8]) -> Option<Self> {
        let mut numbers =
            bytes.get(..REPORT_BYTES)?.as_chunks::<4>().0.iter().map(|four| i32::from_ne_bytes(*four));
        let [tag, a, b, c, d] = std::array::from_fn(|_| numbers.next().unwrap_or_default());
        match tag {
            0 => {
                let step = StartStep::from_number(a)?;
                Some(Self::NotStarted(StartError { step, error: Errno::from_raw_os_error(b) }))
            }
            1 => Some(Self::Ended(TreeEnd {
                status: a,
                stopped: u8::try_from(b).ok().and_then(StopReason::from_byte),
                left_behind: c.cast_unsigned(),
                survivors: d.cast_unsigned(),
            })),
            2 => Some(Self::Paused),
            3 => Some(Self::Started),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_survive_encoding() {
        let not_started = |step, error| ReaperReport::NotStarted(StartError { step, error });
        let cancelled = Some(StopReason::Cancelled);
        for report in [
            ReaperReport::Paused,
            ReaperReport::Started,
            not_started(StartStep::Program, Errno::NOENT),
            ReaperReport::Ended(TreeEnd { status: 256, stopped: None, left_behind: 3, survivors: 0 }),
            ReaperReport::Ended(TreeEnd {
                status: 9,
                stopped: cancelled,
                left_behind: 0,
                survivors: u32::MAX,
            }),
        ] {
            let mut bytes = report.to_bytes().to_vec();
            assert_eq!(ReaperReport::first(&bytes[1..]), None);
            bytes.extend(not_started(StartStep::Fork, Errno::AGAIN).to_bytes());
            assert_eq!(ReaperReport::first(&bytes), Some(report));
        }
    }

    #[test]
    fn stop_reason_overrides_exit_status() {
        let exit = |status, stopped| TreeEnd { status, stopped, left_behind: 0, survivors: 0 }.exit();
        assert_eq!(exit(3 << 8, None), Exit::Code(3));
        assert_eq!(exit(15, None), Exit::Signal(15));
        assert_eq!(exit(15, Some(StopReason::Timeout)), Exit::TimedOut);
        assert_eq!(exit(0, Some(StopReason::Cancelled)), Exit::Cancelled);
    }
}
