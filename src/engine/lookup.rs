//! Finds the conversation that a word means: an id, a title, a key or a path.
//!
//! Invariant: a path leads to a conversation that a source lists, or to nothing; no file is opened by
//! it.

use std::path::Path;

use super::{
    error::Error,
    memory::database::Memory,
    source::{About, Scope, Source, SourceKind, Sources},
};
use crate::{
    db::{self, Heading},
    model::{Instant, Stop},
};

/// The most characters of a title that are part of a key.
const MAX_SLUG: usize = 40;

/// The most conversations that are listed if a word means several.
const MAX_CANDIDATES: usize = 20;

/// Hexadecimal digits at the end of a key.
const DIGITS: usize = 8;

/// The heading of a conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationHeading {
    /// The conversation's id, from `conversations.id`.
    pub id: String,
    /// `conversations.title`; empty where it is NULL.
    pub title: String,
    /// The time of the conversation's last message.
    pub last: Option<Instant>,
    /// The project, of a coding agent's conversation.
    pub project: Option<String>,
}

/// Finds conversations by what a person or a client calls them.
pub struct Lookup<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) memory: &'a Memory,
    pub(crate) stop: &'a Stop,
}

impl Lookup<'_> {
    /// Returns the conversations with an id; if there is none, those whose ids begin with it.
    pub fn by_id(&self, id: &str) -> Result<Vec<About>, Error> {
        let mut found = Vec::new();
        for source in self.readable()? {
            found.extend(source.about(id, self.stop)?);
        }
        if found.is_empty() && !id.is_empty() {
            found = self.matching(&|_, other, _| other.starts_with(id))?;
        }
        Ok(found)
    }

    /// Returns the conversation that a person means by a word: its id, else its whole title, else
    /// the beginning of its id.
    pub fn by_word(&self, word: &str) -> Result<About, Error> {
        let mut found = Vec::new();
        for source in self.sources.readable(&Scope::default(), self.stop)?.0 {
            found.extend(source.about(word, self.stop)?);
        }
        if found.is_empty() {
            let is_title =
                |_, _: &str, title: &str| !title.is_empty() && title.trim() == word.trim();
            found = self.matching(&is_title)?;
        }
        if found.is_empty() && !word.is_empty() {
            found = self.matching(&|_, id, _| id.starts_with(word))?;
        }
        match found.len() {
            0 => Err(Error::NoConversation { word: word.to_owned() }),
            1 => Ok(found.remove(0)),
            _ => Err(ambiguous(word, found)),
        }
    }

    /// Returns the key of a conversation: the key that it was saved under, else a key made of its
    /// source, title and id.
    pub fn key_of(&self, about: &About) -> Result<String, Error> {
        if about.source == SourceKind::Threads {
            let named = self.memory.threads_named(&about.id)?;
            let saved = named.into_iter().find(|thread| thread.id == about.id);
            if let Some(key) = saved.and_then(|thread| thread.key) {
                return Ok(key);
            }
        }
        Ok(made_key(about))
    }

    /// Returns the conversation that has a key.
    ///
    /// A key that was made identifies the conversation by a short hash of its id. The title in the
    /// key decides only between conversations of one hash, so that a new title leaves the key valid.
    pub fn by_key(&self, key: &str) -> Result<Option<About>, Error> {
        // If the threads cannot be read, the key may still be one that was made.
        if let Ok(Some(thread)) = self.memory.thread_keyed(key) {
            return self.sources.about(SourceKind::Threads, &thread.id, self.stop);
        }
        let Some((kind, hash)) = parse_key(key) else { return Ok(None) };
        let mut found = self.matching(&|source, id, _| source == kind && hash_of(id) == hash)?;
        if found.len() > 1 {
            let same_title: Vec<About> =
                found.iter().filter(|about| made_key(about) == key).cloned().collect();
            if !same_title.is_empty() {
                found = same_title;
            }
        }
        if found.len() > 1 {
            return Err(ambiguous(key, found));
        }
        Ok(found.pop())
    }

    /// Returns the sources that can be read; none if there are none.
    fn readable(&self) -> Result<Vec<Source>, Error> {
        match self.sources.readable(&Scope::default(), self.stop) {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            readable => Ok(readable?.0),
        }
    }

    fn matching(&self, test: &dyn Fn(SourceKind, &str, &str) -> bool) -> Result<Vec<About>, Error> {
        let mut found = Vec::new();
        for source in self.readable()? {
            let listing = source.reader(self.stop).list(&Scope::default(), self.stop)?;
            let passes = |place: &usize| {
                let (id, title) = listing.heading(*place);
                test(source.kind, id, title)
            };
            found.extend((0..listing.len()).filter(passes).map(|place| listing.about(place)));
        }
        Ok(found)
    }

    /// Returns the conversations whose source, id and title pass a test, latest activity first
    /// within a source. Reads no messages.
    pub(crate) fn headings(
        &self,
        test: &dyn Fn(SourceKind, &str, &str) -> bool,
    ) -> Result<Vec<ConversationHeading>, Error> {
        let mut found = Vec::new();
        for source in self.readable()? {
            let listing = source.reader(self.stop).list(&Scope::default(), self.stop)?;
            for place in 0..listing.len() {
                if self.stop.requested() {
                    return Err(db::Error::Stopped.into());
                }
                let (id, title) = listing.heading(place);
                if test(source.kind, id, title) {
                    found.push(ConversationHeading {
                        id: id.to_owned(),
                        title: title.to_owned(),
                        last: listing.last(place),
                        project: listing.origin(place).and_then(|origin| origin.project.clone()),
                    });
                }
            }
        }
        Ok(found)
    }

    /// Returns the path by which a conversation is read: its transcript's file, else the path of its
    /// database with its id.
    pub fn path_of(&self, about: &About) -> String {
        match (&about.file, self.sources.of_kind(about.source)) {
            (Some(file), _) => file.to_string_lossy().into_owned(),
            (None, Some(source)) => format!("{}#{}", absolute(&source.path), about.id),
            (None, None) => about.id.clone(),
        }
    }

    /// Returns the conversation at a path of [`Lookup::path_of`]; `None` for any other text.
    pub fn by_path(&self, path: &str) -> Result<Option<About>, Error> {
        for source in self.readable()? {
            if source.kind == SourceKind::Archive
                && let Some(about) = self.of_file(&source, Path::new(path))?
            {
                return Ok(Some(about));
            }
            if let Some(id) = id_within(&source, path)
                && let Some(about) = source.about(id, self.stop)?
            {
                return Ok(Some(about));
            }
        }
        Ok(None)
    }

    /// Returns the conversation whose transcript is a file.
    fn of_file(&self, source: &Source, file: &Path) -> Result<Option<About>, Error> {
        let listing = source.reader(self.stop).list(&Scope::default(), self.stop)?;
        let is_it = |place: &usize| {
            let of = listing.origin(*place).and_then(|origin| origin.file.as_ref());
            of.is_some_and(|of| Path::new(of) == file)
        };
        Ok((0..listing.len()).find(is_it).map(|place| listing.about(place)))
    }
}

fn ambiguous(word: &str, mut found: Vec<About>) -> Error {
    found.sort_by(|a, b| a.id.cmp(&b.id));
    let heading = |about: About| Heading { id: about.id, title: about.title };
    let candidates = found.into_iter().take(MAX_CANDIDATES).map(heading).collect();
    Error::Ambiguous { word: word.to_owned(), candidates }
}

/// Returns a key made of a conversation's source, title and id.
fn made_key(about: &About) -> String {
    format!("{}-{}-{:08x}", about.source.name(), slug(&about.title), hash_of(&about.id))
}

/// Returns the id that follows a database's own path in `path`.
fn id_within<'a>(source: &Source, path: &'a str) -> Option<&'a str> {
    let after = |prefix: &str| path.strip_prefix(prefix)?.strip_prefix('#');
    after(&absolute(&source.path)).or_else(|| after(&source.path.to_string_lossy()))
}

fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}

fn hash_of(id: &str) -> u32 {
    crc32fast::hash(id.as_bytes())
}

/// Returns the source and the hash of a key that was made.
fn parse_key(key: &str) -> Option<(SourceKind, u32)> {
    let (start, hash) = key.rsplit_once('-')?;
    let is_hash = hash.len() == DIGITS && hash.bytes().all(|b| b.is_ascii_hexdigit());
    let named = |kind: &SourceKind| {
        start.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with('-'))
    };
    let kind = SourceKind::ALL.into_iter().find(named)?;
    is_hash.then(|| u32::from_str_radix(hash, 16).ok())?.map(|hash| (kind, hash))
}

/// Returns the words of a title in the form that addresses have.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for word in title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        let length = slug.chars().count();
        if length > 0 && length + 1 + word.chars().count() > MAX_SLUG {
            break;
        }
        if length > 0 {
            slug.push('-');
        }
        slug.extend(word.chars().take(MAX_SLUG));
    }
    if slug.is_empty() { "untitled".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let mut about = About {
            source: SourceKind::Export,
            id: "550e8400-e29b".to_owned(),
            title: "Database: Migration, Planning!".to_owned(),
            summary: String::new(),
            turns: 0,
            begun: None,
            last: None,
            file: None,
            project: None,
            session: None,
        };
        let hash = hash_of(&about.id);
        assert_eq!(made_key(&about), format!("export-database-migration-planning-{hash:08x}"));
        assert_eq!(parse_key(&made_key(&about)), Some((SourceKind::Export, hash)));
        for (title, expected) in [
            ("", "untitled".to_owned()),
            ("?!", "untitled".to_owned()),
            ("日本語の質問", "日本語の質問".to_owned()),
            ("one two three four five six seven eight nine", {
                "one-two-three-four-five-six-seven-eight".to_owned()
            }),
            (&"x".repeat(99), "x".repeat(40)),
        ] {
            assert_eq!(slug(title), expected);
        }
        about.source = SourceKind::Threads;
        about.title = "archive".to_owned();
        assert_eq!(parse_key(&made_key(&about)), Some((SourceKind::Threads, hash)));
        for none in
            ["", "-", "export", "export-x", "export-0123456", "exports-x-01234567", "x-y-01234567"]
        {
            assert_eq!(parse_key(none), None, "{none}");
        }
    }
}
