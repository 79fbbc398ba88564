//! The normal form of a word, stop words, and scripts without spaces.

use std::{borrow::Cow, collections::HashSet, sync::LazyLock};

use super::fold::fold;

/// Returns a word folded, with ASCII for full-width letters, without `'s` and apostrophes.
pub(super) fn normal(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
        return Cow::Borrowed(word);
    }
    let mut normal = String::with_capacity(word.len());
    for character in word.chars() {
        match character {
            '\u{2019}' => normal.push('\''),
            // People often write `е` instead of `ё`.
            'ё' | 'Ё' => normal.push('е'),
            '\u{FF01}'..='\u{FF5E}' => {
                let ascii = u32::from(character) - 0xFF01 + 0x21;
                normal.extend(char::from_u32(ascii).map(|c| c.to_ascii_lowercase()));
            }
            _ => normal.push(fold(character)),
        }
    }
    if normal.contains('\'') {
        if normal.ends_with("'s") {
            normal.truncate(normal.len() - 2);
        }
        normal.retain(|c| c != '\'');
    }
    Cow::Owned(normal)
}

pub(super) fn is_stop_word(word: &str) -> bool {
    STOPS.contains(word)
}

/// English words with little meaning of their own. Their apostrophes are left out.
const STOP_WORDS: &str = "a about above after again against ain all am an and any are aren arent as \
    at be because been before being below between both but by can cannot cant could couldn couldnt d \
    did didn didnt do does doesn doesnt doing don done dont down during each few for from further get \
    got had hadn hadnt has hasn hasnt have haven havent having he hed hell her here hers herself hes \
    him himself his how hows i id if ill im in into is isn isnt it its itself ive just let lets ll m \
    ma me might more most must my myself no nor not now o of off on once only or other ought our ours \
    ourselves out over own re s same shall shan shant she shes should shouldn shouldnt so some such t \
    than that thats the their theirs them themselves then there theres these they theyd theyll theyre \
    theyve this those through to too u under until up upon us ve very was wasn wasnt we wed well were \
    weren werent weve what whats when whens where wheres which while who whom whos whose why whys will \
    with won wont would wouldn wouldnt y you youd youll your youre yours yourself yourselves youve";

static STOPS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| STOP_WORDS.split_ascii_whitespace().collect());

/// Returns whether a character belongs to a script that puts no spaces between words, or that
/// attaches particles to words.
pub fn is_unspaced(character: char) -> bool {
    matches!(u32::from(character),
        0x0E01..=0x0EFF | 0x1000..=0x109F | 0x1100..=0x11FF | 0x1780..=0x17FF | 0x2E80..=0x2FDF
        | 0x3005..=0x3007 | 0x3041..=0x3096 | 0x309D..=0x309F | 0x30A1..=0x30FA | 0x30FC..=0x30FF
        | 0x3105..=0x318F | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xA960..=0xA97F
        | 0xAC00..=0xD7FF | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x20000..=0x3FFFF)
}
