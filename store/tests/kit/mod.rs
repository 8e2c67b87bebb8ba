//! Servers in the process of a test: one that speaks the protocol of S3, over the crate `s3s-fs`, and a plain one of
//! HTTP. Both fail as they are told.

// Each test file uses a part of it.
#![allow(dead_code)]

pub mod plain;
pub mod rules;
pub mod tables;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use pleach_store::{Location, ObjectFolder, Remote, RemoteFile, StoreOptions};
use rules::{Asked, Rules};
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;

/// The key and the secret that the server knows.
pub const KEY: (&str, &str) = ("KEYFORTESTS", "secret-for-tests");
/// The bucket that is there.
pub const BUCKET: &str = "lake";

pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A server that runs until the end of the process.
pub struct Server {
    pub folder: TempDir,
    pub rules: Arc<Rules>,
    pub address: SocketAddr,
    /// Folder of the cache of its clients.
    pub cache: TempDir,
}

impl Server {
    /// Starts a server of S3.
    pub fn s3() -> Self {
        Self::start(|folder, rules| {
            std::fs::create_dir(folder.join(BUCKET)).expect("a bucket");
            let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(&folder).expect("a folder"));
            builder.set_auth(SimpleAuth::from_single(KEY.0, KEY.1));
            let s3 = S3 { service: builder.build(), rules, folder, writes: Arc::default() };
            move |request: Request<Incoming>| s3.clone().answer(request)
        })
    }

    /// Starts a server of HTTP.
    pub fn http(style: plain::Style) -> Self {
        Self::start(|folder, rules| {
            move |request: Request<Incoming>| {
                plain::answer(folder.clone(), Arc::clone(&rules), style, request)
            }
        })
    }

    fn start<F, S>(service: impl FnOnce(PathBuf, Arc<Rules>) -> S) -> Self
    where
        S: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = io::Result<Response<Body>>> + Send + 'static,
    {
        let folder = tempfile::tempdir().expect("a folder");
        let rules = Arc::<Rules>::default();
        let service = service(folder.path().to_owned(), Arc::clone(&rules));
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                sender.send(listener.local_addr().expect("an address")).expect("a listener");
                while let Ok((socket, _)) = listener.accept().await {
                    let service = service.clone();
                    tokio::spawn(async move {
                        let http = hyper::server::conn::http1::Builder::new();
                        let service = service_fn(move |request| service(request));
                        // A test that resets a connection wants an error here.
                        let _ = http.serve_connection(TokioIo::new(socket), service).await;
                    });
                }
            });
        });
        let address = receiver.recv().expect("an address");
        Self { folder, rules, address, cache: tempfile::tempdir().expect("a folder") }
    }

    /// Returns the variables with which clients find the server.
    pub fn environment(&self) -> BTreeMap<String, String> {
        [
            ("AWS_ENDPOINT", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.0.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", KEY.1.to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Returns options with short pauses and the cache of the server.
    pub fn options(&self) -> StoreOptions {
        StoreOptions::default()
            .environment(self.environment())
            .cache_folder(self.cache.path())
            .tries(2, Duration::from_millis(1500))
            .backoff(Duration::from_millis(5))
    }

    /// Returns the set of this name, with new counters.
    pub fn set(&self, name: &str) -> ObjectFolder {
        self.set_with(name, self.options())
    }

    pub fn set_with(&self, name: &str, options: StoreOptions) -> ObjectFolder {
        ObjectFolder::new(remote(&format!("s3://{BUCKET}/{name}")), options).expect("a client")
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Returns the file on the disk of the server.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes all objects older.
    pub fn age_objects(&self, by: Duration) {
        let mut folders = vec![self.path(BUCKET)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let file = std::fs::File::options().write(true).open(path).expect("an object");
                    let modified = file.metadata().and_then(|it| it.modified()).expect("a time");
                    file.set_modified(modified - by).expect("a time");
                }
            }
        }
    }

    /// Replaces the bytes of an object, and forgets what the server knows of the old ones.
    pub fn replace(&self, path: &Path, bytes: &[u8]) {
        replace(self.folder.path(), path, bytes);
    }

    pub fn open(&self, url: &str) -> pleach_set::Result<RemoteFile> {
        RemoteFile::open(remote(url), self.options())
    }
}

pub fn remote(url: &str) -> Remote {
    match Location::parse(url).expect("a URL") {
        Location::Remote(remote) => remote,
        Location::Local(path) => panic!("a path: {}", path.display()),
    }
}

/// The server of S3. The file system of the crate knows neither `If-Match` nor creates atomically.
#[derive(Clone)]
struct S3 {
    service: S3Service,
    rules: Arc<Rules>,
    folder: PathBuf,
    writes: Arc<tokio::sync::Mutex<()>>,
}

impl S3 {
    async fn answer(self, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let asked = Asked::of(&request);
        let action = self.rules.find(&asked);
        if let Some(answer) = rules::before(action.as_ref()).await {
            return answer;
        }
        let is_write = !matches!(*request.method(), Method::GET | Method::HEAD);
        let alone = if is_write { Some(self.writes.lock().await) } else { None };
        if matches!(action, Some(rules::Action::IgnoreCondition)) {
            remove_object(&self.folder, request.uri().path());
        }
        let condition = request.headers().get(header::IF_MATCH).cloned();
        let called = self.service.call(request.map(s3s::Body::from)).await;
        let response = called.map_err(|error| io::Error::other(format!("{error:?}")))?;
        drop(alone);
        let (mut parts, body) = response.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let tag = parts.headers.get(header::ETAG);
        if condition.is_some_and(|condition| parts.status.is_success() && tag != Some(&condition)) {
            parts.headers.clear();
            parts.status = StatusCode::PRECONDITION_FAILED;
            return Ok(Response::from_parts(parts, full(Bytes::new())));
        }
        rules::after(action, parts, body).await
    }
}

/// Replaces an object behind the back of the server, whose notes on objects are in its folder.
pub fn replace(folder: &Path, path: &Path, bytes: &[u8]) {
    let new = folder.join("new");
    std::fs::write(&new, bytes).and_then(|()| std::fs::rename(&new, path)).expect("a file");
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        if entry.file_name().to_string_lossy().ends_with(".internal.json") {
            std::fs::remove_file(entry.path()).expect("a note");
        }
    }
}

/// Removes an object behind the back of the server.
pub fn remove_object(folder: &Path, path: &str) {
    let _ = std::fs::remove_file(folder.join(path.trim_start_matches('/')));
}

pub fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}
