//! The tables and figures of papers that are measured on a CPU.
//!
//! FAST (Kim et al., TODS 36(4), 2011): [`build`] measures builds against one copy pass of the same bytes,
//! [`ablation`] adds blocking by pages, lines and SIMD blocks and software pipelining one by one (Figure 8),
//! [`compress`] compares compressed with full trees by width, size and entropy of the keys (Figures 11 and
//! 12), [`table3`] the forms of Table III on all threads, [`files`] the same figures from the section of a file.
//!
//! K-ary search (Kaldewey, P-ary search): [`kary`]. Harmonia (Yan et al., PPoPP 2019): [`batches`] measures
//! the phases of its batch update, [`updates`] the update beside rebuilds of a file and other stores
//! (Figure 14).
//!
//! Variants take turns inside each repetition; a number is the median. Every answer is checked.

pub mod ablation;
pub mod batches;
pub mod build;
pub mod compress;
pub mod files;
pub mod kary;
pub mod table3;
pub mod updates;
