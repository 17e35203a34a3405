//! Haft in place of `claude -p`: the official Claude Agent SDKs drive it, unmodified, and its stream is looked at line by line.

mod existing_project;
mod facts;
mod flags;
mod hostile;
mod sdks;
mod stream;
mod turn_model;
