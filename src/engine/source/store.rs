//! What a source is stored in.

use std::{fs, path::PathBuf, sync::Arc};

use crate::{
    cluster::Cluster,
    engine::{config::Config, store_address::StoreAddress},
};

/// What a source is stored in. The code that asks a database is chosen by a `match`, so that the
/// compiler names every place that a new kind of store needs.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    /// A canonical database of SQLite, which is indexed here.
    Database(PathBuf),
    /// An index in a cluster, which keeps itself current.
    Cluster { address: String, cluster: Arc<Cluster> },
}

impl Store {
    /// Returns the store at an address; opens nothing.
    pub(crate) fn at(address: StoreAddress, config: &Config) -> Store {
        match address {
            StoreAddress::Database(path) => Store::Database(path),
            StoreAddress::Cluster(address) => {
                let cluster = Arc::new(config.cluster(&address));
                Store::Cluster { address, cluster }
            }
        }
    }

    pub(crate) fn address(&self) -> StoreAddress {
        match self {
            Store::Database(path) => StoreAddress::Database(path.clone()),
            Store::Cluster { address, .. } => StoreAddress::Cluster(address.clone()),
        }
    }

    /// Returns how many bytes the store takes; 0 if it cannot be read. A cluster is never small.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Store::Database(path) => fs::metadata(path).map_or(0, |metadata| metadata.len()),
            Store::Cluster { .. } => u64::MAX,
        }
    }
}
