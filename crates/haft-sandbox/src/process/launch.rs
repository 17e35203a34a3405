//! Everything a command needs, as C strings made before the fork: after it nothing may allocate.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use haft_tool::{ErrorKind, ToolError};
use rustix::io::Errno;

use super::environment::Environment;
use super::report::Step;

/// Strings for `execve`: an array of pointers with a null at its end.
pub(super) struct CStrings {
    /// What the pointers point into; a `CString`'s bytes stay where they are.
    owned: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl CStrings {
    fn new(owned: Vec<CString>) -> Self {
        let pointers = owned.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Self { owned, pointers }
    }

    /// The array, alive as long as `self`.
    pub(super) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }

    fn bytes(&self) -> usize {
        self.owned.iter().map(|string| string.as_bytes_with_nul().len()).sum()
    }
}

/// A command that is ready to start.
pub(super) struct Launch {
    /// Where the program may be, in the order to try.
    programs: Vec<CString>,
    argv: CStrings,
    environment: CStrings,
    cwd: CString,
    name: String,
    directory: PathBuf,
    path: String,
}

impl Launch {
    pub(super) fn new(argv: &[String], cwd: &Path, environment: &Environment) -> Result<Self, ToolError> {
        let Some(name) = argv.first().filter(|name| !name.is_empty()) else {
            return Err(ToolError::invalid_arguments(
                "the command names no program: its first word is missing",
            ));
        };
        let arguments = argv.iter().enumerate().map(|(at, argument)| {
            CString::new(argument.as_str()).map_err(|nul| {
                ToolError::invalid_arguments(format!(
                    "argument {at} of the command has a NUL byte at {}, which no program can be given; leave it out",
                    nul.nul_position()
                ))
            })
        });
        let argv = CStrings::new(arguments.collect::<Result<_, _>>()?);
        let directory = CString::new(cwd.as_os_str().as_bytes()).map_err(|_| {
            ToolError::invalid_path(format!("the working directory {} has a NUL byte", cwd.display()))
        })?;
        let path = environment.get("PATH").unwrap_or_default();
        Ok(Self {
            programs: programs(name, path)?,
            argv,
            environment: CStrings::new(variables(environment, cwd)?),
            cwd: directory,
            name: name.clone(),
            directory: cwd.to_owned(),
            path: path.to_string_lossy().into_owned(),
        })
    }

    pub(super) fn cwd(&self) -> &CStr {
        &self.cwd
    }

    pub(super) fn programs(&self) -> &[CString] {
        &self.programs
    }

    pub(super) fn argv(&self) -> &CStrings {
        &self.argv
    }

    pub(super) fn environment(&self) -> &CStrings {
        &self.environment
    }

    /// Why the command did not start, for the caller.
    pub(super) fn not_started(&self, step: Step, error: Errno) -> ToolError {
        let Self { name, directory, path, .. } = self;
        let directory = directory.display();
        match (step, error) {
            (Step::Fork, Errno::AGAIN | Errno::NOMEM) => ToolError::new(
                ErrorKind::Io,
                format!(
                    "{name} was not started: this user or machine has no room for another process ({}); \
                     end some processes and try again",
                    words(error)
                ),
            ),
            (Step::Directory, Errno::NOENT) => ToolError::new(
                ErrorKind::FileNotFound,
                format!("the working directory {directory} does not exist; create it or choose another"),
            ),
            (Step::Directory, Errno::NOTDIR) => ToolError::invalid_path(format!(
                "the working directory {directory} is not a directory; choose another"
            )),
            (Step::Directory, error) => {
                ToolError::io(format!("the working directory {directory} cannot be entered"), &error.into())
            }
            (Step::Program, Errno::NOENT | Errno::NOTDIR) if name.contains('/') => ToolError::new(
                ErrorKind::FileNotFound,
                format!(
                    "there is no program {name}, or the interpreter in its first line does not exist; \
                     check the path (relative ones start in {directory})"
                ),
            ),
            (Step::Program, Errno::NOENT | Errno::NOTDIR) => ToolError::new(
                ErrorKind::FileNotFound,
                format!("there is no program named {name} in PATH ({path}); check the name, or install it"),
            ),
            (Step::Program, Errno::ACCESS | Errno::PERM) => ToolError::denied(format!(
                "{name} may not be executed: it is a directory, lacks the executable bit or lies on a noexec mount; \
                 name a program, or run the file with its interpreter"
            )),
            (Step::Program, Errno::NOEXEC) => ToolError::failed(format!(
                "{name} is not a program for this machine and has no #! line; run it with its interpreter"
            )),
            (Step::Program, Errno::TOOBIG) => ToolError::invalid_arguments(format!(
                "the command is too long for the system: {} bytes of arguments (the longest has {}) and {} of \
                 environment; write the long part to a file and name the file instead",
                self.argv.bytes(),
                self.argv.owned.iter().map(|argument| argument.as_bytes().len()).max().unwrap_or_default(),
                self.environment.bytes(),
            )),
            (step @ (Step::Limits | Step::Privileges | Step::Landlock | Step::Filter), error) => {
                ToolError::new(
                    ErrorKind::ExecutionFailed,
                    format!(
                        "{name} was not started, because the kernel would not hold it: {} failed ({}); \
                     `haft doctor` tells what is missing, `--sandbox off` runs commands without a sandbox",
                        step.doing(),
                        words(error)
                    ),
                )
            }
            (step, error) => {
                ToolError::io(format!("{name} was not started: {}", step.doing()), &error.into())
            }
        }
    }
}

/// The files that `name` may mean: itself if it is a path, else one in each directory of `path`.
fn programs(name: &str, path: &OsStr) -> Result<Vec<CString>, ToolError> {
    let places: Vec<Vec<u8>> = if name.contains('/') {
        vec![name.as_bytes().to_vec()]
    } else {
        path.as_bytes()
            .split(|&byte| byte == b':')
            .filter(|directory| !directory.is_empty())
            .map(|directory| [directory, b"/", name.as_bytes()].concat())
            .collect()
    };
    let strings = places.into_iter().map(CString::new).collect::<Result<_, _>>();
    strings
        .map_err(|_| ToolError::invalid_arguments("the program's name or PATH has a NUL byte; leave it out"))
}

fn variables(environment: &Environment, cwd: &Path) -> Result<Vec<CString>, ToolError> {
    let pwd = (OsStr::new("PWD"), cwd.as_os_str());
    let others = environment.iter().filter(|(name, _)| *name != "PWD");
    let strings = others.chain([pwd]).map(|(name, value)| {
        let bytes = [name.as_bytes(), b"=", value.as_bytes()].concat();
        let name_is_good = !name.is_empty() && !name.as_bytes().contains(&b'=');
        CString::new(bytes).ok().filter(|_| name_is_good).ok_or_else(|| {
            ToolError::invalid_arguments(format!(
                "the environment variable {:?} cannot be passed: its name is empty or has a =, or there is a NUL byte in it",
                name.to_string_lossy()
            ))
        })
    });
    strings.collect()
}

/// The operating system's words for `error`.
fn words(error: Errno) -> String {
    let text = std::io::Error::from(error).to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(argv: &[&str]) -> Result<Launch, ToolError> {
        let argv: Vec<_> = argv.iter().map(|word| (*word).to_owned()).collect();
        let environment = Environment::scrubbed([("PATH".into(), "/a:/b".into())]);
        Launch::new(&argv, Path::new("/w"), &environment)
    }

    #[test]
    fn a_bare_name_is_looked_for_in_path_and_a_path_is_taken_as_it_is() {
        let programs = |name| launch(&[name]).unwrap().programs;
        assert_eq!(programs("ls"), [c"/a/ls".to_owned(), c"/b/ls".to_owned()]);
        assert_eq!(programs("./ls"), [c"./ls".to_owned()]);
    }

    #[test]
    fn what_no_program_can_be_given_is_told_before_anything_starts() {
        for argv in [&[][..], &[""], &["ls", "a\0b"], &["l\0s"]] {
            let error = launch(argv).err().unwrap();
            assert_eq!(error.kind, ErrorKind::InvalidArguments, "{argv:?}: {error}");
        }
        for name in ["", "A=B"] {
            let environment = Environment::scrubbed([]).with(name, "v");
            let error = Launch::new(&["ls".to_owned()], Path::new("/w"), &environment).err().unwrap();
            assert_eq!(error.kind, ErrorKind::InvalidArguments, "{name:?}: {error}");
        }
    }

    #[test]
    fn pwd_is_the_working_directory_even_if_somebody_says_otherwise() {
        let environment = Environment::scrubbed([]).with("PWD", "/elsewhere");
        let launch = Launch::new(&["ls".to_owned()], Path::new("/w"), &environment).unwrap();
        let pwd: Vec<_> =
            launch.environment.owned.iter().filter(|v| v.as_bytes().starts_with(b"PWD=")).collect();
        assert_eq!(pwd, [c"PWD=/w"]);
    }

    #[test]
    fn a_full_machine_is_told_apart_from_a_bad_command() {
        let error = launch(&["ls"]).unwrap().not_started(Step::Fork, Errno::AGAIN);
        assert_eq!(error.kind, ErrorKind::Io);
        assert!(error.kind.retry_can_help());
        assert!(error.message.contains("no room for another process"), "{error}");
    }
}
