//! The primitives `current` is built on; a model checker substitutes its own.

pub use std::sync::{Arc, Mutex, PoisonError, RwLock};
