//! The part of JSON Schema that the tools use: validates schemas, and values against them.
//!
//! Source: JSON Schema 2020-12, <https://json-schema.org/draft/2020-12/json-schema-validation>.
#![allow(dead_code, reason = "not every binary needs it")]

use serde_json::{Map, Value};

/// Returns why a value does not fit a schema, each with its place; nothing if it fits.
///
/// # Panics
///
/// Panics if the schema has a keyword that is not known here, or a wrong value for one.
pub(crate) fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    check(schema, value, "", &mut errors);
    errors
}

/// Checks that a schema is well formed, with all schemas inside it.
///
/// # Panics
///
/// Panics if it is not.
pub(crate) fn assert_valid(schema: &Value) {
    let schema = schema.as_object().unwrap_or_else(|| panic!("{schema} is no schema"));
    for (keyword, value) in schema {
        match keyword.as_str() {
            "type" => drop(types(value)),
            "properties" => object(value).values().for_each(assert_valid),
            "items" => assert_valid(value),
            "anyOf" => array(value).iter().for_each(assert_valid),
            "additionalProperties" if value.is_boolean() => {}
            "additionalProperties" => assert_valid(value),
            "required" => {
                let known = schema.get("properties").map(object);
                for name in array(value) {
                    let name = name.as_str().expect("names are texts");
                    assert!(known.is_none_or(|known| known.contains_key(name)), "{name}");
                }
            }
            "enum" => assert!(!array(value).is_empty(), "an empty enum"),
            "minimum" | "maximum" => assert!(value.is_number(), "{keyword}: {value}"),
            "minLength" | "maxLength" | "minItems" | "maxItems" => drop(count(value)),
            "description" | "title" => assert!(value.is_string(), "{keyword}: {value}"),
            "default" => {
                let found = errors(&Value::Object(schema.clone()), value);
                assert!(found.is_empty(), "the default: {found:?}");
            }
            "$schema" => {}
            other => panic!("{other} is a keyword that the tests do not know"),
        }
    }
}

fn check(schema: &Value, value: &Value, place: &str, errors: &mut Vec<String>) {
    for (keyword, wanted) in object(schema) {
        let fits = match keyword.as_str() {
            "type" => types(wanted).iter().any(|name| is_of_type(value, name)),
            "enum" => array(wanted).contains(value),
            "anyOf" => array(wanted).iter().any(|one| self::errors(one, value).is_empty()),
            "minimum" => value.as_f64().is_none_or(|it| it >= wanted.as_f64().expect("a number")),
            "maximum" => value.as_f64().is_none_or(|it| it <= wanted.as_f64().expect("a number")),
            "minLength" => value.as_str().is_none_or(|it| it.chars().count() >= count(wanted)),
            "maxLength" => value.as_str().is_none_or(|it| it.chars().count() <= count(wanted)),
            "minItems" => value.as_array().is_none_or(|it| it.len() >= count(wanted)),
            "maxItems" => value.as_array().is_none_or(|it| it.len() <= count(wanted)),
            "required" => value.as_object().is_none_or(|it| {
                array(wanted).iter().all(|name| it.contains_key(name.as_str().expect("a name")))
            }),
            "properties" | "additionalProperties" | "items" => true,
            "default" | "description" | "title" | "$schema" => true,
            other => panic!("{other} is a keyword that the tests do not know"),
        };
        if !fits {
            errors.push(format!("{place}: {value} does not fit {keyword}: {wanted}"));
        }
    }
    if let (Some(items), Some(schema)) = (value.as_array(), schema.get("items")) {
        for (number, item) in items.iter().enumerate() {
            check(schema, item, &format!("{place}/{number}"), errors);
        }
    }
    for (name, inner) in value.as_object().into_iter().flatten() {
        let place = format!("{place}/{name}");
        match (
            schema.get("properties").and_then(|all| all.get(name)),
            &schema["additionalProperties"],
        ) {
            (Some(schema), _) => check(schema, inner, &place, errors),
            (None, Value::Bool(false)) => errors.push(format!("{place}: no such property")),
            (None, Value::Object(_)) => {
                check(&schema["additionalProperties"], inner, &place, errors);
            }
            (None, _) => {}
        }
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("{other} is no type"),
    }
}

/// Returns the names of types, of which a value has one.
fn types(value: &Value) -> Vec<&str> {
    const ALL: [&str; 7] = ["object", "array", "string", "boolean", "null", "number", "integer"];
    let names: Vec<&str> = match value {
        Value::String(name) => vec![name],
        several => array(several).iter().map(|name| name.as_str().expect("a name")).collect(),
    };
    assert!(names.iter().all(|name| ALL.contains(name)), "{names:?}");
    names
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("{value} is no object"))
}

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no array"))
}

fn count(value: &Value) -> usize {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count")) as usize
}
