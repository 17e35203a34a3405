//! Pages fetched through the public doors, from servers on this machine.

mod clawft;
mod scope;
mod web_fetch;
