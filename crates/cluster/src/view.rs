//! One state of an index. It keeps the conversations in memory, and searches and reads the messages.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::ControlFlow;
use std::time::{Duration, Instant as Clock};

use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{Client, HttpRequest};
use super::document::{
    self, CONVERSATION, ConversationDocument, MESSAGE, MessageDocument, Tallied,
};
use super::error::{Error, Result};
use super::layout::ORDER;
use super::query;
use verbatim_base::call::Stop;
use verbatim_base::model::{Hit, Instant, Request, StoredConversation, StoredMessage};
use verbatim_text::matcher::{Matcher, Matchers};

/// The maximum number of messages in a page. The first page has about as many messages as are wanted.
const MOST_OF_PAGE: usize = 500;

const FEWEST_OF_PAGE: usize = 20;

const CONVERSATIONS_OF_PAGE: usize = 1_000;

/// The maximum number of ids of messages in a page. It is the most that a cluster allows.
const IDS_OF_PAGE: usize = 10_000;

const NAMES_AT_ONCE: usize = 200;

/// The maximum number of messages whose roles and times are kept in memory, at about 40 bytes each. For a
/// larger index, every count reads them from the cluster. Debug builds have a low maximum, so that tests
/// cover both cases.
const MOST_KEPT: usize = if cfg!(debug_assertions) { 400 } else { 5_000_000 };

/// The maximum number of conversations in an index. Their list is kept in memory and takes about 500 bytes
/// for each. Debug builds have a low maximum, so that tests can exceed it.
pub(super) const MOST_CONVERSATIONS: usize = if cfg!(debug_assertions) { 5_000 } else { 5_000_000 };

/// If an index has at most this many shards, each search goes to all shards at once. Otherwise the cluster
/// would first ask each shard for its newest time, because we sort by time.
const ASKED_AT_ONCE: usize = 128;

/// A conversation in the state that a view shows.
#[derive(Debug)]
pub struct ClusterConversation {
    /// The conversation as the index stores it, without its messages.
    pub stored: StoredConversation,
    /// `conversations.title` as text; empty for NULL.
    pub title: String,
    /// The time of the first message.
    pub begun: Option<Instant>,
    /// The time of the last message; `None` if no message has a valid time.
    pub last: Option<Instant>,
    /// The roles and the models of the messages, without repeats.
    pub roles: Vec<String>,
    /// The models that answered; empty if the messages name none.
    pub models: Vec<String>,
    /// The title made from the messages if the conversation has no title, and the summary.
    pub made: String,
    /// The summary made from the first messages; it may be empty.
    pub summary: String,
    /// The number of messages.
    pub turns: usize,
    /// The data of the messages for counts, in no particular order; empty if the state has too many messages.
    messages: Vec<Tallied>,
    pub(super) digest: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchCost {
    /// The number of messages that the cluster proposed.
    pub(crate) candidates: u64,
    pub(crate) verified: u64,
    pub took: Duration,
}

/// One state of an index.
#[derive(Debug)]
pub struct View {
    index: String,
    conversations: Vec<ClusterConversation>,
    places: HashMap<i64, usize>,
    has_tallies: bool,
    has_odd: bool,
}

#[derive(Deserialize)]
struct SearchAnswer<T> {
    timed_out: bool,
    #[serde(rename = "_shards")]
    shards: Shards,
    hits: FoundPage<T>,
}

#[derive(Deserialize)]
pub(super) struct Shards {
    #[serde(default)]
    pub(super) failed: u32,
}

#[derive(Deserialize)]
struct FoundPage<T> {
    hits: Vec<FoundDocument<T>>,
}

#[derive(Deserialize)]
struct FoundDocument<T> {
    #[serde(rename = "_id")]
    name: String,
    #[serde(rename = "_source")]
    source: T,
    #[serde(default)]
    sort: Vec<Value>,
}

struct Pages<'a> {
    client: &'a Client,
    index: &'a str,
    what: &'static str,
    query: Value,
    sort: Value,
    after: Option<Vec<Value>>,
    is_import: bool,
    /// The stored fields of each document; empty for all.
    fields: &'static [&'static str],
}

/// A message in the reading order of its conversation.
#[derive(Debug)]
pub struct MessageInOrder {
    /// The id of the message.
    pub id: String,
    /// The position of the message, if it has one.
    pub position: Option<i64>,
    /// The name of the document.
    pub name: String,
}

impl Pages<'_> {
    /// Returns the next documents; none after the last document. Fails if a shard does not answer.
    fn next<T: serde::de::DeserializeOwned>(
        &mut self,
        size: usize,
        stop: &Stop,
    ) -> Result<Vec<FoundDocument<T>>> {
        let mut body = json!({
            "size": size, "query": self.query, "sort": self.sort, "track_total_hits": false,
        });
        if let Some(after) = &self.after {
            body["search_after"] = json!(after);
        }
        if !self.fields.is_empty() {
            body["_source"] = json!(self.fields);
        }
        let path = format!(
            "/{}/_search?allow_partial_search_results=false&pre_filter_shard_size={ASKED_AT_ONCE}",
            self.index
        );
        let call = HttpRequest {
            is_import: self.is_import,
            ..HttpRequest::import(self.what, "POST", path)
        };
        let answer: Option<SearchAnswer<T>> = self.client.find(call.with(&body), stop)?;
        let answer =
            answer.ok_or_else(|| Error::Replaced { address: self.client.address().to_string() })?;
        answer.shards.require_all(self.client, self.what, answer.timed_out)?;
        let documents = answer.hits.hits;
        self.after = documents.last().map(|last| last.sort.clone());
        Ok(documents)
    }

    /// Calls `each` with all documents, `size` of which are read at once.
    fn each<T: serde::de::DeserializeOwned>(
        mut self,
        size: usize,
        stop: &Stop,
        each: &mut dyn FnMut(FoundDocument<T>),
    ) -> Result<()> {
        loop {
            let page = self.next::<T>(size, stop)?;
            let is_last = page.len() < size;
            page.into_iter().for_each(&mut *each);
            if is_last {
                return Ok(());
            }
        }
    }
}

impl Shards {
    /// Fails if a shard did not answer.
    pub(super) fn require_all(
        &self,
        client: &Client,
        what: &'static str,
        has_timed_out: bool,
    ) -> Result<()> {
        if has_timed_out || self.failed > 0 {
            let why = format!("{} of its shards did not answer", self.failed.max(1));
            return Err(client.failed(what, why));
        }
        Ok(())
    }
}

impl View {
    pub(super) fn open(client: &Client, index: String, stop: &Stop) -> Result<View> {
        let mut conversations = Vec::new();
        let mut messages = 0;
        each_conversation(client, &index, false, stop, &mut |mut it| {
            messages += it.turns;
            if messages > MOST_KEPT {
                it.messages = Vec::new();
            }
            if it.turns > 0 {
                conversations.push(it);
            }
        })?;
        let has_tallies = messages <= MOST_KEPT;
        if !has_tallies {
            conversations.iter_mut().for_each(|it| it.messages = Vec::new());
        }
        conversations
            .sort_by(|a, b| b.last.cmp(&a.last).then_with(|| a.stored.id.cmp(&b.stored.id)));
        let hashes = conversations.iter().map(|it| document::hash(&it.stored.id));
        let places = hashes.zip(0..).collect();
        let mut view = View { index, conversations, places, has_tallies, has_odd: false };
        let odd = json!({ "term": { "odd": true } });
        view.has_odd =
            !view.pages(client, "search", odd, newest_first()).next::<Value>(1, stop)?.is_empty();
        Ok(view)
    }

    /// Calls `each` with every conversation that has messages, and with the messages' data for counts. Reads
    /// these data from the cluster if they are not in memory.
    pub fn tallies(
        &self,
        client: &Client,
        stop: &Stop,
        each: &mut dyn FnMut(&ClusterConversation, &[Tallied]),
    ) -> Result<()> {
        if self.has_tallies {
            self.conversations.iter().for_each(|it| each(it, &it.messages));
            return Ok(());
        }
        each_conversation(client, &self.index, false, stop, &mut |it| {
            if it.turns > 0 {
                each(&it, &it.messages);
            }
        })
    }

    /// Returns the name of the real index that the view reads, which is not the alias.
    pub fn index(&self) -> &str {
        &self.index
    }

    /// Returns the conversations that have messages, latest activity first.
    pub fn conversations(&self) -> &[ClusterConversation] {
        &self.conversations
    }

    pub(super) fn place_of(&self, hash: i64) -> Option<usize> {
        self.places.get(&hash).copied()
    }

    /// Returns the conversation with this id; `None` if it is absent or has no messages.
    pub fn find(&self, id: &str) -> Option<&ClusterConversation> {
        let place = *self.places.get(&document::hash(id))?;
        Some(&self.conversations[place]).filter(|it| it.stored.id == id)
    }

    /// Calls `take` with the matching messages, newest first, until `take` breaks. Also calls `take` with
    /// `Taken::End` after each page of candidates.
    ///
    /// The cluster only proposes candidates, so the texts of all candidates are compared here.
    pub fn search(
        &self,
        client: &Client,
        request: &Request,
        stop: &Stop,
        take: &mut dyn FnMut(Taken<'_>) -> ControlFlow<()>,
    ) -> Result<SearchCost> {
        let begun = Clock::now();
        let mut found = SearchCost::default();
        let wanted = request.limit.unwrap_or(usize::MAX);
        let matchers = Matchers::of(request)?;
        let proposing: Vec<&Matcher> = matchers.any.iter().chain(&matchers.all).collect();
        let query = query::candidates(request, &matchers, self.has_odd, &mut |place| {
            self.find_titles(proposing[place], request)
        });
        let mut pages = self.pages(client, "search", query, newest_first());
        let mut size = wanted.saturating_add(1).clamp(FEWEST_OF_PAGE, MOST_OF_PAGE);
        let mut left = wanted;
        while left > 0 {
            let page = pages.next::<MessageDocument>(size, stop)?;
            let is_last = page.len() < size;
            for document in page {
                found.candidates += 1;
                let name = document.name;
                let (conversation, message) = self.message(client, document.source)?;
                if !matchers.accept_stored(request, conversation.stored.title.as_deref(), &message)
                {
                    continue;
                }
                found.verified += 1;
                left -= 1;
                let hit = conversation.hit(message, request.raw_content);
                if take(Taken::Hit(hit, &name)).is_break() || left == 0 {
                    left = 0;
                    break;
                }
            }
            if take(Taken::End).is_break() || is_last {
                break;
            }
            size = next_page(left, &found);
        }
        found.took = begun.elapsed();
        Ok(found)
    }

    /// Returns the messages of a conversation in reading order.
    pub fn read(
        &self,
        client: &Client,
        id: &str,
        raw_content: bool,
        stop: &Stop,
    ) -> Result<Vec<Hit<'static>>> {
        let Some(conversation) = self.find(id) else { return Ok(Vec::new()) };
        let messages = messages(client, &self.index, conversation, stop)?;
        let messages = messages.into_iter().map(|(_, message)| message);
        Ok(messages.map(|message| conversation.hit(message, raw_content)).collect())
    }

    /// Returns the messages of the documents with these names, in the order of `names`.
    pub fn fetch(&self, client: &Client, names: &[&str], stop: &Stop) -> Result<Vec<Hit<'static>>> {
        let mut found: HashMap<String, Hit<'static>> = HashMap::new();
        for some in names.chunks(NAMES_AT_ONCE) {
            let query = json!({ "ids": { "values": some } });
            let mut pages = self.pages(client, "read messages", query, newest_first());
            for document in pages.next::<MessageDocument>(some.len(), stop)? {
                let (of, message) = self.message(client, document.source)?;
                found.insert(document.name, of.hit(message, false));
            }
        }
        Ok(names.iter().filter_map(|name| found.remove(*name)).collect())
    }

    /// Returns the messages of conversations in reading order, without texts, by conversation id. All
    /// conversations are read together: there is one request for each 10,000 messages.
    pub fn orders(
        &self,
        client: &Client,
        ids: &[&str],
        stop: &Stop,
    ) -> Result<HashMap<String, Vec<MessageInOrder>>> {
        #[derive(Deserialize)]
        struct StoredId {
            c: i64,
            id: String,
            p: Option<i64>,
        }
        let known: Vec<&ClusterConversation> = ids.iter().filter_map(|id| self.find(id)).collect();
        let mut orders: HashMap<String, Vec<MessageInOrder>> =
            known.iter().map(|it| (it.stored.id.clone(), Vec::new())).collect();
        if known.is_empty() {
            return Ok(orders);
        }
        let what = "read the order of messages";
        let hashes: Vec<i64> = known.iter().map(|it| document::hash(&it.stored.id)).collect();
        let filter = json!([{ "term": { "kind": MESSAGE } }, { "terms": { "c": hashes } }]);
        let query = json!({ "bool": { "filter": filter } });
        let sort = json!([{ "c": "asc" }, { "i": "asc" }, { "k": "asc" }]);
        let fields: &[&str] = &["c", "id", "p"];
        let index = &self.index;
        let pages =
            Pages { client, index, what, query, sort, after: None, is_import: false, fields };
        pages.each::<StoredId>(
            IDS_OF_PAGE,
            stop,
            &mut |FoundDocument { name, source, .. }| {
                let id = self.place_of(source.c).map(|place| &self.conversations[place].stored.id);
                if let Some(order) = id.and_then(|id| orders.get_mut(id)) {
                    order.push(MessageInOrder { id: source.id, position: source.p, name });
                }
            },
        )?;
        match known.iter().find(|it| orders[&it.stored.id].len() != it.turns) {
            None => Ok(orders),
            Some(it) => {
                let there = orders[&it.stored.id].len();
                Err(client.failed(what, format!("{there} of {} messages are there", it.turns)))
            }
        }
    }

    fn pages<'a>(
        &'a self,
        client: &'a Client,
        what: &'static str,
        query: Value,
        sort: Value,
    ) -> Pages<'a> {
        let query = json!({ "constant_score": { "filter": query } });
        Pages {
            client,
            index: &self.index,
            what,
            query,
            sort,
            after: None,
            is_import: false,
            fields: &[],
        }
    }

    /// Returns the hashes of the conversations whose titles match. If each of their messages is a hit, leaves
    /// out conversations that are too old for the wanted number of hits.
    fn find_titles(&self, matcher: &Matcher, request: &Request) -> Vec<i64> {
        let is_enough =
            request.and.is_empty() && request.not.is_empty() && request.roles.is_empty();
        let wanted = request.limit.filter(|_| is_enough).unwrap_or(usize::MAX);
        // The times of the newest hits.
        let mut newest = BinaryHeap::new();
        let conversations = self.conversations.iter();
        let titled = conversations
            .filter(|it| matcher.matches_bytes(it.stored.title.as_deref().unwrap_or_default()));
        // The latest conversations come first.
        let titled = titled.take_while(|it| {
            let is_older = newest.peek().is_some_and(|Reverse(oldest)| it.last < *oldest);
            if newest.len() >= wanted && is_older {
                return false;
            }
            if wanted < usize::MAX {
                let times = it.times().filter(|time| request.has_time(*time));
                times.for_each(|time| newest.push(Reverse(time)));
                while newest.len() > wanted {
                    newest.pop();
                }
            }
            true
        });
        titled.map(|it| document::hash(&it.stored.id)).collect()
    }

    fn message(
        &self,
        client: &Client,
        document: MessageDocument,
    ) -> Result<(&ClusterConversation, StoredMessage)> {
        let Some(place) = self.places.get(&document.c) else {
            return Err(client.failed("search", "a message has no conversation in the index"));
        };
        Ok((&self.conversations[*place], document.into_message()))
    }
}

impl ClusterConversation {
    /// Returns the times of the messages; the last one alone if the state has too many messages.
    fn times(&self) -> impl Iterator<Item = Option<Instant>> {
        let last = self.messages.is_empty().then_some(self.last);
        self.messages.iter().map(|message| message.time).chain(last)
    }

    pub(super) fn hit(&self, message: StoredMessage, raw_content: bool) -> Hit<'static> {
        message.into_hit(&self.stored.id, &self.title, raw_content)
    }
}

/// Returns the number of candidates to request next. If they match as often as the candidates before, they
/// contain the `left` hits that are still wanted.
fn next_page(left: usize, found: &SearchCost) -> usize {
    let per_hit = found.candidates.checked_div(found.verified).unwrap_or(u64::MAX);
    let per_hit = usize::try_from(per_hit.saturating_add(1)).unwrap_or(usize::MAX);
    left.saturating_mul(per_hit).clamp(FEWEST_OF_PAGE, MOST_OF_PAGE)
}

/// An item that a search passes to its caller.
pub enum Taken<'a> {
    /// A hit, and the name of its document.
    Hit(Hit<'static>, &'a str),
    /// The end of a page of candidates.
    End,
}

fn newest_first() -> Value {
    ORDER.iter().map(|name| json!({ *name: { "order": "desc", "missing": "_last" } })).collect()
}

/// Reads every conversation of an index for an import, including conversations without messages. Leaves out
/// the messages' data for counts.
pub(super) fn conversations(
    client: &Client,
    index: &str,
    stop: &Stop,
) -> Result<Vec<ClusterConversation>> {
    let mut all = Vec::new();
    each_conversation(client, index, true, stop, &mut |it| {
        all.push(ClusterConversation { messages: Vec::new(), ..it });
    })?;
    Ok(all)
}

/// Reads every conversation of an index, including conversations without messages.
fn each_conversation(
    client: &Client,
    index: &str,
    is_import: bool,
    stop: &Stop,
    each: &mut dyn FnMut(ClusterConversation),
) -> Result<()> {
    let query = json!({ "constant_score": { "filter": { "term": { "kind": CONVERSATION } } } });
    let sort = json!([{ "k": "asc" }]);
    let what = "read the list of conversations";
    let mut pages = Pages { client, index, what, query, sort, after: None, is_import, fields: &[] };
    let mut read = 0;
    loop {
        let page = pages.next::<ConversationDocument>(CONVERSATIONS_OF_PAGE, stop)?;
        let is_last = page.len() < CONVERSATIONS_OF_PAGE;
        read += page.len();
        if read > MOST_CONVERSATIONS {
            return Err(client.failed(what, too_many()));
        }
        page.into_iter().for_each(|document| each(conversation(document.source)));
        if is_last {
            return Ok(());
        }
    }
}

/// Returns why an index has too many conversations.
pub(super) fn too_many() -> String {
    format!(
        "there are more than {MOST_CONVERSATIONS} conversations, and the list of them is kept in memory; \
         divide them among several indexes, for instance one for each year"
    )
}

/// Returns how many documents of an index a query finds; an error if any shard does not answer.
pub(super) fn count(
    client: &Client,
    what: &'static str,
    index: &str,
    query: &Value,
    stop: &Stop,
) -> Result<u64> {
    #[derive(Deserialize)]
    struct Counted {
        count: u64,
        #[serde(rename = "_shards")]
        shards: Shards,
    }
    let call = HttpRequest::import(what, "POST", format!("/{index}/_count"));
    let counted: Counted = client.ask(call.with(&json!({ "query": query })), stop)?;
    match counted.shards.failed {
        0 => Ok(counted.count),
        failed => Err(client.failed(what, format!("{failed} of its shards did not answer"))),
    }
}

/// Returns how many messages an index has, and how many its conversations record.
pub(super) fn messages_there(client: &Client, index: &str, stop: &Stop) -> Result<(u64, u64)> {
    let mut expected = 0;
    each_conversation(client, index, true, stop, &mut |it| expected += it.turns as u64)?;
    let query = json!({ "term": { "kind": MESSAGE } });
    Ok((count(client, "check what was written", index, &query, stop)?, expected))
}

fn conversation(document: ConversationDocument) -> ClusterConversation {
    let digest = document.digest.clone();
    let made = document.made.clone();
    let summary = document.summary.clone();
    let (stored, roles, models, messages) = document.into_parts();
    ClusterConversation {
        title: String::from_utf8_lossy(stored.title.as_deref().unwrap_or_default()).into_owned(),
        begun: messages.iter().filter_map(|message| message.time).min(),
        last: messages.iter().filter_map(|message| message.time).max(),
        stored,
        roles,
        models,
        made,
        summary,
        turns: messages.len(),
        messages,
        digest,
    }
}

/// Reads the messages of a conversation in reading order, with the names of their documents.
pub(super) fn messages(
    client: &Client,
    index: &str,
    conversation: &ClusterConversation,
    stop: &Stop,
) -> Result<Vec<(String, StoredMessage)>> {
    let what = "read a conversation";
    let c = document::hash(&conversation.stored.id);
    let filter = json!([{ "term": { "kind": MESSAGE } }, { "term": { "c": c } }]);
    let query = json!({ "bool": { "filter": filter } });
    // The type is given, because indexes of earlier formats do not have this field.
    let sort = json!([{ "i": { "order": "asc", "unmapped_type": "integer" } }, { "k": "asc" }]);
    let pages =
        Pages { client, index, what, query, sort, after: None, is_import: false, fields: &[] };
    let mut all = Vec::with_capacity(conversation.turns);
    pages.each::<MessageDocument>(MOST_OF_PAGE, stop, &mut |found| {
        all.push((found.name, found.source.into_message()));
    })?;
    if all.len() == conversation.turns {
        Ok(all)
    } else {
        Err(client.failed(
            what,
            format!("{} of its {} messages are there", all.len(), conversation.turns),
        ))
    }
}
