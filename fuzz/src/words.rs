//! Terms, questions and summaries of any text.
//!
//! Input: a question up to a NUL, then texts with a NUL after each.

use verbatim_text::{
    query::Query,
    summary::Summary,
    words::Tokenizer,
};

pub(super) fn run(data: &[u8]) {
    let data = String::from_utf8_lossy(data);
    let (question, texts) = data.split_once('\0').unwrap_or((&data, ""));
    let tokenizer = Tokenizer::default();
    let query = Query::parse(question);
    let terms = tokenizer.question(&query.text);
    assert!(terms.iter().all(|term| !term.is_empty()));
    for phrase in &query.phrases {
        tokenizer.required(phrase);
    }
    let mut messages = Vec::new();
    for (number, text) in texts.split('\0').enumerate() {
        let mut terms = Vec::new();
        tokenizer.tokenize(text, |term| terms.push(term.to_owned()));
        assert!(terms.iter().all(|term| !term.is_empty()));
        query.allows(text);
        messages.push((if number % 2 == 0 { "user" } else { "assistant" }, text));
    }
    let summary = Summary::of_messages(&messages);
    assert!(summary.text.chars().count() <= 300, "{summary:?}");
    assert!(summary.title.chars().count() <= 70, "{summary:?}");
}
