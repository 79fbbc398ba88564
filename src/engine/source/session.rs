//! One conversation of any source, found by its id, its key or its path, and read line by line.
//!
//! Invariant: a path leads to a conversation that a source lists, or to nothing; no file is opened by it.

use std::{path::Path, sync::Arc};

use crate::engine::{About, Catalogue, Engine, Error, Scope, Source, SourceKind};
use crate::{
    db::{self, Heading},
    model::{Hit, Stop},
};

/// Characters of a title that go into a key.
const SLUG: usize = 40;

/// Conversations named at most when a word means several.
const MOST_CANDIDATES: usize = 20;

/// Hexadecimal digits at the end of a key.
const DIGITS: usize = 8;

/// A conversation, opened for reading.
#[derive(Debug)]
pub struct Session {
    /// What is known of it.
    pub about: About,
    raw_content: bool,
    turns: Turns,
}

/// Where its messages are, in reading order.
#[derive(Debug)]
enum Turns {
    Indexed { catalogue: Arc<Catalogue>, conversation: u32 },
    Read(Vec<Hit>),
}

impl Engine {
    /// Opens a conversation; `None` where the source has none of that id that has messages.
    pub fn session(
        &self,
        source: SourceKind,
        id: &str,
        raw_content: bool,
        stop: &Stop,
    ) -> Result<Option<Session>, Error> {
        let Some(there) = self.sources().into_iter().find(|one| one.kind == source) else {
            return Ok(None);
        };
        if let Ok(catalogue) = self.catalogue(&there) {
            let Some(conversation) = catalogue.find(id) else { return Ok(None) };
            let about = self.about_listed(source, &catalogue, conversation);
            let turns = Turns::Indexed { catalogue, conversation };
            return Ok(Some(Session { about, raw_content, turns }));
        }
        let messages = self.on_source(&there, |path| {
            db::read(path, stop, |database| db::conversation(database, id, raw_content))
        })?;
        let about = if messages.is_empty() { None } else { self.about(source, id)? };
        Ok(about.map(|about| Session { about, raw_content, turns: Turns::Read(messages) }))
    }

    /// Returns the conversations that an id means: those of that id, else those whose id begins so.
    pub fn named(&self, word: &str) -> Result<Vec<About>, Error> {
        let mut found = Vec::new();
        for source in self.sources() {
            found.extend(self.about(source.kind, word)?);
        }
        if found.is_empty() && !word.is_empty() {
            found = self.matching(&|_, id, _| id.starts_with(word))?;
        }
        Ok(found)
    }

    /// Returns the conversation that a word means to a person: its id, else its whole title, else the
    /// beginning of its id.
    pub fn meant(&self, word: &str) -> Result<About, Error> {
        let mut found = Vec::new();
        for source in self.sources_of(&Scope::default())? {
            found.extend(self.about(source.kind, word)?);
        }
        if found.is_empty() {
            found =
                self.matching(&|_, _, title| !title.is_empty() && title.trim() == word.trim())?;
        }
        if found.is_empty() && !word.is_empty() {
            found = self.matching(&|_, id, _| id.starts_with(word))?;
        }
        let word = word.to_owned();
        if found.len() > 1 {
            found.sort_by(|a, b| a.id.cmp(&b.id));
            let heading = |about: About| Heading { id: about.id, title: about.title };
            let candidates = found.into_iter().take(MOST_CANDIDATES).map(heading).collect();
            return Err(Error::Ambiguous { word, candidates });
        }
        found.pop().ok_or(Error::NoConversation { word })
    }

    /// Returns the key of a conversation: the one it was saved under, else one that stays the same
    /// while the conversation is there, whatever others there are.
    pub fn key_of(&self, about: &About) -> Result<String, Error> {
        if about.source == SourceKind::Threads {
            let named = self.threads_named(&about.id)?;
            let saved = named.into_iter().find(|thread| thread.id == about.id);
            if let Some(key) = saved.and_then(|thread| thread.key) {
                return Ok(key);
            }
        }
        Ok(made_key(about))
    }

    /// Returns the conversation that has a key.
    pub fn keyed(&self, key: &str) -> Result<Option<About>, Error> {
        if let Some(thread) = self.thread_keyed(key)? {
            return self.about(SourceKind::Threads, &thread.id);
        }
        let Some((kind, digest)) = parts_of_key(key) else { return Ok(None) };
        Ok(self.matching(&|source, id, _| source == kind && digest_of(id) == digest)?.pop())
    }

    /// Returns the conversations for which `test` holds, of their source, id and title; latest
    /// activity first within a source.
    pub fn matching(
        &self,
        test: &dyn Fn(SourceKind, &str, &str) -> bool,
    ) -> Result<Vec<About>, Error> {
        let mut found = Vec::new();
        for source in self.sources() {
            let kind = source.kind;
            if let Ok(catalogue) = self.catalogue(&source) {
                let listed = catalogue.conversations().iter().zip(0..);
                let wanted = listed.filter(|(one, _)| test(kind, &one.id, &one.title));
                found.extend(wanted.map(|(_, at)| self.about_listed(kind, &catalogue, at)));
            } else {
                let scope = Scope { sources: vec![kind], ..Scope::default() };
                let listed = self.list(&scope, 0, usize::MAX)?.0.into_iter();
                found.extend(listed.filter(|one| test(kind, &one.id, &one.title)));
            }
        }
        Ok(found)
    }

    /// Returns the path by which a conversation is read: its transcript's file, else that of its
    /// database with its id.
    pub fn path_of(&self, about: &About) -> String {
        match (&about.file, self.sources().iter().find(|source| source.kind == about.source)) {
            (Some(file), _) => file.to_string_lossy().into_owned(),
            (None, Some(source)) => format!("{}#{}", absolute(&source.path), about.id),
            (None, None) => about.id.clone(),
        }
    }

    /// Returns the conversation that a path of [`Engine::path_of`] means; `None` for any other text.
    pub fn at_path(&self, path: &str) -> Result<Option<About>, Error> {
        for source in self.sources() {
            if source.kind == SourceKind::Archive
                && let Some(about) = self.of_file(&source, Path::new(path))?
            {
                return Ok(Some(about));
            }
            if let Some(id) = id_within(&source, path)
                && let Some(about) = self.about(source.kind, id)?
            {
                return Ok(Some(about));
            }
        }
        Ok(None)
    }
}

impl Session {
    /// How many messages it has.
    pub fn turns(&self) -> usize {
        match &self.turns {
            Turns::Indexed { catalogue, conversation } => catalogue.reading(*conversation).len(),
            Turns::Read(messages) => messages.len(),
        }
    }

    /// The role of a message.
    pub fn role(&self, turn: usize) -> &str {
        match &self.turns {
            Turns::Indexed { catalogue, conversation } => {
                catalogue.snapshot().role(catalogue.reading(*conversation)[turn])
            }
            Turns::Read(messages) => &messages[turn].role,
        }
    }

    /// The line that a message begins at: of the transcript's file, or its own number from 1.
    pub fn line(&self, turn: usize) -> u32 {
        let position = match &self.turns {
            Turns::Indexed { catalogue, conversation } => {
                catalogue.snapshot().position(catalogue.reading(*conversation)[turn])
            }
            Turns::Read(messages) => messages[turn].position,
        };
        line_of(self.about.source, position, turn)
    }

    /// A message.
    pub fn message(&self, turn: usize) -> Hit {
        match &self.turns {
            Turns::Indexed { catalogue, conversation } => {
                let doc_id = catalogue.reading(*conversation)[turn];
                catalogue.snapshot().hit(doc_id, self.raw_content)
            }
            Turns::Read(messages) => messages[turn].clone(),
        }
    }
}

/// Returns a key made of a conversation's source, title and id.
fn made_key(about: &About) -> String {
    format!("{}-{}-{:08x}", about.source.name(), slug(&about.title), digest_of(&about.id))
}

/// Returns the line of a message: an archive's position is that of its transcript's line.
fn line_of(source: SourceKind, position: Option<i64>, turn: usize) -> u32 {
    let line = match source {
        SourceKind::Archive => position.and_then(|line| u32::try_from(line).ok()),
        SourceKind::Export | SourceKind::Threads => None,
    };
    line.unwrap_or_else(|| u32::try_from(turn + 1).unwrap_or(u32::MAX))
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

fn digest_of(id: &str) -> u32 {
    crc32fast::hash(id.as_bytes())
}

/// Returns the source and the digest that a key ends with.
fn parts_of_key(key: &str) -> Option<(SourceKind, u32)> {
    let (start, digest) = key.rsplit_once('-')?;
    let is_digest = digest.len() == DIGITS && digest.bytes().all(|b| b.is_ascii_hexdigit());
    let named = |kind: &SourceKind| {
        start.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with('-'))
    };
    let kind = SourceKind::ALL.into_iter().find(named)?;
    is_digest.then(|| u32::from_str_radix(digest, 16).ok())?.map(|digest| (kind, digest))
}

/// Returns the words of a title as they stand in an address.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for word in title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        let length = slug.chars().count();
        if length > 0 && length + 1 + word.chars().count() > SLUG {
            break;
        }
        if length > 0 {
            slug.push('-');
        }
        slug.extend(word.chars().take(SLUG));
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
        let digest = digest_of(&about.id);
        assert_eq!(made_key(&about), format!("export-database-migration-planning-{digest:08x}"));
        assert_eq!(parts_of_key(&made_key(&about)), Some((SourceKind::Export, digest)));
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
        assert_eq!(parts_of_key(&made_key(&about)), Some((SourceKind::Threads, digest)));
        for none in
            ["", "-", "export", "export-x", "export-0123456", "exports-x-01234567", "x-y-01234567"]
        {
            assert_eq!(parts_of_key(none), None, "{none}");
        }
    }
}
