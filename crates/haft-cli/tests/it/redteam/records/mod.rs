//! Recording and undo.

mod conflicts;
mod depth;
mod exact;
mod killed;
mod reversible;
mod size;
