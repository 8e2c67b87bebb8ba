//! Options of connections: limits, time-outs, retries, and the environment with the credentials.

use crate::cache::Cache;
use crate::counters::Counters;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of whole files that are downloaded at most, unless the options say otherwise.
pub const DOWNLOAD_BYTES_MAX: u64 = 1 << 30;
/// Bytes that the cache has at most, unless the options say otherwise.
pub const CACHE_BYTES_MAX: u64 = 16 << 30;
/// Times that a request is tried again.
pub const RETRIES: usize = 4;
/// Time of one try of a request, with its answer.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Time of a connection to a server.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time of a request with all its tries.
pub const ALL_TRIES: Duration = Duration::from_secs(120);

type Told = dyn Fn(&str, u64) + Send + Sync;

/// Options of connections to object stores. Clones share the counters and the limit of downloads.
#[derive(Clone)]
pub struct StoreOptions {
    pub(crate) cache: Cache,
    pub(crate) whole: bool,
    pub(crate) counters: Arc<Counters>,
    pub(crate) environment: Arc<BTreeMap<String, String>>,
    retries: usize,
    timeout: Duration,
    backoff: Duration,
    download_bytes_max: u64,
    downloaded: Arc<AtomicU64>,
    told: Option<Arc<Told>>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            cache: Cache::default(),
            whole: false,
            counters: Arc::default(),
            environment: Arc::new(
                std::env::vars_os()
                    .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                    .collect(),
            ),
            retries: RETRIES,
            timeout: TIMEOUT,
            backoff: Duration::from_millis(100),
            download_bytes_max: DOWNLOAD_BYTES_MAX,
            downloaded: Arc::default(),
            told: None,
        }
    }
}

impl StoreOptions {
    /// Sets the folder of the cache.
    #[must_use]
    pub fn cache_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache.folder = Some(folder.into());
        self
    }
    /// Sets how many bytes the cache has at most; the files that were not used for longest are deleted.
    #[must_use]
    pub fn cache_bytes_max(mut self, bytes: u64) -> Self {
        self.cache.bytes_max = bytes;
        self
    }
    /// Sets how many bytes of whole files are downloaded at most, in all.
    #[must_use]
    pub fn download_bytes_max(mut self, bytes: u64) -> Self {
        self.download_bytes_max = bytes;
        self
    }
    /// Downloads files whole before they are searched, instead of asking the store for the bytes of each key.
    #[must_use]
    pub fn whole(mut self, whole: bool) -> Self {
        self.whole = whole;
        self
    }
    /// Sets how often a request is tried again, and how long one try may take.
    #[must_use]
    pub fn tries(mut self, retries: usize, timeout: Duration) -> Self {
        (self.retries, self.timeout) = (retries, timeout);
        self
    }
    /// Sets the pause before the first retry; later ones are longer.
    #[must_use]
    pub fn backoff(mut self, pause: Duration) -> Self {
        self.backoff = pause;
        self
    }
    /// Sets variables that are read instead of those of the process: credentials, regions and endpoints.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = Arc::new(variables.into_iter().collect());
        self
    }
    /// Sets a function that is told the name and the bytes of a file before it is downloaded whole.
    #[must_use]
    pub fn told(mut self, told: impl Fn(&str, u64) + Send + Sync + 'static) -> Self {
        self.told = Some(Arc::new(told));
        self
    }
    /// Returns the counters of requests and bytes.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Takes bytes from what may be downloaded; the error says how many are left.
    pub(crate) fn take(&self, name: &str, bytes: u64) -> Result<(), String> {
        let may = |had: u64| had.checked_add(bytes).filter(|&all| all <= self.download_bytes_max);
        let taken = self.downloaded.fetch_update(Ordering::Relaxed, Ordering::Relaxed, may);
        match taken {
            Ok(_) => {
                if let Some(told) = &self.told {
                    told(name, bytes);
                }
                Ok(())
            }
            Err(had) => Err(format!(
                "it has {bytes} bytes, and {had} of the {} bytes that may be downloaded are used: give more with \
                 --max-download",
                self.download_bytes_max
            )),
        }
    }

    /// Gives bytes back that were not downloaded.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.downloaded.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn client(&self) -> ClientOptions {
        ClientOptions::new()
            .with_timeout(self.timeout)
            .with_connect_timeout(CONNECT_TIMEOUT.min(self.timeout))
    }

    pub(crate) fn retry(&self) -> RetryConfig {
        let backoff = BackoffConfig {
            init_backoff: self.backoff,
            max_backoff: Duration::from_secs(5).max(self.backoff),
            base: 2.0,
        };
        RetryConfig { backoff, max_retries: self.retries, retry_timeout: ALL_TRIES }
    }

    pub(crate) fn retries(&self) -> usize {
        self.retries
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment has credentials.
        f.debug_struct("StoreOptions")
            .field("cache", &self.cache)
            .field("whole", &self.whole)
            .field("retries", &self.retries)
            .field("timeout", &self.timeout)
            .field("download_bytes_max", &self.download_bytes_max)
            .finish_non_exhaustive()
    }
}
