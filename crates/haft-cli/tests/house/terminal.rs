//! A terminal of its own for the program, with somebody who reads and types.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// How long a program may say nothing before the test gives up, in milliseconds.
const PATIENCE: i32 = 120_000;

/// A program at a terminal.
pub(crate) struct Terminal {
    child: Child,
    master: File,
    seen: String,
}

impl Terminal {
    /// Starts the program with a new terminal as its own.
    pub(crate) fn run(mut command: Command) -> Self {
        let (master, slave) = pair();
        let copy = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(copy()).stdout(copy()).stderr(copy()).env("TERM", "dumb").env("NO_COLOR", "1");
        #[expect(unsafe_code, reason = "only the child itself can take a controlling terminal")]
        // SAFETY: setsid and ioctl may be called between fork and exec; nothing else is done.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        // The command holds copies of the slave; the end is seen only once they are gone.
        drop(command);
        Self { child, master: File::from(master), seen: String::new() }
    }

    /// Reads until the program has said `text`; forgets all up to there.
    pub(crate) fn sees(&mut self, text: &str) {
        while !self.seen.contains(text) {
            assert!(self.read_more(), "the program ended without saying {text:?}; it said {:?}", self.seen);
        }
        let end = self.seen.find(text).unwrap() + text.len();
        self.seen.drain(..end);
    }

    /// Types a line.
    pub(crate) fn types(&mut self, line: &str) {
        self.press(&format!("{line}\n"));
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads to the end; gives the exit code and the words not yet seen.
    pub(crate) fn ends(mut self) -> (i32, String) {
        while self.read_more() {}
        (self.child.wait().unwrap().code().unwrap_or(-1), self.seen.replace("\r\n", "\n"))
    }

    fn read_more(&mut self) -> bool {
        let mut ready = libc::pollfd { fd: self.master.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        #[expect(unsafe_code, reason = "std has no poll")]
        // SAFETY: one pollfd, alive for the call.
        let count = unsafe { libc::poll(&raw mut ready, 1, PATIENCE) };
        assert!(count > 0, "the program says nothing; it said {:?}", self.seen);
        let mut buffer = [0; 4096];
        match self.master.read(&mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                self.seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
                true
            }
            // The last holder of the other end has gone.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => false,
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(error) => {
                assert_eq!(error.to_string(), "", "the terminal broke");
                false
            }
        }
    }
}

/// The two ends of a new terminal.
#[expect(unsafe_code, reason = "std knows no terminals")]
fn pair() -> (OwnedFd, OwnedFd) {
    let (mut master, mut slave) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: the two numbers are live locals; the rest may be null.
    let made = unsafe { libc::openpty(&raw mut master, &raw mut slave, none, none.cast(), none.cast()) };
    assert_eq!(made, 0);
    // SAFETY: both were just opened, and nobody else owns them.
    unsafe {
        libc::fcntl(master, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::fcntl(slave, libc::F_SETFD, libc::FD_CLOEXEC);
        (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave))
    }
}
