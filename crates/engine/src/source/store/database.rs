//! Sources in a canonical SQLite database, with an index on this computer.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::{fs, sync::Arc};

use super::{Excluded, Source, Store};
use crate::decisions::exclusions::Exclusions;
use crate::source::reader::Reader;
use crate::source::reader::indexed::IndexedReader;
use crate::source::reader::live::LiveReader;
use crate::{config::StoreAddress, error::Result};
use verbatim_base::model::{Hit, Provenance};
use verbatim_base::{call::Call, lock::lock};
use verbatim_chats::{db, import::transcript::TranscriptReader};
use verbatim_index::Vectors;

#[derive(Debug)]
pub(crate) struct DatabaseStore(pub(crate) PathBuf);

impl Store for DatabaseStore {
    fn address(&self) -> StoreAddress {
        StoreAddress::Database(self.0.clone())
    }

    fn database(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn bytes(&self) -> u64 {
        fs::metadata(&self.0).map_or(0, |metadata| metadata.len())
    }

    fn reader(&self, source: &Source, call: &Call) -> Arc<dyn Reader> {
        match source.current_index(call) {
            Ok(snapshot) => Arc::new(IndexedReader::new(source.clone(), snapshot)),
            Err(reason) => Arc::new(LiveReader::new(source.clone(), reason)),
        }
    }

    fn searcher(&self, source: &Source, call: &Call) -> Arc<dyn Reader> {
        match source.index(call, false) {
            Ok(snapshot) => Arc::new(IndexedReader::falling_back(source.clone(), snapshot)),
            Err(reason) => Arc::new(LiveReader::new(source.clone(), reason)),
        }
    }

    fn check(&self, source: &Source, call: &Call) -> Result<()> {
        match source.current_index(call) {
            Ok(_) => Ok(()),
            Err(_) => source.read_database(call, |_| Ok(())),
        }
    }

    fn is_indexed(&self, source: &Source, call: &Call) -> bool {
        source.current_index(call).is_ok()
    }

    fn can_be_indexed(&self, source: &Source, call: &Call) -> bool {
        let layout = source.read_database(call, |database| Ok(database.layout().clone()));
        layout.map_or(true, |it| it.message_key.is_some() && it.conversation_key.is_some())
    }

    fn stamp(&self, source: &Source, _: &Call) -> String {
        let state = db::state(&self.0).map(|state| state.to_string()).unwrap_or_default();
        let commit = source.index_dir().ok().and_then(|index| index.current());
        format!("{state} {commit:?}")
    }

    fn indexed(&self, source: &Source, call: &Call) -> (u64, u64) {
        source.latest_index(call).map_or((0, 0), |snapshot| {
            let segments = snapshot.segments();
            let bytes = segments.iter().map(|segment| size_of(segment.folder)).sum();
            (snapshot.messages().into(), bytes)
        })
    }

    fn embedded(&self, source: &Source, call: &Call) -> u64 {
        let Some(snapshot) = source.latest_index(call) else { return 0 };
        let model = source.model().name();
        let vectors = snapshot.segments().into_iter().filter_map(|segment| {
            Vectors::open(segment.folder, model, segment.doc_ids.len() as u32)
        });
        vectors.map(|vectors| u64::from(vectors.known())).sum()
    }

    fn excluded(
        &self,
        source: &Source,
        exclusions: &Arc<Exclusions>,
        call: &Call,
    ) -> Result<Arc<HashSet<String>>> {
        let cache = &source.state.excluded;
        source.on_database(|path| {
            let state = db::state(path)?;
            if let Some(known) = &*lock(cache)
                && known.path == path
                && known.state == state
                && Arc::ptr_eq(&known.by, exclusions)
            {
                return Ok(Arc::clone(&known.ids));
            }
            let origins = db::read_tables(path, call, db::origins)?;
            let ids = origins.into_iter().filter(|(_, origin)| exclusions.excludes(origin));
            let ids: Arc<HashSet<String>> = Arc::new(ids.map(|(id, _)| id).collect());
            let by = Arc::clone(exclusions);
            let known = Excluded { path: path.to_owned(), state, by, ids: Arc::clone(&ids) };
            *lock(cache) = Some(known);
            Ok(ids)
        })
    }

    fn models(&self, source: &Source, call: &Call) -> Result<HashMap<String, Vec<String>>> {
        source.read_database(call, db::tally::models_by_conversation)
    }

    fn provenance(
        &self,
        source: &Source,
        ids: Option<&[&str]>,
        call: &Call,
    ) -> Result<HashMap<String, Provenance>> {
        source.on_database(|path| {
            db::read_tables(path, call, |database| db::provenance(database, ids))
        })
    }

    fn branches(&self, source: &Source, id: &str, call: &Call) -> Result<HashMap<String, String>> {
        source.read_database(call, |database| db::branches(database, id))
    }

    fn first_messages(
        &self,
        source: &Source,
        ids: &[&str],
        call: &Call,
    ) -> Result<Vec<Hit<'static>>> {
        let reader = source.reader(call);
        let mut first = Vec::new();
        for id in ids {
            let messages = reader.read(id, false, call)?.filter(|it| it.turns() > 0);
            first.extend(messages.map(|messages| messages.message(0).into_owned()));
        }
        Ok(first)
    }

    fn forked_from(&self, source: &Source, id: &str, call: &Call) -> Result<Option<String>> {
        let state = source.read_database(call, |database| db::reader_state(database, id))?;
        let reader = state.and_then(|state| TranscriptReader::restore(&state));
        Ok(reader.and_then(|reader| reader.parent().map(str::to_owned)))
    }

    fn not_stored(&self, source: &Source, call: &Call) -> Result<Vec<String>> {
        source.read_database(call, db::not_stored)
    }
}

/// Returns the size of all files below a folder, in bytes.
pub(crate) fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
