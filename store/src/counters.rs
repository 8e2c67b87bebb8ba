//! Counting requests and bytes, and the clock of the server.

use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use http_body::{Body, Frame, SizeHint};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    ReqwestConnector,
};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

/// Requests and bytes until now; each try counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests for bytes of objects.
    pub gets: u64,
    /// Requests for the length of objects.
    pub heads: u64,
    /// Requests for lists of objects.
    pub lists: u64,
    /// Requests that write, copy or delete.
    pub writes: u64,
    /// Bytes of the bodies of answers.
    pub received_bytes: u64,
    /// Bytes of the bodies of requests.
    pub sent_bytes: u64,
}

impl Requests {
    /// Returns the number of all requests.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.gets + self.heads + self.lists + self.writes
    }

    /// Returns what came after `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            gets: self.gets - before.gets,
            heads: self.heads - before.heads,
            lists: self.lists - before.lists,
            writes: self.writes - before.writes,
            received_bytes: self.received_bytes - before.received_bytes,
            sent_bytes: self.sent_bytes - before.sent_bytes,
        }
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests ({} GET, {} HEAD, {} lists, {} writes), {} bytes received, {} sent",
            self.all(),
            self.gets,
            self.heads,
            self.lists,
            self.writes,
            self.received_bytes,
            self.sent_bytes
        )
    }
}

/// Clock of a server that is not known yet.
const UNKNOWN: i64 = i64::MIN;

/// Counts, shared by all connections that were given them.
#[derive(Debug)]
pub struct Counters {
    gets: AtomicU64,
    heads: AtomicU64,
    lists: AtomicU64,
    writes: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    /// Milliseconds by which the clock of the server is ahead of ours.
    ahead_ms: AtomicI64,
}

impl Default for Counters {
    fn default() -> Self {
        let [gets, heads, lists, writes, received, sent] = Default::default();
        Self { gets, heads, lists, writes, received, sent, ahead_ms: AtomicI64::new(UNKNOWN) }
    }
}

impl Counters {
    /// Returns the counts until now.
    #[must_use]
    pub fn now(&self) -> Requests {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Requests {
            gets: of(&self.gets),
            heads: of(&self.heads),
            lists: of(&self.lists),
            writes: of(&self.writes),
            received_bytes: of(&self.received),
            sent_bytes: of(&self.sent),
        }
    }

    /// Returns the time of the server in milliseconds since 1970; ours if it never told.
    pub(crate) fn server_ms(&self) -> i64 {
        let ahead = self.ahead_ms.load(Ordering::Relaxed);
        own_ms() + if ahead == UNKNOWN { 0 } else { ahead }
    }

    fn count(&self, request: &HttpRequest) {
        let is_list = || {
            let query = request.uri().query().unwrap_or_default();
            ["list-type=", "comp=list", "prefix=", "delimiter="].iter().any(|part| query.contains(part))
        };
        let counter = match *request.method() {
            Method::GET if is_list() => &self.lists,
            Method::GET => &self.gets,
            Method::HEAD => &self.heads,
            _ if request.method().as_str() == "PROPFIND" => &self.lists,
            _ => &self.writes,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.sent.fetch_add(request.body().content_length() as u64, Ordering::Relaxed);
    }

    fn look_at_date(&self, response: &HttpResponse) {
        let date = response.headers().get(http::header::DATE).and_then(|date| date.to_str().ok());
        if let Some(date) = date.and_then(|date| chrono::DateTime::parse_from_rfc2822(date).ok()) {
            self.ahead_ms.store(date.timestamp_millis() - own_ms(), Ordering::Relaxed);
        }
    }
}

fn own_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64)
}

/// Makes clients that count.
#[derive(Debug)]
pub(crate) struct Connector(pub(crate) Arc<Counters>);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Counted { client, counters: Arc::clone(&self.0) }))
    }
}

#[derive(Debug)]
struct Counted {
    client: HttpClient,
    counters: Arc<Counters>,
}

#[async_trait]
impl HttpService for Counted {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.counters.count(&request);
        let response = self.client.execute(request).await?;
        self.counters.look_at_date(&response);
        let counters = Arc::clone(&self.counters);
        Ok(response.map(|body| HttpResponseBody::new(CountedBody { body, counters })))
    }
}

struct CountedBody {
    body: HttpResponseBody,
    counters: Arc<Counters>,
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.counters.received.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
