//! An index whose files were changed is not used: the answer is that of `LIKE`.
//!
//! Input: a byte that chooses the search text, then the changes (`damage`).

use std::ops::ControlFlow;

use verbatim_base::{
    call::Call,
    model::{Hit, Request},
};
use verbatim_engine::Engine;

use super::damage::Original;

const TEXTS: [&str; 6] = ["the", "rare 7", "", "q_x", "%", "和"];

thread_local! {
    static ORIGINAL: (Original, Vec<Vec<Hit<'static>>>) = {
        let original = Original::new(|_, _| {});
        let live = original.engine("none");
        let answers = TEXTS.iter().map(|text| ask(&live, text)).collect();
        (original, answers)
    };
}

fn ask(engine: &Engine, text: &str) -> Vec<Hit<'static>> {
    let mut hits = Vec::new();
    let request = Request { text: text.to_owned(), ..Request::default() };
    let plan = engine.exact(&request, &Call::default(), &mut |hit| {
        hits.push(hit);
        ControlFlow::Continue(())
    });
    plan.expect("an answer");
    hits
}

pub(super) fn run(data: &[u8]) {
    let Some((text, changes)) = data.split_first() else { return };
    ORIGINAL.with(|(original, answers)| {
        let number = usize::from(*text) % TEXTS.len();
        let found = ask(&original.changed(changes, |_| true), TEXTS[number]);
        assert_eq!(found, answers[number], "{:?}", TEXTS[number]);
    });
}
