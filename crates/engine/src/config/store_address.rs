//! The address of a store: a path, or the address of an index in a cluster.

use std::fmt;
use std::path::{Path, PathBuf, absolute};

use serde::{Serialize, Serializer};
use verbatim_text::address::CLUSTER_PREFIXES;

/// Returns whether a text is the address of an index and not the path of a database.
fn is_address(text: &str) -> bool {
    CLUSTER_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

/// Returns why an address cannot be used.
#[cfg(not(feature = "cluster"))]
pub(crate) fn no_clusters(address: &str) -> String {
    let shown = address.rsplit_once('@').map_or(address, |(_, rest)| rest);
    format!("{shown}: this program was built without clusters; build it with the feature `cluster`")
}

/// The place of a store, in the form that users write. The type is not a path, so that only
/// [`StoreAddress::path`] or a `match` gives a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// The path of a canonical database of SQLite.
    Database(PathBuf),
    /// The address of an index in a cluster, such as `opensearch+https://HOST:9200/INDEX`.
    Cluster(String),
}

impl StoreAddress {
    /// Returns the path of the database; `None` for a cluster.
    pub fn path(&self) -> Option<&Path> {
        match self {
            StoreAddress::Database(path) => Some(path),
            StoreAddress::Cluster(_) => None,
        }
    }

    /// Returns the address in a form that does not depend on the working folder.
    pub fn absolute(&self) -> StoreAddress {
        match self {
            StoreAddress::Database(path) => absolute(path).unwrap_or_else(|_| path.clone()).into(),
            StoreAddress::Cluster(_) => self.clone(),
        }
    }
}

impl<P: AsRef<Path>> From<P> for StoreAddress {
    fn from(named: P) -> StoreAddress {
        match named.as_ref().to_str() {
            Some(text) if is_address(text) => StoreAddress::Cluster(text.to_owned()),
            _ => StoreAddress::Database(named.as_ref().to_owned()),
        }
    }
}

impl Serialize for StoreAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreAddress::Database(path) => path.display().fmt(f),
            StoreAddress::Cluster(address) => address.fmt(f),
        }
    }
}
