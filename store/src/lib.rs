//! Files and sets in object stores: S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage, and
//! servers of HTTP.
//!
//! Everything waits for its answer; requests run on threads of their own, so that callers may be threads of any
//! runtime. Credentials come from the environment, and no message shows them.
//!
//! ```text
//! location.rs    URLs and paths           options.rs    limits, retries, environment
//! connection.rs  clients, checked reads   counters.rs   requests, bytes, the clock of the server
//! folder.rs      the store of a set       remote.rs     one file
//! download.rs    whole files, uploads     cache.rs      whole files on the local disk
//! runtime.rs     threads of requests      fault.rs      errors without secrets
//! ```

mod cache;
mod connection;
mod counters;
mod download;
mod fault;
mod folder;
mod location;
mod options;
mod remote;
mod runtime;

pub use counters::{Counters, Requests};
pub use folder::{ObjectFolder, RENEW_AGE};
pub use location::{Kind, Location, Remote, is_url};
pub use options::{
    ALL_TRIES, CACHE_BYTES_MAX, CONNECT_TIMEOUT, DOWNLOAD_BYTES_MAX, RETRIES, StoreOptions, TIMEOUT,
};
pub use remote::{GAP_BYTES, RemoteFile, upload_file};
