//! Recording and undo.

mod closed_modes;
mod conflicts;
mod depth;
mod descriptors;
mod exact;
mod exchanged_links;
mod foreign;
mod killed;
mod memory;
mod outside_links;
mod private_dirs;
mod reversible;
mod size;
mod times;
