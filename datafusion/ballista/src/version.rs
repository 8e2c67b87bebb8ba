//! Versions that must be the same in all processes of a cluster.

use pleach_format::version::{VERSION_MAJOR, VERSION_MINOR};
use std::fmt;

/// The version of the product and that of the file format.
///
/// Plans are of one version only: the meaning of their bytes may change with each release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    product: String,
    format: String,
}

impl Version {
    /// Returns the version of this build.
    #[must_use]
    pub fn own() -> Self {
        let format = format!("{VERSION_MAJOR}.{VERSION_MINOR}");
        Self::new(env!("CARGO_PKG_VERSION"), format)
    }
    /// Makes a version of its parts.
    #[must_use]
    pub fn new(product: impl Into<String>, format: impl Into<String>) -> Self {
        Self { product: product.into(), format: format.into() }
    }

    /// Returns the version of the product.
    #[must_use]
    pub fn product(&self) -> &str {
        &self.product
    }
    /// Returns the version of the file format.
    #[must_use]
    pub fn format(&self) -> &str {
        &self.format
    }

    /// Returns the name of an executor: the name that it was given, and its version, which the scheduler compares.
    #[must_use]
    pub fn of_executor(&self, name: &str) -> String {
        format!("{name}@{}+{}", self.product, self.format)
    }
    /// Returns the version in the name of an executor; `None` if there is none, as in stock executors.
    #[must_use]
    pub fn in_name(name: &str) -> Option<Self> {
        let (product, format) = name.rsplit_once('@')?.1.split_once('+')?;
        Some(Self::new(product, format))
    }

    /// Compares the version with that of another process, which `what` names.
    ///
    /// # Errors
    /// One line that names both versions.
    pub fn check(&self, other: Option<&Self>, what: &str) -> Result<(), String> {
        match other {
            Some(other) if other == self => Ok(()),
            Some(other) => {
                Err(format!("other version: {what} is {other}, and not {self}: use the same everywhere"))
            }
            None => {
                Err(format!("not of Pleach: {what} has no version: use the programs of {self} everywhere"))
            }
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pleach {} (format {})", self.product, self.format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_versions() {
        let version = Version::own();
        assert_eq!(Version::in_name(&version.of_executor("rack@7")), Some(version.clone()));
        assert_eq!(Version::in_name("rack-7"), None);
        assert_eq!(Version::in_name("rack@7"), None);
        assert!(version.check(Some(&version.clone()), "x").is_ok());
        for (other, what) in [
            (Some(Version::new("0.0.9", version.format())), "0.0.9"),
            (Some(Version::new(version.product(), "9.9")), "9.9"),
            (None, "no version"),
        ] {
            let message = version.check(other.as_ref(), "the executor").expect_err("versions differ");
            assert!(message.contains(what) && message.contains("the executor"), "{message}");
        }
    }
}
