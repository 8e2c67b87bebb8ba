//! The primitives `slots` is built on; a model checker substitutes its own.

pub use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
