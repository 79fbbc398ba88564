//! Stores: the places where sources are stored.

#[cfg(feature = "cluster")]
use std::sync::Arc;
use std::{fs, path::PathBuf};

use crate::{config::Config, store_address::StoreAddress};
#[cfg(feature = "cluster")]
use verbatim_cluster::Cluster;

/// The place where a source is stored. Code that depends on the kind of store uses `match`, so that the
/// compiler lists every place that a new kind of store must change.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    /// A canonical SQLite database, which has an index on this computer.
    Database(PathBuf),
    /// An index in a cluster, which the cluster keeps current.
    #[cfg(feature = "cluster")]
    Cluster { address: String, cluster: Arc<Cluster> },
}

impl Store {
    /// Returns the store at an address. Opens nothing.
    pub(crate) fn at(address: StoreAddress, config: &Config) -> Store {
        match address {
            StoreAddress::Database(path) => Store::Database(path),
            #[cfg(feature = "cluster")]
            StoreAddress::Cluster(address) => {
                let cluster = Arc::new(config.cluster(&address));
                Store::Cluster { address, cluster }
            }
            // No file has this name, and [`Config::export_store`] says why.
            #[cfg(not(feature = "cluster"))]
            StoreAddress::Cluster(address) => Store::Database(address.into()),
        }
    }

    pub(crate) fn address(&self) -> StoreAddress {
        match self {
            Store::Database(path) => StoreAddress::Database(path.clone()),
            #[cfg(feature = "cluster")]
            Store::Cluster { address, .. } => StoreAddress::Cluster(address.clone()),
        }
    }

    /// Returns the size of the store in bytes; 0 if it cannot be read. A cluster never counts as small.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Store::Database(path) => fs::metadata(path).map_or(0, |metadata| metadata.len()),
            #[cfg(feature = "cluster")]
            Store::Cluster { .. } => u64::MAX,
        }
    }
}
