//! The parts of a ChatGPT message that are only in its metadata: the files, the text that the message replies
//! to, the sources of an answer, the queries of a search, the output and charts of a program, titles.

use std::borrow::Cow;

use crate::import::fields::{names, with_files};
use crate::import::json::{Damage, Raw, Value};
use crate::import::sources;
use crate::import::tool::lines;
use verbatim_text::screen::shown;

#[derive(Default)]
pub(super) struct Metadata<'a> {
    pub(super) attachments: Option<Value>,
    pub(super) names: Vec<String>,
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) widget: Option<Cow<'a, str>>,
    pub(super) charts: Vec<String>,
    /// The custom instructions of the user. Exports of 2023 have them only here.
    pub(super) instructions: Option<String>,
    pub(super) is_hidden: bool,
    marked: [Option<Cow<'a, str>>; 2],
    /// The titles of a picture, of a report, of reasoning and of a document, and the plan of the report.
    titles: [Option<Cow<'a, str>>; 5],
    queries: Vec<String>,
    output: String,
    /// Lists of the pages and files that an answer cites or that a search found.
    sources: [Option<Raw<'a>>; 5],
}

impl<'a> Metadata<'a> {
    pub(super) fn read(metadata: Raw<'a>) -> Result<Metadata<'a>, Damage> {
        let [
            list,
            model,
            sdk,
            replied_to,
            canvas,
            program,
            context,
            searches,
            old_searches,
            picture,
            research,
            plan,
            reasoning,
            hidden,
            sources @ ..,
        ] = metadata.last_fields([
            "attachments",
            "model_slug",
            "chatgpt_sdk",
            "targeted_reply",
            "canvas",
            "aggregate_result",
            "user_context_message_data",
            "search_model_queries",
            "search_queries",
            "image_gen_title",
            "async_task_title",
            "async_task_prompt",
            "reasoning_title",
            "is_visually_hidden_from_conversation",
            "content_references",
            "citations",
            "search_result_groups",
            "image_results",
            "_cite_metadata",
        ])?;
        let selected = value_at(canvas, &["selection_metadata", "selection_text"])?;
        let instructions = context.map(Raw::value).transpose()?.map(|context| {
            lines(["about_user_message", "about_model_message"].map(|it| context.str(it)))
        });
        let instructions = instructions.filter(|text| !text.trim().is_empty());
        let program = program.map(Raw::value).transpose()?.unwrap_or(Value::Null);
        let messages = program.at("messages").items();
        let charts = messages.iter().filter(|it| it.str("message_type") == "image");
        let queries = [value_at(searches, &["queries"])?, old_searches].into_iter().flatten();
        let queries: Vec<Value> = queries.map(Raw::value).collect::<Result<_, _>>()?;
        let queries = queries.iter().flat_map(Value::items);
        let queries = queries.map(|query| query.as_str().unwrap_or_else(|| query.str("q")));
        let title = value_at(canvas, &["title"])?;
        Ok(Metadata {
            names: list
                .map(|list| names(list, &["name", "file_name"]))
                .transpose()?
                .unwrap_or_default(),
            attachments: list.map(Raw::value).transpose()?,
            model: model.and_then(Raw::text),
            widget: value_at(sdk, &["widget_state"])?.and_then(Raw::string),
            charts: charts.map(|chart| chart.str("image_url").to_owned()).collect(),
            instructions,
            is_hidden: hidden.is_some_and(Raw::is_true),
            marked: [replied_to, selected].map(|marked| marked.and_then(Raw::string)),
            titles: [picture, research, plan, reasoning, title]
                .map(|title| title.and_then(Raw::string)),
            queries: queries.map(str::to_owned).collect(),
            output: output(&program, messages),
            sources,
        })
    }

    /// Returns a message's text with the parts from the metadata.
    pub(super) fn add_to_text(&self, text: String) -> String {
        let output = Some(&*self.output).filter(|_| text.trim().is_empty()).unwrap_or_default();
        let charts = vec!["[image]"; self.charts.len()].join("\n");
        let is_new = |more: &&str| !text.contains(*more);
        let mut more = vec![output.to_owned(), charts];
        let titles = self.titles.iter().flatten().map(AsRef::as_ref).filter(is_new);
        more.extend(titles.map(str::to_owned));
        let queries = self.queries.iter().map(String::as_str).filter(is_new);
        more.extend(queries.map(|query| format!("query: {query}")));
        let more = lines(more);
        let mut text = if more.is_empty() { text } else { lines([text.trim_end(), &more]) };
        for marked in self.marked.iter().flatten().filter(|marked| !marked.trim().is_empty()) {
            text = format!("> {}\n\n{text}", marked.trim().replace('\n', "\n> "));
        }
        let lists: Vec<Value> =
            self.sources.iter().flatten().flat_map(|list| list.value()).collect();
        sources::append_sources(with_files(text, &self.names), &lists)
    }
}

/// Returns what a program wrote, and the error that ended it.
fn output(program: &Value, messages: &[Value]) -> String {
    let streams = messages.iter().filter(|it| it.str("message_type") == "stream");
    let mut output: String = streams.map(|it| it.str("text")).collect();
    if let Some(error) = program.get("in_kernel_exception") {
        let traceback = error.at("traceback").items();
        let traceback = traceback.iter().filter_map(Value::as_str);
        output = lines([output.trim_end(), error.str("name")].into_iter().chain(traceback));
    }
    shown(output.trim_end()).into_owned()
}

/// Returns the value at a path of names within objects.
fn value_at<'a>(raw: Option<Raw<'a>>, path: &[&str]) -> Result<Option<Raw<'a>>, Damage> {
    path.iter().try_fold(raw, |raw, name| match raw {
        Some(raw) => Ok(raw.last_fields([name])?[0]),
        None => Ok(None),
    })
}
