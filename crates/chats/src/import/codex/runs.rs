//! Reads the runs of tools from the events that describe them: as the event that ends a run, or as an item of a
//! turn. Both have nearly the same fields.

use super::super::inline::InlineFile;
use super::super::json::Value;
use super::super::tool::{self, lines};
use super::text::{commands, output};

/// A run of a tool, as the user saw it.
pub(super) struct ToolRun {
    /// The id of the call, which the items of the model have too; empty if the event has none.
    pub(super) id: String,
    /// The text of the call; it begins with `! ` for a command that the user ran.
    pub(super) call: String,
    /// What the tool returned.
    pub(super) output: String,
    pub(super) file: Option<InlineFile>,
}

/// Returns the run that an event or an item of this kind describes; `None` for any other kind.
pub(super) fn of(kind: &str, event: &Value) -> Option<ToolRun> {
    let mut output_of = Value::Null;
    let mut file = None;
    let call = match kind {
        "commandexecution" | "execcommandend" => {
            output_of =
                first_of(event, &["aggregated_output", "aggregatedOutput", "formatted_output"]);
            let command = commands(named("command", event.at("command").clone()));
            if ["user_shell", "userShell"].contains(&event.str("source")) {
                format!("! {}", command.str("command"))
            } else {
                tool::call("exec_command", &[], &command)
            }
        }
        "filechange" | "patchapplyend" => {
            tool::call("apply_patch", &[], &changes(event.at("changes")))
        }
        "mcptoolcall" | "mcptoolcallend" => {
            let called = event.get("invocation").unwrap_or(event);
            output_of = event.at("result").clone();
            for wrapper in ["Ok", "Err"] {
                output_of = output_of.get(wrapper).cloned().unwrap_or(output_of);
            }
            let name = format!("mcp__{}__{}", called.str("server"), called.str("tool"));
            tool::call(&name, &[], called.at("arguments"))
        }
        "dynamictoolcall" | "dynamictoolcallresponse" => {
            output_of = first_of(event, &["content_items", "contentItems"]);
            tool::call(event.str("tool"), &[], event.at("arguments"))
        }
        "collabagenttoolcall" | "collabagentspawnend" | "collabagentinteractionend" => {
            let name = match event.str("tool") {
                "" if kind == "collabagentspawnend" => "spawn_agent",
                "" => "send_input",
                name => name,
            };
            tool::call(name, &[], &named("prompt", event.at("prompt").clone()))
        }
        "imageview" | "viewimagetoolcall" => {
            tool::call("view_image", &[], &named("path", event.at("path").clone()))
        }
        "websearch" | "websearchend" => {
            output_of = event.at("results").clone();
            web_search(event.get("action").filter(|it| matches!(it, Value::Object(_))), event)
        }
        "imagegeneration" | "imagegenerationend" | "image_generation_call" => {
            let base64 = event.str("result").to_owned();
            file =
                Some(InlineFile { name: String::new(), base64 }).filter(|it| !it.base64.is_empty());
            lines([
                "[image]",
                ["revised_prompt", "revisedPrompt"].map(|name| event.str(name)).concat().as_str(),
            ])
        }
        _ => return None,
    };
    let streams = lines(["stdout", "stderr"].map(|name| event.str(name)));
    let texts = [output(&output_of), streams, output(event.at("error"))];
    let output = texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default();
    let ids = ["call_id", "id"].map(|name| event.str(name));
    let id = ids.into_iter().find(|id| !id.is_empty()).unwrap_or_default().to_owned();
    Some(ToolRun { id, call, output, file })
}

/// Returns the text of a search, in the words of the item that the model saw.
pub(super) fn web_search(action: Option<&Value>, event: &Value) -> String {
    let asked = action.unwrap_or(event);
    let named = ["query", "url", "pattern"];
    let mut parts: Vec<(String, Value)> = named
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), asked.get(name)?.clone())))
        .collect();
    let more = asked.at("queries").items().iter();
    let more = more.filter(|query| query.as_str() != Some(asked.str("query")));
    parts.extend(more.map(|query| ("query".to_owned(), query.clone())));
    if parts.is_empty() && action.is_some() {
        return web_search(None, event);
    }
    if parts.is_empty() {
        String::new()
    } else {
        tool::call("web_search", &[], &Value::Object(parts))
    }
}

fn named(name: &str, value: Value) -> Value {
    Value::Object(vec![(name.to_owned(), value)])
}

/// Returns the first of these fields that has a value.
fn first_of(value: &Value, names: &[&str]) -> Value {
    names.iter().find_map(|name| value.get(name)).cloned().unwrap_or(Value::Null)
}

/// Returns the changes of files as a list, each with its path. They may be an object with the paths as names.
fn changes(changes: &Value) -> Value {
    let Value::Object(files) = changes else { return changes.clone() };
    let files = files.iter().map(|(path, change)| {
        let path = ("path".to_owned(), Value::String(path.clone()));
        Value::Object(vec![path, ("change".to_owned(), change.clone())])
    });
    Value::Array(files.collect())
}
