//! What each conversation is about: its summary, and a title where it has none.
//!
//! ```text
//! SHELF/summaries     the format's number; then a line for each conversation: its print, title
//!                     and summary, as JSON
//! ```
//!
//! A print tells of which messages a conversation consists: messages of a part never change, so
//! what was said of the same ones still holds, and only conversations that changed are read.
//!
//! Invariant: holds nothing that the texts cannot make again; what is missing is made when asked for.

use std::{
    collections::HashMap,
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use super::{Catalogue, Engine, Error, Source};
use crate::{
    db, index,
    model::Stop,
    text::summary::{self, Turn},
};

const FILE: &str = "summaries";

/// The version of the file, and of how summaries are made.
const FORMAT: u32 = 1;

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
        let turns: Vec<(bool, std::borrow::Cow<'_, str>)> = slots
            .map(|slot| (generation.role(*slot), generation.content(*slot)))
            // What tools and the system say is not what people talk about.
            .filter(|(role, _)| !["tool", "system"].contains(role))
            .map(|(role, text)| (role != "assistant", text))
            .collect();
        let turns: Vec<Turn<'_>> =
            turns.iter().map(|(by_user, text)| Turn { by_user: *by_user, text }).collect();
        let is_untitled = self.conversations()[conversation as usize].title.trim().is_empty();
        let title = if is_untitled { summary::title(&turns) } else { String::new() };
        Brief { title, summary: summary::summary(&turns) }
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
    /// The file of its summaries, and its parts by their first slots.
    fn shelf(&self) -> Option<(PathBuf, Vec<(u32, String)>)> {
        let parts = self.generation().parts();
        let shelf = parts.first()?.folder.parent()?;
        let name =
            |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parts = parts.iter().map(|part| (part.slots.start, name(part.folder))).collect();
        Some((shelf.join(FILE), parts))
    }

    /// Takes the summaries that were kept, where all are about to be asked for.
    pub(super) fn recall(&self) {
        if self.conversations().iter().all(|listed| listed.brief.get().is_some()) {
            return;
        }
        let Some((path, parts)) = self.shelf() else { return };
        let mut known = load(&path);
        for (conversation, listed) in (0..).zip(self.conversations()) {
            if let Some(brief) = known.remove(&self.print(conversation, &parts)) {
                drop(listed.brief.set(brief));
            }
        }
    }
}

impl Engine {
    /// Makes the summaries of all conversations of a source that have none, and keeps them.
    pub fn sum_up(&self, source: &Source, stop: &Stop) -> Result<(), Error> {
        let Ok(catalogue) = self.catalogue(source) else { return Ok(()) };
        let Some((path, parts)) = catalogue.shelf() else { return Ok(()) };
        let mut known = load(&path);
        let before = known.len();
        let mut lines = Vec::new();
        let mut made = 0;
        for conversation in 0..catalogue.conversations().len() as u32 {
            if stop.requested() {
                return Err(db::Error::Stopped.into());
            }
            let print = catalogue.print(conversation, &parts);
            let listed = &catalogue.conversations()[conversation as usize];
            match known.remove(&print) {
                Some(brief) => drop(listed.brief.set(brief)),
                None => made += 1,
            }
            lines.push((print, catalogue.brief(conversation)));
        }
        if made > 0 || before != lines.len() {
            let written = store(&path, &lines);
            written.map_err(|error| index::Error::Write { path, error })?;
        }
        Ok(())
    }
}

/// Returns what a file holds; nothing where it is of another format or damaged.
fn load(path: &Path) -> HashMap<u64, Brief> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines();
    if lines.next().and_then(|line| line.parse().ok()) != Some(FORMAT) {
        return HashMap::new();
    }
    let brief = |line: &str| {
        let (print, title, summary) = serde_json::from_str(line).ok()?;
        Some((print, Brief { title, summary }))
    };
    lines.filter_map(brief).collect()
}

fn store(path: &Path, lines: &[(u64, &Brief)]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let file = tempfile::Builder::new().prefix("current-summaries-").tempfile_in(folder)?;
    let mut writer = BufWriter::new(file);
    writeln!(writer, "{FORMAT}")?;
    for (print, Brief { title, summary }) in lines {
        serde_json::to_writer(&mut writer, &(print, title, summary))?;
        writer.write_all(b"\n")?;
    }
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
