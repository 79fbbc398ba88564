//! The parts of a ChatGPT message that are only in its metadata: the files, the text that the message replies
//! to, the sources of an answer, the charts of a program, the title of a picture.

use std::borrow::Cow;

use crate::import::{
    fields::{names, with_files},
    json::{Damage, Raw, Value},
    sources,
    tool::joined,
};

#[derive(Default)]
pub(super) struct Metadata<'a> {
    pub(super) attachments: Option<Value>,
    /// The names of the attachments.
    pub(super) names: Vec<String>,
    pub(super) model: Option<Cow<'a, str>>,
    /// The state of a widget, such as a report.
    pub(super) widget: Option<Cow<'a, str>>,
    /// The pointers of the charts that a program drew.
    pub(super) charts: Vec<String>,
    /// The custom instructions of the user. Exports of 2023 have them only here.
    pub(super) instructions: Option<String>,
    /// The texts that the user replied to, or selected before writing the message.
    marked: [Option<Cow<'a, str>>; 2],
    /// The titles of a picture and of a report that the model made.
    titles: [Option<Cow<'a, str>>; 2],
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
            picture,
            research,
            sources @ ..,
        ] = metadata.pick([
            "attachments",
            "model_slug",
            "chatgpt_sdk",
            "targeted_reply",
            "canvas",
            "aggregate_result",
            "user_context_message_data",
            "image_gen_title",
            "async_task_title",
            "content_references",
            "citations",
            "search_result_groups",
            "image_results",
            "_cite_metadata",
        ])?;
        let selected = within(canvas, &["selection_metadata", "selection_text"])?;
        let instructions = context.map(Raw::value).transpose()?.map(|context| {
            joined("\n", &["about_user_message", "about_model_message"].map(|it| context.str(it)))
        });
        let instructions = instructions.filter(|text| !text.trim().is_empty());
        let program = program.map(Raw::value).transpose()?.unwrap_or(Value::Null);
        let messages = program.get("messages").map(Value::items).unwrap_or_default();
        let charts = messages.iter().filter(|it| it.str("message_type") == "image");
        Ok(Metadata {
            names: list
                .map(|list| names(list, &["name", "file_name"]))
                .transpose()?
                .unwrap_or_default(),
            attachments: list.map(Raw::value).transpose()?,
            model: model.and_then(Raw::text),
            widget: within(sdk, &["widget_state"])?.and_then(Raw::string),
            charts: charts.map(|chart| chart.str("image_url").to_owned()).collect(),
            instructions,
            marked: [replied_to, selected].map(|marked| marked.and_then(Raw::string)),
            titles: [picture, research].map(|title| title.and_then(Raw::string)),
            sources,
        })
    }

    /// Returns a message's text with the parts from the metadata.
    pub(super) fn completed(&self, text: String) -> String {
        let charts = vec!["[image]"; self.charts.len()].join("\n");
        let titles = self.titles.each_ref().map(|title| title.as_deref().unwrap_or_default());
        let more = joined("\n", &[&charts, titles[0], titles[1]]);
        let mut text = if more.is_empty() { text } else { joined("\n", &[text.trim_end(), &more]) };
        for marked in self.marked.iter().flatten().filter(|marked| !marked.trim().is_empty()) {
            text = format!("> {}\n\n{text}", marked.trim().replace('\n', "\n> "));
        }
        let lists: Vec<Value> =
            self.sources.iter().flatten().flat_map(|list| list.value()).collect();
        sources::below(with_files(text, &self.names), &lists)
    }
}

/// Returns the value at a path of names within objects.
fn within<'a>(raw: Option<Raw<'a>>, path: &[&str]) -> Result<Option<Raw<'a>>, Damage> {
    path.iter().try_fold(raw, |raw, name| match raw {
        Some(raw) => Ok(raw.pick([name])?[0]),
        None => Ok(None),
    })
}
