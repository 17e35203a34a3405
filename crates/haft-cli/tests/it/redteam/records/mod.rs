//! Recording and undo.

mod conflicts;
mod depth;
mod exact;
mod killed;
mod private_dirs;
mod reversible;
mod size;
