//! Harmonia's B+tree (Yan et al., PPoPP 2019): its section of a file.

pub(crate) mod section;
