//! What each conversation is about: its summary, and a title where it has none.
//!
//! A print tells of which messages a conversation consists: messages of a part never change, so
//! what was said of the same ones still holds, and only conversations that changed are read.
//!
//! Invariant: holds nothing that the texts cannot make again; what is missing is made when asked for.

mod file;
mod gists;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
};

use super::{Catalogue, Engine, Error, Source, SourceKind};
use crate::{
    db, embed, index,
    model::Stop,
    text::{
        snippet,
        summary::{self, Turn},
        words::Cutter,
    },
};

use file::Kept;

pub(super) use gists::{Gists, hash};

const FILE: &str = "summaries";

/// Briefs that a question waits for: some tenths of a second.
const FEW: usize = 500;

/// Texts that a provider is sent at once.
const BATCH: usize = 64;

/// The role of the first message of a thread that was saved with a summary: that message.
pub const SAVED: &str = "system";

/// Characters of a summary that somebody saved, at most.
const LONGEST: usize = 1_000;

/// Messages that a summary is made of: those that begin the conversation.
const TURNS: usize = 48;

/// What a conversation is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    /// The title of one that has none of its own; else empty.
    pub title: String,
    /// One or two of its own sentences; empty where it has none that say something.
    pub summary: String,
}

impl Catalogue {
    /// Returns what a conversation is about; read from its text when first asked.
    pub fn brief(&self, conversation: u32) -> &Brief {
        let listed = &self.conversations()[conversation as usize];
        listed.brief.get_or_init(|| self.make_brief(conversation))
    }

    fn make_brief(&self, conversation: u32) -> Brief {
        let generation = self.generation();
        let slots = self.reading(conversation).iter().take(TURNS);
        let is_untitled = self.conversations()[conversation as usize].title.trim().is_empty();
        let turns: Vec<(bool, std::borrow::Cow<'_, str>)> = slots
            .map(|slot| (generation.role(*slot), generation.content(*slot)))
            // What tools and the system say is not what people talk about.
            .filter(|(role, _)| !["tool", "system"].contains(role))
            .map(|(role, text)| (role != "assistant", text))
            .collect();
        let turns: Vec<Turn<'_>> =
            turns.iter().map(|(by_user, text)| Turn { by_user: *by_user, text }).collect();
        let title = if is_untitled { summary::title(&turns) } else { String::new() };
        let summary = self.saved(conversation).unwrap_or_else(|| summary::summary(&turns));
        Brief { title, summary }
    }

    /// The summary that a thread was saved with.
    fn saved(&self, conversation: u32) -> Option<String> {
        let first = *self.reading(conversation).first()?;
        let generation = self.generation();
        (self.kind() == SourceKind::Threads && generation.role(first) == SAVED).then(|| {
            let content = generation.content(first);
            let content = snippet::trim(&content);
            snippet::cut(content, LONGEST).unwrap_or(content).to_owned()
        })
    }

    /// What changes when other messages belong to a conversation.
    fn print(&self, conversation: u32, parts: &[(u32, String)]) -> u64 {
        let step =
            |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        let mut slots = self.slots(conversation).to_vec();
        slots.sort_unstable();
        // FNV-1a. Whether it has a title decides whether one is made.
        let listed = &self.conversations()[conversation as usize];
        let mut hash = 0xCBF2_9CE4_8422_2325_u64 ^ u64::from(listed.title.trim().is_empty());
        for slot in slots {
            let at = parts.partition_point(|(first, _)| *first <= slot).saturating_sub(1);
            let Some((first, name)) = parts.get(at) else { continue };
            hash = name.as_bytes().iter().fold(hash, step);
            hash = (slot - first).to_le_bytes().iter().fold(hash, step);
        }
        hash
    }
}

impl Catalogue {
    /// The file of its briefs, and its parts by their first slots.
    fn shelf(&self) -> Option<(PathBuf, Vec<(u32, String)>)> {
        let parts = self.generation().parts();
        let shelf = parts.first()?.folder.parent()?;
        let name =
            |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parts = parts.iter().map(|part| (part.slots.start, name(part.folder))).collect();
        Some((shelf.join(FILE), parts))
    }
}

/// What was kept, and made where it was not.
struct Gathered {
    path: PathBuf,
    prints: Vec<u64>,
    gists: Gists,
    /// Those that have no vector though they should: what is kept of them would be taken as whole.
    without: HashSet<usize>,
    /// Whether what is kept is not this.
    is_news: bool,
    /// Why there are no vectors of what was made.
    failed: Option<embed::Error>,
}

impl Engine {
    /// Makes the briefs of all conversations of a source that have none, and keeps them.
    pub fn sum_up(&self, source: &Source, stop: &Stop) -> Result<(), Error> {
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
    pub(super) fn gists(&self, catalogue: &Catalogue, stop: &Stop) -> Result<Arc<Gists>, Error> {
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
        let Some((path, parts)) = catalogue.shelf() else { return Ok(None) };
        let model = self.model();
        let kept = Kept::load(&path, model.name());
        let count = catalogue.conversations().len() as u32;
        let prints: Vec<u64> = (0..count).map(|at| catalogue.print(at, &parts)).collect();
        let lacks =
            |print: &&u64| kept.record(**print).is_none_or(|record| record.vector.0.is_empty());
        let mut failed = None;
        let mut dimensions = kept.dimensions();
        if dimensions == 0 && with_vectors && prints.iter().any(|print| lacks(&print)) {
            match model.dimensions(stop) {
                Ok(asked) => dimensions = asked,
                Err(error) => failed = Some(error),
            }
        }
        let cutter = Cutter::default();
        let mut gists = Gists::new(dimensions);
        let mut made = 0;
        let mut batch = Vec::new();
        let mut without = HashSet::new();
        for (conversation, print) in (0..).zip(&prints) {
            if stop.requested() {
                return Err(db::Error::Stopped.into());
            }
            let listed = &catalogue.conversations()[conversation as usize];
            let record = kept.record(*print);
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
            let terms = [title, &brief.summary].map(|text| gists::terms_of(&cutter, text));
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
        let is_news = made > 0 || kept.len() != prints.len();
        Ok(Some(Gathered { path, prints, gists, without, is_news, failed }))
    }
}
