//! Texts and ids as parts of addresses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What the addresses of indexes in clusters begin with. OpenSearch and Elasticsearch take the same requests.
pub const CLUSTER_PREFIXES: [&str; 2] = ["opensearch+", "elasticsearch+"];

/// The characters that are percent-encoded: all but letters, digits and `-._~`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The ids that browsers would read as steps within a path, even if they are percent-encoded, and
/// the names that replace them in the path of a page.
const STEPS: [(&str, &str); 2] = [(".", "%2E"), ("..", "%2E%2E")];

/// Returns a text with percent-encoding for all characters but letters, digits and `-._~`.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Returns the path of a conversation's page.
pub fn page_path(id: &str) -> String {
    let step = STEPS.iter().find(|(step, _)| *step == id);
    format!("/c/{}", encoded(step.map_or(id, |(_, name)| name)))
}

/// Returns the id for the decoded name in the path of a page.
pub fn id_in_path(name: &str) -> &str {
    STEPS.iter().find(|(_, step)| *step == name).map_or(name, |(id, _)| id)
}
