//! What Haft and the keeper say to each other: one byte down, a few numbers up.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use haft_tool::Exit;
use rustix::io::Errno;

/// Why Haft asks the keeper to end the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// The time is up.
    Timeout = 1,
    /// The call was cancelled.
    Cancel = 2,
}

impl Ask {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Timeout, Self::Cancel].into_iter().find(|ask| *ask as u8 == byte)
    }

    pub(super) fn exit(self) -> Exit {
        match self {
            Self::Timeout => Exit::TimedOut,
            Self::Cancel => Exit::Cancelled,
        }
    }
}

/// What was being done when a command could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Pipes = 1,
    Fork = 2,
    Keeper = 3,
    Directory = 4,
    Program = 5,
    Limits = 6,
    Privileges = 7,
    Landlock = 8,
    Filter = 9,
}

impl Step {
    fn from_number(number: i32) -> Option<Self> {
        use Step::{Directory, Filter, Fork, Keeper, Landlock, Limits, Pipes, Privileges, Program};
        [Pipes, Fork, Keeper, Directory, Program, Limits, Privileges, Landlock, Filter]
            .into_iter()
            .find(|step| *step as i32 == number)
    }

    pub(super) fn doing(self) -> &'static str {
        match self {
            Self::Pipes => "laying its pipes",
            Self::Fork => "making a process for it",
            Self::Keeper => "setting up the process that ends it with the call",
            Self::Directory => "entering its working directory",
            Self::Program => "executing it",
            Self::Limits => "setting its limits",
            Self::Privileges => "taking its privileges away",
            Self::Landlock => "putting it under Landlock",
            Self::Filter => "putting it under a seccomp filter that Haft hears from",
        }
    }
}

/// How a tree ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    /// The command's raw wait status.
    pub(super) status: i32,
    /// What Haft had asked for while the command still ran.
    pub(super) asked: Option<Ask>,
    /// How many processes had to be ended after the command was gone.
    pub(super) left_behind: u32,
    /// How many could not be ended.
    pub(super) survivors: u32,
}

impl Ended {
    pub(super) fn exit(&self) -> Exit {
        if let Some(ask) = self.asked {
            return ask.exit();
        }
        let status = ExitStatus::from_raw(self.status);
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
        }
    }
}

/// What comes up the report pipe; the first one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    NotStarted { step: Step, error: Errno },
    Ended(Ended),
}

/// Less than `PIPE_BUF`, so a report is written whole or not at all.
const SIZE: usize = 20;

impl Report {
    /// For the pipe, without allocating: this runs between fork and exec.
    pub(super) fn to_bytes(self) -> [u8; SIZE] {
        let numbers = match self {
            Self::NotStarted { step, error } => [0, step as i32, error.raw_os_error(), 0, 0],
            Self::Ended(Ended { status, asked, left_behind, survivors }) => [
                1,
                status,
                asked.map_or(0, |ask| ask as i32),
                left_behind.cast_signed(),
                survivors.cast_signed(),
            ],
        };
        let mut bytes = [0; SIZE];
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    /// The first whole report in `bytes`, if there is one.
    pub(super) fn first(bytes: &[u8]) -> Option<Self> {
        let mut numbers = bytes.get(..SIZE)?.as_chunks::<4>().0.iter().map(|four| i32::from_ne_bytes(*four));
        let [tag, a, b, c, d] = std::array::from_fn(|_| numbers.next().unwrap_or_default());
        match tag {
            0 => Some(Self::NotStarted { step: Step::from_number(a)?, error: Errno::from_raw_os_error(b) }),
            1 => Some(Self::Ended(Ended {
                status: a,
                asked: u8::try_from(b).ok().and_then(Ask::from_byte),
                left_behind: c.cast_unsigned(),
                survivors: d.cast_unsigned(),
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_out_of_the_pipe_as_it_went_in() {
        for report in [
            Report::NotStarted { step: Step::Program, error: Errno::NOENT },
            Report::Ended(Ended { status: 256, asked: None, left_behind: 3, survivors: 0 }),
            Report::Ended(Ended { status: 9, asked: Some(Ask::Cancel), left_behind: 0, survivors: u32::MAX }),
        ] {
            let mut bytes = report.to_bytes().to_vec();
            assert_eq!(Report::first(&bytes[1..]), None);
            bytes.extend(Report::NotStarted { step: Step::Fork, error: Errno::AGAIN }.to_bytes());
            assert_eq!(Report::first(&bytes), Some(report));
        }
    }

    #[test]
    fn what_haft_asked_for_says_more_than_the_status() {
        let ended = |status, asked| Ended { status, asked, left_behind: 0, survivors: 0 }.exit();
        assert_eq!(ended(3 << 8, None), Exit::Code(3));
        assert_eq!(ended(15, None), Exit::Signal(15));
        assert_eq!(ended(15, Some(Ask::Timeout)), Exit::TimedOut);
        assert_eq!(ended(0, Some(Ask::Cancel)), Exit::Cancelled);
    }
}
