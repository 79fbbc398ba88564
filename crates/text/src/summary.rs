//! Summarises a conversation by its own sentences: usually one or two, or several short ones. Also makes
//! titles.
//!
//! The first sentence is the one nearest to the centroid of all sentences. Rare words have more weight. Each
//! further sentence gets a penalty for repeating the chosen sentences (maximal marginal relevance, Carbonell
//! and Goldstein 1998). The method works for all languages: sentences end where Unicode's rules say, and in
//! Chinese and Japanese each pair of consecutive characters counts as a word.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use unicode_segmentation::UnicodeSegmentation;

use super::{up_to, words::Tokenizer};

const MIN_CHARACTERS: usize = 160;

const MAX_CHARACTERS: usize = 300;

/// The rule for joining short sentences of a paragraph into a passage.
#[derive(Clone, Copy)]
struct Joining {
    below: usize,
    up_to: usize,
}

const PASSAGES: Joining = Joining { below: 80, up_to: 149 };

const SINGLE_SENTENCES: Joining = Joining { below: 0, up_to: 0 };

const MAX_TITLE: usize = 70;

/// The number of messages that are read, from the start of the conversation.
pub const TURNS: usize = 24;

/// The number of bytes that are read of each message.
pub const BYTES_READ: usize = 2_000;

/// The weight of a term that occurs in the summary and not in the title.
pub const SUMMARY_WEIGHT: f32 = 0.8;

/// The maximum number of candidate sentences. Later sentences are hardly ever chosen, but take as much time.
const MAX_SENTENCES: usize = 64;

const USER_FACTOR: f32 = 1.25;

/// The factor for each sentence further on, because conversations usually state their topic early.
const LATER_FACTOR: f32 = 0.985;

/// The penalty for repeating a chosen sentence. It is multiplied by the cosine of the two sentences.
const REPETITION_PENALTY: f32 = 0.6;

const GREETING_WORDS: &str = "hi hello hey there dear thanks thank you so much very sure \
    certainly absolutely of course great good question morning evening afternoon day ok okay yes no welcome \
    youre please sorry got it perfect awesome nice cool hallo danke bonjour merci hola \
    gracias 你好 您好 谢谢";

static GREETINGS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| GREETING_WORDS.split_ascii_whitespace().collect());

/// A message, in reading order.
#[derive(Clone, Copy, Debug)]
pub struct SummaryTurn<'a> {
    /// Whether the user wrote the turn.
    pub by_user: bool,
    /// The text of the message.
    pub text: &'a str,
}

struct Sentence {
    text: String,
    /// The numbers of the sentence's words, ascending, and their weights.
    words: Vec<(usize, f32)>,
    by_user: bool,
}

/// Returns a summary of 160 to 300 characters, or less if the conversation has less text. The summary is
/// empty if the conversation has only code, data and greetings.
pub fn summary(turns: &[SummaryTurn<'_>]) -> String {
    let sentences = weighted(sentences(turns, PASSAGES));
    let words = sentences.iter().flat_map(|sentence| &sentence.words);
    let count = words.clone().map(|(word, _)| word + 1).max().unwrap_or_default();
    let mut centroid = vec![0.0_f32; count];
    for (word, weight) in words {
        centroid[*word] += weight;
    }
    let length = centroid.iter().map(|weight| weight * weight).sum::<f32>().sqrt();
    let score = |(at, sentence): (usize, &Sentence)| {
        let near: f32 = sentence.words.iter().map(|(word, weight)| weight * centroid[*word]).sum();
        let by = if sentence.by_user { USER_FACTOR } else { 1.0 };
        near / length.max(f32::MIN_POSITIVE) * by * LATER_FACTOR.powi(at as i32)
    };
    let scores: Vec<f32> = sentences.iter().enumerate().map(score).collect();
    let best = |score: &dyn Fn(usize) -> Option<f32>| {
        let scored = (0..sentences.len()).filter_map(|at| Some((at, score(at)?)));
        // The first of equally good sentences wins.
        scored.fold(None, |best: Option<(usize, f32)>, (at, score)| match best {
            Some((_, most)) if most >= score => best,
            _ => Some((at, score)),
        })
    };
    let Some((first, _)) = best(&|at| Some(scores[at])) else { return String::new() };
    let characters = |at: usize| sentences[at].text.chars().count();
    let mut chosen = vec![first];
    let mut length = characters(first);
    while length < MIN_CHARACTERS {
        let next = best(&|at| {
            let together = length + 1 + characters(at);
            if chosen.contains(&at) || together > MAX_CHARACTERS {
                return None;
            }
            let like = |other: &usize| cosine(&sentences[*other].words, &sentences[at].words);
            let repeated = chosen.iter().map(like).fold(0.0, f32::max);
            let enough = if together >= MIN_CHARACTERS { 0.1 } else { 0.0 };
            // A near copy of a chosen sentence is never chosen.
            (repeated < 0.9).then(|| scores[at] - REPETITION_PENALTY * repeated + enough)
        });
        let Some((next, _)) = next else { break };
        length += 1 + characters(next);
        chosen.push(next);
    }
    chosen.sort_unstable();
    let mut summary = String::new();
    for at in chosen {
        append_sentence(&mut summary, &sentences[at].text);
    }
    summary
}

/// Returns the title and the summary of a conversation. `messages` are the roles and texts of its first
/// messages in reading order. The title is empty unless `is_untitled`.
pub fn of_messages(messages: &[(&str, &str)], is_untitled: bool) -> (String, String) {
    // Tool outputs and system messages are left out, because they seldom state the topic of a conversation.
    let spoken = messages.iter().filter(|(role, _)| !["tool", "system"].contains(role));
    let turns: Vec<SummaryTurn<'_>> =
        spoken.map(|(role, text)| SummaryTurn { by_user: *role != "assistant", text }).collect();
    let title = if is_untitled { title(&turns) } else { String::new() };
    (title, summary(&turns))
}

/// Returns the hash of a term of a title or a summary.
pub fn term_hash(term: &str) -> u32 {
    crc32fast::hash(term.as_bytes())
}

/// Returns the hashes of the terms of a title or a summary.
pub fn term_hashes(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.question(text).iter().map(|term| term_hash(term)).collect()
}

/// Returns a title for an untitled conversation: the beginning of the first meaningful sentence of the user,
/// or else of any author.
pub fn title(turns: &[SummaryTurn<'_>]) -> String {
    let sentences = sentences(turns, SINGLE_SENTENCES);
    let first = sentences.iter().find(|(_, by_user)| *by_user).or(sentences.first());
    let text = first.map_or("", |(text, _)| text.as_str());
    truncate(text, MAX_TITLE).trim_end_matches(['.', '。', ' ', ':', '：']).to_owned()
}

/// Cuts a long text at the end of a word and adds an ellipsis.
fn truncate(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let (last, _) = text.char_indices().nth(most - 1).unwrap_or((end, ' '));
    let head = &text[..last];
    let head = match head.rfind(char::is_whitespace) {
        Some(space) if space > head.len() / 2 => &head[..space],
        _ => head,
    };
    format!("{}…", head.trim_end_matches([' ', ',', ';', '，', '、']))
}

/// Returns the candidate sentences, and whether the user wrote each sentence. Joins short sentences of a
/// paragraph.
fn sentences(turns: &[SummaryTurn<'_>], joining: Joining) -> Vec<(String, bool)> {
    let mut all: Vec<(String, bool)> = Vec::new();
    let mut known: HashSet<String> = HashSet::new();
    for turn in turns.iter().take(TURNS) {
        for block in prose(up_to(turn.text, BYTES_READ)) {
            let mut is_open = false;
            for sentence in block.unicode_sentences() {
                let text = plain_sentence(sentence)
                    .filter(|text| says_something(text, &distinct_words(text)));
                let Some(text) = text.filter(|text| known.insert(text.clone())) else {
                    is_open = false;
                    continue;
                };
                let text = truncate(&text, MAX_CHARACTERS);
                let length = text.chars().count();
                let last = all.last_mut().filter(|_| is_open).filter(|(last, _)| {
                    let before = last.chars().count();
                    before < joining.below && before + 1 + length <= joining.up_to
                });
                is_open = true;
                if let Some((last, _)) = last {
                    append_sentence(last, &text);
                } else if all.len() == MAX_SENTENCES {
                    return all;
                } else {
                    all.push((text, turn.by_user));
                }
            }
        }
    }
    all
}

fn append_sentence(text: &mut String, sentence: &str) {
    if !text.is_empty() && !text.ends_with(['。', '！', '？']) {
        text.push(' ');
    }
    text.push_str(sentence);
}

fn prose(text: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        let marker = ["```", "~~~"].into_iter().find(|marker| trimmed.starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            _ => {}
        }
        let is_listed = without_bullet(trimmed).len() < trimmed.len();
        if fence.is_some() || marker.is_some() || trimmed.is_empty() || !is_prose(line, trimmed) {
            blocks.push(String::new());
            continue;
        }
        if is_listed || trimmed.starts_with('#') {
            blocks.push(String::new());
        }
        let block = blocks.last_mut().expect("one at the least");
        if !block.is_empty() {
            block.push(' ');
        }
        block.push_str(without_bullet(trimmed));
        if is_listed || trimmed.starts_with('#') {
            blocks.push(String::new());
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

fn is_prose(line: &str, trimmed: &str) -> bool {
    const CODE: [&str; 24] = [
        "at ",
        "File \"",
        "Traceback",
        "$ ",
        "> ",
        ">>>",
        "//",
        "/*",
        "* @",
        "#include",
        "#!",
        "import ",
        "from ",
        "def ",
        "fn ",
        "let ",
        "const ",
        "var ",
        "return ",
        "SELECT ",
        "diff ",
        "@@",
        "|",
        "<",
    ];
    let begins_like_code = CODE.iter().any(|start| trimmed.starts_with(start));
    let ends_like_code = trimmed.ends_with(['{', '}', ';', '\\', '[', '|', '>']);
    let is_indented = line.starts_with("    ") || line.starts_with('\t');
    // A sentence may begin with "from" or "let" or end with a bracket, but it has few symbols.
    let is_wordy = trimmed.ends_with(['.', '!', '?', '。', '！', '？']) && symbols(trimmed) < 0.04;
    let is_code = begins_like_code || ends_like_code || (is_indented && symbols(trimmed) > 0.03);
    let is_log = trimmed.starts_with(|c: char| c.is_ascii_digit() || c == '[')
        && ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].iter().any(|level| trimmed.contains(level));
    (!is_code || is_wordy) && !is_log && symbols(trimmed) < 0.1
}

fn symbols(text: &str) -> f32 {
    /// Whether each ASCII character is rare in prose.
    const ODD: [bool; 128] = {
        let (mut odd, mut at) = ([false; 128], 0);
        let characters = b"{}[]()<>=;|\\/_$#@&^~`+*%\"";
        while at < characters.len() {
            odd[characters[at] as usize] = true;
            at += 1;
        }
        odd
    };

    let odd = text.bytes().filter(|byte| ODD.get(usize::from(*byte)) == Some(&true)).count();
    odd as f32 / text.chars().count().max(1) as f32
}

/// Returns a line without the bullet or number of a list item, or the `#` of a heading.
fn without_bullet(line: &str) -> &str {
    let bare = line.trim_start_matches(['#', '-', '*', '•', '+', '>']);
    if bare.len() < line.len() && bare.starts_with(char::is_whitespace) {
        return bare.trim_start();
    }
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = digits.len() < line.len() && line.len() - digits.len() <= 3;
    match digits.strip_prefix(['.', ')']) {
        Some(rest) if is_number && rest.starts_with(' ') => rest.trim_start(),
        _ => line,
    }
}

/// Returns a sentence on one line, without Markdown's emphasis and without a leading greeting; `None` if the
/// rest is empty.
fn plain_sentence(sentence: &str) -> Option<String> {
    let text: String = sentence.replace("**", "").replace('`', "");
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let text = words.join(" ");
    let text = match text.split_once([',', '!', '，', '！']) {
        Some((head, rest)) if is_greeting(head) && !rest.trim().is_empty() => rest.trim(),
        _ => text.as_str(),
    };
    (!text.is_empty()).then(|| text.to_owned())
}

fn is_greeting(text: &str) -> bool {
    let bare = |word: &str| {
        let letters = word.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect::<String>()
    };
    text.split_whitespace()
        .map(bare)
        .all(|word| word.is_empty() || GREETINGS.contains(word.as_str()))
}

/// Returns whether a sentence is worth showing: it is long enough, mostly letters, and not just polite words.
fn says_something(text: &str, words: &[String]) -> bool {
    const COURTESIES: [&str; 14] = [
        "let me know",
        "i hope this",
        "hope this helps",
        "feel free",
        "happy to help",
        "as an ai",
        "i'm sorry",
        "i am sorry",
        "i apologize",
        "how can i help",
        "how can i assist",
        "is there anything",
        "thank you for",
        "thanks for",
    ];
    let characters = text.chars().count();
    let letters = text.chars().filter(|c| c.is_alphabetic() || c.is_whitespace()).count();
    let is_cjk = text.chars().filter(|c| is_cjk(*c)).count() * 2 > characters;
    let is_long = if is_cjk { characters >= 8 } else { characters >= 20 && words.len() >= 4 };
    // Words with more than 40 characters are usually base64, paths or addresses.
    let is_wordy = is_cjk || text.split(' ').all(|word| word.chars().count() <= 40);
    let lower = text.to_lowercase();
    let is_courtesy = characters < 120 && COURTESIES.iter().any(|phrase| lower.contains(phrase));
    is_long
        && is_wordy
        && !is_courtesy
        && !is_greeting(text)
        && letters * 10 >= characters * 8
        && symbols(text) < 0.06
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

/// Returns the words of a sentence in lower case without repeats. Chinese and Japanese words are pairs of
/// characters.
fn distinct_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before: Option<char> = None;
    for word in text.unicode_words() {
        let mut letters = word.chars();
        match (letters.next(), letters.next()) {
            (Some(only), None) if is_cjk(only) => {
                words.extend(before.map(|before| [before, only].iter().collect()));
                before = Some(only);
            }
            _ => {
                before = None;
                words.push(word.to_lowercase());
            }
        }
    }
    words.sort_unstable();
    words.dedup();
    words
}

/// Weights each word by its rarity among the sentences (IDF), and normalises each sentence to unit
/// length.
fn weighted(sentences: Vec<(String, bool)>) -> Vec<Sentence> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    // For each word's number, the number of sentences with the word, and the factor for its length.
    let mut known: Vec<(f32, f32)> = Vec::new();
    let mut number = |word: String| {
        let counts = if word.chars().count() < 3 { 0.5 } else { 1.0 };
        let number = *numbers.entry(word).or_insert(known.len());
        if number == known.len() {
            known.push((0.0, counts));
        }
        known[number].0 += 1.0;
        (number, 0.0)
    };
    let mut weighted: Vec<Sentence> = Vec::with_capacity(sentences.len());
    for (text, by_user) in sentences {
        let mut words: Vec<(usize, f32)> =
            distinct_words(&text).into_iter().map(&mut number).collect();
        words.sort_unstable_by_key(|(number, _)| *number);
        weighted.push(Sentence { text, words, by_user });
    }
    let count = weighted.len() as f32;
    for sentence in &mut weighted {
        for (number, weight) in &mut sentence.words {
            let (having, counts) = known[*number];
            *weight = (1.0 + count / having).ln() * counts;
        }
        let length: f32 = sentence.words.iter().map(|(_, weight)| weight * weight).sum();
        let length = length.sqrt().max(f32::MIN_POSITIVE);
        sentence.words.iter_mut().for_each(|(_, weight)| *weight /= length);
    }
    weighted
}

fn cosine(a: &[(usize, f32)], b: &[(usize, f32)]) -> f32 {
    let in_b = |word: usize| b.binary_search_by_key(&word, |(word, _)| *word).ok();
    a.iter().map(|(word, weight)| weight * in_b(*word).map_or(0.0, |at| b[at].1)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn turns<'a>(texts: &[&'a str]) -> Vec<SummaryTurn<'a>> {
        let turn = |(at, text): (usize, &&'a str)| SummaryTurn { by_user: at % 2 == 0, text };
        texts.iter().enumerate().map(turn).collect()
    }

    #[test]
    fn a_summary_says_what_it_is_about() {
        let turns = turns(&[
            "Hi! My sourdough bread comes out of the oven flat and dense, what can I do?",
            "Great question! A flat loaf usually means that the dough was proofed too long or that the \
             starter is weak.\n\n```python\nprint('bread')\n```\n\nFeed the starter twice before you \
             bake bread with it, and let the dough rise until it has grown by half. Let me know if \
             you have more questions!",
            "Thanks!",
            "You're welcome! I hope this helps.",
        ]);
        let summary = summary(&turns);
        assert!((160..=300).contains(&summary.chars().count()), "{summary}");
        assert!(summary.contains("dough") || summary.contains("bread"), "{summary}");
        for absent in ["print", "welcome", "Let me know", "Great question", "Hi!", "```"] {
            assert!(!summary.contains(absent), "{summary}");
        }
        assert_eq!(
            title(&turns),
            "My sourdough bread comes out of the oven flat and dense, what can I…"
        );
    }

    #[test]
    fn short_turns_are_summed_up_by_several() {
        let turns = turns(&[
            "I want to find a restaurant in San Jose.",
            "What kind of food would you like to eat?",
            "Something Italian with vegetarian dishes please.",
            "Olive Garden in San Jose serves Italian food.",
            "Please reserve a table for two at noon tomorrow.",
            "The table at Olive Garden is reserved for two people.",
        ]);
        let summary = summary(&turns);
        assert!((160..=300).contains(&summary.chars().count()), "{summary}");
        let chinese =
            ["我想在北京找一家安静的餐厅。", "您想吃什么样的菜呢？", "有没有适合素食者的川菜馆？"];
        let turns = self::turns(&chinese);
        assert_eq!(super::summary(&turns), chinese.concat());
    }

    #[test]
    fn code_and_data_are_not_summed_up() {
        let texts = [
            "```rust\nfn main() { println!(\"hello, dear world of code\"); }\n```",
            "{\"name\": \"a value\", \"list\": [1, 2, 3], \"other\": {\"more\": true}}",
            "Traceback (most recent call last):\n  File \"main.py\", line 3, in <module>\n    main()",
            "2024-05-01 12:00:00 ERROR could not connect to the database because it is down",
            "    at com.example.Main.run(Main.java:15)\n    at java.base/java.lang.Thread.run(Thread.java:1)",
            "SELECT name, count(*) FROM messages WHERE role = 'user' GROUP BY name;",
            "| name | value |\n|------|-------|\n| one thing | another thing here |",
            "<div class=\"box\"><p>some words in a page of the web</p></div>",
            "Hello! Thanks so much!",
            "aGVsbG8gd29ybGQgaGVsbG8gd29ybGQgaGVsbG8gd29ybGQgaGVsbG8gd29ybGQ= is not a word",
            "",
        ];
        for text in texts {
            let turns = [SummaryTurn { by_user: true, text }];
            assert_eq!(summary(&turns), "", "{text}");
            assert_eq!(title(&turns), "", "{text}");
        }
    }

    #[test]
    fn other_languages_have_sentences_too() {
        let chinese = "你好！我想学习如何用烤箱做面包。面包总是太硬，应该怎么办呢？可以多加一点水，\
                       让面团发酵的时间更长一些。烤箱的温度也不要太高，否则面包的外皮会很硬。";
        let russian = "Как правильно печь хлеб дома, чтобы он был мягким? Тесто должно подниматься \
                       долго, а печь нужно хорошо прогреть перед выпечкой хлеба.";
        for text in [chinese, russian] {
            let turns = [SummaryTurn { by_user: true, text }];
            let summary = summary(&turns);
            assert!(summary.chars().count() >= 16, "{summary}");
            assert!(summary.contains("面包") || summary.contains("хлеб"), "{summary}");
            assert!(!summary.contains("你好"), "{summary}");
        }
        let turns = [SummaryTurn { by_user: true, text: chinese }];
        assert_eq!(title(&turns), "我想学习如何用烤箱做面包");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]
        #[test]
        fn a_summary_is_short_and_the_same_each_time(
            texts in prop::collection::vec("(\\PC|\n|[a-z]{1,9}|[ .,。!?]){0,120}", 0..6)
        ) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let turns = turns(&texts);
            let one = summary(&turns);
            prop_assert!(one.chars().count() <= MAX_CHARACTERS, "{}", one);
            prop_assert!(title(&turns).chars().count() <= MAX_TITLE);
            prop_assert!(!one.contains(|c: char| c.is_control()));
            prop_assert_eq!(one, summary(&turns));
        }
    }
}
