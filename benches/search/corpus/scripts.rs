//! Text in other scripts: Chinese by characters and two-character words, some Japanese, Korean, Russian, and emoji.

use super::prose::LetterChain;
use super::random::{Random, Zipf};

/// The most frequent Chinese characters, in roughly falling order of use.
const HANZI: &str = "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市眼体别处总才场师书比住员九笑性通目华报立马命张活难神数件安表原车白应路期叫死常提感金何更反合放做系计或司利受光王果亲界及今京务制解各任至清物台象记边共风战干接它许八特觉望直服毛林题建南度统色字请交爱让认算论百吃义科怎元社术结六功指思非流每青管夫连远资队跟带花快条院变联言权往展该领传近留红治决周保达办运武半候七必城父强步完革深区即求品士转量空甚众技轻程告江语英基派满式李息写呢识极令黄德收脸钱党倒未持取设始版双历越史商千片容研像找友孩站广改议形委早房音火际则首单据导影失拿网香似斯专石若兵弟谁校读志飞观争究包组造落视济喜离虽坏兴切除";

/// Hiragana, particles and endings first.
const HIRAGANA: &str =
    "のにをはがとでたしてるいもなかっれらりあこすまさくんけうきそよどせちめえみわろおだつやばほ";
const KATAKANA: &str = "ンースルトラリアイクドレタテフジシカコムメロサマオプデ";

const RUSSIAN: &str = "и в не на я быть он с что а по это она этот к но они мы весь который из у который то за свой что весь год от так о для ты же все тот мочь вы человек такой его сказать только или ещё бы себя один как уже до время если сам когда другой вот говорить наш мой знать стать при чтобы дело жизнь кто первый очень два день её новый рука даже во со раз где там под можно ну какой после их работа без самый потом надо хотеть ли слово идти большой должен место иметь ничто функция данные файл строка запрос ошибка сервер программа пользователь значение";

const EMOJI: [&str; 40] = [
    "✅",
    "😀",
    "😂",
    "🚀",
    "❤️",
    "👍",
    "🔥",
    "⚠️",
    "🎉",
    "🤔",
    "🙏",
    "💡",
    "❌",
    "📌",
    "🐛",
    "🧵",
    "🦀",
    "🌍",
    "👩‍💻",
    "🇫🇷",
    "😊",
    "🎯",
    "📈",
    "🔒",
    "🛠️",
    "📚",
    "🍕",
    "🐍",
    "⭐",
    "👀",
    "💻",
    "📝",
    "🧪",
    "🎨",
    "🐳",
    "🌱",
    "😅",
    "🥳",
    "☕",
    "👋",
];

/// The script of a conversation.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Script {
    Latin,
    Chinese,
    Japanese,
    Korean,
    Cyrillic,
}

pub(crate) struct Scripts {
    hanzi: Vec<char>,
    hanzi_frequency: Zipf,
    hanzi_words: Vec<[char; 2]>,
    word_frequency: Zipf,
    hiragana: Vec<char>,
    katakana: Vec<char>,
    kana_frequency: Zipf,
    hangul: Vec<char>,
    hangul_words: Vec<String>,
    russian: Vec<String>,
    emoji_frequency: Zipf,
}

impl Scripts {
    pub(crate) fn new(random: &mut Random) -> Scripts {
        let mut hanzi: Vec<char> = HANZI.chars().collect();
        hanzi.extend((0x4e00..0x9fa5).step_by(7).filter_map(char::from_u32));
        let hanzi_frequency = Zipf::new(hanzi.len(), 6.0, 1.15);
        let hanzi_words = (0..8_000)
            .map(|_| [(); 2].map(|()| hanzi[hanzi_frequency.draw(random)]))
            .collect::<Vec<_>>();
        let hangul: Vec<char> =
            (0..600).filter_map(|_| char::from_u32(0xac00 + random.below(11_172) as u32)).collect();
        let hangul_frequency = Zipf::new(hangul.len(), 4.0, 1.0);
        let hangul_words = (0..4_000)
            .map(|_| {
                let length = random.between(2, 4);
                (0..length).map(|_| hangul[hangul_frequency.draw(random)]).collect()
            })
            .collect();
        let chain = LetterChain::new(RUSSIAN.split_whitespace());
        let mut russian: Vec<String> = RUSSIAN.split_whitespace().map(str::to_owned).collect();
        while russian.len() < 8_000 {
            russian.push(chain.word(random));
        }
        Scripts {
            hanzi,
            hanzi_frequency,
            hanzi_words,
            word_frequency: Zipf::new(8_000, 10.0, 1.0),
            hiragana: HIRAGANA.chars().collect(),
            katakana: KATAKANA.chars().collect(),
            kana_frequency: Zipf::new(KATAKANA.chars().count(), 3.0, 0.8),
            hangul,
            hangul_words,
            russian,
            emoji_frequency: Zipf::new(EMOJI.len(), 1.0, 1.0),
        }
    }

    pub(crate) fn emoji(&self, random: &mut Random) -> &'static str {
        EMOJI[self.emoji_frequency.draw(random)]
    }

    /// Appends a sentence of about `words` words.
    pub(crate) fn sentence(
        &self,
        script: Script,
        words: usize,
        random: &mut Random,
        out: &mut String,
    ) {
        for at in 0..words {
            match script {
                Script::Latin => {}
                Script::Chinese => {
                    if random.chance(0.6) {
                        out.extend(self.hanzi_words[self.word_frequency.draw(random)]);
                    } else {
                        out.push(self.hanzi[self.hanzi_frequency.draw(random)]);
                    }
                    if random.chance(0.08) {
                        out.push('，');
                    }
                }
                Script::Japanese => self.japanese(random, out),
                Script::Korean => {
                    let word = self.word_frequency.draw(random) % self.hangul_words.len();
                    out.push_str(&self.hangul_words[word]);
                    if random.chance(0.3) {
                        out.push(self.hangul[random.below(self.hangul.len())]);
                    }
                    out.push(' ');
                }
                Script::Cyrillic => {
                    if at > 0 {
                        out.push(' ');
                    }
                    out.push_str(&self.russian[self.word_frequency.draw(random)]);
                }
            }
        }
        out.push_str(match script {
            Script::Chinese | Script::Japanese => "。",
            Script::Latin | Script::Korean | Script::Cyrillic => ". ",
        });
    }

    /// Appends a Japanese word: a stem in kanji or katakana, and its ending.
    fn japanese(&self, random: &mut Random, out: &mut String) {
        if random.chance(0.25) {
            for _ in 0..random.between(2, 5) {
                out.push(self.katakana[self.kana_frequency.draw(random)]);
            }
        } else {
            out.extend(self.hanzi_words[self.word_frequency.draw(random)]);
        }
        for _ in 0..random.between(1, 3) {
            out.push(self.hiragana[self.kana_frequency.draw(random)]);
        }
    }
}
