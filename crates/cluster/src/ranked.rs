//! Ranked search in an index: the frequencies of terms, and the messages and conversations nearest to a
//! question. The cluster only proposes them; the caller computes the final scores.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{Client, HttpRequest};
use super::document::{self, CONVERSATION, MESSAGE, MessageDocument, MessageOrder};
use super::error::{Error, Result};
use super::features::{hash_word, vector_words};
use super::generation;
use super::query::role_and_time;
use super::view::{Shards, Taken, View};
use verbatim_base::call::Stop;
use verbatim_base::model::{Hit, Instant, Request};
use verbatim_index::{PackedQuery, rounded_length};
use verbatim_text::{matcher::Matchers, summary::SUMMARY_WEIGHT};

/// The maximum number of values in one clause. A cluster accepts 65,536.
const MOST_VALUES: usize = 60_000;

const MOST_COUNTS: usize = 500;

const MOST_DOCUMENTS: usize = 1_000;

/// The number of candidates per wanted message whose packed vectors are compared.
///
/// In LoCoMo (5,882 messages), .85 of the 200 nearest messages are among 800 candidates, and .99 among 2,000.
const COMPARED: usize = 8;

/// The maximum number of candidates with compared vectors. A cluster returns at most 10,000 at once.
const MOST_COMPARED: usize = 10_000;

const MOST_SLIPS: usize = 50;

const MOST_TITLES: usize = 1_000;

/// The messages and conversations that a ranked search considers.
#[derive(Clone, Debug, Default)]
pub struct RankFilter {
    /// The accepted roles; empty for all roles.
    pub roles: Vec<String>,
    /// The earliest time, inclusive; `None` for no limit.
    pub since: Option<Instant>,
    /// The latest time, inclusive; `None` for no limit.
    pub until: Option<Instant>,
    /// The ids of the conversations; `None` for all.
    pub within: Option<Vec<String>>,
    /// The ids of conversations that are left out.
    pub without: Vec<String>,
}

/// The statistics of all messages of an index.
#[derive(Clone, Debug)]
pub struct RankedSize {
    pub(super) index: String,
    /// The number of messages.
    pub messages: u64,
    /// The sum of the messages' lengths, in terms.
    pub tokens: u64,
    /// The name of the vectors' model; empty if the vectors come from several models.
    pub model: String,
}

/// The place of a conversation in a view, and that of a message in reading order.
pub type MessagePlace = (usize, u32);

/// A message with the data that its score needs.
#[derive(Debug)]
pub struct RankedMessage {
    /// The place of its conversation, and its own place in reading order.
    pub at: MessagePlace,
    /// The length in terms.
    pub length: u32,
    /// The message itself, with its shown text.
    pub hit: Hit<'static>,
    /// The packed vector; empty if there is none.
    pub packed: Vec<u8>,
    /// The sort key of the message. Newer messages have greater keys.
    pub order: MessageOrder,
}

/// A page of messages with terms of a question, the best first.
#[derive(Debug, Default)]
pub struct TermPage {
    pub messages: Vec<RankedMessage>,
    /// The start of the next page; `None` after the last page.
    pub next: Option<Value>,
}

/// The scores of a conversation's title and summary for each question.
#[derive(Clone, Debug)]
pub struct RankedTitle {
    /// The place of the conversation in the view.
    pub place: usize,
    pub terms: Vec<f32>,
}

#[derive(Deserialize)]
struct RankedAnswer {
    timed_out: bool,
    #[serde(rename = "_shards")]
    shards: Shards,
    hits: HitList,
    #[serde(default)]
    aggregations: Value,
    #[serde(default)]
    suggest: Value,
}

#[derive(Deserialize)]
struct HitList {
    #[serde(default)]
    total: Total,
    hits: Vec<RankedHit>,
}

#[derive(Default, Deserialize)]
struct Total {
    value: u64,
}

#[derive(Deserialize)]
struct RankedHit {
    #[serde(rename = "_score")]
    score: Option<f32>,
    #[serde(default, rename = "_source")]
    source: Option<MessageDocument>,
    #[serde(default)]
    fields: FoundFields,
    #[serde(default)]
    sort: Value,
}

#[derive(Default, Deserialize)]
struct FoundFields {
    #[serde(default)]
    v: Vec<String>,
    #[serde(default)]
    c: Vec<i64>,
    #[serde(default)]
    i: Vec<u32>,
}

impl FoundFields {
    fn packed(&self) -> Vec<u8> {
        self.v.first().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default()
    }
}

/// A reader of the data for ranking from one state of an index.
pub struct RankReader<'a> {
    client: &'a Client,
    view: &'a View,
    stop: &'a Stop,
}

impl<'a> RankReader<'a> {
    /// Makes a reader of the state that `view` shows. Sends no request.
    pub fn new(client: &'a Client, view: &'a View, stop: &'a Stop) -> RankReader<'a> {
        RankReader { client, view, stop }
    }

    pub(super) fn size(&self) -> Result<RankedSize> {
        let index = self.view.index().to_owned();
        let model = generation::described(self.client, &index, self.stop)?.model;
        let (_, messages, tokens) = self.counts(&RankFilter::default(), &[])?;
        Ok(RankedSize { index, messages, tokens, model })
    }

    /// Returns statistics of the messages that pass a filter: the number of messages with each term, the
    /// number of all messages, and the sum of their lengths.
    pub fn counts(&self, filter: &RankFilter, terms: &[String]) -> Result<(Vec<u64>, u64, u64)> {
        let mut counts = Vec::new();
        let mut size = (0, 0);
        let mut chunks = terms.chunks(MOST_COUNTS).collect::<Vec<_>>();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        for chunk in chunks {
            let mut sums = json!({ "tokens": { "sum": { "field": "l" } } });
            for (at, term) in chunk.iter().enumerate() {
                sums[at.to_string()] = json!({ "filter": { "term": { "w": term } } });
            }
            let answer = self.search(json!({
                "size": 0, "track_total_hits": true, "aggs": sums,
                "query": { "bool": { "filter": filters(filter) } },
            }))?;
            counts.extend((0..chunk.len()).map(|at| {
                answer.aggregations[at.to_string()]["doc_count"].as_u64().unwrap_or_default()
            }));
            let tokens = answer.aggregations["tokens"]["value"].as_f64().unwrap_or_default();
            size = (answer.hits.total.value, tokens as u64);
        }
        Ok((counts, size.0, size.1))
    }

    /// Returns how many messages of the index have each term.
    pub fn frequencies(&self, terms: &[String]) -> Result<Vec<u64>> {
        #[derive(Deserialize)]
        struct Answers {
            responses: Vec<RankedAnswer>,
        }
        let mut all = Vec::new();
        for chunk in terms.chunks(MOST_COUNTS) {
            let head = json!({ "index": self.view.index(), "allow_partial_search_results": false });
            let call = HttpRequest::import(WHAT, "POST", "/_msearch".to_owned());
            let body: String = chunk
                .iter()
                .map(|term| {
                    let query = json!({ "term": { "w": term } });
                    let body = json!({ "size": 0, "track_total_hits": true, "query": query });
                    format!("{head}\n{body}\n")
                })
                .collect();
            let call = HttpRequest { is_import: false, ..call.with_text(body) };
            let answers: Answers = self.client.ask(call, self.stop)?;
            for answer in answers.responses {
                answer.shards.require_all(self.client, WHAT, answer.timed_out)?;
                all.push(answer.hits.total.value);
            }
        }
        Ok(all)
    }

    /// Returns possible corrections of a misspelt term, with the number of messages that have each.
    pub fn slips(&self, term: &str) -> Result<Vec<(String, u64)>> {
        let how = json!({
            "field": "w", "suggest_mode": "always", "max_edits": 1, "prefix_length": 0,
            "min_word_length": 1, "accuracy": 0.0, "size": MOST_SLIPS, "shard_size": MOST_SLIPS,
            "string_distance": "damerau_levenshtein", "sort": "frequency",
        });
        let answer = self.search(json!({
            "size": 0, "suggest": { "slips": { "text": term, "term": how } },
        }))?;
        let options = answer.suggest["slips"][0]["options"].as_array().cloned();
        let found: Vec<_> = options
            .unwrap_or_default()
            .iter()
            .filter_map(|option| {
                Some((option["text"].as_str()?.to_owned(), option["freq"].as_u64()?))
            })
            .collect();
        Ok(found.into_iter().filter(|(other, _)| other.is_ascii() && other != term).collect())
    }

    /// Returns the messages with at least one term in `boosts`, the best first.
    pub fn by_terms(
        &self,
        filter: &RankFilter,
        boosts: &[(&str, f32)],
        size: usize,
        after: Option<&Value>,
    ) -> Result<TermPage> {
        let any: Vec<Value> = boosts
            .iter()
            .map(|(term, boost)| json!({ "term": { "w": { "value": term, "boost": boost } } }))
            .collect();
        let size = size.min(MOST_DOCUMENTS);
        let query = any_word(any, filters(filter));
        let mut body = json!({
            "size": size, "track_total_hits": false, "query": query, "docvalue_fields": ["v"],
            "sort": [{ "_score": "desc" }, { "k": "asc" }],
        });
        if let Some(after) = after {
            body["search_after"] = after.clone();
        }
        let mut found = self.search_by("dfs_query_then_fetch", body)?.hits.hits;
        let next =
            if found.len() == size { found.last_mut().map(|last| last.sort.take()) } else { None };
        Ok(TermPage { messages: self.messages(found)?, next })
    }

    /// Returns the places of the messages with the vectors nearest to `vector`, the nearest first, with
    /// estimates of the cosines.
    pub fn by_vector(
        &self,
        filter: &RankFilter,
        vector: &[f32],
        count: usize,
    ) -> Result<Vec<(MessagePlace, f32)>> {
        let size = (COMPARED * count).min(MOST_COMPARED);
        let query = any_word(near_words(vector), filters(filter));
        let found = self.search(json!({
            "size": size, "track_total_hits": false, "query": query, "stored_fields": "_none_",
            "docvalue_fields": ["v", "c", "i"], "sort": [{ "_score": "desc" }, { "k": "asc" }],
        }))?;
        let packed = PackedQuery::new(vector);
        let mut all: Vec<_> = found
            .hits
            .hits
            .into_iter()
            .filter_map(|RankedHit { fields, .. }: RankedHit| {
                let at = (self.view.place_of(*fields.c.first()?)?, *fields.i.first()?);
                Some((at, packed.cosine(&fields.packed())?))
            })
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.truncate(count);
        Ok(all)
    }

    /// Returns the first messages, at most `most`, whose texts contain the text of a request, the newest
    /// first.
    pub fn containing(&self, request: &Request, most: usize) -> Result<Vec<RankedMessage>> {
        let matchers = Matchers::of(request)?;
        let mut places: Vec<MessagePlace> = Vec::new();
        self.view.search(self.client, request, self.stop, &mut |taken| {
            if let Taken::Hit(hit, name) = taken
                && matchers.accept_text(&hit.content)
            {
                let turn = name.strip_prefix(&document::message_names(&hit.conversation_id));
                let conversation = self.view.place_of(document::hash(&hit.conversation_id));
                places.extend(conversation.zip(turn.and_then(|turn| turn.parse().ok())));
            }
            if places.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let mut messages = self.at(&places)?;
        messages.sort_by_key(|message| Reverse(message.order));
        Ok(messages)
    }

    /// Returns the messages at some places, in no particular order.
    pub fn at(&self, places: &[MessagePlace]) -> Result<Vec<RankedMessage>> {
        let mut all = Vec::new();
        for some in places.chunks(MOST_DOCUMENTS) {
            let names: Vec<String> = some
                .iter()
                .map(|(conversation, turn)| {
                    let id = &self.view.conversations()[*conversation].stored.id;
                    format!("{}{turn}", document::message_names(id))
                })
                .collect();
            let found = self.search(json!({
                "size": some.len(), "track_total_hits": false, "docvalue_fields": ["v"],
                "query": { "constant_score": { "filter": { "ids": { "values": names } } } },
            }))?;
            all.extend(self.messages(found.hits.hits)?);
        }
        Ok(all)
    }

    /// Returns the conversations whose titles and summaries have the most of the questions' terms, which are hashes
    /// with weights. If `places` is given, returns only conversations at these places in the view.
    pub fn titles(
        &self,
        questions: &[Vec<(u32, f32)>],
        places: Option<&HashSet<usize>>,
    ) -> Result<Vec<RankedTitle>> {
        let all = self.view.conversations();
        let mut filters = vec![json!({ "term": { "kind": CONVERSATION } })];
        if let Some(places) = places {
            let ids: Vec<String> =
                places.iter().map(|place| all[*place].stored.id.clone()).collect();
            filters.push(in_conversations(&ids));
        }
        let mut titles: HashMap<usize, Vec<f32>> = HashMap::new();
        for (number, terms) in questions.iter().enumerate() {
            let words = term_words(terms);
            if words.is_empty() {
                continue;
            }
            let found = self.search(json!({
                "size": MOST_TITLES, "track_total_hits": false,
                "query": any_word(words, filters.clone()),
                "stored_fields": "_none_", "docvalue_fields": ["c"],
                "sort": [{ "_score": "desc" }, { "k": "asc" }],
            }))?;
            for hit in found.hits.hits {
                // A conversation without messages has no place.
                let place = hit.fields.c.first().and_then(|c| self.view.place_of(*c));
                if let Some((place, score)) = place.zip(hit.score) {
                    let scores = titles.entry(place).or_insert_with(|| vec![0.0; questions.len()]);
                    scores[number] = score;
                }
            }
        }
        Ok(titles.into_iter().map(|(place, terms)| RankedTitle { place, terms }).collect())
    }

    fn messages(&self, found: Vec<RankedHit>) -> Result<Vec<RankedMessage>> {
        let mut messages = Vec::with_capacity(found.len());
        for found in found {
            let packed = found.fields.packed();
            let Some(document) = found.source else { continue };
            let Some(place) = self.view.place_of(document.c) else {
                return Err(self.client.failed(WHAT, "a message has no conversation in the index"));
            };
            let turn = document.i;
            let length = rounded_length(document.l);
            let order = document.order();
            let conversation = &self.view.conversations()[place];
            messages.push(RankedMessage {
                at: (place, turn),
                length,
                hit: conversation.hit(document.into_message(), false),
                packed,
                order,
            });
        }
        Ok(messages)
    }

    /// Sends a search whose scores do not depend on the frequencies of terms.
    fn search(&self, body: Value) -> Result<RankedAnswer> {
        self.search_by("query_then_fetch", body)
    }

    /// Sends a search. With `dfs_query_then_fetch`, the weights of terms are computed over all shards
    /// together, which takes one more step.
    fn search_by(&self, kind: &str, mut body: Value) -> Result<RankedAnswer> {
        body["track_scores"] = true.into();
        let path = format!(
            "/{}/_search?allow_partial_search_results=false&search_type={kind}",
            self.view.index()
        );
        let call = HttpRequest { is_import: false, ..HttpRequest::import(WHAT, "POST", path) };
        let answer: Option<RankedAnswer> = self.client.find(call.with(&body), self.stop)?;
        let answer =
            answer.ok_or_else(|| Error::Replaced { address: self.client.address().to_string() })?;
        answer.shards.require_all(self.client, WHAT, answer.timed_out)?;
        Ok(answer)
    }
}

const WHAT: &str = "rank";

fn any_word(words: Vec<Value>, filters: Vec<Value>) -> Value {
    json!({ "bool": { "filter": filters, "should": words, "minimum_should_match": 1 } })
}

fn near_words(vector: &[f32]) -> Vec<Value> {
    vector_words(vector)
        .into_iter()
        .map(|(word, boost)| json!({ "term": { "vt": { "value": word, "boost": boost } } }))
        .collect()
}

fn term_words(terms: &[(u32, f32)]) -> Vec<Value> {
    let mut words = Vec::new();
    for (hash, weight) in terms.iter().filter(|(_, weight)| *weight > 0.0) {
        let word = hash_word(*hash);
        let title = json!({ "term": { "tw": { "value": word, "boost": weight } } });
        let summary = SUMMARY_WEIGHT * weight;
        let summary = json!({ "term": { "sw": { "value": word, "boost": summary } } });
        words.push(json!({ "dis_max": { "queries": [title, summary] } }));
    }
    words
}

fn filters(filter: &RankFilter) -> Vec<Value> {
    let mut all = vec![json!({ "term": { "kind": MESSAGE } })];
    all.extend(role_and_time(&filter.roles, filter.since, filter.until));
    all.extend(filter.within.as_deref().map(in_conversations));
    if !filter.without.is_empty() {
        all.push(json!({ "bool": { "must_not": in_conversations(&filter.without) } }));
    }
    all
}

fn in_conversations(ids: &[String]) -> Value {
    let hashes: Vec<i64> = ids.iter().map(|id| document::hash(id)).collect();
    let clauses: Vec<Value> =
        hashes.chunks(MOST_VALUES).map(|some| json!({ "terms": { "c": some } })).collect();
    if clauses.is_empty() {
        json!({ "match_none": {} })
    } else {
        json!({ "bool": { "should": clauses, "minimum_should_match": 1 } })
    }
}
