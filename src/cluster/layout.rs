//! The settings and the fields of an index.

use serde_json::{Value, json};

/// The version of the layout, which every index stores. It must rise when the stored data change.
pub(super) const FORMAT: u64 = 5;

/// The name of our entry in the metadata of an index.
pub(super) const META: &str = "verbatim";

/// The shards of a new index. At about 30 GB each they hold some 60 million messages.
const SHARDS: u32 = 3;

/// The most characters of a term of ranked search.
const LONGEST_TERM: u32 = 1_000;

/// The parameters k1 and b of BM25 by which the cluster proposes messages. The client scores them
/// again.
const SATURATION: f32 = 1.0;
const LENGTH_WEIGHT: f32 = 0.5;

/// The settings that a copy of an index needs too.
pub(super) fn copied_settings() -> Value {
    let mut settings = finished_settings();
    // A copy begins with the write block of the finished index, which is removed here.
    settings["index.blocks.write"] = Value::Null;
    settings
}

/// The settings of a finished index: one replica of each shard, if there is a second node.
pub(super) fn finished_settings() -> Value {
    json!({ "index.auto_expand_replicas": "0-1" })
}

/// Returns the body that makes an empty index.
pub(super) fn new_index(meta: &Value) -> Value {
    let order: Vec<&str> = ORDER.to_vec();
    json!({
        "settings": {
            "number_of_shards": SHARDS,
            // Replicas are made of the finished index, so that each document is analysed once.
            "number_of_replicas": 0,
            "refresh_interval": "-1",
            // A node that is gone is replaced soon: an import waits for it.
            "unassigned.node_left.delayed_timeout": "5s",
            // Each segment is in the order of answers, so that it can stop after the first hits.
            "sort.field": order,
            "sort.order": order.iter().map(|_| "desc").collect::<Vec<_>>(),
            "sort.missing": order.iter().map(|_| "_last").collect::<Vec<_>>(),
            "analysis": {
                "tokenizer": {
                    "words": { "type": "whitespace", "max_token_length": LONGEST_TERM },
                    "characters": {
                        "type": "ngram", "min_gram": 1, "max_gram": 1, "token_chars": [],
                    },
                },
                "analyzer": {
                    "words": { "type": "custom", "tokenizer": "words" },
                    "characters": { "type": "custom", "tokenizer": "characters" },
                },
            },
            "similarity": { "words": { "type": "BM25", "k1": SATURATION, "b": LENGTH_WEIGHT } },
        },
        "mappings": mapping(meta),
    })
}

/// The fields that answers are sorted by, newest first: seconds, nanoseconds, position, row, and a
/// hash that tells all messages apart.
pub(super) const ORDER: [&str; 5] = ["s", "n", "p", "r", "k"];

/// Returns the fields of an index.
fn mapping(meta: &Value) -> Value {
    // No frequencies and positions: the client compares the texts itself.
    let grams = json!({
        "type": "text", "analyzer": "characters", "norms": false, "index_options": "docs",
    });
    // The score of a document is the sum of the boosts of the words that a query has.
    let words = |analyzer: &str| {
        json!({
            "type": "text", "analyzer": analyzer, "norms": false, "index_options": "docs",
            "similarity": "boolean",
        })
    };
    let sorted = json!({ "type": "long", "index": false });
    json!({
        // Fields without a mapping are only stored.
        "dynamic": false,
        "_meta": { META: meta },
        "_source": { "excludes": ["o", "g", "q", "h", "w", "vt", "v", "tw", "sw"] },
        "properties": {
            "kind": { "type": "keyword", "doc_values": false },
            "c": { "type": "long" },
            "rh": { "type": "long" },
            "s": { "type": "long" },
            "n": sorted,
            "p": sorted,
            "r": sorted,
            "k": sorted,
            "odd": { "type": "boolean" },
            "o": grams,
            "g": grams,
            "q": grams,
            "h": grams,
            "long": { "type": "boolean", "doc_values": false },
            "i": { "type": "integer", "index": false },
            "l": { "type": "integer", "index": false },
            "w": {
                "type": "text", "analyzer": "words", "index_options": "freqs", "similarity": "words",
            },
            "vt": words("characters"),
            "tw": words("words"),
            "sw": words("words"),
            "v": { "type": "binary", "doc_values": true },
        },
    })
}
