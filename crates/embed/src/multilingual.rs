//! The multilingual model: a sentence encoder for 16 languages that is compiled into the program.
//!
//! `assets/multilingual/README.md` describes the model, its files and how it computes.
//!
//! The weights are read in place, so the first text waits two milliseconds, and the memory that they take is
//! that of the file. A thread takes some 5 MB more, for a text of 512 pieces.
//!
//! Invariant: a text's vector does not depend on the texts that are encoded with it.

use std::sync::LazyLock;

pub(super) use super::builtin::MOST_READ;
use super::dense::{Dense, Rounded};
use super::safetensors::Tensors;
use super::sentencepiece::{PieceId, SPACE, SentencePiece, UNKNOWN};

const PIECES: &[u8] = include_bytes!("../../../assets/multilingual/pieces.trie");
const CHARSMAP: &[u8] = include_bytes!("../../../assets/multilingual/charsmap.bin");
const WEIGHTS: &[u8] = include_bytes!("../../../assets/multilingual/model.safetensors");
const DIRECTIONS: &[u8] = include_bytes!("../../../assets/multilingual/directions.safetensors");

/// Name of the encoder. It ends with the CRC-32 of pieces, rules, weights and directions, in this order.
pub const ENCODER_NAME: &str = "multilingual-224-e223c456";

const VOCABULARY: usize = 128_000;

const DIMENSIONS: usize = 512;

/// Number of dimensions of a text's stored vector.
pub const STORED_DIMENSIONS: usize = 224;

const MOST_PIECES: usize = 512;

/// The pieces that are put around each text.
const BEGIN: PieceId = 1;
const END: PieceId = 2;

/// Number of pieces that are encoded at a time, unless a single text has more.
const BATCH: usize = 128;

/// The widths of windows in pieces, and how many of those are left of the middle one.
const WINDOWS: [(usize, usize); 3] = [(2, 0), (3, 1), (5, 2)];

/// Number of pieces that the windows need on each side.
const MOST_BESIDE: usize = 2;

const CHANNELS: usize = 256;
const PROJECTED: usize = CHANNELS * WINDOWS.len();
const FEATURES: usize = DIMENSIONS + PROJECTED;
const HIDDEN: usize = 320;

const EPSILON: f32 = 1e-12;

struct Network {
    tokenizer: SentencePiece,
    /// Two numbers of four bits a byte, the first in the lower bits; eight more than they mean.
    rows: &'static [[u8; DIMENSIONS / 2]],
    /// Float16 by row.
    row_scales: &'static [[u8; 2]],
    project: Layer,
    project_norm: Norm,
    /// For each width, two layers.
    windows: [[Layer; 2]; 3],
    features_norm: Norm,
    sentence: Layer,
    dense: [Dense; 4],
    /// The layers that skip dense layers: from the sentence to the second one, from there to the last.
    skips: [Dense; 2],
    /// Float32, row by row.
    directions: &'static [[u8; 4 * STORED_DIMENSIONS]],
    mean: Vec<f32>,
}

/// A matrix and what is added to its products.
struct Layer {
    matrix: Dense,
    bias: Vec<f32>,
}

struct Norm {
    gain: Vec<f32>,
    bias: Vec<f32>,
}

static NETWORK: LazyLock<Network> =
    LazyLock::new(|| Network::load().expect("the model is compiled in, and a test loads it"));

/// Returns the unit vector of each text. A blank text counts as a full stop.
///
/// Only the first 512 pieces of a text count, some 2,500 letters of English. Texts are encoded faster
/// together than one by one, in any number: a few are encoded at a time.
pub fn encode(texts: &[&str]) -> Vec<Vec<f32>> {
    let network = &*NETWORK;
    let mut vectors = Vec::with_capacity(texts.len());
    let mut ids = Vec::new();
    let mut ends = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        ids.push(BEGIN);
        ids.extend(network.pieces(text));
        ids.push(END);
        ends.push(ids.len());
        if ids.len() >= BATCH || at + 1 == texts.len() {
            vectors
                .extend(network.encode(&ids, &ends).chunks_exact(DIMENSIONS).map(<[f32]>::to_vec));
            ids.clear();
            ends.clear();
        }
    }
    vectors
}

/// Returns the share of a text's letters and digits in pieces that mean something, from 0 to 1.
///
/// It is low for scripts that the model does not know, whose words are unknown or spelled by single letters.
/// It is high for languages whose words look like those of the model's 16 languages.
pub fn known_share(text: &str) -> f64 {
    let normalized = NETWORK.normalized(text);
    let mut known = 0_u32;
    let mut all = 0_u32;
    for piece in NETWORK.tokenizer.split(&normalized) {
        let (text, rest) = normalized[piece.bytes.start..].split_at(piece.bytes.len());
        let letters = text.chars().filter(|c| c.is_alphanumeric()).count() as u32;
        let is_word = text.starts_with(SPACE) && !rest.starts_with(char::is_alphanumeric);
        all += letters;
        if piece.id != UNKNOWN && (letters > 1 || is_word || text.contains(means_something)) {
            known += letters;
        }
    }
    if all == 0 { 0.0 } else { f64::from(known) / f64::from(all) }
}

/// Returns whether a lower-case word is one piece of the vocabulary, which has the frequent words of each
/// language. Rows 0 to 2 are no words.
pub fn is_word(word: &str) -> bool {
    let tokenizer = &NETWORK.tokenizer;
    let normalized = tokenizer.normalize(word);
    matches!(&tokenizer.split(&normalized)[..], [piece] if piece.id > END)
        && normalized.starts_with(SPACE)
        && normalized.chars().skip(1).all(char::is_alphanumeric)
}

/// Returns whether a letter alone means something: those of names and formulas, and of scripts that write a
/// syllable or a word with one, which Unicode has from U+2E80 on.
fn means_something(c: char) -> bool {
    c.is_ascii_alphanumeric() || c >= '\u{2E80}'
}

/// Returns the mean of the stored vectors of real messages.
pub fn mean() -> &'static [f32] {
    &NETWORK.mean
}

/// Returns the form of a text's vector that is stored: a unit vector of [`STORED_DIMENSIONS`] numbers, in the
/// strongest directions of real messages. They are rotated, so that each number says as much as the others.
///
/// # Panics
///
/// Panics if the vector does not have 512 numbers.
pub fn stored(vector: &[f32]) -> Vec<f32> {
    assert_eq!(vector.len(), DIMENSIONS);
    let mut stored = vec![0.0; STORED_DIMENSIONS];
    for (x, direction) in vector.iter().zip(NETWORK.directions) {
        for (sum, number) in stored.iter_mut().zip(direction.as_chunks().0) {
            *sum += x * f32::from_le_bytes(*number);
        }
    }
    make_unit(&mut stored);
    stored
}

fn rounded(numbers: &[f32], length: usize) -> Rounded {
    let mut rows = Rounded::default();
    numbers.chunks_exact(length).for_each(|row| rows.push_rows([row].into_iter(), 0));
    rows
}

fn relu(numbers: &mut [f32]) {
    numbers.iter_mut().for_each(|x| *x = x.max(0.0));
}

impl Network {
    fn load() -> serde_json::Result<Network> {
        let tensors = &Tensors::parse(WEIGHTS)?;
        let directions = Tensors::parse(DIRECTIONS)?;
        let scores = tensors.bytes("pieces.score", "F32", &[VOCABULARY])?.as_chunks().0;
        Ok(Network {
            tokenizer: SentencePiece::new(PIECES, scores, CHARSMAP)
                .ok_or_else(|| serde::de::Error::custom("the rules are cut"))?,
            rows: tensors.bytes("pieces.codes", "U8", &[VOCABULARY, DIMENSIONS / 2])?.as_chunks().0,
            row_scales: tensors.bytes("pieces.scale", "F16", &[VOCABULARY])?.as_chunks().0,
            project: Layer::read(tensors, "project", DIMENSIONS, PROJECTED)?,
            project_norm: Norm::read(tensors, "project.norm", PROJECTED)?,
            windows: [
                read_window(tensors, WINDOWS[0].0)?,
                read_window(tensors, WINDOWS[1].0)?,
                read_window(tensors, WINDOWS[2].0)?,
            ],
            features_norm: Norm::read(tensors, "features.norm", FEATURES)?,
            sentence: Layer::read(tensors, "sentence", FEATURES, DIMENSIONS)?,
            dense: [
                read_dense(tensors, "dense0", DIMENSIONS, HIDDEN)?,
                read_dense(tensors, "dense1", HIDDEN, HIDDEN)?,
                read_dense(tensors, "dense2", HIDDEN, DIMENSIONS)?,
                read_dense(tensors, "dense3", DIMENSIONS, DIMENSIONS)?,
            ],
            skips: [
                read_dense(tensors, "skip1", DIMENSIONS, HIDDEN)?,
                read_dense(tensors, "skip3", HIDDEN, DIMENSIONS)?,
            ],
            directions: directions
                .bytes("directions", "F32", &[DIMENSIONS, STORED_DIMENSIONS])?
                .as_chunks()
                .0,
            mean: directions.floats("mean", &[STORED_DIMENSIONS])?,
        })
    }

    /// Returns what the network reads of a text, normalized; empty for a blank text.
    fn normalized(&self, text: &str) -> String {
        let text = text.trim_start();
        let mut end = text.len().min(MOST_READ);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.tokenizer.normalize(&text[..end])
    }

    fn pieces(&self, text: &str) -> Vec<PieceId> {
        let mut normalized = self.normalized(text);
        if normalized.is_empty() {
            normalized = self.tokenizer.normalize(".");
        }
        let pieces = self.tokenizer.split(&normalized).into_iter();
        pieces.map(|piece| piece.id).take(MOST_PIECES).collect()
    }

    /// Returns the unit vectors of texts, one after the other. `ends` says where each text ends in the
    /// pieces.
    fn encode(&self, ids: &[PieceId], ends: &[usize]) -> Vec<f32> {
        let mut states = self.projected(ids);
        for (at, [first, second]) in self.windows.iter().enumerate() {
            let states = states.iter_mut().map(|row| &mut row[at * CHANNELS..][..CHANNELS]);
            let mut states: Vec<&mut [f32]> = states.collect();
            first.add_windows(&mut states, ends, WINDOWS[at].1);
            second.add_windows(&mut states, ends, WINDOWS[at].1);
        }
        self.heads(&self.sentences(ids, &states, ends))
    }

    /// Returns the first states of each piece: its row, projected to numbers for each width of windows.
    fn projected(&self, ids: &[PieceId]) -> Vec<[f32; PROJECTED]> {
        let mut rows = Rounded::default();
        for id in ids {
            rows.push_exact(self.codes(*id).map(i16::from), self.row_scale(*id));
        }
        let mut projected = self.project.matrix.product(&rows).as_chunks().0.to_vec();
        for row in &mut projected {
            add(row, &self.project.bias);
            self.project_norm.apply(row);
        }
        projected
    }

    fn codes(&self, id: PieceId) -> impl Iterator<Item = i8> {
        self.rows[id as usize]
            .iter()
            .flat_map(|byte| [byte & 15, byte >> 4])
            .map(|code| code as i8 - 8)
    }

    fn row_scale(&self, id: PieceId) -> f32 {
        let bits = u16::from_le_bytes(self.row_scales[id as usize]);
        // The exponents of float32 begin 112 lower.
        f32::from_bits(u32::from(bits) << 13) * 2_f32.powi(112)
    }

    /// Returns the product of each text's mean features with the sentence layer.
    fn sentences(&self, ids: &[PieceId], states: &[[f32; PROJECTED]], ends: &[usize]) -> Vec<f32> {
        let mut sums = Rounded::default();
        let mut start = 0;
        for end in ends {
            let mut sum = [0.0; FEATURES];
            for (id, state) in ids[start..*end].iter().zip(&states[start..*end]) {
                let mut features = [0.0; FEATURES];
                let (own, rest) = features.split_at_mut(DIMENSIONS);
                let scale = self.row_scale(*id);
                own.iter_mut()
                    .zip(self.codes(*id))
                    .for_each(|(x, code)| *x = f32::from(code) * scale);
                rest.copy_from_slice(state);
                self.features_norm.apply(&mut features);
                add(&mut sum, &features);
            }
            sums.push_rows([&sum[..]].into_iter(), 0);
            start = *end;
        }
        let mut sentences = self.sentence.matrix.product(&sums);
        let mut start = 0;
        for (sentence, end) in sentences.chunks_exact_mut(DIMENSIONS).zip(ends) {
            let count = (end - start) as f32;
            for (x, bias) in sentence.iter_mut().zip(&self.sentence.bias) {
                *x = (*x + count * bias) / count.sqrt();
            }
            start = *end;
        }
        sentences
    }

    /// Returns what the dense layers make of sentences: unit vectors.
    fn heads(&self, sentences: &[f32]) -> Vec<f32> {
        let [dense0, dense1, dense2, dense3] = &self.dense;
        let sentences = rounded(sentences, DIMENSIONS);
        let mut y0 = dense0.product(&sentences);
        relu(&mut y0);
        let mut y1 = self.skips[0].product(&sentences);
        add(&mut y1, &dense1.product(&rounded(&y0, HIDDEN)));
        relu(&mut y1);
        let y1 = rounded(&y1, HIDDEN);
        let mut y2 = dense2.product(&y1);
        relu(&mut y2);
        let mut z = self.skips[1].product(&y1);
        add(&mut z, &dense3.product(&rounded(&y2, DIMENSIONS)));
        for z in z.chunks_exact_mut(DIMENSIONS) {
            z.iter_mut().for_each(|x| *x = x.tanh());
            make_unit(z);
        }
        z
    }
}

fn read_dense(
    tensors: &Tensors,
    name: &str,
    rows: usize,
    columns: usize,
) -> serde_json::Result<Dense> {
    let codes = tensors.bytes(&format!("{name}.codes"), "I8", &[rows, columns])?;
    Ok(Dense::new(codes, tensors.floats(&format!("{name}.scale"), &[columns])?))
}

/// Reads the two layers of the windows of a width.
fn read_window(tensors: &Tensors, width: usize) -> serde_json::Result<[Layer; 2]> {
    let [first, second] = ["first", "second"].map(|place| {
        Layer::read(tensors, &format!("gram{width}.{place}"), width * CHANNELS, CHANNELS)
    });
    Ok([first?, second?])
}

impl Layer {
    fn read(
        tensors: &Tensors,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> serde_json::Result<Layer> {
        Ok(Layer {
            matrix: read_dense(tensors, name, rows, columns)?,
            bias: tensors.floats(&format!("{name}.bias"), &[columns])?,
        })
    }
    /// Adds to the states of each piece what the layer makes of the states around it, less what is negative.
    fn add_windows(&self, states: &mut [&mut [f32]], ends: &[usize], left: usize) {
        let mut rows = Rounded::default();
        let mut start = 0;
        for end in ends {
            rows.push_zeros(MOST_BESIDE * CHANNELS);
            rows.push_rows(states[start..*end].iter().map(|row| &**row), left * CHANNELS);
            start = *end;
        }
        rows.push_zeros(MOST_BESIDE * CHANNELS);
        let product = self.matrix.product(&rows);
        for (state, product) in states.iter_mut().zip(product.chunks_exact(CHANNELS)) {
            for ((x, product), bias) in state.iter_mut().zip(product).zip(&self.bias) {
                *x += (product + bias).max(0.0);
            }
        }
    }
}

impl Norm {
    fn read(tensors: &Tensors, name: &str, length: usize) -> serde_json::Result<Norm> {
        Ok(Norm {
            gain: tensors.floats(&format!("{name}.gain"), &[length])?,
            bias: tensors.floats(&format!("{name}.bias"), &[length])?,
        })
    }
    /// Gives numbers the mean 0 and the variance 1, then the learned gain and bias.
    fn apply(&self, numbers: &mut [f32]) {
        let count = numbers.len() as f32;
        let mean = sum(numbers, |x| x) / count;
        let variance = sum(numbers, |x| (x - mean) * (x - mean)) / count;
        let scale = 1.0 / (variance + EPSILON).sqrt();
        for ((x, gain), bias) in numbers.iter_mut().zip(&self.gain).zip(&self.bias) {
            *x = (*x - mean) * scale * gain + bias;
        }
    }
}

/// Returns a sum over numbers, whose count is a multiple of 16. It is summed in 16 lanes, which fill registers.
fn sum(numbers: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; 16];
    for chunk in numbers.as_chunks::<16>().0 {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += of(*x);
        }
    }
    lanes.iter().sum()
}

fn add(numbers: &mut [f32], others: &[f32]) {
    numbers.iter_mut().zip(others).for_each(|(x, other)| *x += other);
}

fn make_unit(numbers: &mut [f32]) {
    let length = sum(numbers, |x| x * x).max(EPSILON).sqrt();
    numbers.iter_mut().for_each(|x| *x /= length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dot;

    #[test]
    fn the_name_is_that_of_the_files() {
        let mut hasher = crc32fast::Hasher::new();
        [PIECES, CHARSMAP, WEIGHTS, DIRECTIONS].into_iter().for_each(|file| hasher.update(file));
        let expected = format!("multilingual-{STORED_DIMENSIONS}-{:08x}", hasher.finalize());
        assert_eq!(ENCODER_NAME, expected);
    }

    /// The expected pieces and vectors are from Python: `tokenizers` 0.23.3, and numpy with float32.
    #[test]
    fn vectors_equal_those_of_the_reference() {
        #[derive(serde::Deserialize)]
        struct Expected {
            text: String,
            pieces: Vec<PieceId>,
            vector: Vec<f32>,
        }
        let lines = include_str!("../../../assets/multilingual/reference.jsonl").lines();
        let lines: Vec<Expected> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let texts: Vec<&str> = lines.iter().map(|line| &line.text[..]).collect();
        let vectors = encode(&texts);
        assert_eq!((vectors.len(), texts.len()), (53, 53));
        for (Expected { text, pieces, vector }, ours) in lines.iter().zip(vectors) {
            assert_eq!(NETWORK.pieces(text), *pieces, "{text:?}");
            let cosine = dot(&ours, vector) / dot(vector, vector).sqrt();
            assert!(cosine > 0.9999, "{cosine} {text:?}");
            assert!((dot(&ours, &ours) - 1.0).abs() < 1e-5, "{text:?}");
        }
    }

    #[test]
    fn stored_vectors_equal_those_of_the_reference() {
        let vectors = encode(&["How do I cancel my gym contract?"]);
        let stored = stored(&vectors[0]);
        assert_eq!(stored.len(), STORED_DIMENSIONS);
        assert!((dot(&stored, &stored) - 1.0).abs() < 1e-5);
        for (at, theirs) in
            [(0, 0.04640), (1, 0.04589), (2, 0.07337), (7, -0.00834), (222, -0.23527)]
        {
            assert!((stored[at] - theirs).abs() < 2e-4, "{} {theirs}", stored[at]);
        }
    }

    #[test]
    fn a_vector_does_not_depend_on_the_other_texts() {
        let long = "the Rust borrow checker ".repeat(300);
        let mut texts = vec!["a", "", &long, "Как расторгнуть договор?", "\0", "x y z"];
        texts.extend(["健身房的合同怎么解除？"; 40]);
        let together = encode(&texts);
        for (text, vector) in texts.iter().zip(together) {
            assert_eq!(encode(&[text]), [vector], "{text:.40}");
        }
        assert!(encode(&[]).is_empty());
    }

    #[test]
    fn odd_texts_have_vectors() {
        let characters = ('\0'..='\u{E01FF}').step_by(1_777);
        let mut texts: Vec<String> =
            characters.map(|c| format!("{c}a {c}{c}\u{301}\u{200D}")).collect();
        let odd =
            ["\u{10FFFF}", "\u{FFFF}", "\u{301}", "\0", "<unk>", "<s></s>", "\u{2581}\u{2581}"];
        texts.extend(odd.map(String::from));
        texts.extend(["\u{FDFA}", "\u{301}", "\0", "\r\n"].map(|part| part.repeat(9_999)));
        let texts: Vec<&str> = texts.iter().map(|text| &text[..]).collect();
        for (text, vector) in texts.iter().zip(encode(&texts)) {
            assert!((dot(&vector, &vector) - 1.0).abs() < 1e-5, "{text:.40?}");
        }
    }

    #[test]
    fn a_blank_text_counts_as_a_full_stop() {
        for text in ["", " ", "\n\t\r", "\u{3000}", "\u{200B}\u{200B}", " .  "] {
            assert_eq!(NETWORK.pieces(text), [6, 8], "{text:?}");
        }
    }

    #[test]
    fn nothing_is_read_beyond_the_limits() {
        for part in ["internationalization ", "日本語", "\u{10348}", "a", "mixed 中文 "] {
            let long = part.repeat(MOST_READ);
            let end = long.floor_char_boundary(MOST_READ);
            assert_eq!(NETWORK.pieces(&long), NETWORK.pieces(&long[..end]), "{part}");
            assert!(NETWORK.pieces(&long).len() <= MOST_PIECES);
        }
        let spaces = " ".repeat(2 * MOST_READ);
        assert_eq!(NETWORK.pieces(&(spaces + "word")), NETWORK.pieces("word"));
    }

    #[test]
    fn known_shares_follow_the_script() {
        let table = [
            (
                "A quick reminder: the meeting about Kubernetes ingress moved to Thursday, bring your laptop.",
                0.9,
                1.0,
            ),
            ("Я в отпуске и у меня нет времени. Мы с мамой едем к бабушке в деревню.", 0.9, 1.0),
            (
                "Привет! Подскажи, пожалуйста, как развернуть контейнер в Kubernetes и настроить автоматическое масштабирование?",
                0.9,
                1.0,
            ),
            (
                "Źdźbło trawy zżółkło. Chciałbym zamówić przejazd taksówką na jutro rano, około ósmej.",
                0.9,
                1.0,
            ),
            (
                "Çekoslovakyalılaştıramadıklarımızdan mısınız? Yarın sabah İzmir'e gidiyorum.",
                0.9,
                1.0,
            ),
            (
                "السلام عليكم، أريد أن أحجز طاولة لشخصين مساء الغد في المطعم القريب من البيت.",
                0.9,
                1.0,
            ),
            ("พรุ่งนี้เราจะไปกินข้าวที่ร้านอาหารใกล้บ้าน คุณอยากไปด้วยไหม", 0.9, 1.0),
            (
                "明日の会議は午後三時から始まります。資料を忘れないでください。吾輩は猫である。",
                0.9,
                1.0,
            ),
            (
                "내일 회의는 오후 세 시에 시작합니다. 자료를 꼭 챙겨 주세요. 강아지가 귀여워요.",
                0.9,
                1.0,
            ),
            ("明天的会议改到下午三点，请不要忘记带材料。饕餮盛宴。", 0.9, 1.0),
            ("明天的會議改到下午三點，請不要忘記帶資料。龜兔賽跑。", 0.9, 1.0),
            (
                "Où est-ce que j'ai laissé mes clés ? L'été dernier, à Nîmes, nous avons mangé des crêpes.",
                0.9,
                1.0,
            ),
            ("El año pasado fuimos a Ávila y comimos ñoquis con mi abuelo.", 0.9, 1.0),
            (
                "Übermorgen fährt der Zug nach Köln um zwölf Uhr; die Straße ist gesperrt, größere Verspätungen möglich.",
                0.9,
                1.0,
            ),
            ("Perché non è più possibile? Ieri c'erano già due città così.", 0.9, 1.0),
            ("Amanhã não há aulas; as crianças vão à praia com os avós.", 0.9, 1.0),
            (
                "Morgen gaan we met z'n allen naar het strand, neem je zonnebrandcrème mee.",
                0.9,
                1.0,
            ),
            ("fn main() { let mut xs: Vec<usize> = iter.map(|x| x.len()).collect(); }", 0.9, 1.0),
            (
                "const handleClick = useCallback(async (e) => { await fetch(`/api/${id}`, { method: 'POST' }); }, [id]);",
                0.9,
                1.0,
            ),
            ("550e8400-e29b-41d4-a716-446655440000 kubectl get pods -n kube-system", 0.9, 1.0),
            ("Πώς ακυρώνω τη συνδρομή μου στο γυμναστήριο;", 0.0, 0.3),
            ("Αύριο θα πάμε στη θάλασσα με τα παιδιά, μην ξεχάσεις το καπέλο σου.", 0.0, 0.3),
            ("मैं अपनी जिम की सदस्यता कैसे रद्द करूं?", 0.0, 0.3),
            ("מחר אנחנו הולכים לים עם הילדים, אל תשכח את הכובע שלך.", 0.0, 0.3),
            ("როგორ გავაუქმო სპორტდარბაზის კონტრაქტი?", 0.0, 0.3),
            ("எனது ஜிம் ஒப்பந்தத்தை எப்படி ரத்து செய்வது?", 0.0, 0.3),
            ("Ինչպե՞ս չեղարկել մարզասրահի պայմանագիրը", 0.0, 0.3),
            ("የጂም ውሌን እንዴት መሰረዝ እችላለሁ?", 0.0, 0.3),
            ("আমি কীভাবে আমার জিমের চুক্তি বাতিল করব?", 0.0, 0.3),
            ("ကျွန်ုပ်၏ အားကစားရုံ စာချုပ်ကို ဘယ်လို ဖျက်သိမ်းမလဲ", 0.0, 0.3),
            ("2024-01-05 12:30", 1.0, 1.0),
            ("?!", 0.0, 0.0),
            ("", 0.0, 0.0),
        ];
        for (text, least, most) in table {
            let share = known_share(text);
            assert!((least..=most).contains(&share), "{text}: {share}");
        }
    }
}
