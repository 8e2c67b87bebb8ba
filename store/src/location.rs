//! Where files and sets are: URLs and paths, and how messages show them.

use object_store::path::Path as ObjectPath;
use pleach_set::{Result, SetError};
use std::fmt;
use std::path::{Path, PathBuf};
use url::Url;

/// Kinds of object stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Amazon S3 and what speaks its protocol: `s3://bucket/prefix`.
    S3,
    /// Google Cloud Storage: `gs://bucket/prefix`.
    Google,
    /// Azure Blob Storage: `az://container/prefix`.
    Azure,
    /// Servers of HTTP, which are only read: `https://host/path`.
    Http,
}

/// Place of a file or a set.
///
/// ```
/// use pleach_store::Location;
///
/// let Location::Remote(remote) = Location::parse("s3://lake/orders")? else { panic!() };
/// assert_eq!(remote.place(), "s3://lake/orders");
/// assert_eq!(Location::parse("file:///data/orders")?, Location::parse("/data/orders")?);
/// // Messages never show what may be a secret.
/// let Location::Remote(remote) = Location::parse("https://me:secret@host/a.pleach?sig=42")? else { panic!() };
/// assert_eq!(remote.place(), "https://host/a.pleach");
/// # Ok::<(), pleach_set::SetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A path of this machine.
    Local(PathBuf),
    /// A place in an object store.
    Remote(Remote),
}

impl Location {
    /// Reads a URL (`s3://`, `gs://`, `az://`, `http://`, `https://`, `file://`); all else is a path.
    ///
    /// # Errors
    /// [`SetError::Usage`] if the URL is not one of these, or not complete. It does not repeat secrets.
    pub fn parse(text: &str) -> Result<Self> {
        let Some((scheme, _)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
            return Ok(Self::Local(text.into()));
        };
        let url = Url::parse(text).map_err(|error| {
            SetError::Usage(format!("not a URL: {}: {error}: write SCHEME://HOST/PATH", shown(text)))
        })?;
        let kind = match scheme.to_ascii_lowercase().as_str() {
            "file" => {
                let path = url.to_file_path().map_err(|()| {
                    let advice = "write file:///PATH with the whole path";
                    SetError::Usage(format!("not a path of this machine: {}: {advice}", shown(text)))
                })?;
                return Ok(Self::Local(path));
            }
            "s3" | "s3a" => Kind::S3,
            "gs" => Kind::Google,
            "az" => Kind::Azure,
            "http" | "https" => Kind::Http,
            scheme => {
                let known = "s3, gs, az, http, https and file are known";
                return Err(SetError::Usage(format!("unknown kind of URL: {scheme}://: {known}")));
            }
        };
        Remote::new(kind, url).map(Self::Remote)
    }

    /// Does the same with a path as a command gets it.
    ///
    /// # Errors
    /// Those of [`Location::parse`].
    pub fn of_path(path: &Path) -> Result<Self> {
        path.to_str().map_or_else(|| Ok(Self::Local(path.to_owned())), Self::parse)
    }
}

/// Returns true if a text is a URL of another place than this machine. It may be wrong as such.
#[must_use]
pub fn is_url(text: &Path) -> bool {
    let scheme = text.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    scheme.is_some_and(is_scheme)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

/// Returns a URL without what may be a secret, whether it can be parsed or not.
pub(crate) fn shown(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // What is before the last @ may be a password, even one with an @.
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// A place in an object store.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    kind: Kind,
    url: Url,
    path: ObjectPath,
}

impl Remote {
    fn new(kind: Kind, mut url: Url) -> Result<Self> {
        let refused = |what: &str, url: &Url| SetError::Usage(format!("{what}: {}", shown(url.as_str())));
        if url.host_str().is_none_or(str::is_empty) {
            return Err(refused("the URL names no bucket and no host", &url));
        }
        let has_secrets = !url.username().is_empty() || url.password().is_some() || url.query().is_some();
        if kind != Kind::Http && has_secrets {
            let what = "credentials are not part of this URL; give them by the environment";
            return Err(refused(what, &url));
        }
        url.set_fragment(None);
        let path = ObjectPath::from_url_path(url.path().trim_end_matches('/'))
            .map_err(|_| refused("the path of the URL cannot be the name of an object", &url))?;
        Ok(Self { kind, url, path })
    }

    /// Returns the kind of store.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the place as messages show it: without user, password and query.
    #[must_use]
    pub fn place(&self) -> String {
        shown(self.url.as_str()).trim_end_matches('/').to_owned()
    }

    /// Returns the bucket, the container, or the host.
    pub(crate) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Returns the path in the bucket, or on the host.
    pub(crate) fn path(&self) -> &ObjectPath {
        &self.path
    }

    /// Returns the URL; it may have secrets.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns true if nothing but the bucket or the host is named.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.path.as_ref().is_empty()
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.place()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Location::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn paths_are_paths() {
        for path in ["a", "./a", "/a/b", "a:b", "C:/x", "odd://", "-", ""] {
            let parsed = Location::parse(path);
            if path == "odd://" {
                assert!(parsed.is_err());
            } else {
                assert_eq!(parsed.expect("a path"), Location::Local(path.into()));
            }
        }
    }

    #[test]
    fn urls_are_places() {
        for (text, kind, host, path) in [
            ("s3://b/p/q", Kind::S3, "b", "p/q"),
            ("s3a://b/p/", Kind::S3, "b", "p"),
            ("gs://b", Kind::Google, "b", ""),
            ("az://c/a%20b", Kind::Azure, "c", "a b"),
            ("http://h:8080/x", Kind::Http, "h", "x"),
        ] {
            let Location::Remote(remote) = Location::parse(text).expect(text) else { panic!("{text}") };
            assert_eq!((remote.kind(), remote.host(), remote.path().as_ref()), (kind, host, path));
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for text in [
            "s3://key:hidden@b/p",
            "az://c/p?sig=hidden",
            "ftp://u:hidden@h/",
            "http://u:hid@hidden@/x?hidden",
        ] {
            assert!(!refused(text).contains("hidden"), "{text}: {}", refused(text));
        }
        let location = Location::parse("https://u:hidden@h/p?sig=hidden#hidden").expect("a URL");
        assert!(!format!("{location:?}").contains("hidden"));
    }
}
