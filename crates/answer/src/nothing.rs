//! What to say if an exact search finds nothing, and the other readings of its texts.

use super::words::quoted;
use verbatim_base::call::Call;
use verbatim_base::model::{Matching, Request};
use verbatim_engine::{Engine, QueryReading, Scope};

/// Returns the sentence that no message matches a request, within its filters. If other readings find its
/// words, it says that the words were read as one text.
pub fn sentence(request: &Request, readings: &[QueryReading], is_filtered: bool) -> String {
    let within = if is_filtered { " within these filters" } else { "" };
    let is_one_text = readings.iter().any(|reading| reading.is_of_words(request));
    let as_one_text = if is_one_text { " as one text" } else { "" };
    format!("{}{as_one_text}{within}", none_has(request))
}

/// Returns whether a search by meaning finds messages near to the texts of a request.
pub fn has_nearest(engine: &Engine, request: &Request, scope: &Scope, call: &Call) -> bool {
    request.matching != Matching::Regex && engine.has_nearest(&request.text, scope, call)
}

/// Returns the sentence that no message answers a question.
pub fn no_answer(question: &str) -> String {
    format!("no message answers {}; try other words", quoted(question))
}

/// Returns the phrase that says that no message matches the request.
fn none_has(request: &Request) -> String {
    let Request { text, or, and, not, matching, .. } = request;
    let [or, not, others] = [(or, "or"), (not, "without"), (and, "and")].map(|(texts, word)| {
        texts.iter().map(|text| format!(" {word} {}", quoted(text))).collect::<String>()
    });
    let has_others = !and.is_empty() || !not.is_empty();
    if text.is_empty() && or.is_empty() && has_others {
        let had: Vec<String> = and.iter().map(|text| quoted(text)).collect();
        let verb = if had.is_empty() { "is" } else { "has " };
        return format!("no message {verb}{}{}", had.join(" and "), not);
    }
    let verb = if *matching == Matching::Regex { "matches" } else { "has" };
    format!("no message {verb} {}{or}{others}{not}", quoted(text))
}
