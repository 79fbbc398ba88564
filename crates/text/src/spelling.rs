//! English spelling: British and American forms of a word, and the base forms of an inflected word.

/// Endings of one word in British and in American English. What precedes them has at least three letters.
const ENDINGS: [(&str, &str); 33] = [
    ("ise", "ize"),
    ("ised", "ized"),
    ("ises", "izes"),
    ("iser", "izer"),
    ("isers", "izers"),
    ("ising", "izing"),
    ("isable", "izable"),
    ("isation", "ization"),
    ("isations", "izations"),
    ("yse", "yze"),
    ("ysed", "yzed"),
    ("yses", "yzes"),
    ("yser", "yzer"),
    ("ysers", "yzers"),
    ("ysing", "yzing"),
    ("re", "er"),
    ("res", "ers"),
    ("red", "ered"),
    ("ring", "ering"),
    ("ogue", "og"),
    ("ogues", "ogs"),
    ("ence", "ense"),
    ("ences", "enses"),
    ("enced", "ensed"),
    ("encing", "ensing"),
    ("actice", "actise"),
    ("acticed", "actised"),
    ("acticing", "actising"),
    ("fil", "fill"),
    ("fils", "fills"),
    ("rol", "roll"),
    ("lful", "llful"),
    ("lment", "llment"),
];

/// Endings before which British English doubles an `l`.
const AFTER_L: [&str; 9] = ["ed", "ing", "ings", "er", "ers", "or", "ors", "ery", "ous"];

/// Words with two spellings that follow no rule; endings may follow.
const BEGINNINGS: [(&str, &str); 14] = [
    ("grey", "gray"),
    ("odour", "odor"),
    ("programme", "program"),
    ("judgement", "judgment"),
    ("acknowledgement", "acknowledgment"),
    ("mould", "mold"),
    ("plough", "plow"),
    ("sceptic", "skeptic"),
    ("pyjama", "pajama"),
    ("cosy", "cozy"),
    ("aluminium", "aluminum"),
    ("jewellery", "jewelry"),
    ("ageing", "aging"),
    ("tyre", "tire"),
];

/// The minimum number of letters of a word in which `ae` or `oe` may stand for `e`.
const LEAST_WITH_LIGATURE: usize = 6;

fn is_vowel(letter: char) -> bool {
    matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u' | 'y')
}

/// Returns the spellings that a lower-case English word would have in British or American English, if it is
/// a word there. Most of them are no words.
pub fn variants(word: &str) -> Vec<String> {
    if word.len() < 4 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (british, american) in ENDINGS {
        found.extend(with_ending(word, british, american));
        found.extend(with_ending(word, american, british));
    }
    for ending in AFTER_L {
        let double = format!("ll{ending}");
        let single = &double[1..];
        // Words of one syllable have the same letters on both sides: filled, called.
        let start = word.strip_suffix(&double).or_else(|| word.strip_suffix(single));
        if start.is_some_and(|start| start.chars().filter(|c| is_vowel(*c)).count() > 1) {
            let is_double = word.ends_with(&double);
            let [from, to] = if is_double { [&double, single] } else { [single, &double] };
            found.extend(with_ending(word, from, to));
        }
    }
    for (british, american) in BEGINNINGS {
        for (from, to) in [(british, american), (american, british)] {
            found.extend(word.strip_prefix(from).map(|rest| format!("{to}{rest}")));
        }
    }
    let mut within = vec![("our", "or", 3), ("or", "our", 3)];
    if word.len() >= LEAST_WITH_LIGATURE {
        within.extend([("ae", "e", 0), ("e", "ae", 0), ("oe", "e", 0), ("e", "oe", 0)]);
    }
    for (from, to, least) in within {
        for (at, _) in word.match_indices(from).filter(|(at, _)| *at >= least) {
            found.push(format!("{}{to}{}", &word[..at], &word[at + from.len()..]));
        }
    }
    // The words of BEGINNINGS and of the rules may coincide.
    found.retain(|other| other != word);
    found.sort_unstable();
    found.dedup();
    found
}

fn with_ending(word: &str, from: &str, to: &str) -> Option<String> {
    let start = word.strip_suffix(from)?;
    if start.len() >= 3 { Some(format!("{start}{to}")) } else { None }
}

/// Returns the lower-case words that differ from a lower-case word by one typing error (one extra, missing or wrong
/// letter or hyphen, or two swapped letters), by a letter that is written as two, or by British or American
/// spelling. Most of them are no words.
pub fn slips(word: &str) -> Vec<String> {
    const SPELLED: [(&str, &str); 4] = [("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")];
    const ALPHABETS: [&str; 3] = [
        "abcdefghijklmnopqrstuvwxyz-",
        "абвгдежзийклмнопрстуфхцчшщъыьэюяё-",
        "αβγδεζηθικλμνξοπρσςτυφχψω-",
    ];

    let mut found = variants(word);
    for (from, to) in SPELLED.into_iter().flat_map(|(one, two)| [(one, two), (two, one)]) {
        found.extend(word.contains(from).then(|| word.replace(from, to)));
    }
    let letters: Vec<char> = word.chars().collect();
    let alphabet = ALPHABETS.iter().find(|all| letters.iter().any(|letter| all.contains(*letter)));
    let alphabet: Vec<char> = alphabet.map_or("", |all| *all).chars().collect();
    for at in 0..=letters.len() {
        let before = &letters[..at];
        let mut ends: Vec<Vec<char>> = Vec::new();
        ends.extend(alphabet.iter().map(|letter| [&[*letter], &letters[at..]].concat()));
        if let [_, after @ ..] = &letters[at..] {
            ends.push(after.to_vec());
            ends.extend(alphabet.iter().map(|letter| [&[*letter], after].concat()));
        }
        if let [one, other, after @ ..] = &letters[at..] {
            ends.push([&[*other, *one], after].concat());
        }
        found.extend(ends.into_iter().map(|end| before.iter().chain(&end).collect::<String>()));
    }
    found.retain(|other| other != word);
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns a lower-case English word, and the words of which it may be an inflected form.
pub fn base_forms(word: &str) -> Vec<String> {
    let mut forms = vec![word.to_owned()];
    for (ending, bases) in [
        ("s", &[""][..]),
        ("es", &[""]),
        ("ies", &["y"]),
        ("ed", &["", "e"]),
        ("ied", &["y"]),
        ("ing", &["", "e"]),
        ("er", &["", "e"]),
        ("ers", &["", "e"]),
        ("est", &["", "e"]),
        ("ly", &["", "le"]),
        ("ily", &["y"]),
        ("ness", &[""]),
    ] {
        let Some(start) = word.strip_suffix(ending).filter(|start| start.len() >= 3) else {
            continue;
        };
        forms.extend(bases.iter().map(|base| format!("{start}{base}")));
        // The last consonant is doubled before an ending: planned, running.
        let mut last = start.chars().rev();
        let is_double = last.next() == last.next();
        forms.extend(is_double.then(|| start[..start.len() - 1].to_owned()));
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn british_and_american_forms() {
        for (british, american) in [
            ("optimise", "optimize"),
            ("organisations", "organizations"),
            ("analysing", "analyzing"),
            ("colour", "color"),
            ("favourite", "favorite"),
            ("behaviours", "behaviors"),
            ("centre", "center"),
            ("centred", "centered"),
            ("dialogue", "dialog"),
            ("travelled", "traveled"),
            ("modelling", "modeling"),
            ("fulfil", "fulfill"),
            ("enrolment", "enrollment"),
            ("skilful", "skillful"),
            ("defence", "defense"),
            ("licence", "license"),
            ("encyclopaedia", "encyclopedia"),
            ("oestrogen", "estrogen"),
            ("grey", "gray"),
            ("programmes", "programs"),
        ] {
            assert!(variants(british).contains(&american.to_owned()), "{british}");
            assert!(variants(american).contains(&british.to_owned()), "{american}");
        }
        for (word, other) in
            [("filled", "filed"), ("rise", "rize"), ("four", "for"), ("optimise", "optimistic")]
        {
            assert!(!variants(word).contains(&other.to_owned()), "{word}");
        }
        assert!(variants("für").is_empty() && variants("").is_empty());
    }

    #[test]
    fn inflected_words_have_bases() {
        for (word, base) in [
            ("lawyers", "lawyer"),
            ("bakeries", "bakery"),
            ("planned", "plan"),
            ("baking", "bake"),
            ("gently", "gentle"),
        ] {
            assert!(base_forms(word).contains(&base.to_owned()), "{word}");
        }
    }
}
