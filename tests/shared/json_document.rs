//! docs/json.md has the keys of the types that the commands print, with their doc comments as descriptions.

use std::fs;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use super::search::conversations::JsonMatchingConversation;
use super::{doctor, forget, list, open, show, stats, status};
use crate::golden::golden;
use verbatim_answer::json_lines::{JsonFound, JsonMatch};
use verbatim_engine::Count;

/// The document, from the folder of golden files.
const DOCUMENT: &str = "../../docs/json.md";

const TABLE: &str = "| Key | Type | What it is |\n|-|-|-|\n";

#[test]
fn the_document_has_the_keys_of_the_types() {
    let sections = [
        ("search --json", rows::<JsonFound<'_>>()),
        ("search --mode both --json", rows::<JsonMatch<'_>>()),
        ("search -c --json", rows::<Count>()),
        ("search -l --json", rows::<JsonMatchingConversation<'_>>()),
        ("list --json", rows::<list::JsonConversation<'_>>()),
        ("show --json", rows::<show::JsonMessage<'_>>()),
        ("stats --json", rows::<stats::JsonStatistics<'_>>()),
        ("status --json", rows::<status::JsonStatus<'_>>()),
        ("doctor --json", rows::<doctor::Examined>()),
        ("open --json", rows::<open::JsonOpened<'_>>()),
        ("resume --json", rows::<open::JsonResumed<'_>>()),
        ("forget --json", rows::<forget::JsonForgotten<'_>>()),
        ("forget --list --json", rows::<forget::JsonListed<'_>>()),
        ("forget --undo --json", rows::<forget::JsonUndone<'_>>()),
    ];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json.md");
    let mut text = fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    assert_eq!(text.matches("\n## ").count(), sections.len(), "sections of docs/json.md");
    for (command, rows) in sections {
        let heading = format!("\n## `verbatim {command}`\n");
        let section = text.find(&heading).unwrap_or_else(|| panic!("no section{heading}")) + 1;
        let start = text[section..].find(TABLE).expect("a table") + section + TABLE.len();
        let end = text[start..].find("\n\n").map_or(text.len(), |end| start + end + 1);
        text.replace_range(start..end, &rows);
    }
    golden(DOCUMENT, &text);
}

/// Returns the rows of the table of a type.
fn rows<T: JsonSchema>() -> String {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| settings.inline_subschemas = true);
    let mut rows = String::new();
    add_fields(&mut rows, "", settings.into_generator().into_root_schema_for::<T>().as_value());
    rows
}

fn add_row(rows: &mut String, key: &str, schema: &Value) {
    let mut types: Vec<&str> = Vec::new();
    for schema in alternatives(schema) {
        match &schema["type"] {
            Value::Array(names) => types.extend(names.iter().filter_map(Value::as_str)),
            name => types.extend(name.as_str()),
        }
    }
    for name in &mut types {
        if *name == "integer" {
            *name = "number";
        }
    }
    // Null is the last one.
    types.sort_by_key(|name| *name == "null");
    types.dedup();
    let types = types.join(" or ");
    // Objects of an array are described by their keys.
    if !(key.ends_with("[]") && types == "object") {
        let text = schema["description"].as_str().unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let start = text.chars().next().map(|start| start.to_lowercase().to_string());
        let rest = text.chars().skip(1).collect::<String>();
        let text = format!("{}{} ", start.unwrap_or_default(), rest.trim_end_matches('.'));
        rows.push_str(&format!("| `{key}` | {types} | {}|\n", text.trim_start()));
    }
    add_fields(rows, key, schema);
}

/// Adds the rows of what an object or an array holds.
fn add_fields(rows: &mut String, key: &str, schema: &Value) {
    let start = if key.is_empty() { String::new() } else { format!("{key}.") };
    for schema in alternatives(schema) {
        // In the order of the fields. Keys that are only sometimes there are described in the text.
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            add_row(rows, &format!("{start}{name}"), &schema["properties"][name]);
        }
        if schema["additionalProperties"].is_object() {
            add_row(rows, &format!("{start}*"), &schema["additionalProperties"]);
        }
        for items in [&schema["items"], &schema["prefixItems"][0]] {
            if items.is_object() {
                add_row(rows, &format!("{key}[]"), items);
            }
        }
    }
}

/// Returns the schemas that a schema is one of.
fn alternatives(schema: &Value) -> Vec<&Value> {
    match schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        Some(schemas) => schemas.iter().flat_map(alternatives).collect(),
        None => vec![schema],
    }
}
