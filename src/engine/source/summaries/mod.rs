//! What each conversation is about: its summary, and a title where it has none.
//!
//! A brief is made of the messages that open a conversation, and kept. It is found again by a print
//! of where they are, because the messages of a part never change; where they were moved, by a print
//! of what they say. So only conversations whose opening is new are summed up.
//!
//! Invariant: holds nothing that the texts cannot make again; what is missing is made when asked for.

mod features;
mod file;

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
};

use crate::engine::{Catalogue, Engine, Error, Source, SourceKind};
use crate::{
    db, embed, index,
    model::Stop,
    text::{
        snippet,
        summary::{self, Turn},
        words::Tokenizer,
    },
};

use file::{Fingerprints, SummaryCache};

pub(crate) use features::{SummaryFeatures, hash};

const FILE: &str = "summaries";

/// Briefs that a question waits for: some tenths of a second.
const FEW: usize = 500;

/// Texts that a provider is sent at once.
const BATCH: usize = 64;

/// The role of the first message of a thread that was saved with a summary: that message.
pub const SAVED: &str = "system";

/// Characters of a summary that somebody saved, at most.
const LONGEST: usize = 1_000;

/// What a conversation is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The title of one that has none of its own; else empty.
    pub title: String,
    /// One or two of its own sentences; empty where it has none that say something.
    pub summary: String,
}

impl Catalogue {
    /// Returns what a conversation is about; read from its text when first asked.
    pub fn brief(&self, conversation: u32) -> &Summary {
        let listed = &self.conversations()[conversation as usize];
        listed.brief.get_or_init(|| self.make_brief(conversation))
    }

    fn make_brief(&self, conversation: u32) -> Summary {
        let snapshot = self.snapshot();
        let mut doc_ids = self.opening(conversation);
        // As they are read.
        doc_ids.sort_by_key(|doc_id| (snapshot.position(*doc_id), snapshot.time(*doc_id)));
        let is_untitled = self.conversations()[conversation as usize].title.trim().is_empty();
        let turns: Vec<(bool, Cow<'_, str>)> = doc_ids
            .into_iter()
            .map(|doc_id| (snapshot.role(doc_id), snapshot.content(doc_id)))
            // What tools and the system say is not what people talk about.
            .filter(|(role, _)| !["tool", "system"].contains(role))
            .map(|(role, text)| (role != "assistant", text))
            .collect();
        let turns: Vec<Turn<'_>> =
            turns.iter().map(|(by_user, text)| Turn { by_user: *by_user, text }).collect();
        let title = if is_untitled { summary::title(&turns) } else { String::new() };
        let summary = self.saved(conversation).unwrap_or_else(|| summary::summary(&turns));
        Summary { title, summary }
    }

    /// The messages that open a conversation, the earliest first.
    fn opening(&self, conversation: u32) -> Vec<u32> {
        let mut doc_ids = self.doc_ids(conversation).to_vec();
        doc_ids.sort_unstable_by_key(|doc_id| (self.snapshot().time(*doc_id), Reverse(*doc_id)));
        doc_ids.truncate(summary::TURNS);
        doc_ids
    }

    /// The summary that a thread was saved with.
    fn saved(&self, conversation: u32) -> Option<String> {
        if self.kind() != SourceKind::Threads {
            return None;
        }
        let first = *self.reading(conversation).first()?;
        let snapshot = self.snapshot();
        (snapshot.role(first) == SAVED).then(|| {
            let content = snapshot.content(first);
            let content = snippet::trim(&content);
            snippet::cut(content, LONGEST).unwrap_or(content).to_owned()
        })
    }

    /// What changes when other messages open a conversation, or the same are elsewhere.
    fn place_print(&self, conversation: u32, parts: &[(u32, String)]) -> u64 {
        let mut hasher = DefaultHasher::new();
        for doc_id in self.opening(conversation) {
            let at = parts.partition_point(|(first, _)| *first <= doc_id).saturating_sub(1);
            let Some((first, name)) = parts.get(at) else { continue };
            (name, doc_id - first).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// What changes when a conversation has another title or opening, wherever that is.
    fn text_print(&self, conversation: u32) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.conversations()[conversation as usize].title.hash(&mut hasher);
        let snapshot = self.snapshot();
        for doc_id in self.opening(conversation) {
            (snapshot.role(doc_id), snapshot.content(doc_id)).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Catalogue {
    /// The file of its briefs, and its parts by their first doc ids.
    fn index_dir(&self) -> Option<(PathBuf, Vec<(u32, String)>)> {
        let parts = self.snapshot().parts();
        let index_dir = parts.first()?.folder.parent()?;
        let name =
            |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parts = parts.iter().map(|part| (part.doc_ids.start, name(part.folder))).collect();
        Some((index_dir.join(FILE), parts))
    }
}

/// What was kept, and made where it was not.
struct Gathered {
    path: PathBuf,
    prints: Vec<Fingerprints>,
    gists: SummaryFeatures,
    /// Those that have no vector though they should: what is kept of them would be taken as whole.
    without: HashSet<usize>,
    /// Whether what is kept is not this.
    is_news: bool,
    /// Why there are no vectors of what was made.
    failed: Option<embed::Error>,
}

impl Engine {
    /// Makes the briefs of all conversations of a source that have none, and keeps them.
    pub fn build_summaries(&self, source: &Source, stop: &Stop) -> Result<(), Error> {
        let Ok(catalogue) = self.catalogue(source) else { return Ok(()) };
        let Some(gathered) = self.gather(&catalogue, usize::MAX, true, stop)? else {
            return Ok(());
        };
        let Gathered { path, prints, gists, without, is_news, failed } = gathered;
        if is_news {
            let briefs: Vec<_> = prints
                .into_iter()
                .enumerate()
                .filter(|(at, _)| !without.contains(at))
                .map(|(at, print)| (at, print, catalogue.brief(at as u32)))
                .collect();
            let written = file::store(&path, self.model().name(), &briefs, &gists);
            written.map_err(|error| index::Error::Write { path, error })?;
        }
        *catalogue.gists.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(gists));
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Returns what the conversations of a catalogue are ranked by as a whole. Of many that nothing
    /// is known of yet, some are left without.
    pub(crate) fn gists(
        &self,
        catalogue: &Catalogue,
        stop: &Stop,
    ) -> Result<Arc<SummaryFeatures>, Error> {
        let mut held = catalogue.gists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = held.as_ref().filter(|known| known.lacking == 0) {
            return Ok(Arc::clone(known));
        }
        let gathered = self.gather(catalogue, FEW, self.model().is_built_in(), stop)?;
        let gists = gathered.map(|gathered| gathered.gists).unwrap_or_default();
        Ok(Arc::clone(held.insert(Arc::new(gists))))
    }

    /// Takes what is kept, and makes as much as `most` of what is not; `None` where there is no
    /// index.
    fn gather(
        &self,
        catalogue: &Catalogue,
        most: usize,
        with_vectors: bool,
        stop: &Stop,
    ) -> Result<Option<Gathered>, Error> {
        let Some((path, parts)) = catalogue.index_dir() else { return Ok(None) };
        let model = self.model();
        let kept = SummaryCache::load(&path, model.name());
        let count = catalogue.conversations().len() as u32;
        let mut failed = None;
        let mut dimensions = kept.dimensions();
        if dimensions == 0 && with_vectors && count > 0 {
            match model.dimensions(stop) {
                Ok(asked) => dimensions = asked,
                Err(error) => failed = Some(error),
            }
        }
        let cutter = Tokenizer::default();
        let mut gists = SummaryFeatures::new(dimensions);
        let mut prints = Vec::with_capacity(count as usize);
        let (mut made, mut moved) = (0, 0);
        let mut batch = Vec::new();
        let mut without = HashSet::new();
        for conversation in 0..count {
            if stop.requested() {
                return Err(db::Error::Stopped.into());
            }
            let listed = &catalogue.conversations()[conversation as usize];
            let place = catalogue.place_print(conversation, &parts);
            let by_place = kept.at_place(place);
            // What is not there may have been moved there: then the text is known.
            let text = match &by_place {
                Some(record) => record.text,
                None if made >= most => 0,
                None => catalogue.text_print(conversation),
            };
            prints.push(Fingerprints { place, text });
            moved += usize::from(by_place.is_none());
            let record = by_place.or_else(|| kept.of_text(text));
            if let Some(record) = &record {
                drop(listed.brief.set(record.brief.clone()));
                if record.vector.0.len() == dimensions {
                    let (row, scale) = record.vector;
                    gists.push(&record.title_terms, &record.summary_terms, |vectors| {
                        vectors.push_row(row, scale);
                    });
                    continue;
                }
            }
            if made >= most {
                gists.push(&[], &[], |vectors| vectors.push(&[]));
                gists.lacking += 1;
                continue;
            }
            made += 1;
            let brief = catalogue.brief(conversation);
            let title = if brief.title.is_empty() { &listed.title } else { &brief.title };
            let terms = [title, &brief.summary].map(|text| features::terms_of(&cutter, text));
            gists.push(&terms[0], &terms[1], |vectors| vectors.push(&[]));
            let at = conversation as usize;
            if dimensions > 0 {
                without.insert(at);
                batch.push((at, format!("{title}. {}", brief.summary)));
            }
        }
        if with_vectors && dimensions > 0 {
            for some in batch.chunks(BATCH) {
                let texts: Vec<&str> = some.iter().map(|(_, text)| text.as_str()).collect();
                match model.encode(&texts, stop) {
                    Ok(vectors) => {
                        for ((at, _), vector) in some.iter().zip(vectors) {
                            gists.set(*at, &vector);
                            without.remove(at);
                        }
                    }
                    Err(embed::Error::Stopped) => return Err(db::Error::Stopped.into()),
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
        }
        gists.lacking += without.len();
        let is_news = made + moved > 0 || kept.len() != prints.len();
        Ok(Some(Gathered { path, prints, gists, without, is_news, failed }))
    }
}
