//! Recording and undo.

mod conflicts;
mod depth;
mod exact;
mod killed;
mod outside_links;
mod private_dirs;
mod reversible;
mod size;
mod times;
