//! Encodes many texts in order: with threads by the built-in model, or from a provider's cache.

use std::{borrow::Cow, fmt, ops::Range, path::Path, thread};

use super::cache::{self, Cache, CachedRow};
use super::{Error, Model, Result, Texts};
use verbatim_base::{call::Stop, int8::quantise};

/// Number of texts that a thread encodes before it checks again whether to stop.
const SLICE: u32 = 2048;

/// The number of texts that are sent to a provider before their vectors are made durable.
const BATCH_TEXTS: usize = 64;

/// Callback that receives the int8 rows of some vectors, joined into one slice, and their scales. Scale 0
/// means that a text has no vector.
pub(super) type Take<'a, E> = &'a mut dyn FnMut(&[u8], &[f32]) -> Result<(), E>;

/// The progress of encoding texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbedProgress {
    /// Texts that have a vector.
    pub done: u64,
    /// The number of texts to encode.
    pub total: u64,
}

/// Texts that are about to be encoded. [`Encoder::run`] gives their vectors.
pub struct Encoder<'a> {
    model: &'a Model,
    texts: &'a Texts<'a>,
    threads: usize,
    stop: &'a Stop,
    progress: &'a mut dyn FnMut(EmbedProgress),
    cache: Option<Cache>,
    dimensions: usize,
}

impl fmt::Debug for Encoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("dimensions", &self.dimensions).finish_non_exhaustive()
    }
}

impl Model {
    /// Prepares to encode texts on `threads` threads.
    ///
    /// Sends a provider all texts that are not in the cache in `folder`. Their vectors stay in the cache
    /// even if a later text fails, so no text is sent twice.
    pub fn encoder<'a>(
        &'a self,
        folder: &Path,
        texts: &'a Texts<'a>,
        threads: usize,
        stop: &'a Stop,
        progress: &'a mut dyn FnMut(EmbedProgress),
    ) -> Result<Encoder<'a>> {
        let cache = if self.is_built_in() {
            None
        } else {
            let mut cache = Cache::open(folder, self.name(), stop)?;
            fill(&mut cache, self, texts, stop, progress)?;
            Some(cache)
        };
        let dimensions = match cache.as_ref().and_then(Cache::dimensions) {
            Some(dimensions) => dimensions,
            None => self.dimensions(stop)?,
        };
        Ok(Encoder { model: self, texts, threads, stop, progress, cache, dimensions })
    }
}

impl Encoder<'_> {
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Passes the vectors of all texts to `take`, in order and in batches.
    pub fn run<E: From<Error>>(self, take: Take<'_, E>) -> Result<(), E> {
        match self.cache {
            Some(_) => self.read_cache(take),
            None => self.encode(take),
        }
    }

    fn read_cache<E: From<Error>>(mut self, take: Take<'_, E>) -> Result<(), E> {
        let Some(cache) = &mut self.cache else { return Ok(()) };
        let mut row = vec![0; self.dimensions];
        for number in 0..self.texts.count {
            self.stop.check(Error::Stopped)?;
            let scale = cache.get(cache::hash(&(self.texts.text)(number)), &mut row)?;
            if scale.is_none() {
                row.fill(0);
            }
            take(&row, &[scale.unwrap_or(0.0)])?;
        }
        Ok(())
    }

    fn encode<E: From<Error>>(self, take: Take<'_, E>) -> Result<(), E> {
        let Encoder { model, texts, stop, .. } = self;
        let count = texts.count;
        let threads = self.threads.max(1) as u32;
        let mut done = 0;
        for start in (0..count).step_by((SLICE * threads) as usize) {
            let end = count.min(start.saturating_add(SLICE * threads));
            let shares = thread::scope(|scope| {
                let threads: Vec<_> = (start..end)
                    .step_by(SLICE as usize)
                    .map(|from| from..end.min(from.saturating_add(SLICE)))
                    .map(|share| scope.spawn(move || encode_share(model, texts, share, stop)))
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| {
                        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    })
                    .collect::<Result<Vec<(Vec<u8>, Vec<f32>)>>>()
            });
            for (rows, scales) in shares? {
                done += scales.len() as u64;
                (self.progress)(EmbedProgress { done, total: u64::from(count) });
                take(&rows, &scales)?;
            }
        }
        Ok(())
    }
}

fn encode_share(
    model: &Model,
    texts: &Texts<'_>,
    numbers: Range<u32>,
    stop: &Stop,
) -> Result<(Vec<u8>, Vec<f32>)> {
    let mut rows = Vec::new();
    let mut scales = Vec::new();
    for number in numbers {
        // Texts are encoded one at a time to save memory, because a text that is not UTF-8 is copied.
        for vector in model.encode(&[&(texts.text)(number)], stop)? {
            let start = rows.len();
            rows.resize(start + vector.len(), 0);
            scales.push(quantise(&vector, &mut rows[start..]));
        }
    }
    Ok((rows, scales))
}

/// Sends a provider all texts that are not in its cache, and adds their vectors.
fn fill(
    cache: &mut Cache,
    model: &Model,
    texts: &Texts<'_>,
    stop: &Stop,
    progress: &mut dyn FnMut(EmbedProgress),
) -> Result<()> {
    let mut batch: Vec<(u128, Cow<'_, str>)> = Vec::new();
    for number in 0..texts.count {
        stop.check(Error::Stopped)?;
        let text = (texts.text)(number);
        let hash = cache::hash(&text);
        let is_wanted = !text.trim().is_empty() && !cache.has(hash);
        if is_wanted && batch.iter().all(|(other, _)| *other != hash) {
            batch.push((hash, text));
        }
        if batch.len() == BATCH_TEXTS || (number + 1 == texts.count && !batch.is_empty()) {
            let inputs: Vec<&str> = batch.iter().map(|(_, text)| text.as_ref()).collect();
            let vectors = model.encode(&inputs, stop)?;
            let dimensions = vectors.first().map_or(0, Vec::len);
            let mut rows = Vec::with_capacity(batch.len());
            for ((text, _), vector) in batch.drain(..).zip(vectors) {
                let mut row = vec![0; vector.len()];
                let scale = quantise(&vector, &mut row);
                rows.push(CachedRow { text, scale, row });
            }
            cache.add(dimensions, &rows)?;
            progress(EmbedProgress { done: u64::from(number + 1), total: u64::from(texts.count) });
        }
    }
    Ok(())
}
