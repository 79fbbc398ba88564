//! Vectors and caches of an index that were changed: a ranked answer or an error.
//!
//! Input: a byte that chooses the question, then the changes (`damage`).

use std::path::Path;

use verbatim_base::call::Call;
use verbatim_engine::{Engine, Question};

use super::damage::Original;

const QUESTIONS: [&str; 3] = ["rare things", "和平", "q7x"];

thread_local! {
    static ORIGINAL: Original = Original::new(|engine, resources| {
        for source in engine.sources() {
            let enriched = source.enrich(resources, &Call::default(), &mut |_| {});
            enriched.expect("vectors");
        }
    });
}

fn ask(engine: &Engine, question: &str) {
    let question =
        Question { concepts: vec![question.to_owned()], limit: 5, ..Question::default() };
    if let Ok(ranking) = engine.rank(&question, &Call::default()) {
        assert!(ranking.items.iter().all(|item| (0.0..=1.0).contains(&item.score)));
    }
    drop(engine.rank_conversations(&question, &Call::default()));
}

/// Returns whether a file holds vectors or a manifest of them. Term indexes are tantivy's:
/// what it says of damage in them is not ours to test.
fn is_ours(file: &Path) -> bool {
    file.to_string_lossy().contains("vectors")
}

pub(super) fn run(data: &[u8]) {
    let Some((text, changes)) = data.split_first() else { return };
    ORIGINAL.with(|original| {
        let question = QUESTIONS[usize::from(*text) % QUESTIONS.len()];
        ask(&original.changed(changes, is_ours), question);
    });
}
