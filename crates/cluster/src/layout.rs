//! The settings and the fields of an index.

use serde_json::{Value, json};

/// The version of the layout. Every index stores it. The version must rise when the stored data change.
pub(super) const FORMAT: u64 = 7;

pub(super) const META: &str = "verbatim";

/// The number of shards of a new index. With about 30 GB each, they hold about 60 million messages.
const SHARDS: u32 = 3;

const LONGEST_TERM: u32 = 1_000;

/// The parameters k1 and b of BM25 with which the cluster proposes messages. The client scores the proposed
/// messages again.
const SATURATION: f32 = 1.0;
const LENGTH_WEIGHT: f32 = 0.5;

pub(super) fn copied_settings() -> Value {
    let mut settings = finished_settings();
    // A copy inherits the write block of the finished index, so the block is removed.
    settings["index.blocks.write"] = Value::Null;
    settings
}

/// Returns the settings of a finished index: one replica of each shard, if there is a second node.
pub(super) fn finished_settings() -> Value {
    json!({ "index.auto_expand_replicas": "0-1" })
}

pub(super) fn new_index(meta: &Value) -> Value {
    let order: Vec<&str> = ORDER.to_vec();
    json!({
        "settings": {
            "number_of_shards": SHARDS,
            // Replicas are copied from the finished index, so that each document is analysed only once.
            "number_of_replicas": 0,
            "refresh_interval": "-1",
            // The shards of a lost node are assigned to other nodes soon, because an import waits for them.
            "unassigned.node_left.delayed_timeout": "5s",
            // Segments are sorted in the order of answers, so that a search can stop after the first hits.
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

/// The fields by which answers are sorted, newest first: seconds, nanoseconds, position, row, and a hash that
/// is unique for each message.
pub(super) const ORDER: [&str; 5] = ["s", "n", "p", "r", "k"];

fn mapping(meta: &Value) -> Value {
    // Frequencies and positions are not indexed, because the client compares the texts itself.
    let grams = json!({
        "type": "text", "analyzer": "characters", "norms": false, "index_options": "docs",
    });
    // The score of a document is the sum of the boosts of the query words that it has.
    let words = json!({
        "type": "text", "analyzer": "words", "norms": false, "index_options": "docs",
        "similarity": "boolean",
    });
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
            "vt": {
                "type": "text", "analyzer": "characters", "norms": false, "index_options": "docs",
                "similarity": "boolean",
            },
            "tw": words,
            "sw": words,
            "v": { "type": "binary", "doc_values": true },
        },
    })
}
