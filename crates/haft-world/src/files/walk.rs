//! Visiting files the way ripgrep does: in parallel, past ignored and hidden ones, never through links.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use haft_tool::{ErrorKind, FileKind, Flow, Found, ToolError, Visitor, Walk};
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};

use super::LocalFiles;

impl LocalFiles {
    pub(super) fn walk_files<'a>(
        &self,
        walk: &Walk,
        visitors: &mut dyn FnMut() -> Visitor<'a>,
    ) -> Result<(), ToolError> {
        let kind = self.kind_of(&walk.root)?;
        let mut builder = WalkBuilder::new(&walk.root);
        builder.hidden(!walk.hidden);
        builder.threads(std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(12));
        let protected = self.scope.protected.clone();
        if protected.iter().any(|path| path.starts_with(&walk.root)) {
            builder.filter_entry(move |entry| !protected.iter().any(|path| entry.path().starts_with(path)));
        }
        let base = if kind == FileKind::Dir { walk.root.clone() } else { self.scope.workspace.clone() };
        if !walk.globs.is_empty() {
            let mut overrides = OverrideBuilder::new(&base);
            for glob in &walk.globs {
                overrides.add(glob).map_err(|error| bad("glob", glob, &error))?;
            }
            builder.overrides(overrides.build().map_err(|error| bad("glob", &walk.globs.join(", "), &error))?);
        }
        if let Some(name) = &walk.file_type {
            let mut types = TypesBuilder::new();
            types.add_defaults();
            types.select(name);
            builder.types(types.build().map_err(|error| bad("type", name, &error))?);
        }
        let mut visiting = Visiting { files: self, visitors, failure: Arc::default() };
        builder.build_parallel().visit(&mut visiting);
        if self.cancel.is_cancelled() {
            return Err(ToolError::new(ErrorKind::Interrupted, "the search was cancelled".to_owned()));
        }
        let failure = visiting.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }
}

fn bad(field: &str, value: &str, error: &ignore::Error) -> ToolError {
    ToolError::invalid_arguments(format!("{field}: {value:?} cannot be used: {error}"))
}

/// Hands each thread of the walk a visitor of its own.
struct Visiting<'f, 'v, 'a> {
    files: &'f LocalFiles,
    visitors: &'v mut dyn FnMut() -> Visitor<'a>,
    failure: Arc<Mutex<Option<ToolError>>>,
}

impl<'f: 's, 's, 'a: 's> ParallelVisitorBuilder<'s> for Visiting<'f, '_, 'a> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 's> {
        Box::new(Thread { files: self.files, visitor: (self.visitors)(), failure: Arc::clone(&self.failure) })
    }
}

struct Thread<'f, 'a> {
    files: &'f LocalFiles,
    visitor: Visitor<'a>,
    failure: Arc<Mutex<Option<ToolError>>>,
}

impl ParallelVisitor for Thread<'_, '_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.files.cancel.is_cancelled() {
            return WalkState::Quit;
        }
        let entry = match entry {
            Ok(entry) => entry,
            // What cannot be listed is passed over, as ripgrep does; only an unreadable start is an error.
            Err(error) if error.depth() == Some(0) => {
                let failure = ToolError::failed(error.to_string());
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                return WalkState::Quit;
            }
            Err(_) => return WalkState::Continue,
        };
        // A file that was named is visited through a link too; one that is come across is not.
        let named = entry.depth() == 0 && !entry.file_type().is_some_and(|kind| kind.is_dir());
        if !named && !entry.file_type().is_some_and(|kind| kind.is_file()) {
            return WalkState::Continue;
        }
        match (self.visitor)(&Met { files: self.files, path: entry.into_path() }) {
            Flow::Continue => WalkState::Continue,
            Flow::Stop => WalkState::Quit,
        }
    }
}

/// A file the walk came across.
struct Met<'f> {
    files: &'f LocalFiles,
    path: PathBuf,
}

impl Found for Met<'_> {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> Result<File, ToolError> {
        self.files.open_regular(&self.path).map(|open| open.file)
    }

    fn modified_ns(&self) -> i128 {
        self.files
            .stat_of(&self.path)
            .map_or(0, |stat| i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec))
    }
}
