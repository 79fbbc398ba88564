//! Sources in an index of a cluster, which the cluster keeps current.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Source, Store};
use crate::decisions::exclusions::Exclusions;
use crate::source::reader::cluster_about::origins;
use crate::source::reader::clustered::ClusterReader;
use crate::source::reader::{OrderedIds, Reader};
use crate::{config::StoreAddress, error::Result};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Provenance};
use verbatim_cluster::{Cluster, ClusterConversation};

#[derive(Debug)]
pub(crate) struct ClusterStore {
    pub(crate) address: String,
    pub(crate) cluster: Arc<Cluster>,
}

impl Store for ClusterStore {
    fn address(&self) -> StoreAddress {
        StoreAddress::Cluster(self.address.clone())
    }

    fn cluster(&self) -> Option<&Cluster> {
        Some(&self.cluster)
    }

    fn bytes(&self) -> u64 {
        u64::MAX
    }

    fn reader(&self, source: &Source, _: &Call) -> Arc<dyn Reader> {
        Arc::new(ClusterReader::new(Arc::clone(&self.cluster), source.model()))
    }

    fn check(&self, _: &Source, call: &Call) -> Result<()> {
        self.cluster.view(&call.stop)?;
        Ok(())
    }

    fn is_indexed(&self, _: &Source, _: &Call) -> bool {
        true
    }

    fn stamp(&self, _: &Source, call: &Call) -> String {
        self.cluster.view(&call.stop).map_or_else(|_| String::new(), |view| view.index().to_owned())
    }

    fn indexed(&self, _: &Source, call: &Call) -> (u64, u64) {
        self.cluster
            .view(&call.stop)
            .map_or((0, 0), |view| (view.conversations().iter().map(|it| it.turns as u64).sum(), 0))
    }

    fn embedded(&self, source: &Source, call: &Call) -> u64 {
        let size =
            self.cluster.view(&call.stop).and_then(|view| self.cluster.size(&view, &call.stop));
        let size = size.ok().filter(|size| size.model == source.model().name());
        size.map_or(0, |size| size.messages)
    }

    fn excluded(
        &self,
        _: &Source,
        exclusions: &Arc<Exclusions>,
        call: &Call,
    ) -> Result<Arc<HashSet<String>>> {
        let origins = origins(&*self.cluster.view(&call.stop)?).into_iter();
        let ids = origins.filter(|(_, origin)| exclusions.excludes(origin)).map(|(id, _)| id);
        Ok(Arc::new(ids.collect()))
    }

    fn models(&self, _: &Source, call: &Call) -> Result<HashMap<String, Vec<String>>> {
        let view = self.cluster.view(&call.stop)?;
        let mut all = HashMap::new();
        for it in view.conversations() {
            let mut models = it.models.clone();
            if models.is_empty() {
                models.extend(it.stored.model.clone());
            }
            if !models.is_empty() {
                all.insert(it.stored.id.clone(), models);
            }
        }
        Ok(all)
    }

    fn provenance(
        &self,
        _: &Source,
        ids: Option<&[&str]>,
        call: &Call,
    ) -> Result<HashMap<String, Provenance>> {
        Ok(match ids {
            None => {
                let view = self.cluster.view(&call.stop)?;
                view.conversations().iter().filter_map(provenance_of).collect()
            }
            Some(ids) => {
                let view = self.cluster.last_view(&call.stop)?;
                ids.iter().filter_map(|id| provenance_of(view.find(id)?)).collect()
            }
        })
    }

    fn orders(&self, ids: &[&str], call: &Call) -> Result<Option<HashMap<String, OrderedIds>>> {
        let view = self.cluster.last_view(&call.stop)?;
        let mut orders = HashMap::new();
        for (id, messages) in view.orders(self.cluster.client()?, ids, &call.stop)? {
            let order = messages.into_iter().map(|it| (it.id, it.position, None)).collect();
            orders.insert(id, order);
        }
        Ok(Some(orders))
    }

    fn first_messages(&self, _: &Source, ids: &[&str], call: &Call) -> Result<Vec<Hit<'static>>> {
        let client = self.cluster.client()?;
        let view = self.cluster.last_view(&call.stop)?;
        let orders = view.orders(client, ids, &call.stop)?;
        let names: Vec<&str> =
            orders.values().filter_map(|order| Some(order.first()?.name.as_str())).collect();
        Ok(view.fetch(client, &names, &call.stop)?)
    }
}

fn provenance_of(it: &ClusterConversation) -> Option<(String, Provenance)> {
    Some((it.stored.id.clone(), it.stored.provenance.clone()?))
}
