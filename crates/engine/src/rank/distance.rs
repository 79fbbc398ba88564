//! Which messages of a ranked answer are far from the question.

use super::question::Match;
use crate::scoring::Concept;
use verbatim_text::words::Tokenizer;

/// The share of the first score below which a message without a word of the question is far.
const NEAR_SHARE: f64 = 0.4;

/// Sets `is_far` of the last messages: those that have a score far below the first message's, and no word of
/// the question in their text or title. The messages are sorted, best first.
pub(super) fn mark(matches: &mut [Match], concepts: &[Concept]) {
    let tokenizer = Tokenizer::default();
    let mut terms: Vec<String> =
        concepts.iter().flat_map(|it| tokenizer.question(&it.query.text)).collect();
    terms.extend(concepts.iter().flat_map(|it| &it.terms).map(|term| term.term.clone()));
    let least = NEAR_SHARE * matches.first().map_or(0.0, |first| first.score);
    for it in matches.iter_mut().rev() {
        if it.score >= least || it.is_title_only {
            break;
        }
        let mut has_word = false;
        for text in [&it.hit.content, &it.hit.title] {
            tokenizer.tokenize(text, |term| has_word |= terms.iter().any(|known| known == term));
        }
        if has_word {
            break;
        }
        it.is_far = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Question, TestExport};
    use verbatim_base::call::Call;

    #[test]
    fn what_is_far_has_a_low_score_and_no_word_of_the_question() {
        let (soup, turtle) = ("green soup with bread", "turtles in a reef");
        let export = TestExport::indexed(&[soup, turtle]);
        let known = |content: &str| {
            let concepts = vec![content.to_owned()];
            let question = Question { concepts, mode: Mode::Text, limit: 1, ..Question::default() };
            export.engine.rank(&question, &Call::default()).unwrap().items.remove(0)
        };
        let known = [(soup, known(soup)), (turtle, known(turtle))];
        let found = |items: &[(&str, f64)]| -> Vec<bool> {
            let matched = |(content, score): &(&str, f64)| {
                let (_, known) = known.iter().find(|(text, _)| text == content).unwrap();
                Match { score: *score, ..known.clone() }
            };
            let mut found: Vec<Match> = items.iter().map(matched).collect();
            mark(&mut found, &[Concept::new("the turtle")]);
            found.iter().map(|it| it.is_far).collect()
        };
        assert_eq!(found(&[(turtle, 0.5), (soup, 0.21), (soup, 0.19)]), [false, false, true]);
        // A message above one with a word of the question is not far either.
        let items = [(turtle, 0.5), (soup, 0.19), (turtle, 0.18), (soup, 0.17)];
        assert_eq!(found(&items), [false, false, false, true]);
        assert_eq!(found(&[(soup, 0.5), (soup, 0.4)]), [false, false]);
        assert!(found(&[]).is_empty());
    }
}
