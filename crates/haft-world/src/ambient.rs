//! Files that the user named on the command line, outside any call and any scope.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use haft_tool::ToolError;

/// Reads a file the user named, if it is a regular one of at most `most` bytes.
pub fn read_named(path: &Path, most: u64) -> Result<Vec<u8>, ToolError> {
    let failed = |error: &std::io::Error| ToolError::io(path.display(), error);
    // A FIFO must not make the open wait.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(|error| failed(&error))?;
    if !file.metadata().map_err(|error| failed(&error))?.is_file() {
        return Err(ToolError::invalid_path(format!("{} is not a regular file", path.display())));
    }
    read_bounded(file, most)?.ok_or_else(|| {
        ToolError::invalid_arguments(format!(
            "{} has more than {most} bytes, which is the limit",
            path.display()
        ))
    })
}

/// Reads a stream to its end; `None` if it has more than `most` bytes.
pub fn read_bounded(from: impl Read, most: u64) -> Result<Option<Vec<u8>>, ToolError> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes).map_err(|error| ToolError::io("read", &error))?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}
