//! A connection to an object store: its client, by the environment, and reads whose answers are checked.

use crate::counters::Connector;
use crate::fault::{Fault, Secrets, advice, failed, is_answer, is_broken_off};
use crate::location::{Kind, Remote};
use crate::options::StoreOptions;
use crate::runtime::wait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path as ObjectPath;
use object_store::{
    Error, GetOptions, GetRange, GetResult, HeaderMap, HeaderValue, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMode, PutOptions,
};
use pleach_set::{Result, SetError, StoreError};
use std::future::Future;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

/// What is known of an object; every later answer must agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub bytes: u64,
    pub tag: Option<String>,
    pub modified: DateTime<Utc>,
}

impl Facts {
    fn of(meta: &ObjectMeta) -> Self {
        Self { bytes: meta.size, tag: meta.e_tag.clone(), modified: meta.last_modified }
    }

    /// Asks the store to refuse if the object is another one by now.
    pub fn ask(&self, mut options: GetOptions) -> GetOptions {
        match &self.tag {
            // A weak tag matches nothing.
            Some(tag) if !tag.starts_with("W/") => options.if_match = Some(tag.clone()),
            Some(_) => {}
            None if self.modified.timestamp() > 0 => options.if_unmodified_since = Some(self.modified),
            None => {}
        }
        options
    }

    /// Compares an answer, since some servers ignore conditions.
    pub fn check(&self, found: &ObjectMeta) -> Result<(), Fault> {
        let differs = match (&self.tag, &found.e_tag) {
            (Some(own), Some(other)) => own != other,
            _ => self.modified.timestamp() != found.last_modified.timestamp(),
        };
        if differs || self.bytes != found.size { Err(Fault::Replaced) } else { Ok(()) }
    }
}

/// A connection to one place of a store.
#[derive(Clone)]
pub(crate) struct Connection {
    pub store: Arc<dyn ObjectStore>,
    pub remote: Remote,
    pub options: StoreOptions,
    secrets: Secrets,
}

impl Connection {
    /// Makes the client. No request is sent yet.
    pub fn new(remote: Remote, options: StoreOptions) -> Result<Self> {
        let secrets = Secrets::of(&remote, &options);
        let store = client(&remote, &options).map_err(|error| {
            let place = remote.place();
            let source = failed("connect to", place, error.into(), (remote.kind(), &secrets)).source;
            SetError::Usage(format!(
                "cannot connect to: {}: {source}: {}",
                remote.place(),
                advice(remote.kind())
            ))
        })?;
        Ok(Self { store, remote, options, secrets })
    }

    /// Returns the path of an object; an empty name is the place itself.
    pub fn path(&self, name: &str) -> ObjectPath {
        let parts = name.split('/').filter(|part| !part.is_empty());
        parts.fold(self.remote.path().clone(), |path, part| path.join(part))
    }

    /// Returns the place of an object as messages show it.
    pub fn shown(&self, name: &str) -> String {
        let place = self.remote.place();
        if name.is_empty() { place } else { format!("{place}/{name}") }
    }

    pub fn failed(&self, operation: &'static str, name: &str, fault: Fault) -> StoreError {
        failed(operation, self.shown(name), fault, (self.remote.kind(), &self.secrets))
    }

    /// Runs requests on their own threads.
    pub fn run<T: Send + 'static, F: Future<Output = Result<T, Fault>> + Send + 'static>(
        &self,
        operation: &'static str,
        name: &str,
        requests: impl FnOnce(Self) -> F,
    ) -> Result<T, StoreError> {
        let done = wait(requests(self.clone())).map_err(Fault::Local).and_then(|done| done);
        done.map_err(|fault| self.failed(operation, name, fault))
    }

    /// Asks what an object is.
    pub async fn facts(&self, path: &ObjectPath) -> Result<Facts, Fault> {
        match self.store.head(path).await.map_err(Fault::from) {
            Ok(meta) => Ok(Facts::of(&meta)),
            // URLs that are signed may be so for GET alone, and some servers do not know HEAD.
            Err(fault) if self.remote.kind() == Kind::Http && is_answer(&fault) => {
                if matches!(fault, Fault::Store(Error::NotFound { .. })) {
                    return Err(fault);
                }
                let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
                let result = self.store.get_opts(path, options).await?;
                Ok(Facts::of(&result.meta))
            }
            Err(fault) => Err(fault),
        }
    }

    /// Reads bytes of an object that is known.
    pub async fn range(&self, path: &ObjectPath, range: Range<u64>, facts: &Facts) -> Result<Bytes, Fault> {
        if range.end > facts.bytes {
            return Err(Fault::End);
        }
        let mut tries = 0;
        loop {
            let options =
                GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
            let read = async {
                let result = self.store.get_opts(path, facts.ask(options)).await?;
                facts.check(&result.meta)?;
                body(result, &range).await
            };
            match read.await {
                // With a tag the client did that.
                Err(fault)
                    if facts.tag.is_none() && is_broken_off(&fault) && tries < self.options.retries() =>
                {
                    tries += 1;
                }
                read => return read,
            }
        }
    }

    /// Reads an object whose length is not known, if it is not longer than `bytes_max`.
    pub async fn whole(
        &self,
        path: &ObjectPath,
        bytes_max: u64,
        expected: Option<u64>,
    ) -> Result<Bytes, Fault> {
        let result = self.store.get_opts(path, GetOptions::default()).await?;
        let bytes = result.meta.size;
        check_length(bytes, expected)?;
        if bytes > bytes_max {
            return Err(Fault::Wrong(format!("it has {bytes} bytes, more than {bytes_max}")));
        }
        let facts = Facts::of(&result.meta);
        match body(result, &(0..bytes)).await {
            Err(fault) if facts.tag.is_none() && is_broken_off(&fault) => {
                self.range(path, 0..bytes, &facts).await
            }
            read => read,
        }
    }

    /// Reads bytes of an object that is not known yet, and says what it is.
    pub async fn part(
        &self,
        path: &ObjectPath,
        range: Range<u64>,
        expected: Option<u64>,
    ) -> Result<(Bytes, Facts), Fault> {
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let result = self.store.get_opts(path, options).await?;
        check_length(result.meta.size, expected)?;
        if range.end > result.meta.size {
            return Err(Fault::End);
        }
        let facts = Facts::of(&result.meta);
        let bytes = match body(result, &range).await {
            Err(fault) if facts.tag.is_none() && is_broken_off(&fault) => {
                self.range(path, range, &facts).await
            }
            read => read,
        };
        Ok((bytes?, facts))
    }

    /// Creates a small object. One that has these bytes already was created by a try whose answer was lost.
    pub async fn create(&self, path: &ObjectPath, bytes: Bytes) -> Result<(), Fault> {
        let mut tries = 0;
        loop {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            let fault = match self.store.put_opts(path, bytes.clone().into(), options).await {
                Ok(_) => return Ok(()),
                Err(error) => Fault::from(error),
            };
            let is_there = matches!(fault, Fault::Store(Error::AlreadyExists { .. }));
            if !is_there && !matches!(fault, Fault::Store(Error::Generic { .. })) {
                return Err(fault);
            }
            let length = bytes.len() as u64;
            match self.whole(path, length, Some(length)).await {
                Ok(found) if found == bytes => return Ok(()),
                // S3 answers so, too, while another request for this object is not done.
                Err(Fault::Store(Error::NotFound { .. })) if is_there && tries < self.options.retries() => {
                    tries += 1;
                }
                _ => return Err(fault),
            }
        }
    }

    /// Returns the age of something that was written then, by the clock of the server.
    pub fn age(&self, modified: DateTime<Utc>) -> std::time::Duration {
        let age_ms = self.options.counters.server_ms() - modified.timestamp_millis();
        std::time::Duration::from_millis(u64::try_from(age_ms).unwrap_or_default())
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Connection").field(&self.remote.place()).finish()
    }
}

fn check_length(found: u64, expected: Option<u64>) -> Result<(), Fault> {
    match expected.filter(|&expected| expected != found) {
        Some(expected) => Err(Fault::Wrong(format!("it has {found} bytes, not {expected}"))),
        None => Ok(()),
    }
}

/// Collects a body, which must have all bytes of a range and none more.
async fn body(result: GetResult, range: &Range<u64>) -> Result<Bytes, Fault> {
    let length = usize::try_from(range.end - range.start).map_err(|_| Fault::End)?;
    if result.range != *range {
        return Err(Fault::Wrong("the server sent other bytes than it was asked for".to_owned()));
    }
    let mut stream = result.into_stream();
    let first = stream.try_next().await?.unwrap_or_default();
    if first.len() == length {
        // Nothing is copied, which is the case of one small block.
        return match stream.next().await {
            None => Ok(first),
            Some(more) => more.map_err(Fault::from).and_then(|_| Err(too_many())),
        };
    }
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&first);
    while let Some(next) = stream.try_next().await? {
        if bytes.len() + next.len() > length {
            return Err(too_many());
        }
        bytes.extend_from_slice(&next);
    }
    if bytes.len() < length {
        return Err(Fault::Wrong(format!("the server sent {} bytes instead of {length}", bytes.len())));
    }
    Ok(bytes.into())
}

fn too_many() -> Fault {
    Fault::Wrong("the server sent more bytes than it was asked for".to_owned())
}

/// Returns the variables of the environment that a client knows.
fn known<'o, K: FromStr + 'o>(
    options: &'o StoreOptions,
    prefix: &'static str,
) -> impl Iterator<Item = (K, &'o String)> {
    options
        .environment
        .iter()
        .filter(move |(name, _)| name.starts_with(prefix))
        .filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value)))
}

fn client(remote: &Remote, options: &StoreOptions) -> object_store::Result<Arc<dyn ObjectStore>> {
    let connector = Connector(Arc::clone(&options.counters));
    let bucket = remote.host();
    Ok(match remote.kind() {
        Kind::S3 => {
            let builder = AmazonS3Builder::new().with_client_options(options.client());
            let builder = known::<AmazonS3ConfigKey>(options, "AWS_")
                .fold(builder, |builder, (key, value)| builder.with_config(key, value));
            let builder = builder.with_bucket_name(bucket).with_retry(options.retry());
            Arc::new(builder.with_http_connector(connector).build()?)
        }
        Kind::Google => {
            let builder = GoogleCloudStorageBuilder::new().with_client_options(options.client());
            let builder = known::<GoogleConfigKey>(options, "GOOGLE_")
                .fold(builder, |builder, (key, value)| builder.with_config(key, value));
            let builder = builder.with_bucket_name(bucket).with_retry(options.retry());
            Arc::new(builder.with_http_connector(connector).build()?)
        }
        Kind::Azure => {
            let builder = MicrosoftAzureBuilder::new().with_client_options(options.client());
            let builder = known::<AzureConfigKey>(options, "AZURE_")
                .fold(builder, |builder, (key, value)| builder.with_config(key, value));
            let builder = builder.with_container_name(bucket).with_retry(options.retry());
            Arc::new(builder.with_http_connector(connector).build()?)
        }
        Kind::Http => {
            let mut url = remote.url().clone();
            let mut client = options.client().with_allow_http(url.scheme() == "http");
            if let Some(value) = authorization(&url) {
                client =
                    client.with_default_headers(HeaderMap::from_iter([(http::header::AUTHORIZATION, value)]));
            }
            url.set_path("/");
            // Neither can fail: the URL has a host.
            let _ = (url.set_username(""), url.set_password(None));
            let builder = HttpBuilder::new().with_url(url).with_client_options(client);
            Arc::new(builder.with_retry(options.retry()).with_http_connector(connector).build()?)
        }
    })
}

/// Returns the header for the user and the password of a URL.
fn authorization(url: &url::Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let both = format!("{}:{}", decoded(url.username()), decoded(url.password().unwrap_or_default()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64.encode(both))).ok()?;
    value.set_sensitive(true);
    Some(value)
}
