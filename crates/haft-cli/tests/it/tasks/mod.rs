//! Commands that live on after their call: read while they run and after, stopped, bounded, recorded, taken back, and
//! never longer alive than their session.

mod ends;
mod limits;
mod output;
mod record;
