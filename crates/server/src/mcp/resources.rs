//! Conversations as resources, which a client can attach: `verbatim://conversation/ID`.

use rmcp::ErrorData;
use rmcp::model::{
    Annotations, ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate,
};
use serde_json::{Map, json};

use crate::tools::{Options, transcript};
use verbatim_answer::{conversation::named, hint::Explained};
use verbatim_base::call::Call;
use verbatim_engine::{self as engine, About, Engine, Error, ListOptions, ListedPage, Scope};
use verbatim_text::{date, snippet, terminal::without_hidden_text};

const TEMPLATE: &str = "verbatim://conversation/{id}";

/// The number of conversations on a page of the list.
const PAGE: usize = 50;

/// The maximum number of conversations in the list. Clients reach all others with the address template.
const MOST: usize = 200;

const MARKDOWN: &str = "text/markdown";

pub(super) fn list(
    engine: &Engine,
    cursor: Option<&str>,
    call: &Call,
) -> Result<ListResourcesResult, ErrorData> {
    let offset = match cursor {
        None => 0,
        Some(cursor) => offset_of(cursor).ok_or_else(|| unknown_cursor(cursor))?,
    };
    let sources = engine.all_sources();
    let page = offset..MOST.min(offset + PAGE);
    let listed = sources.list(&Scope::default(), page, ListOptions::BRIEF, call);
    let ListedPage { abouts, total, notes } = match listed {
        Ok(listed) => listed,
        // If the server started before the database was made, the list is empty.
        Err(error) if error.is_not_found() => ListedPage::default(),
        Err(error) => return Err(failed(&error)),
    };
    let next = offset + abouts.len();
    let mut result = ListResourcesResult::with_all_items(abouts.iter().map(resource_of).collect());
    if !notes.is_empty() {
        let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
        let meta = Map::from_iter([("notes".to_owned(), json!(notes))]);
        result.meta = Some(MetaObject(meta));
    }
    result.next_cursor = (next < total.min(MOST) && next > offset).then(|| format!("{next}"));
    Ok(result)
}

pub(super) fn unknown_cursor(cursor: &str) -> ErrorData {
    let cursor = snippet::echo(cursor);
    let message = format!("cursor {cursor:?} is not from this server; list again without a cursor");
    ErrorData::invalid_params(message, None)
}

fn offset_of(cursor: &str) -> Option<usize> {
    cursor.parse().ok().filter(|offset| *offset < MOST && *offset % PAGE == 0)
}

pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(TEMPLATE, "conversation")
        .with_title("A conversation")
        .with_description("A past conversation as Markdown, by its id")
        .with_mime_type(MARKDOWN);
    ListResourceTemplatesResult::with_all_items(vec![template])
}

pub(super) fn read(
    engine: &Engine,
    options: &Options,
    uri: &str,
    call: &Call,
) -> Result<ReadResourceResult, ErrorData> {
    let id = engine::id_at(uri).ok_or_else(|| not_found(uri))?;
    let about = match named(engine, &id, call) {
        // Clients write the ids of UUIDs in either case.
        Ok(about) if about.id.eq_ignore_ascii_case(&id) => about,
        Ok(_) | Err(Error::NoConversation { .. } | Error::Ambiguous { .. }) => {
            return Err(not_found(uri));
        }
        Err(error) => return Err(failed(&error)),
    };
    let text = transcript(engine, options, &about, call).map_err(|error| failed(&error))?;
    let text = without_hidden_text(text.ok_or_else(|| not_found(uri))?);
    let contents = ResourceContents::text(text, uri);
    Ok(ReadResourceResult::new(vec![contents.with_mime_type(MARKDOWN)]))
}

fn not_found(uri: &str) -> ErrorData {
    let uri = snippet::echo(uri);
    let message = format!("there is no resource {uri:?}; resources are {TEMPLATE}");
    ErrorData::resource_not_found(message, Some(json!({"uri": uri})))
}

fn resource_of(about: &About) -> Resource {
    let title = match about.title.trim() {
        "" => &about.id,
        title => title,
    };
    let title = without_hidden_text(snippet::line(title, snippet::ECHO));
    let kind = about.source.name();
    let messages = about.turns;
    let plural = if messages == 1 { "" } else { "s" };
    let description = match about.begun.and_then(date::to_minute) {
        Some(begun) => format!("{messages} message{plural} from {begun} UTC on, {kind}"),
        None => format!("{messages} message{plural}, {kind}"),
    };
    let resource = Resource::new(engine::address_of(&about.id), title.clone())
        .with_title(title)
        .with_description(description)
        .with_mime_type(MARKDOWN);
    // Clients that check the form of a time, such as `+10000-01-01`, would refuse the whole list.
    let last = about.last.and_then(date::to_iso);
    let last = last.filter(|iso| iso.starts_with(|first: char| first.is_ascii_digit()));
    let Some(last) = last else { return resource };
    let mut annotations = Annotations::default();
    annotations.last_modified = Some(last);
    resource.with_annotations(annotations)
}

fn failed(error: &Error) -> ErrorData {
    ErrorData::internal_error(Explained(error).to_string(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_export::TestExport;

    #[test]
    fn a_time_beyond_four_digits_is_left_out() {
        for (time, shown) in [(1.7e9, Some("2023-11-14T22:13:20Z")), (253402300800.0, None)] {
            let export = TestExport::of(&["red"]);
            export.connection.execute("UPDATE messages SET create_time = ?1", [time]).unwrap();
            let listed = list(&export.engine, None, &Call::default()).expect("a list");
            let annotations = listed.resources[0].annotations.as_ref();
            assert_eq!(annotations.and_then(|it| it.last_modified.as_deref()), shown);
        }
    }

    #[test]
    fn cursors() {
        for (cursor, offset) in [
            ("50", Some(50)),
            ("0", Some(0)),
            ("200", None),
            ("7", None),
            ("-50", None),
            ("", None),
        ] {
            assert_eq!(offset_of(cursor), offset, "{cursor}");
        }
    }
}
