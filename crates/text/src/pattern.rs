//! The parsed text of a query, shared by the matcher, the gram query and wildcard expansion.

/// The text of a query, split at its LIKE wildcards: `%` matches any characters, `_` exactly one character.
#[derive(Clone, Debug)]
pub struct Pattern<'t> {
    /// The whole text, with its wildcards.
    pub text: &'t str,
    /// The parts between `%` that are not empty.
    pub segments: Vec<PatternPart<'t>>,
}

/// A part of a pattern between two `%`.
#[derive(Clone, Debug)]
pub struct PatternPart<'t> {
    /// The runs of characters between `_`. A run is empty if a `_` begins or ends the segment, or follows
    /// another `_`.
    pub runs: Vec<&'t str>,
}

impl Pattern<'_> {
    /// Splits a text at its wildcards. Every text is a valid pattern.
    pub fn parse(text: &str) -> Pattern<'_> {
        let segments = text
            .split('%')
            .filter(|segment| !segment.is_empty())
            .map(|segment| PatternPart { runs: segment.split('_').collect() })
            .collect();
        Pattern { text, segments }
    }

    /// Makes a pattern without wildcards, which matches only the text itself.
    pub fn literal(text: &str) -> Pattern<'_> {
        let segments = match text {
            "" => Vec::new(),
            _ => vec![PatternPart { runs: vec![text] }],
        };
        Pattern { text, segments }
    }

    /// Makes a pattern in which one character stands for each that `is_gap` chooses.
    pub fn with_gaps(text: &str, is_gap: impl Fn(char) -> bool) -> Pattern<'_> {
        let mut pattern = Pattern::literal(text);
        for part in &mut pattern.segments {
            part.runs = text.split(&is_gap).collect();
        }
        pattern
    }

    /// Returns the runs that are not empty.
    pub fn runs(&self) -> impl Iterator<Item = &str> {
        self.segments
            .iter()
            .flat_map(|segment| &segment.runs)
            .copied()
            .filter(|run| !run.is_empty())
    }

    /// Returns the runs before and after each gap. A gap is a single `_` between two runs. Every other
    /// wildcard after a run of two characters is a gap too, with an empty second run, if the pattern
    /// requires a further character: then each match has any character after the run.
    pub fn gaps(&self) -> impl Iterator<Item = (&str, &str)> {
        self.segments.iter().enumerate().flat_map(move |(place, segment)| {
            let goes_on = place + 1 < self.segments.len();
            let next = segment.runs.iter().skip(1).map(Some).chain([None]);
            let pairs = segment.runs.iter().zip(next);
            pairs.filter_map(move |(run, next)| match next {
                Some(next) if !run.is_empty() && !next.is_empty() => Some((*run, *next)),
                _ if run.chars().count() == 2 && (next.is_some() || goes_on) => Some((*run, "")),
                _ => None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_split() {
        for (text, segments, runs, gaps) in [
            ("", vec![], vec![], vec![]),
            ("%_%", vec![vec!["", ""]], vec![], vec![]),
            ("ab", vec![vec!["ab"]], vec!["ab"], vec![]),
            (
                "a_b%%c__d_",
                vec![vec!["a", "b"], vec!["c", "", "d", ""]],
                vec!["a", "b", "c", "d"],
                vec![("a", "b")],
            ),
            (
                "ab__c%de%fg",
                vec![vec!["ab", "", "c"], vec!["de"], vec!["fg"]],
                vec!["ab", "c", "de", "fg"],
                vec![("ab", ""), ("de", "")],
            ),
            ("_ab_", vec![vec!["", "ab", ""]], vec!["ab"], vec![("ab", "")]),
            ("a_b_c", vec![vec!["a", "b", "c"]], vec!["a", "b", "c"], vec![("a", "b"), ("b", "c")]),
        ] {
            let pattern = Pattern::parse(text);
            let found: Vec<_> = pattern.segments.iter().map(|segment| &*segment.runs).collect();
            assert_eq!(found, segments, "{text}");
            assert_eq!(pattern.runs().collect::<Vec<_>>(), runs, "{text}");
            assert_eq!(pattern.gaps().collect::<Vec<_>>(), gaps, "{text}");
        }
    }
}
