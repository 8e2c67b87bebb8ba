//! Queries over files and sets, against the same queries over rows in memory; and the plans of such queries.

mod answers;
mod copy;
mod damage;
mod joins;
mod kit;
mod plans;
