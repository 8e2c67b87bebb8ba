//! Sets and files on servers in the process of the test.

mod command;
mod emulators;
mod faults;
mod files;
mod kit;
mod lookups;
mod sets;
