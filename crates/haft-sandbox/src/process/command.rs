//! A command as C strings, made before the fork: after it nothing may allocate.

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use haft_tool::{ErrorKind, ToolError};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::report::{StartError, StartStep};
use crate::Environment;

/// Strings for `execve`: an array of pointers with a null at its end.
pub(super) struct CStringArray {
    /// The pointers point into these; the bytes of a `CString` do not move.
    strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl CStringArray {
    fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Self { strings, pointers }
    }

    /// The array; valid as long as `self`.
    pub(super) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }

    fn bytes(&self) -> usize {
        self.strings.iter().map(|string| string.as_bytes_with_nul().len()).sum()
    }
}

/// The spool of a command, open and locked. The reaper, which outlives Haft, keeps the lock until the last process has ended, so
/// that recovery does not compare files that the command still writes.
pub(super) struct SpoolFile(pub(super) OwnedFd);

impl SpoolFile {
    pub(super) fn open(path: &Path) -> Result<Self, ToolError> {
        let failed = |error: Errno| ToolError::io(path.display(), &error.into());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).map_err(failed)?;
        Ok(Self(file))
    }
}

/// A command that is ready to start.
pub(super) struct PreparedCommand {
    /// Candidate paths of the program, in the order to try.
    programs: Vec<CString>,
    argv: CStringArray,
    environment: CStringArray,
    cwd: CString,
    /// The file whose time says when the last process had ended, if Haft died before.
    pub(super) spool: Option<SpoolFile>,
    /// For error messages.
    name: String,
    directory: PathBuf,
    path: String,
}

impl PreparedCommand {
    /// Checks the arguments and converts them.
    pub(super) fn new(argv: &[OsString], cwd: &Path, environment: &Environment) -> Result<Self, ToolError> {
        let Some(name) = argv.first().filter(|name| !name.is_empty()) else {
            return Err(ToolError::invalid_arguments(
                "The command names no program: its first word is missing",
            ));
        };
        let arguments = argv.iter().enumerate().map(|(index, argument)| {
            CString::new(argument.as_bytes()).map_err(|nul| {
                ToolError::invalid_arguments(format!(
                    "Argument {index} of the command has a NUL byte at {}. Remove it: no program can receive it",
                    nul.nul_position()
                ))
            })
        });
        let arguments = arguments.collect::<Result<_, _>>()?;
        let directory = CString::new(cwd.as_os_str().as_bytes()).map_err(|_| {
            ToolError::invalid_path(format!("The working directory {} has a NUL byte", cwd.display()))
        })?;
        let path = environment.get("PATH").unwrap_or_default();
        Ok(Self {
            programs: candidates(name, path)?,
            argv: CStringArray::new(arguments),
            environment: CStringArray::new(variables(environment, cwd)?),
            cwd: directory,
            spool: None,
            name: name.to_string_lossy().into_owned(),
            directory: cwd.to_owned(),
            path: path.to_string_lossy().into_owned(),
        })
    }

    /// Lets another program start the command: `wrapper` is that program and its own arguments.
    #[cfg(any(target_os = "macos", test))]
    pub(super) fn wrap(&mut self, wrapper: &[CString]) -> Result<(), StartError> {
        let mut error = Errno::NOENT;
        for program in &self.programs {
            match rustix::fs::access(program, rustix::fs::Access::EXEC_OK) {
                Ok(()) => {
                    let arguments = self.argv.strings.iter().skip(1);
                    let argv = wrapper.iter().chain([program]).chain(arguments).cloned().collect();
                    self.argv = CStringArray::new(argv);
                    self.programs = wrapper.first().cloned().into_iter().collect();
                    return Ok(());
                }
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(other) => error = other,
            }
        }
        Err(StartError { step: StartStep::Program, error })
    }

    pub(super) fn cwd(&self) -> &CStr {
        &self.cwd
    }

    pub(super) fn programs(&self) -> &[CString] {
        &self.programs
    }

    pub(super) fn argv(&self) -> &CStringArray {
        &self.argv
    }

    pub(super) fn environment(&self) -> &CStringArray {
        &self.environment
    }

    /// The error for the caller if the command was not started.
    pub(super) fn start_error(&self, StartError { step, error }: StartError) -> ToolError {
        let Self { name, directory, path, .. } = self;
        let directory = directory.display();
        match (step, error) {
            (StartStep::Fork, Errno::AGAIN | Errno::NOMEM) => ToolError::new(
                ErrorKind::Io,
                format!(
                    "{name} was not started: there is no room for another process ({}). \
                     End some processes and try again",
                    message(error)
                ),
            ),
            (StartStep::Directory, Errno::NOENT) => ToolError::new(
                ErrorKind::FileNotFound,
                format!("The working directory {directory} does not exist. Create it or choose another"),
            ),
            (StartStep::Directory, Errno::NOTDIR) => ToolError::invalid_path(format!(
                "The working directory {directory} is not a directory. Choose another"
            )),
            (StartStep::Directory, error) => {
                ToolError::io(format!("The working directory {directory} cannot be entered"), &error.into())
            }
            (StartStep::Program, Errno::NOENT | Errno::NOTDIR) if name.contains('/') => ToolError::new(
                ErrorKind::FileNotFound,
                format!(
                    "There is no program {name}, or the interpreter in its first line does not exist. \
                     Check the path; relative ones start in {directory}"
                ),
            ),
            (StartStep::Program, Errno::NOENT | Errno::NOTDIR) => ToolError::new(
                ErrorKind::FileNotFound,
                format!("There is no program named {name} in PATH ({path}). Check the name, or install it"),
            ),
            (StartStep::Program, Errno::ACCESS | Errno::PERM) => ToolError::denied(format!(
                "{name} may not be executed: it is a directory, lacks the executable bit or is on a noexec mount. \
                 Name a program, or run the file with its interpreter"
            )),
            (StartStep::Program, Errno::NOEXEC) => ToolError::failed(format!(
                "{name} is not a program for this machine and has no #! line. Run it with its interpreter"
            )),
            (StartStep::Program, Errno::TOOBIG) => ToolError::invalid_arguments(format!(
                "The command is too long for the system: {} bytes of arguments (the longest has {}) and {} of \
                 environment. Write the long part to a file and name the file instead",
                self.argv.bytes(),
                self.argv.strings.iter().map(|argument| argument.as_bytes().len()).max().unwrap_or_default(),
                self.environment.bytes(),
            )),
            (
                step @ (StartStep::Limits | StartStep::Privileges | StartStep::Landlock | StartStep::Filter),
                error,
            ) => ToolError::failed(format!(
                "{name} was not started, because it cannot be sandboxed: {} failed ({}). \
                 `haft doctor` shows what is missing; `--sandbox off` runs commands without a sandbox",
                step.description(),
                message(error)
            )),
            (step, error) => {
                ToolError::io(format!("{name} was not started: {}", step.description()), &error.into())
            }
        }
    }
}

/// The files that `name` may mean: itself if it is a path, else one in each directory of `path`.
fn candidates(name: &OsStr, path: &OsStr) -> Result<Vec<CString>, ToolError> {
    let candidates: Vec<Vec<u8>> = if name.as_bytes().contains(&b'/') {
        vec![name.as_bytes().to_vec()]
    } else {
        path.as_bytes()
            .split(|&byte| byte == b':')
            .filter(|directory| !directory.is_empty())
            .map(|directory| [directory, b"/", name.as_bytes()].concat())
            .collect()
    };
    let strings = candidates.into_iter().map(CString::new).collect::<Result<_, _>>();
    strings.map_err(|_| ToolError::invalid_arguments("The program's name or PATH has a NUL byte. Remove it"))
}

/// The environment as `NAME=value` strings. `PWD` is always the working directory.
fn variables(environment: &Environment, cwd: &Path) -> Result<Vec<CString>, ToolError> {
    let pwd = (OsStr::new("PWD"), cwd.as_os_str());
    let others = environment.iter().filter(|(name, _)| *name != "PWD");
    let strings = others.chain([pwd]).map(|(name, value)| {
        let bytes = [name.as_bytes(), b"=", value.as_bytes()].concat();
        let is_valid_name = !name.is_empty() && !name.as_bytes().contains(&b'=');
        CString::new(bytes).ok().filter(|_| is_valid_name).ok_or_else(|| {
            ToolError::invalid_arguments(format!(
                "The environment variable {:?} cannot be passed: its name is empty or contains =, or it has a NUL byte",
                name.to_string_lossy()
            ))
        })
    });
    strings.collect()
}

/// The system's text for `error`, without its number.
fn message(error: Errno) -> String {
    let text = std::io::Error::from(error).to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(argv: &[&str], path: &str) -> Result<PreparedCommand, ToolError> {
        let argv: Vec<_> = argv.iter().map(OsString::from).collect();
        let environment = Environment::scrubbed([("PATH".into(), path.into())]);
        PreparedCommand::new(&argv, Path::new("/w"), &environment)
    }

    #[test]
    fn bare_names_are_searched_in_path() {
        let programs = |name| prepare(&[name], "/a:/b").unwrap().programs;
        assert_eq!(programs("ls"), [c"/a/ls".to_owned(), c"/b/ls".to_owned()]);
        assert_eq!(programs("./ls"), [c"./ls".to_owned()]);
    }

    #[test]
    fn invalid_arguments_are_refused_before_the_start() {
        for argv in [&[][..], &[""], &["ls", "a\0b"], &["l\0s"]] {
            let error = prepare(argv, "/a").err().unwrap();
            assert_eq!(error.kind, ErrorKind::InvalidArguments, "{argv:?}: {error}");
        }
        for name in ["", "A=B"] {
            let environment = Environment::scrubbed([]).with(name, "v");
            let error = PreparedCommand::new(&["ls".into()], Path::new("/w"), &environment).err().unwrap();
            assert_eq!(error.kind, ErrorKind::InvalidArguments, "{name:?}: {error}");
        }
    }

    #[test]
    fn pwd_is_always_the_working_directory() {
        let environment = Environment::scrubbed([]).with("PWD", "/elsewhere");
        let command = PreparedCommand::new(&["ls".into()], Path::new("/w"), &environment).unwrap();
        let variables = command.environment.strings.iter();
        let pwd: Vec<_> = variables.filter(|variable| variable.as_bytes().starts_with(b"PWD=")).collect();
        assert_eq!(pwd, [c"PWD=/w"]);
    }

    #[test]
    fn full_process_table_is_a_retryable_error() {
        let error = StartError { step: StartStep::Fork, error: Errno::AGAIN };
        let error = prepare(&["ls"], "/a").unwrap().start_error(error);
        assert_eq!(error.kind, ErrorKind::Io);
        assert!(error.kind.retry_can_help());
        assert!(error.message.contains("no room for another process"), "{error}");
    }

    #[test]
    fn wrapper_gets_the_resolved_program() {
        let wrapper = [c"/usr/bin/env".to_owned(), c"-i".to_owned()];
        let mut command = prepare(&["sh", "-c", "true"], "/nowhere:/bin").unwrap();
        command.wrap(&wrapper).unwrap();
        assert_eq!(command.programs, [c"/usr/bin/env".to_owned()]);
        let expected = [c"/usr/bin/env", c"-i", c"/bin/sh", c"-c", c"true"];
        assert!(command.argv.strings.iter().map(CString::as_c_str).eq(expected));
        let missing = prepare(&["no-such-program"], "/bin").unwrap().wrap(&wrapper);
        assert_eq!(missing, Err(StartError { step: StartStep::Program, error: Errno::NOENT }));
    }
}
