//! Sets: tables that are larger than one file, as range-partitioned Pleach files behind one small manifest.
//!
//! A set is a folder with immutable files and a manifest for each generation, which is created once and never
//! overwritten. `spec/SET.md` specifies both. Files are in the order of their keys and do not overlap, and equal
//! keys never lie in two files: so a look-up opens one file, and the manifest alone answers how many tuples are
//! between two borders.
//!
//! ```text
//! manifest.rs     the bytes of a manifest, and the rules by which it is refused
//! store.rs        where objects are: the interface        folder.rs   a folder of a local disk
//! generations.rs  which manifest is the current one
//! write.rs        files that nobody sees yet              commit.rs   publishing them
//! sweep.rs        deleting what nobody needs          rebuild.rs  the next generation, from changes
//! check.rs        checking every byte
//! set.rs          reading, file by file                   live.rs     following generations
//! source.rs       all tuples as the source of a build
//! ```
//!
//! # Protocol
//!
//! * A *worker* ([`Writer`]) writes files with fresh names, and returns their entries. Nobody sees these files.
//! * A *committer* ([`Committer`]) checks that files do not overlap and are there, and creates the manifest of the
//!   next generation. Only one can: the other gets [`SetError::Lost`].
//! * A *reader* ([`Set`]) finds the newest manifest, and opens files as they are asked. [`LiveSet`] follows.
//! * A *sweep* ([`sweep`]) deletes files that no kept manifest names, once they are older than a grace.

mod check;
mod commit;
mod error;
mod folder;
mod generations;
mod keys;
mod live;
mod manifest;
mod rebuild;
mod schema;
mod set;
mod source;
mod store;
mod sweep;
mod write;

pub use check::{CheckOptions, FileCheck, SetChecked, check_set};
pub use commit::{Committer, GRACE};
pub use error::{Result, SetError, StoreError};
pub use folder::Folder;
pub use generations::{
    Facts as GenerationFacts, Generation, current, generation_of, generations, manifest, manifest_name,
    newest,
};
pub use keys::{key_bytes, key_datum};
pub use live::LiveSet;
pub use manifest::{
    ENTRY_BYTES, Entry, FILES, Facts, HEAD_BYTES, MAGIC, MANIFEST_BYTES_MAX, MANIFESTS, Manifest,
    ManifestError, PARTITION_TUPLES, Rule, SUM_BYTES, Schema, VERSION_MAJOR, VERSION_MINOR,
};
pub use pleach::{Datum, OpenOptions};
pub use pleach_builder::{BuildOptions, Builder};
pub use rebuild::{SetRebuildOptions, SetRebuilt, rebuild_set, rollback_set};
pub use schema::source_schema;
pub use set::entries::SetEntries;
pub use set::{LeftOut, Set, SetOptions};
pub use source::SetSource;
pub use store::{Content, Object, Part, Store};
pub use sweep::{SweepOptions, Swept, sweep};
pub use write::{Partition, WriteReport, Writer, Written, discard};
