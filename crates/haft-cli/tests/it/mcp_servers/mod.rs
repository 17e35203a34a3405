//! Servers that people have, and servers that mean no good, held by the built program: what they may do, who trusts them, how
//! they come and go.

mod end_to_end;
mod lifecycle;
mod popular;
mod remote;
mod scope;
mod trust;
