//! The messages that an exact request misses because their signs only look like those of its texts.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use super::count::Count;
use super::exact::Make;
use super::readings::{QueryReading, ReadingKind};
use crate::{Engine, StoreAddress, source::Scope};
use verbatim_base::call::Call;
use verbatim_base::model::{Matching, Request};
use verbatim_text::loose::{alike, other_looks};
use verbatim_text::matcher::{Matchers, texts};

/// The time limit of the count. If it takes longer, there are more messages than were counted.
const MOST_TIME: Duration = Duration::from_millis(200);

/// The number of messages that are counted.
const MOST: usize = 1_000;

/// The number of texts that are looked for at once.
const MOST_TEXTS: usize = 32;

/// The number of signs that are named.
const MOST_SIGNS: usize = 3;

/// The messages that a request finds if all texts of equal look match, and not as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoreAlike {
    /// The request that finds them too, and how many they are.
    pub reading: QueryReading,
    /// Whether there are more than were counted.
    pub is_cut: bool,
    /// What they have in place of the signs of the request, the most frequent first.
    pub signs: Vec<String>,
}

impl Engine {
    /// Returns how many more messages a request finds if signs of equal look match; `None` if no message can have a
    /// text of equal look. Takes at most 0.2 s.
    pub fn more_alike(&self, request: &Request, scope: &Scope, call: &Call) -> Option<MoreAlike> {
        let is_text = matches!(request.matching, Matching::Literal | Matching::Word);
        if !is_text || request.ignore_accents {
            return None;
        }
        let [any, all, _] = texts(request);
        let typed = [any, all].concat();
        let others: Vec<String> = typed.iter().flat_map(|text| alike(text)).collect();
        let typed = typed.join(" ");
        let call = &call.within(MOST_TIME);
        let has_other = others.chunks(MOST_TEXTS).any(|others| {
            let or = others.to_vec();
            let other = Request { or, matching: Matching::Literal, ..Request::default() };
            self.sources.finds(&other, scope, call).unwrap_or_default()
        });
        // A cluster sends each message that it counts.
        if !has_other || matches!(self.config().db, Some(StoreAddress::Cluster(_))) {
            return None;
        }
        let request = Request { limit: None, ..request.clone() };
        let folded = Request { ignore_accents: true, ..request.clone() };
        let exactly = Matchers::of(&request).ok()?;
        let matchers = Matchers::of(&folded).ok()?;
        let make: Make<'_, _> = &|_, hit| {
            let is_found = exactly.accept(|matcher| {
                matcher.matches_text(&hit.content) || matcher.matches_text(&hit.title)
            });
            if is_found && !exactly.has_only_title(&hit.content, &hit.title)
                || matchers.has_only_title(&hit.content, &hit.title)
            {
                return None;
            }
            let spans = matchers.first_spans(&hit.content, 1);
            let looks = spans.into_iter().flat_map(|span| other_looks(&hit.content[span], &typed));
            Some(looks.collect::<Vec<String>>())
        };
        let mut count = Count::default();
        let mut is_cut = false;
        let mut signs: HashMap<String, usize> = HashMap::new();
        let searched = self.sources.search(&folded, scope, call, make.into(), &mut |looks| {
            if count.messages == MOST {
                is_cut = true;
                return ControlFlow::Break(());
            }
            count.messages += 1;
            looks.into_iter().for_each(|look| *signs.entry(look).or_default() += 1);
            ControlFlow::Continue(())
        });
        is_cut |= searched.is_err() || call.stop.requested();
        let mut signs: Vec<(String, usize)> = signs.into_iter().collect();
        signs.sort_unstable_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
        let signs: Vec<String> = signs.into_iter().map(|(sign, _)| sign).take(MOST_SIGNS).collect();
        let reading = QueryReading {
            kind: ReadingKind::AnyAccents,
            request: folded,
            scope: scope.clone(),
            count,
        };
        (!signs.is_empty()).then_some(MoreAlike { reading, is_cut, signs })
    }
}
