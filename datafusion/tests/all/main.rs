//! Queries over files and sets, against the same queries over rows in memory; and the plans of such queries.

mod answers;
mod copy;
mod damage;
mod joins;
mod joins_answers;
mod joins_plans;
mod kit;
mod plans;
