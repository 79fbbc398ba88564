//! Vectors on disk: built, searched, and rejected if they have changed since they were written.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use verbatim_base::call::Stop;
use verbatim_embed::{self as embed, EmbedProgress, Model};
use verbatim_index::{Error, ScoredDoc, VectorOptions, VectorPartWriter, VectorParts, Vectors};

use crate::build_vectors::build_with;

fn folder() -> TempDir {
    tempfile::tempdir().expect("temporary folders can be made")
}

const WORDS: &[&str] = &[
    "rust", "borrow", "checker", "garden", "tomato", "soil", "guitar", "chord", "train", "ticket",
    "doctor", "fever", "tax", "invoice", "mountain", "snow", "recipe", "bread", "galaxy", "star",
    "puppy", "walk", "kernel", "thread", "wedding", "dress",
];

/// Texts that are alike in part, some of them empty.
fn texts(count: usize) -> Vec<String> {
    let word = |seed: usize| WORDS[seed % WORDS.len()];
    let text = |at: usize| match at % 17 {
        16 => String::new(),
        _ => format!("{} {} and {} {at}", word(at), word(at / 5), word(at * at / 7)),
    };
    (0..count).map(text).collect()
}

fn build(segment: &Path, texts: &[String], options: VectorOptions) -> Vectors {
    let model = Model::built_in();
    build_with(segment, &model, texts, options, &Stop::never(), &mut |_| ()).unwrap()
}

fn open(segment: &Path, count: usize) -> Option<Vectors> {
    Vectors::open(segment, Model::built_in().name(), count as u32)
}

fn query(text: &str) -> Vec<f32> {
    Model::built_in().encode_query(text, &Stop::never()).unwrap()
}

/// The expected result: a plain sort of every score.
fn sorted(
    vectors: &Vectors,
    query: &[f32],
    k: usize,
    accepts: impl Fn(u32) -> bool,
) -> Vec<ScoredDoc> {
    let doc_ids: Vec<u32> = (0..vectors.count()).filter(|doc_id| accepts(*doc_id)).collect();
    let scores = vectors.scores(query, &doc_ids).unwrap();
    let mut all: Vec<ScoredDoc> = doc_ids
        .into_iter()
        .zip(scores)
        .map(|(doc_id, score)| ScoredDoc { doc_id, score })
        .filter(|scored| scored.score > -1.0)
        .collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.doc_id.cmp(&b.doc_id)));
    all.truncate(k);
    all
}

/// The file of rows of the only vectors in a segment.
fn rows_file(segment: &Path) -> PathBuf {
    let entries = fs::read_dir(segment).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<PathBuf> = entries.collect();
    assert_eq!(folders.len(), 1, "nothing else is left behind: {folders:?}");
    folders[0].join("rows")
}

#[test]
fn scores_are_cosines() {
    let segment = folder();
    let texts = texts(300);
    let vectors = build(segment.path(), &texts, VectorOptions::default());
    let query = query("planting tomatoes");
    let doc_ids: Vec<u32> = (0..300).collect();
    let scores = vectors.scores(&query, &doc_ids).unwrap();
    let refs: Vec<&str> = texts.iter().map(String::as_str).collect();
    let exact = Model::built_in().encode(&refs, &Stop::never()).unwrap();
    for (doc_id, (score, vector)) in scores.iter().zip(exact).enumerate() {
        let cosine: f32 = query.iter().zip(&vector).map(|(a, b)| a * b).sum();
        let expected = if texts[doc_id].is_empty() { -1.0 } else { cosine };
        assert!((score - expected).abs() < 0.005, "{}: {score}, not {expected}", texts[doc_id]);
    }
    assert!(vectors.bytes() <= 300 * 300);
    assert_eq!(vectors.scores(&query, &[300, u32::MAX]).unwrap(), [-1.0, -1.0]);
}

#[test]
fn threads_and_clusters_change_nothing_that_is_stored_of_a_document() {
    let [one, two, three] = [folder(), folder(), folder()];
    let texts = texts(5_000);
    let alone = build(one.path(), &texts, VectorOptions::default());
    let many = VectorOptions { threads: 3, ..VectorOptions::default() };
    let together = build(two.path(), &texts, many);
    let divided = build(three.path(), &texts, VectorOptions { exact_most: 10, ..many });
    let query = query("a fever and a doctor");
    let doc_ids: Vec<u32> = (0..5_000).rev().collect();
    let scores = alone.scores(&query, &doc_ids).unwrap();
    assert_eq!(together.scores(&query, &doc_ids).unwrap(), scores);
    assert_eq!(divided.scores(&query, &doc_ids).unwrap(), scores);
    assert_eq!(fs::read(rows_file(one.path())).unwrap(), fs::read(rows_file(two.path())).unwrap());
}

#[test]
fn clusters_find_nearly_all_and_with_a_narrow_filter_all() {
    let segment = folder();
    let texts = texts(6_000);
    let options = VectorOptions { threads: 2, exact_most: 1_000, ..VectorOptions::default() };
    let vectors = build(segment.path(), &texts, options);
    let (mut found, mut all) = (0, 0);
    for words in ["rust borrow", "wedding dress", "a star in the galaxy", "tax", "bread and snow"] {
        let query = query(words);
        let exact = sorted(&vectors, &query, 10, |_| true);
        let near = vectors.top_k(&query, 10, |_| true).unwrap();
        all += exact.len();
        found += exact.iter().filter(|scored| near.contains(scored)).count();
        let narrow = |doc_id: u32| doc_id % 100 == 3;
        let near = vectors.top_k(&query, 10, narrow).unwrap();
        assert_eq!(near, sorted(&vectors, &query, 10, narrow), "{words}");
    }
    assert!(found as f64 >= 0.95 * f64::from(all as u32), "{found} of {all}");
}

#[test]
fn two_bits_a_dimension_find_the_best_among_a_few() {
    let [bytes, codes, clusters] = [folder(), folder(), folder()];
    let texts = texts(6_000);
    let exact = build(bytes.path(), &texts, VectorOptions::default());
    let coarse = build(codes.path(), &texts, VectorOptions::codes(0));
    let options = VectorOptions { exact_most: 1_000, ..VectorOptions::codes(0) };
    let divided = build(clusters.path(), &texts, options);
    assert_eq!([&coarse, &divided, &exact].map(|it| it.scored_again()), [100, 100, 0]);
    assert!(4 * coarse.bytes() < exact.bytes() + 6_000 * 16, "{}", coarse.bytes());
    let doc_ids: Vec<u32> = (0..6_000).collect();
    let (mut found, mut all) = ([0, 0], 0);
    for words in ["rust borrow", "wedding dress", "a star in the galaxy", "tax", "bread and snow"] {
        let query = query(words);
        let scores = exact.scores(&query, &doc_ids).unwrap();
        let estimates = coarse.scores(&query, &doc_ids).unwrap();
        assert_eq!(divided.scores(&query, &doc_ids).unwrap(), estimates);
        let none = |scores: &[f32]| scores.iter().filter(|score| **score == -1.0).count();
        assert_eq!(none(&estimates), none(&scores));
        let errors = scores.iter().zip(&estimates).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
        assert!((errors / 6_000.0).sqrt() < 0.03, "{words}: {errors}");
        let best = sorted(&exact, &query, 10, |_| true);
        all += best.len();
        for (found, vectors) in found.iter_mut().zip([&coarse, &divided]) {
            let near = vectors.top_k(&query, 100, |_| true).unwrap();
            assert!(near.len() == 100 && near.is_sorted_by(|a, b| a > b));
            // A document with an equal score is correct too.
            let is_best = |near: &&ScoredDoc| scores[near.doc_id as usize] >= best[9].score;
            *found += near.iter().filter(is_best).count().min(10);
        }
        let narrow = |doc_id: u32| doc_id % 100 == 3;
        let near = coarse.top_k(&query, 10, narrow).unwrap();
        assert_eq!(near, sorted(&coarse, &query, 10, narrow), "{words}");
    }
    assert!(found.iter().all(|found| 100 * found >= 95 * all), "{found:?} of {all}");
}

#[test]
fn four_bits_a_dimension_are_enough() {
    let [bytes, codes] = [folder(), folder()];
    let texts = texts(2_000);
    let exact = build(bytes.path(), &texts, VectorOptions::default());
    let codes = build(codes.path(), &texts, VectorOptions::codes(2_000));
    assert!(codes.scored_again() == 30 && codes.bytes() < exact.bytes() * 6 / 10);
    let doc_ids: Vec<u32> = (0..2_000).collect();
    let query = query("a wedding on a snow mountain");
    let scores = exact.scores(&query, &doc_ids).unwrap();
    let near = codes.scores(&query, &doc_ids).unwrap();
    let errors = scores.iter().zip(&near).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
    assert!((errors / 2_000.0).sqrt() < 0.008, "{errors}");
}

#[test]
fn equal_texts_have_a_vector_in_two_bits_too() {
    let segment = folder();
    let texts = ["the same".to_owned(), String::new(), "the same".to_owned()];
    let vectors = build(segment.path(), &texts, VectorOptions::codes(0));
    let scores = vectors.scores(&query("the same"), &[0, 1, 2]).unwrap();
    assert!(scores[0] > 0.99 && scores[1] == -1.0 && scores[2] == scores[0], "{scores:?}");
}

#[test]
fn nothing_is_like_nothing() {
    let segment = folder();
    let texts = [String::new(), "rust".to_owned(), "\u{10FFFF}".to_owned()];
    let vectors = build(segment.path(), &texts, VectorOptions::default());
    let found = vectors.top_k(&query("rust"), 10, |_| true).unwrap();
    assert_eq!(found.iter().map(|scored| scored.doc_id).collect::<Vec<_>>(), [1]);
    assert_eq!(vectors.top_k(&query(""), 10, |_| true).unwrap(), []);
    assert_eq!(vectors.top_k(&query("rust"), 0, |_| true).unwrap(), []);
    let error = vectors.top_k(&[1.0; 3], 10, |_| true).unwrap_err();
    assert!(matches!(error, Error::Lengths { ours: 256, theirs: 3 }), "{error}");
    let empty = folder();
    let vectors = build(empty.path(), &[], VectorOptions::default());
    assert_eq!(vectors.top_k(&query("rust"), 10, |_| true).unwrap(), []);
}

#[test]
fn what_a_killed_writer_left_is_removed() {
    let segment = folder();
    let left = |name: &str| {
        let folder = segment.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::File::create_new(folder.join("lock")).unwrap()
    };
    drop(left("new-vectors-gone"));
    let at_work = left("new-vectors-at-work");
    at_work.lock().unwrap();
    build(segment.path(), &texts(10), VectorOptions::default());
    let entries = fs::read_dir(segment.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("new-vectors-"));
    assert_eq!(names, ["new-vectors-at-work"]);
}

#[test]
fn damaged_and_foreign_files_are_not_opened() {
    let segment = folder();
    let texts = texts(500);
    build(segment.path(), &texts, VectorOptions { exact_most: 100, ..VectorOptions::default() });
    assert!(open(segment.path(), 500).is_some());
    assert!(open(segment.path(), 499).is_none(), "of another number of doc_ids");
    assert!(Vectors::open(segment.path(), "another-model", 500).is_none());
    let rows = rows_file(segment.path());
    let manifest = rows.with_file_name("manifest");
    let (good, good_manifest) = (fs::read(&rows).unwrap(), fs::read(&manifest).unwrap());
    // A copy has another identity, but the same bytes.
    fs::remove_file(&rows).unwrap();
    fs::write(&rows, &good).unwrap();
    assert!(open(segment.path(), 500).is_some());
    for at in [0, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&rows, bad).unwrap();
        assert!(open(segment.path(), 500).is_none(), "byte {at}");
    }
    for length in [0, 1, good.len() - 1] {
        fs::write(&rows, &good[..length]).unwrap();
        assert!(open(segment.path(), 500).is_none(), "cut at {length}");
    }
    fs::remove_file(&rows).unwrap();
    assert!(open(segment.path(), 500).is_none(), "no file");
    fs::write(&rows, &good).unwrap();
    let text = String::from_utf8(good_manifest).unwrap();
    let lies = [
        ("\"count\": 500", "\"count\": 4294967295"),
        ("\"dimensions\": 256", "\"dimensions\": 0"),
        ("\"dimensions\": 256", "\"dimensions\": 18446744073709551615"),
        ("\"format\": 3", "\"format\": 2"),
        ("\"bits\": 8", "\"bits\": 3"),
        ("\"bits\": 8", "\"bits\": 0"),
        ("\"clusters\": 23", "\"clusters\": 4294967295"),
        ("{", ""),
    ];
    for (from, to) in lies {
        assert!(text.contains(from), "{from} in {text}");
        fs::write(&manifest, text.replacen(from, to, 1)).unwrap();
        assert!(open(segment.path(), 500).is_none(), "{to}");
    }
    // The vectors are built again in the same place.
    build(segment.path(), &texts, VectorOptions::default());
    assert!(open(segment.path(), 500).is_some());
    assert_eq!(rows_file(segment.path()), rows);
}

#[test]
fn a_stopped_build_leaves_nothing() {
    let segment = folder();
    let texts = texts(30_000);
    let stop = Stop::never();
    let mut steps = 0;
    let mut progress = |step| {
        assert!(matches!(step, EmbedProgress { total: 30_000, .. }));
        steps += 1;
        stop.request();
    };
    let options = VectorOptions::default();
    let model = Model::built_in();
    let error =
        build_with(segment.path(), &model, &texts, options, &stop, &mut progress).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(embed::Error::Stopped)), "{error}");
    assert_eq!(steps, 1);
    assert_eq!(fs::read_dir(segment.path()).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(crate::cases::config(24))]
    #[test]
    fn the_best_are_those_of_a_plain_sort(
        count in 0..700_usize,
        k in 0..40_usize,
        divisor in 1..50_u32,
        words in "[a-z ]{0,12}(rust|garden|train|snow)",
    ) {
        let segment = folder();
        let vectors = build(segment.path(), &texts(count), VectorOptions::default());
        let query = query(&words);
        let accepts = |doc_id: u32| doc_id.is_multiple_of(divisor);
        let found = vectors.top_k(&query, k, accepts).unwrap();
        prop_assert_eq!(found, sorted(&vectors, &query, k, accepts));
    }
}

/// Writes the next part of a segment.
fn append(segment: &Path, made: &VectorParts, texts: &[String]) {
    let mut part = VectorPartWriter::new(&[0.01; 256], 2);
    for (text, hash) in texts.iter().zip(1..) {
        part.encode(hash, &query(text));
    }
    part.append(segment, "parts", made).unwrap();
}

#[test]
fn parts_are_searched_as_they_are_made_and_become_one() {
    let (folder, texts) = (folder(), texts(300));
    let segment = folder.path();
    let mut parts = VectorParts::open(segment, "parts", 300);
    assert_eq!((parts.made(), parts.is_complete()), (0, false));
    let question = query("tomato soil in the garden");
    assert_eq!(parts.top_k(&question, 5, |_| true).unwrap(), []);
    append(segment, &parts, &texts[..100]);
    assert!(parts.extend(segment, "parts") && !parts.extend(segment, "parts"));
    let first = parts.top_k(&question, 10, |doc_id| doc_id % 2 == 0).unwrap();
    assert!(first.iter().all(|it| it.doc_id < 100 && it.doc_id % 2 == 0), "{first:?}");
    append(segment, &parts, &texts[100..]);
    assert!(parts.extend(segment, "parts") && parts.is_complete() && !parts.is_whole());
    let all: Vec<u32> = (0..300).collect();
    let before = parts.scores(&question, &all).unwrap();
    // Each sixteenth text of seventeen is empty, and has no vector.
    assert!(before.iter().zip(0..).all(|(score, at)| (*score == Some(-1.0)) == (at % 17 == 16)));
    parts.join(segment, "parts").unwrap();
    let whole = VectorParts::open(segment, "parts", 300);
    assert!(whole.is_whole() && whole.bytes() < parts.bytes());
    assert_eq!(whole.scores(&question, &all).unwrap(), before);
    assert_eq!(
        whole.top_k(&question, 20, |_| true).unwrap(),
        parts.top_k(&question, 20, |_| true).unwrap()
    );
    let folders = fs::read_dir(segment).unwrap().flatten().count();
    assert_eq!(folders, 1, "the parts are removed");
    // Of another segment, or changed.
    assert_eq!(VectorParts::open(segment, "parts", 299).made(), 0);
    let rows = segment.join("vectors-parts/rows");
    let mut bytes = fs::read(&rows).unwrap();
    bytes[7] ^= 1;
    fs::write(&rows, bytes).unwrap();
    assert_eq!(VectorParts::open(segment, "parts", 300).made(), 0);
}
