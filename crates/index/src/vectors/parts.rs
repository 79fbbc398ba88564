//! Vectors of a slow model, made part by part, the newest messages of a segment first.
//!
//! ```text
//! SEGMENT/vectors-MODEL-0/, SEGMENT/vectors-MODEL-1/, …    parts, in doc-id order
//! SEGMENT/vectors-MODEL/                                   the vectors of all doc ids
//! INDEX/kept-SEGMENT-…/                                    vectors of a segment that was replaced
//! ```
//!
//! Each part is complete and can be searched. When the last part is made, all parts become one. A vector has
//! a code of its own ([`CodeWriter`] with a mean that belongs to the model) and the hash of its text, so
//! that a later segment with the same text takes the code over. Within a segment the newest message has the
//! first doc id.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Vectors;
use super::codes::{CodeForm, CodeWriter};
use super::file::{FileWriter, Shape};
use crate::{Result, Snapshot, scored::ScoredDoc, write_error};
use verbatim_base::{int8::quantise, private};

/// The prefix of folders with the vectors of segments that were replaced.
const KEPT: &str = "kept-";

/// The vectors of the first doc ids of a segment, as far as they are made.
#[derive(Clone, Debug, Default)]
pub struct VectorParts {
    /// Each part with the first of its doc ids.
    parts: Vec<(u32, Arc<Vectors>)>,
    /// The number of doc ids of the segment.
    count: u32,
}

impl VectorParts {
    /// Opens the parts of a segment with `count` doc ids that are made.
    pub fn open(segment: &Path, model: &str, count: u32) -> VectorParts {
        let mut all = VectorParts { parts: Vec::new(), count };
        if let Some(whole) = Vectors::open(segment, model, count).filter(Vectors::is_keyed) {
            all.parts.push((0, Arc::new(whole)));
        }
        all.extend(segment, model);
        all
    }

    /// Opens the parts that were made since. Returns whether there are any.
    pub fn extend(&mut self, segment: &Path, model: &str) -> bool {
        let before = self.parts.len();
        while self.made() < self.count {
            let name = part_name(model, self.parts.len());
            let Some(part) = Vectors::open_keyed(segment, &name) else { break };
            if part.count() > self.count - self.made() {
                break;
            }
            self.parts.push((self.made(), Arc::new(part)));
        }
        self.parts.len() > before
    }

    /// Returns the number of doc ids, from the first, whose vectors are made.
    pub fn made(&self) -> u32 {
        self.parts.last().map_or(0, |(start, part)| start + part.count())
    }

    /// Returns whether the vectors of all doc ids are made.
    pub fn is_complete(&self) -> bool {
        self.made() == self.count
    }

    /// Returns whether all vectors are in one part.
    pub fn is_whole(&self) -> bool {
        self.is_complete() && self.parts.len() <= 1
    }

    /// Returns the bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|(_, part)| part.bytes()).sum()
    }

    /// Returns the `k` doc ids most similar to the query, as [`Vectors::top_k`] does.
    pub fn top_k(
        &self,
        query: &[f32],
        k: usize,
        accepts: impl Fn(u32) -> bool,
    ) -> Result<Vec<ScoredDoc>> {
        let mut best = Vec::new();
        for (start, part) in &self.parts {
            let found = part.top_k(query, k, |doc_id| accepts(start + doc_id))?;
            best.extend(found.into_iter().map(|it| ScoredDoc { doc_id: start + it.doc_id, ..it }));
        }
        best.sort_unstable_by_key(|it| Reverse(*it));
        best.truncate(k);
        Ok(best)
    }

    /// Returns for each doc id the similarity of the message to the query; `None` if its vector is not made.
    /// `doc_ids` are ascending.
    pub fn scores(&self, query: &[f32], doc_ids: &[u32]) -> Result<Vec<Option<f32>>> {
        let mut scores = Vec::with_capacity(doc_ids.len());
        for (start, part) in &self.parts {
            let rest = &doc_ids[scores.len()..];
            let here = &rest[..rest.partition_point(|doc_id| *doc_id < start + part.count())];
            let here: Vec<u32> = here.iter().map(|doc_id| doc_id - start).collect();
            scores.extend(part.scores(query, &here)?.into_iter().map(Some));
        }
        scores.resize(doc_ids.len(), None);
        Ok(scores)
    }

    /// Makes one part of all parts, if every doc id has its vector.
    pub fn join(&self, segment: &Path, model: &str) -> Result<()> {
        if !self.is_complete() || self.is_whole() {
            return Ok(());
        }
        let mut writer = None;
        for (_, part) in &self.parts {
            let writer = writer.get_or_insert_with(|| VectorPartWriter::like(part));
            (0..part.count()).for_each(|row| writer.push(part.keyed(row)));
        }
        if let Some(writer) = writer {
            writer.publish(segment, model)?;
        }
        for number in 0..self.parts.len() {
            // A reader opens the whole first, so a part that stays does no harm.
            drop(fs::remove_dir_all(segment.join(Shape::folder(&part_name(model, number)))));
        }
        Ok(())
    }
}

fn part_name(model: &str, number: usize) -> String {
    format!("{model}-{number}")
}

/// A vector's code with its scale, and the hash of its text. The scale 0 means that the text has no vector.
#[derive(Clone, Copy, Debug)]
pub struct KeyedCode<'a> {
    /// The hash of the text, by any function that is always the same for a model.
    pub hash: u64,
    code: &'a [u8],
    scale: f32,
}

/// Writer of one part. It keeps the part in memory.
#[derive(Debug)]
pub struct VectorPartWriter {
    form: CodeForm,
    mean: Vec<f32>,
    codes: Vec<u8>,
    scales: Vec<f32>,
    hashes: Vec<u64>,
}

impl VectorPartWriter {
    /// Begins a part. `mean` is the mean of the model's vectors, the same for all its parts.
    pub fn new(mean: &[f32], bits: u32) -> VectorPartWriter {
        let form = CodeForm { bits, dimensions: mean.len() };
        VectorPartWriter {
            form,
            mean: mean.to_vec(),
            codes: Vec::new(),
            scales: Vec::new(),
            hashes: Vec::new(),
        }
    }

    fn like(part: &Vectors) -> VectorPartWriter {
        VectorPartWriter::new(&part.mean(), part.shape.bits)
    }

    /// Returns the number of vectors.
    pub fn count(&self) -> usize {
        self.scales.len()
    }

    /// Adds the unit vector of the next doc id. All zeros mean that the text has no vector.
    pub fn encode(&mut self, hash: u64, vector: &[f32]) {
        let mut row = vec![0; vector.len()];
        let scale = quantise(vector, &mut row);
        let mut writer = CodeWriter::new(self.form, &self.mean);
        let (code, scale) = writer.encode(&row, scale);
        self.codes.extend_from_slice(code);
        self.scales.push(scale);
        self.hashes.push(hash);
    }

    /// Adds the code of the next doc id, which another part of the same model has.
    pub fn push(&mut self, keyed: KeyedCode<'_>) {
        self.codes.extend_from_slice(keyed.code);
        self.scales.push(keyed.scale);
        self.hashes.push(keyed.hash);
    }

    /// Adds the codes of another part, which follow.
    pub fn append_all(&mut self, other: &VectorPartWriter) {
        self.codes.extend_from_slice(&other.codes);
        self.scales.extend_from_slice(&other.scales);
        self.hashes.extend_from_slice(&other.hashes);
    }

    /// Writes the next part of a segment.
    pub fn append(self, segment: &Path, model: &str, made: &VectorParts) -> Result<()> {
        self.publish(segment, &part_name(model, made.parts.len()))
    }

    fn publish(self, segment: &Path, name: &str) -> Result<()> {
        let mut writer = FileWriter::begin(segment, name)?;
        writer.write(&self.codes)?;
        writer.write_numbers(self.scales.iter().map(|scale| scale.to_le_bytes()))?;
        writer.write_numbers(self.mean.iter().map(|number| number.to_le_bytes()))?;
        for hash in &self.hashes {
            writer.write(&hash.to_le_bytes())?;
        }
        writer.publish(Shape {
            model: name.to_owned(),
            dimensions: self.form.dimensions,
            count: self.scales.len() as u32,
            clusters: 0,
            bits: self.form.bits,
            is_keyed: true,
        })
    }
}

/// The vectors of segments that were replaced and of deleted documents, by the hashes of their texts.
#[derive(Debug, Default)]
pub struct KeptVectors {
    parts: Vec<Arc<Vectors>>,
    by_hash: HashMap<u64, (u32, u32)>,
}

impl KeptVectors {
    /// Opens what replaced segments and deleted documents of a snapshot have left.
    pub fn of(snapshot: &Snapshot, model: &str) -> KeptVectors {
        let mut kept = KeptVectors::open(snapshot.index_folder(), model);
        for (segment, (_, deleted)) in snapshot.segments().iter().zip(snapshot.sizes()) {
            if deleted == 0 {
                continue;
            }
            let made = VectorParts::open(segment.folder, model, segment.doc_ids.len() as u32);
            for (start, part) in made.parts {
                let first = segment.doc_ids.start + start;
                kept.add(part, |row| !snapshot.is_alive(first + row));
            }
        }
        kept
    }

    fn add(&mut self, part: Arc<Vectors>, has: impl Fn(u32) -> bool) {
        let number = self.parts.len() as u32;
        let rows = (0..part.count()).filter(|row| has(*row));
        self.by_hash.extend(rows.map(|row| (part.keyed(row).hash, (number, row))));
        self.parts.push(part);
    }

    fn open(index_dir: &Path, model: &str) -> KeptVectors {
        let mut kept = KeptVectors::default();
        for folder in folders(index_dir) {
            for name in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let name = name.file_name().to_string_lossy().into_owned();
                let Some(name) = name.strip_prefix(Shape::PREFIX) else { continue };
                if !name.starts_with(model) {
                    continue;
                }
                if let Some(part) = Vectors::open_keyed(&folder, name) {
                    kept.add(Arc::new(part), |_| true);
                }
            }
        }
        kept
    }

    /// Returns the code of a text with a hash.
    pub fn get(&self, hash: u64) -> Option<KeyedCode<'_>> {
        let (part, row) = self.by_hash.get(&hash)?;
        Some(self.parts[*part as usize].keyed(*row))
    }

    /// Returns whether replaced segments have left anything in an index directory.
    pub fn are_in(index_dir: &Path) -> bool {
        !folders(index_dir).is_empty()
    }

    /// Removes what replaced segments have left, but for the vectors of texts with some hashes.
    pub fn retain(index_dir: &Path, model: &str, hashes: &HashSet<u64>) -> Result<()> {
        let kept = KeptVectors::open(index_dir, model);
        let mut writer = None;
        for hash in hashes {
            if let Some((part, row)) = kept.by_hash.get(hash) {
                let part = &kept.parts[*part as usize];
                writer.get_or_insert_with(|| VectorPartWriter::like(part)).push(part.keyed(*row));
            }
        }
        let old = folders(index_dir);
        if let Some(writer) = writer {
            let names = (0..).map(|number| index_dir.join(format!("{KEPT}{number}")));
            let folder = names.into_iter().find(|folder| !folder.exists()).unwrap_or_default();
            private::create_dir_all(&folder).map_err(write_error(&folder))?;
            writer.publish(&folder, &part_name(model, 0))?;
        }
        for folder in old {
            fs::remove_dir_all(&folder).map_err(write_error(&folder))?;
        }
        Ok(())
    }

    /// Removes what replaced segments have left, because it was taken over or must be forgotten.
    pub fn remove(index_dir: &Path) {
        for folder in folders(index_dir) {
            // A later call tries again.
            drop(fs::remove_dir_all(folder));
        }
    }
}

fn folders(index_dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(index_dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(KEPT))
        .map(|entry| entry.path())
        .collect()
}

/// Moves the keyed vectors of a segment that is about to be removed to where [`KeptVectors`] finds them.
pub(crate) fn keep(segment: &Path) {
    let (Some(index_dir), Some(name)) = (segment.parent(), segment.file_name()) else { return };
    let kept = index_dir.join(format!("{KEPT}{}", name.to_string_lossy()));
    for entry in fs::read_dir(segment).into_iter().flatten().flatten() {
        let part = entry.file_name().to_string_lossy().into_owned();
        let is_keyed = part
            .strip_prefix(Shape::PREFIX)
            .is_some_and(|name| Vectors::open_keyed(segment, name).is_some());
        if is_keyed && private::create_dir_all(&kept).is_ok() {
            // What cannot be moved is made again.
            drop(fs::rename(entry.path(), kept.join(part)));
        }
    }
}

impl Vectors {
    /// Opens vectors with hashes, whatever their number.
    fn open_keyed(segment: &Path, name: &str) -> Option<Vectors> {
        let (shape, map) = super::file::open(segment, name, None)?;
        let sections = shape.sections()?;
        shape.is_keyed.then_some(Vectors { shape, sections, map })
    }

    fn is_keyed(&self) -> bool {
        self.shape.is_keyed
    }

    fn mean(&self) -> Vec<f32> {
        let mean = &self.map[self.sections.mean.clone()];
        (0..self.dimensions()).map(|at| super::f32_at(mean, at)).collect()
    }

    fn keyed(&self, row: u32) -> KeyedCode<'_> {
        let row = row as usize;
        let length = self.shape.row_bytes();
        let hashes = &self.map[self.sections.hashes.clone()];
        KeyedCode {
            hash: u64::from_le_bytes(hashes.as_chunks().0[row]),
            code: &self.map[self.sections.rows.clone()][row * length..][..length],
            scale: self.scale(row),
        }
    }
}
