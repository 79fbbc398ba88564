//! Conversations in an index of OpenSearch, for data that is too large for one machine.
//!
//! The cluster proposes messages by n-grams. This module then compares their texts, so that answers are
//! exactly those of a database. The list of conversations is read once for each state and kept in memory.
//!
//! It uses `verbatim-index` and `verbatim-embed` for the packed vectors that both kinds of index share,
//! `verbatim-text` and `verbatim-base`.
//!
//! Invariant: the index behind the alias never changes. An import writes a copy of the index and moves the
//! alias at the end. So a reader sees either the whole import or none of it.
//! Invariant: an answer covers all shards; otherwise it is an error.

mod address;
mod bulk;
mod client;
mod document;
mod error;
mod features;
mod generation;
mod gram_code;
mod import;
mod layout;
mod query;
mod ranked;
mod rebuild;
mod view;

use std::sync::{Arc, Mutex};

pub use address::Address;
pub use client::{Access, Client};
pub use error::{Error, Result};
pub use import::Importer;
pub use ranked::{MessagePlace, RankFilter, RankReader, RankedMessage, RankedSize};
pub use rebuild::{Forgot, forget, rebuild};
pub use view::{ClusterConversation, MessageInOrder, Taken, View};

use verbatim_base::{call::Stop, lock::lock};

/// An index in a cluster, and the last state that was read.
#[derive(Debug)]
pub struct Cluster {
    client: Result<Client>,
    view: Mutex<Option<Arc<View>>>,
    /// The statistics for ranking, for the last state that was ranked.
    size: Mutex<Option<RankedSize>>,
}

impl Cluster {
    /// Returns the index at an address. Sends no request before the first question. Without TLS, the address
    /// must be of this computer.
    pub fn at(address: &str, access: Access) -> Cluster {
        let address = Address::parse(address);
        Cluster {
            client: address.and_then(|address| Client::new(address, access)),
            view: Mutex::default(),
            size: Mutex::default(),
        }
    }

    /// Returns the client. Fails if the address is wrong or the file of trusted certificates cannot be read.
    pub fn client(&self) -> Result<&Client> {
        self.client.as_ref().map_err(Clone::clone)
    }

    /// Opens the current state of the index.
    pub fn view(&self, stop: &Stop) -> Result<Arc<View>> {
        let client = self.client()?;
        let now = generation::current(client, stop)?
            .ok_or_else(|| Error::Empty { address: client.address().to_string() })?;
        if let Some(view) = &*lock(&self.view)
            && view.index() == now
        {
            return Ok(Arc::clone(view));
        }
        let view = Arc::new(View::open(client, now, stop)?);
        Ok(Arc::clone(lock(&self.view).insert(view)))
    }

    /// Returns the statistics of all messages in a state.
    pub fn size(&self, view: &View, stop: &Stop) -> Result<RankedSize> {
        if let Some(size) = &*lock(&self.size)
            && size.index == view.index()
        {
            return Ok(size.clone());
        }
        let size = RankReader::new(self.client()?, view, stop).size()?;
        Ok(lock(&self.size).insert(size).clone())
    }

    /// Returns the last state without a request, so that the details of hits come from the same state as the
    /// hits.
    pub fn last_view(&self, stop: &Stop) -> Result<Arc<View>> {
        let known = lock(&self.view).clone();
        known.map_or_else(|| self.view(stop), Ok)
    }
}
