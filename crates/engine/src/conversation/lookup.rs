//! Finds the conversation that a user names by an id, a title, a key or a path.
//!
//! Invariant: a path identifies a conversation that a source lists. Looking up a path opens no file.

use std::{collections::HashMap, path::Path};

use percent_encoding::percent_decode_str;

use crate::error::{Error, Result};
use crate::memory::database::Memory;
use crate::source::{
    About, Listing, Scope, Session, Source, SourceKind, Sources, agent_parts, begins_with,
};
use verbatim_base::call::Call;
use verbatim_chats::db::{self, Heading};
use verbatim_text::{address::encoded, loose::loose, snippet};

/// Maximum number of characters of a title in a key.
const MAX_SLUG: usize = 40;

/// Maximum number of conversations that are listed if a word fits several.
const MAX_CANDIDATES: usize = 20;

/// Minimum number of characters of a shortened id.
pub(crate) const SHORT_ID: usize = 8;

/// Length from which the beginning of an id, if it fits only one id, takes precedence over a title.
const SURE_START: usize = 4;

/// Number of hexadecimal digits at the end of a key.
const DIGITS: usize = 8;

/// A conversation's entry in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationHeading {
    /// The id, from `conversations.id`.
    pub id: String,
    /// `conversations.title`; empty where it is NULL.
    pub title: String,
}

/// Look-up of conversations by the names that users and clients give them.
pub struct Lookup<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) memory: &'a Memory,
    pub(crate) call: &'a Call,
}

impl Lookup<'_> {
    /// Returns the description of a conversation; `None` if the source has no conversation with this id
    /// and messages.
    pub fn about(&self, kind: SourceKind, id: &str) -> Result<Option<About>> {
        self.sources.about(kind, id, self.call)
    }

    /// Opens a conversation; `None` if the source has no conversation with this id and messages.
    pub fn session(
        &self,
        kind: SourceKind,
        id: &str,
        raw_content: bool,
    ) -> Result<Option<Session>> {
        let Some(source) = self.sources.of_kind(kind)? else { return Ok(None) };
        source.session(id, raw_content, self.call)
    }

    /// Returns the conversation for a handle. A handle is an address or a path, else an id, a link to the
    /// conversation on its service's site, a key, a complete title, or the beginning of an id with at least
    /// `shortest` characters.
    ///
    /// The case of letters matters only if the handle would be ambiguous otherwise. A source that cannot
    /// be read is an error only if no other source can be read.
    pub fn by_handle(&self, handle: &str, shortest: usize) -> Result<Option<About>> {
        let name = snippet::trim(handle);
        let name = id_in_link(name).unwrap_or(name);
        if name.is_empty() {
            return Ok(None);
        }
        let mut failed = None;
        // White space at the ends may be a part of an id.
        let mut found = self.exactly(handle, &mut failed)?;
        if found.total == 0 && name != handle {
            found = self.exactly(name, &mut failed)?;
        }
        if found.total == 0 {
            found.add_one(readable(self.by_key(name), &mut failed)?.flatten());
        }
        if found.total == 0 {
            found = self.called(name, shortest, &mut failed)?;
        }
        match (found.total, failed) {
            // The conversation may be in the database that another program has locked, or in an index that
            // changed while it was read.
            (0, Some(error)) if error.is_contention() || matches!(error, Error::Torn { .. }) => {
                Err(error)
            }
            (0, Some(error)) => match self.sources.readable(&[], self.call) {
                Ok((readable, _)) if !readable.is_empty() => Ok(None),
                _ => Err(error),
            },
            (0, None) => Ok(None),
            (1, _) => Ok(found.first.pop()),
            _ => Err(self.several(found, name)?),
        }
    }

    /// Returns the error that a word fits several conversations, with ids or keys to choose from.
    fn several(&self, found: NameMatches, word: &str) -> Result<Error> {
        let id = found.first.first().map(|about| about.id.clone()).unwrap_or_default();
        if found.total > found.first.len() || found.first.iter().any(|about| about.id != id) {
            return Ok(found.ambiguous(word));
        }
        let keys = found.first.iter().map(|it| Ok((it.source.name(), self.key_of(it)?)));
        Ok(Error::SameId { id, keys: keys.collect::<Result<_>>()? })
    }

    /// Returns the conversation at a path, else the conversations with an id or an address.
    fn exactly(&self, handle: &str, failed: &mut Option<Error>) -> Result<NameMatches> {
        let mut found = NameMatches::default();
        found.add_one(readable(self.by_path(handle), failed)?.flatten());
        if found.total > 0 {
            return Ok(found);
        }
        let id = id_at(handle);
        let id = id.as_deref().unwrap_or(handle);
        for source in self.sources.all() {
            let Some(source) = readable(source, failed)? else { continue };
            found.add_one(readable(source.session_about(id, self.call), failed)?.flatten());
        }
        Ok(found)
    }

    /// Returns the conversations with this id in another case, else this title, else an id that begins
    /// with the word. A longer word that begins exactly one id takes precedence over titles.
    fn called(
        &self,
        word: &str,
        shortest: usize,
        failed: &mut Option<Error>,
    ) -> Result<NameMatches> {
        if let Some(begun) = self.surely_begun(word, shortest)? {
            return Ok(begun);
        }
        let is_long = word.chars().count() >= shortest;
        // The id in another case, the same title, the title in another case, and the beginning of an id.
        let mut found: [NameMatches; 4] = Default::default();
        for source in self.sources.all() {
            let Some(source) = readable(source, failed)? else { continue };
            let listing = source.sessions(&Scope::default(), self.call);
            let Some(listing) = readable(listing, failed)? else { continue };
            let mut places: [Vec<usize>; 4] = Default::default();
            for place in 0..listing.len() {
                let (id, title) = listing.heading(place);
                let title = snippet::trim(title);
                let fits = [
                    id.eq_ignore_ascii_case(word),
                    title == word,
                    is_same_folded(title, word),
                    is_long && begins_with(id, word),
                ];
                for (places, fits) in places.iter_mut().zip(fits) {
                    places.extend(fits.then_some(place));
                }
            }
            for (found, places) in found.iter_mut().zip(places) {
                found.add(&*listing, places);
            }
        }
        let [same, .., begun] = &found;
        let is_sure = word.chars().count() >= SURE_START && (same.total, begun.total) == (0, 1);
        if is_sure {
            found.reverse();
        }
        Ok(found.into_iter().find(|found| found.total > 0).unwrap_or_default())
    }

    /// Returns the only conversation whose id begins with a word, if the word is so long that it takes
    /// precedence over titles. `None` if this takes a look at all conversations.
    fn surely_begun(&self, word: &str, shortest: usize) -> Result<Option<NameMatches>> {
        if word.chars().count() < shortest.max(SURE_START) {
            return Ok(None);
        }
        let mut found = NameMatches::default();
        for source in self.sources.all() {
            let Ok(source) = source else { return Ok(None) };
            let Ok(listing) = source.sessions(&Scope::default(), self.call) else {
                return Ok(None);
            };
            let start = word.split('/').next().unwrap_or(word);
            let Some(mut places) = listing.beginning_with(start) else { return Ok(None) };
            places.retain(|place| begins_with(listing.heading(*place).0, word));
            if places.iter().any(|place| listing.heading(*place).0.len() == word.len()) {
                return Ok(None);
            }
            found.add(&*listing, places);
        }
        Ok(Some(found).filter(|found| found.total == 1))
    }

    /// Returns the conversation that a user's word names. The word is a handle for
    /// [`Lookup::by_handle`], or a part of a title.
    pub fn by_word(&self, word: &str) -> Result<About> {
        self.sources.within(&[])?;
        if let Some(about) = self.by_handle(word, 1)? {
            return Ok(about);
        }
        let trimmed = snippet::trim(word);
        let mut found = NameMatches::default();
        if !trimmed.is_empty() {
            let part = trimmed.to_lowercase();
            found = self.matching(&|_, _, title| title.to_lowercase().contains(&part))?;
        }
        let words = words_of(trimmed);
        if found.total == 0 && !words.is_empty() {
            found = self.matching(&|_, _, title| begin_words(&words, &words_of(title)))?;
        }
        if found.total > 1 {
            return Err(self.several(found, trimmed)?);
        }
        let word = snippet::echo(word);
        found.first.pop().ok_or_else(|| Error::NoConversation { word: word.into_owned() })
    }

    /// Shortens ids to prefixes that are unique among all conversations, with at least `SHORT_ID`
    /// characters each. The id of an agent becomes the shortened id of its session, `/`, and the beginning of
    /// the rest.
    pub fn short_ids(&self, ids: &[&str]) -> Result<Vec<String>> {
        let sessions = ids.iter().filter_map(|id| Some(agent_parts(id)?.0));
        let asked: Vec<&str> = ids.iter().copied().chain(sessions).collect();
        let mut found = self.unique_starts(&asked)?;
        let mut sessions = found.split_off(ids.len()).into_iter();
        for (id, short) in ids.iter().zip(&mut found) {
            if let Some((session, own)) = agent_parts(id) {
                let least = snippet::cut(own, SHORT_ID).unwrap_or(own);
                let own = short.get(session.len()..).filter(|it| it.len() > least.len());
                *short = sessions.next().unwrap_or_default() + own.unwrap_or(least);
            }
        }
        Ok(found)
    }

    fn unique_starts(&self, ids: &[&str]) -> Result<Vec<String>> {
        let mut lengths = vec![0; ids.len()];
        let mut failed = None;
        for source in self.sources.all() {
            let Some(source) = readable(source, &mut failed)? else { continue };
            // With an index, the catalogue answers, and the conversations need not be listed.
            if let Ok(snapshot) = source.current_index(self.call) {
                let catalogue = source.catalogue(&snapshot);
                let with_empty = source.shared_with_empty(self.call)?;
                for (id, length) in ids.iter().zip(&mut lengths) {
                    *length = catalogue.shared_start(id).max(with_empty(id)).max(*length);
                }
                continue;
            }
            let listing = source.sessions(&Scope::default(), self.call);
            let Some(listing) = readable(listing, &mut failed)? else { continue };
            for (id, length) in ids.iter().zip(&mut lengths) {
                *length = listing.shared_start(id).max(*length);
            }
        }
        let short_ids = ids.iter().zip(lengths).map(|(id, length)| {
            // One character more than the longest prefix shared with another id.
            let longer = id[length..].chars().next().map_or(id.len(), |c| length + c.len_utf8());
            let short = snippet::cut(id, SHORT_ID).map_or(id.len(), str::len);
            id[..longer.max(short)].to_owned()
        });
        Ok(short_ids.collect())
    }

    /// Returns, for each id, whether [`Lookup::by_handle`] returns the conversation that has it. False if
    /// several sources have a conversation with this id, or if the id may be a path.
    pub fn are_handles(&self, ids: &[&str]) -> Result<Vec<bool>> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut failed = None;
        for source in self.sources.all() {
            let Some(source) = readable(source, &mut failed)? else { continue };
            let listing = source.sessions(&Scope::of_ids(source.kind, ids), self.call);
            let Some(listing) = readable(listing, &mut failed)? else { continue };
            for place in 0..listing.len() {
                *counts.entry(listing.heading(place).0.to_owned()).or_default() += 1;
            }
        }
        let ids = ids.iter();
        Ok(ids.map(|id| !id.contains(['/', '\\', '#']) && counts.get(*id) == Some(&1)).collect())
    }

    /// Shortens an id to a prefix that is unique among all conversations.
    pub fn short_id(&self, id: &str) -> Result<String> {
        Ok(self.short_ids(&[id])?.remove(0))
    }

    /// Returns the key of a conversation: the key that it was saved under, else a generated key from its
    /// source, title and id.
    pub fn key_of(&self, about: &About) -> Result<String> {
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
    /// A generated key identifies the conversation by a short hash of its id. The title in the key only
    /// decides between conversations with the same hash, so a changed title leaves the key valid.
    pub fn by_key(&self, key: &str) -> Result<Option<About>> {
        // If the threads cannot be read, the key may still be a generated key.
        if let Ok(Some(thread)) = self.memory.thread_keyed(key) {
            return self.sources.about(SourceKind::Threads, &thread.id, self.call);
        }
        let Some((kind, hash)) = parse_key(key) else { return Ok(None) };
        let mut found = self.matching(&|source, id, _| source == kind && hash_of(id) == hash)?;
        if found.total > 1 && found.first.iter().any(|about| made_key(about) == key) {
            found.first.retain(|about| made_key(about) == key);
            found.total = found.first.len();
        }
        match found.total {
            0 | 1 => Ok(found.first.pop()),
            _ => Err(found.ambiguous(key)),
        }
    }

    /// Returns the sources that can be read. Returns none if there is no database.
    fn readable(&self) -> Result<Vec<Source>> {
        match self.sources.readable(&[], self.call) {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            readable => Ok(readable?.0),
        }
    }

    fn matching(&self, test: &dyn Fn(SourceKind, &str, &str) -> bool) -> Result<NameMatches> {
        let mut found = NameMatches::default();
        for source in self.readable()? {
            let listing = source.sessions(&Scope::default(), self.call)?;
            let mut places: Vec<usize> = (0..listing.len()).collect();
            places.retain(|place| {
                let (id, title) = listing.heading(*place);
                test(source.kind, id, title)
            });
            found.add(&*listing, places);
        }
        Ok(found)
    }

    /// Returns the conversations whose id and title pass a test. Within a source, the one with the
    /// latest activity comes first. Reads no messages.
    pub fn headings(&self, test: &dyn Fn(&str, &str) -> bool) -> Result<Vec<ConversationHeading>> {
        let mut found = Vec::new();
        for source in self.readable()? {
            let listing = source.reader(self.call).list(&Scope::default(), self.call)?;
            for place in 0..listing.len() {
                self.call.stop.check(db::Error::Stopped)?;
                let (id, title) = listing.heading(place);
                if test(id, title) {
                    found.push(ConversationHeading { id: id.to_owned(), title: title.to_owned() });
                }
            }
        }
        Ok(found)
    }

    /// Returns the path that identifies a conversation: the file of its transcript, else the path of its
    /// database followed by `#` and its id.
    pub fn path_of(&self, about: &About) -> String {
        match (&about.file, self.sources.of_kind(about.source).ok().flatten()) {
            (Some(file), _) => file.to_string_lossy().into_owned(),
            (None, Some(source)) => format!("{}#{}", source.address().absolute(), about.id),
            (None, None) => about.id.clone(),
        }
    }

    /// Returns the conversation for a path that [`Lookup::path_of`] returns; `None` for other texts.
    pub fn by_path(&self, path: &str) -> Result<Option<About>> {
        if !path.contains(['/', '\\', '#']) {
            return Ok(None);
        }
        for source in self.readable()? {
            if source.kind == SourceKind::Archive {
                let listing = source.reader(self.call).list(&Scope::default(), self.call)?;
                for place in 0..listing.len() {
                    let file = listing.origin(place).and_then(|origin| origin.file.as_ref());
                    if file.is_some_and(|file| Path::new(file) == Path::new(path)) {
                        return Ok(Some(listing.about(place)));
                    }
                }
            }
            if let Some(id) = id_within(&source, path)
                && let Some(about) = source.session_about(id, self.call)?
            {
                return Ok(Some(about));
            }
        }
        Ok(None)
    }
}

/// The conversations that the user may mean by a word.
#[derive(Default)]
struct NameMatches {
    /// The conversations that an error message lists: from each source, the first ones in the order of
    /// their ids.
    first: Vec<About>,
    /// The number of conversations that the word may mean.
    total: usize,
}

/// Returns the words of a title or of what a person types for it, without signs, accents and capital letters.
fn words_of(text: &str) -> Vec<String> {
    let text = loose(text, true);
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Returns whether each typed word begins a word of a title.
fn begin_words(typed: &[String], title: &[String]) -> bool {
    typed.iter().all(|typed| title.iter().any(|word| word.starts_with(typed)))
}

impl NameMatches {
    fn add_one(&mut self, about: Option<About>) {
        self.total += usize::from(about.is_some());
        self.first.extend(about);
    }

    /// Adds conversations by their positions in a listing. Describes only the first ones, because a
    /// description may read messages.
    fn add(&mut self, listing: &dyn Listing, mut places: Vec<usize>) {
        self.total += places.len();
        places.sort_by_key(|place| listing.heading(*place).0);
        places.truncate(MAX_CANDIDATES);
        self.first.extend(places.into_iter().map(|place| listing.about_without_summary(place)));
    }

    /// Returns the error that a word means several conversations.
    fn ambiguous(mut self, word: &str) -> Error {
        self.first.sort_by(|a, b| a.id.cmp(&b.id));
        let candidates = self.first.into_iter().take(MAX_CANDIDATES).map(|about| Heading {
            id: about.id,
            title: snippet::echo(&about.title).into_owned(),
            messages: about.turns,
            last: about.last,
        });
        Error::Ambiguous {
            word: snippet::echo(word).into_owned(),
            candidates: candidates.collect(),
            total: self.total,
        }
    }
}

/// The beginnings of links to conversations, without the scheme.
const LINKS: [&str; 3] = ["chatgpt.com/", "chat.openai.com/", "claude.ai/chat/"];

/// Returns the id in a link to a conversation; `None` for any other text. Some programs copy a link without
/// its scheme, and Markdown has it between angle brackets.
fn id_in_link(text: &str) -> Option<&str> {
    let text = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(text);
    let link = text.split_once("://").map_or(text, |(_, link)| link);
    let link = link.strip_prefix("www.").unwrap_or(link);
    let path = LINKS.iter().find_map(|start| link.strip_prefix(start))?;
    let path = path.split(['?', '#']).next()?.trim_end_matches('/');
    path.rsplit('/').next().filter(|id| !id.is_empty() && !id.contains(char::is_whitespace))
}

/// Turns an error of one source into `None`, and stores the first error in `failed`. Returns errors that
/// concern all sources, such as a stop.
fn readable<T>(read: Result<T>, failed: &mut Option<Error>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_stopped() || matches!(error, Error::Ambiguous { .. }) => Err(error),
        Err(error) => {
            failed.get_or_insert(error);
            Ok(None)
        }
    }
}

fn is_same_folded(one: &str, other: &str) -> bool {
    let one = one.chars().flat_map(char::to_lowercase);
    one.eq(other.chars().flat_map(char::to_lowercase))
}

/// The beginning of a conversation's address; its percent-encoded id follows.
const ADDRESS: &str = "verbatim://conversation/";

/// Returns the address of a conversation: `verbatim://conversation/` and the percent-encoded id.
pub fn address_of(id: &str) -> String {
    format!("{ADDRESS}{}", encoded(id))
}

/// Returns the id in an address that [`address_of`] returns; `None` for any other text.
pub fn id_at(address: &str) -> Option<String> {
    let text = address.strip_prefix(ADDRESS)?;
    let mut escapes = text.split('%').skip(1);
    if text.is_empty()
        || escapes.any(|it| it.bytes().take(2).filter(u8::is_ascii_hexdigit).count() < 2)
    {
        return None;
    }
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

/// Returns a generated key, made from a conversation's source, title and id.
fn made_key(about: &About) -> String {
    format!("{}-{}-{:08x}", about.source.name(), slug(about.own_title()), hash_of(&about.id))
}

/// Returns the id in a `path` that consists of a database's path, `#` and an id.
fn id_within<'a>(source: &Source, path: &'a str) -> Option<&'a str> {
    let address = source.address();
    let mut addresses = [address.absolute(), address].into_iter();
    addresses.find_map(|it| path.strip_prefix(it.to_string().as_str())?.strip_prefix('#'))
}

fn hash_of(id: &str) -> u32 {
    crc32fast::hash(id.as_bytes())
}

fn parse_key(key: &str) -> Option<(SourceKind, u32)> {
    let (start, hash) = key.rsplit_once('-')?;
    if hash.len() != DIGITS || !hash.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut kinds = SourceKind::ALL.into_iter();
    let kind = kinds
        .find(|kind| start.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with('-')))?;
    Some((kind, u32::from_str_radix(hash, 16).ok()?))
}

/// Returns the words of a title in lower case with hyphens between them, as in web addresses.
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
    use std::time::Duration;

    use super::*;
    use verbatim_base::model::{Instant, Origin};
    use verbatim_chats::db::Outline;

    fn about(id: &str, title: &str) -> About {
        let (id, title) = (id.to_owned(), title.to_owned());
        let outline = Outline { id, title, ..Outline::default() };
        About::of_outline(SourceKind::Export, outline, Origin::default())
    }

    #[test]
    fn headings_are_listed_without_reading_messages() {
        let export =
            crate::TestExport::indexed(&["Which colour is the sky over the sea?", "It is green."]);
        let call = Call::default();
        assert_eq!(export.engine.find(&call).headings(&|_, _| true).unwrap().len(), 2);
        let stopped =
            export.engine.find(&Call::default().within(Duration::ZERO)).headings(&|_, _| true);
        assert!(stopped.is_err());
        let source = export.engine.sources().remove(0);
        let snapshot = source.current_index(&call).unwrap();
        assert_eq!(source.catalogue(&snapshot).summaries_made(), 0);
    }

    #[test]
    fn addresses() {
        for id in ["6650a1b2-0001", "a/b c%", "日本", "#?"] {
            assert_eq!(id_at(&address_of(id)).as_deref(), Some(id));
        }
        assert_eq!(address_of("a/ü"), "verbatim://conversation/a%2F%C3%BC");
        for none in ["", "%", "%4", "%+4", "%zz", "%ff"] {
            assert_eq!(id_at(&format!("{ADDRESS}{none}")), None, "{none}");
        }
        assert_eq!(id_at("6650a1b2-0001"), None);
    }

    #[test]
    fn keys() {
        let mut about = about("550e8400-e29b", "Database: Migration, Planning!");
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

    #[test]
    fn only_what_is_shown_of_many_is_described() {
        struct Many(Vec<String>, std::cell::Cell<usize>);

        impl Listing for Many {
            fn len(&self) -> usize {
                self.0.len()
            }
            fn last(&self, _: usize) -> Option<Instant> {
                None
            }
            fn heading(&self, place: usize) -> (&str, &str) {
                (&self.0[place], "")
            }
            fn origin(&self, _: usize) -> Option<&verbatim_base::model::Origin> {
                None
            }
            fn describe(&self, place: usize, _: bool) -> About {
                self.1.set(self.1.get() + 1);
                about(&self.0[place], "")
            }
        }

        let many = Many((0..500).rev().map(|it| format!("{it:03}")).collect(), Default::default());
        let mut found = NameMatches::default();
        found.add(&many, (0..500).collect());
        assert_eq!(many.1.get(), MAX_CANDIDATES);
        let Error::Ambiguous { candidates, total, .. } = found.ambiguous("x") else { panic!() };
        assert_eq!(
            (candidates[0].id.as_str(), candidates.len(), total),
            ("000", MAX_CANDIDATES, 500)
        );
    }
}
