//! Output of commands: text for people and scripts, JSON for programs.

pub mod json;
pub mod picture;
pub mod table;
pub mod terminal;
pub mod text;
