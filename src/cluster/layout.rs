//! The settings and the fields of an index.

use serde_json::{Value, json};

/// The version of the layout, which an index names. Whoever changes what is stored raises it.
pub(super) const FORMAT: u64 = 2;

/// What our entry in an index is called.
pub(super) const META: &str = "verbatim";

/// The shards of a new index. At about 30 GB each they hold some 60 million messages.
const SHARDS: u32 = 3;

/// The most characters of a term of ranked search.
const LONGEST_TERM: u32 = 1_000;

/// The parameters of BM25, k1 and b, that propose messages. They are scored again here.
const NORMS: (f32, f32) = (1.0, 0.5);

/// The settings that a copy of an index needs too.
pub(super) fn copied_settings() -> Value {
    json!({
        // Nobody writes to a finished index, which a copy begins as.
        "index.blocks.write": null,
        // One copy of each shard, if there is a second node.
        "index.auto_expand_replicas": "0-1",
    })
}

/// Returns the body that makes an empty index.
pub(super) fn new_index(meta: &Value) -> Value {
    let exactly = |least: u32, most: u32| json!({ "type": "ngram", "min_gram": least, "max_gram": most, "token_chars": [] });
    let order: Vec<&str> = ORDER.to_vec();
    json!({
        "settings": {
            "number_of_shards": SHARDS,
            "auto_expand_replicas": "0-1",
            "refresh_interval": "-1",
            "codec": "best_compression",
            // A node that is gone is replaced soon: an import waits for it.
            "unassigned.node_left.delayed_timeout": "5s",
            // Each segment is in the order of answers, so that it can stop after the first hits.
            "sort.field": order,
            "sort.order": order.iter().map(|_| "desc").collect::<Vec<_>>(),
            "sort.missing": order.iter().map(|_| "_last").collect::<Vec<_>>(),
            "analysis": {
                "tokenizer": {
                    "v12": exactly(1, 2),
                    "v3": exactly(3, 3),
                    "words": { "type": "whitespace", "max_token_length": LONGEST_TERM },
                },
                "analyzer": {
                    "v12": { "type": "custom", "tokenizer": "v12" },
                    "v3": { "type": "custom", "tokenizer": "v3" },
                    "words": { "type": "custom", "tokenizer": "words" },
                },
            },
            "similarity": { "words": { "type": "BM25", "k1": NORMS.0, "b": NORMS.1 } },
        },
        "mappings": mapping(meta),
    })
}

/// The fields that answers are sorted by, newest first: seconds, nanoseconds, position, row, and a
/// hash that tells all messages apart.
pub(super) const ORDER: [&str; 5] = ["s", "n", "p", "r", "k"];

/// Returns the fields of an index.
fn mapping(meta: &Value) -> Value {
    let grams = |analyzer: &str| {
        // Only which messages have a gram: their texts are compared here.
        json!({ "type": "text", "analyzer": analyzer, "norms": false, "index_options": "docs" })
    };
    // Words with weights of their own: the sum of those that a question names.
    let words = json!({
        "type": "text", "analyzer": "words", "norms": false, "index_options": "docs",
        "similarity": "boolean",
    });
    let mut text = grams("v12");
    text["fields"] = json!({ "3": grams("v3") });
    json!({
        // What has no field here is only stored.
        "dynamic": false,
        "_meta": { META: meta },
        "_source": { "excludes": ["g", "w", "vt", "v", "tw", "sw"] },
        "properties": {
            "kind": { "type": "keyword" },
            "c": { "type": "long" },
            "rh": { "type": "long" },
            "s": { "type": "long" },
            "n": { "type": "long" },
            "p": { "type": "long" },
            "r": { "type": "long" },
            "k": { "type": "long" },
            "odd": { "type": "boolean" },
            "g": text,
            "i": { "type": "integer", "index": false },
            "l": { "type": "integer", "index": false },
            "w": {
                "type": "text", "analyzer": "words", "index_options": "freqs", "similarity": "words",
            },
            "vt": words,
            "tw": words,
            "sw": words,
            "v": { "type": "binary", "doc_values": true },
        },
    })
}
