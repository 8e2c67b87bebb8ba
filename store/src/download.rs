//! Whole files: brought into the cache, or sent from a local file.

use crate::connection::{Connection, Facts};
use crate::fault::Fault;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, WriteMultipart};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of one request of a download.
const DOWNLOAD_BYTES: u64 = 8 << 20;
/// Requests of a download at a time.
const DOWNLOADS: usize = 4;
/// Bytes of one part of an upload; smaller files are sent in one request.
const PART_BYTES: u64 = 16 << 20;
/// Parts that an upload may have: stores take 10,000.
const PARTS_MAX: u64 = 9_000;
/// Parts of an upload at a time.
const UPLOADS: usize = 4;

/// Brings a file into the cache, where it is not there, and returns its path there.
///
/// `digest` is its SHA-256 if that is known; `key` else names the file in the cache.
pub(crate) async fn download(
    connection: Connection,
    object: (ObjectPath, String),
    facts: Facts,
    key: [u8; 32],
    digest: Option<[u8; 32]>,
) -> Result<PathBuf, Fault> {
    let (path, name) = object;
    let cache = &connection.options.cache;
    let environment = &connection.options.environment;
    let local = cache.path(&key, |name| environment.get(name).cloned())?;
    if cache.has(&local, facts.bytes) {
        return Ok(local);
    }
    connection.options.take(&name, facts.bytes).map_err(Fault::Refused)?;
    let done = into_cache(&connection, &path, &facts, &local, digest).await;
    if done.is_err() {
        connection.options.give_back(facts.bytes);
    }
    done.map(|()| local)
}

async fn into_cache(
    connection: &Connection,
    path: &ObjectPath,
    facts: &Facts,
    local: &Path,
    digest: Option<[u8; 32]>,
) -> Result<(), Fault> {
    let cache = &connection.options.cache;
    let mut file = cache.begin(local)?;
    cache.make_room(local, facts.bytes)?;
    let parts: Vec<u64> = (0..facts.bytes.div_ceil(DOWNLOAD_BYTES)).collect();
    let mut stream = futures_util::stream::iter(parts)
        .map(|part| {
            let start = part * DOWNLOAD_BYTES;
            connection.range(path, start..facts.bytes.min(start + DOWNLOAD_BYTES), facts)
        })
        .buffered(DOWNLOADS);
    let mut is_first = true;
    while let Some(part) = stream.next().await {
        match part {
            Ok(bytes) => file.write(&bytes)?,
            Err(Fault::Store(object_store::Error::NotSupported { .. })) if is_first => {
                drop(stream);
                return without_ranges(connection, path, facts, local, digest).await;
            }
            Err(fault) => return Err(fault),
        }
        is_first = false;
    }
    drop(stream);
    publish(file, digest)
}

/// Brings a file from a server that does not know ranges.
async fn without_ranges(
    connection: &Connection,
    path: &ObjectPath,
    facts: &Facts,
    local: &Path,
    digest: Option<[u8; 32]>,
) -> Result<(), Fault> {
    let mut file = connection.options.cache.begin(local)?;
    let result = connection.store.get_opts(path, facts.ask(GetOptions::default())).await?;
    facts.check(&result.meta)?;
    let (mut stream, mut bytes) = (result.into_stream(), 0);
    while let Some(part) = stream.try_next().await? {
        bytes += part.len() as u64;
        file.write(&part)?;
    }
    if bytes != facts.bytes {
        return Err(Fault::Wrong(format!("the server sent {bytes} bytes instead of {}", facts.bytes)));
    }
    publish(file, digest)
}

fn publish(file: crate::cache::Incoming, digest: Option<[u8; 32]>) -> Result<(), Fault> {
    match file.publish(digest.as_ref())? {
        true => Ok(()),
        false => Err(Fault::Wrong("its SHA-256 is another than the manifest says".to_owned())),
    }
}

/// Sends a local file.
///
/// With `is_new` an object that is there is an error: the store decides where a file is sent in one request;
/// before a larger one is sent, it is looked for.
pub(crate) async fn upload(
    connection: Connection,
    path: ObjectPath,
    from: PathBuf,
    is_new: bool,
) -> Result<(), Fault> {
    let mut file = File::open(&from)?;
    let bytes = file.metadata()?.len();
    if bytes <= PART_BYTES {
        let mut content = Vec::with_capacity(bytes as usize);
        Read::by_ref(&mut file).take(PART_BYTES + 1).read_to_end(&mut content)?;
        check_sent(content.len() as u64, bytes)?;
        if is_new {
            return connection.create(&path, content.into()).await;
        }
        connection.store.put(&path, content.into()).await?;
        return Ok(());
    }
    let before = match connection.facts(&path).await {
        Ok(_) if is_new => return Err(exists(&path)),
        Ok(facts) => Some(facts),
        Err(Fault::Store(object_store::Error::NotFound { .. })) => None,
        Err(fault) => return Err(fault),
    };
    let part_bytes = PART_BYTES.max(bytes.div_ceil(PARTS_MAX)) as usize;
    let started = connection.store.put_multipart_opts(&path, Default::default()).await?;
    let mut upload = WriteMultipart::new_with_chunk_size(started, part_bytes);
    match send(&mut upload, &mut file, part_bytes, bytes).await {
        Ok(()) => match upload.finish().await {
            Ok(_) => Ok(()),
            // The last request may have been answered, the answer lost, and the request refused when it was sent
            // again. The object tells.
            Err(error) => match connection.facts(&path).await {
                Ok(after) if after.bytes == bytes && before.as_ref() != Some(&after) => Ok(()),
                Ok(_) | Err(_) => Err(error.into()),
            },
        },
        Err(fault) => {
            // The parts are then litter of the store, which its own rules delete.
            let _ = upload.abort().await;
            Err(fault)
        }
    }
}

async fn send(
    upload: &mut WriteMultipart,
    file: &mut File,
    part_bytes: usize,
    bytes: u64,
) -> Result<(), Fault> {
    let mut sent = 0;
    loop {
        upload.wait_for_capacity(UPLOADS).await?;
        let mut part = Vec::with_capacity(part_bytes);
        Read::by_ref(file).take(part_bytes as u64).read_to_end(&mut part)?;
        sent += part.len() as u64;
        if part.is_empty() || sent > bytes {
            return check_sent(sent, bytes);
        }
        upload.put(part.into());
    }
}

fn check_sent(sent: u64, bytes: u64) -> Result<(), Fault> {
    if sent == bytes {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the local file changed while it was sent: try again")
        .into())
}

fn exists(path: &ObjectPath) -> Fault {
    Fault::Store(object_store::Error::AlreadyExists { path: path.to_string(), source: "it is there".into() })
}
