//! Completion of arguments: titles, ids, projects, roles.

use std::{collections::BTreeSet, time::Duration};

use rmcp::{
    ErrorData,
    model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference},
};

use super::{prompts, resources};
use verbatim_base::model::Stop;
use verbatim_engine::{ConversationHeading, Engine, Error, SourceKind};
use verbatim_text::snippet;

const ROLES: [&str; 4] = ["assistant", "system", "tool", "user"];

/// Completes an argument; the list is empty if there is no proposal.
pub(super) fn complete(
    engine: &Engine,
    request: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let typed = request.argument.value.trim().to_lowercase();
    let name = request.argument.name.as_str();
    let result = match &request.r#ref {
        Reference::Prompt(prompt) if prompts::exists(&prompt.name) => match name {
            "topic" => titles(engine, &typed),
            "project" => projects(engine, &typed),
            "role" => Ok(beginning_with(ROLES.into_iter().map(str::to_owned), &typed)),
            _ => Ok(Vec::new()),
        },
        Reference::Resource(template) if template.uri == resources::TEMPLATE && name == "id" => {
            ids(engine, &typed)
        }
        other => {
            let message = match other {
                Reference::Prompt(prompt) => {
                    format!("there is no prompt {:?}", snippet::echo(&prompt.name))
                }
                Reference::Resource(template) => {
                    let (uri, known) = (snippet::echo(&template.uri), resources::TEMPLATE);
                    format!("there is no template {uri:?} with that argument; there is {known}")
                }
                _ => "only arguments of prompts and of resource templates can be completed"
                    .to_owned(),
            };
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    let mut values = match result {
        Ok(values) => values,
        Err(error) if error.is_not_found() => Vec::new(),
        Err(error) => return Err(resources::failed(&error)),
    };
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let mut completion = CompletionInfo::default();
    completion.has_more = Some(total > values.len());
    completion.total = u32::try_from(total).ok();
    completion.values = values;
    Ok(CompleteResult::new(completion))
}

/// Returns a stop with a short time limit, because the user continues to type.
fn stop() -> Stop {
    Stop::after(Duration::from_secs(2))
}

/// Returns the titles that contain the typed text. Titles that begin with the text come first, newest first.
fn titles(engine: &Engine, typed: &str) -> Result<Vec<String>, Error> {
    let mut titles: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for about in newest_first(engine, &|_, title| title.to_lowercase().contains(typed))? {
        let title = about.title.split_whitespace().collect::<Vec<_>>().join(" ");
        if !title.is_empty() && seen.insert(title.clone()) {
            titles.push(title);
        }
    }
    titles.sort_by_key(|title| !title.to_lowercase().starts_with(typed));
    Ok(titles)
}

/// Returns the ids that begin with the text, or else the ids of titles that contain the text.
fn ids(engine: &Engine, typed: &str) -> Result<Vec<String>, Error> {
    let mut found = newest_first(engine, &|id, _| id.to_lowercase().starts_with(typed))?;
    if found.is_empty() {
        let has_title = |_: &str, title: &str| title.to_lowercase().contains(typed);
        found = newest_first(engine, &has_title)?;
    }
    Ok(found.into_iter().map(|about| about.id).collect())
}

/// Returns the conversations whose id and title are wanted.
fn newest_first(
    engine: &Engine,
    is_wanted: &dyn Fn(&str, &str) -> bool,
) -> Result<Vec<ConversationHeading>, Error> {
    let mut found = engine.find(&stop()).headings(&|_, id, title| is_wanted(id, title))?;
    found.sort_by_key(|about| std::cmp::Reverse(about.last));
    Ok(found)
}

fn projects(engine: &Engine, typed: &str) -> Result<Vec<String>, Error> {
    let archived = engine.find(&stop()).headings(&|source, _, _| source == SourceKind::Archive)?;
    let projects: BTreeSet<String> =
        archived.into_iter().filter_map(|about| about.project).collect();
    Ok(beginning_with(projects.into_iter(), typed))
}

fn beginning_with(words: impl Iterator<Item = String>, typed: &str) -> Vec<String> {
    words.filter(|word| word.to_lowercase().starts_with(typed)).collect()
}

#[cfg(test)]
mod tests {
    use rmcp::model::ArgumentInfo;

    use super::*;
    use crate::test_export::TestExport;

    #[test]
    fn values_are_completed_from_titles_and_ids() {
        let export =
            TestExport::indexed(&["Which colour is the sky over the sea?", "It is green."]);
        let prompt = || Reference::for_prompt("recall");
        for (reference, name, expected) in [
            (prompt(), "topic", &["Title 1", "Title 0"][..]),
            (prompt(), "project", &[]),
            (Reference::for_resource(resources::TEMPLATE), "id", &["1", "0"]),
        ] {
            let request = CompleteRequestParams::new(reference, ArgumentInfo::new(name, ""));
            let result = complete(&export.engine, &request).unwrap();
            assert_eq!(result.completion.values, expected, "{name}");
        }
        let stopped = export.engine.find(&Stop::after(Duration::ZERO)).headings(&|_, _, _| true);
        assert!(stopped.unwrap_err().is_stopped());
    }
}
