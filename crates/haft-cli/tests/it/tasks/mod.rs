//! Background tasks: their output, limits, receipts and undo, and that they end with their session.

mod ends;
mod limits;
mod output;
mod record;
