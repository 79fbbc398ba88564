//! Makes a part's vectors: embeds every text, rounds, and puts the file in place.

use std::{borrow::Cow, fmt, ops::Range, path::Path, thread};

use super::{
    Error, Model, Vectors,
    cache::{self, Cache},
    cells,
    file::{Shape, Writer},
    vectors::{EXACT_MOST, quantise},
};
use crate::model::Stop;

/// Texts that a thread embeds between two looks at the stop.
const SLICE: u32 = 2048;

/// Texts that a provider is asked for before their vectors are made durable.
const KEPT: usize = 64;

/// How to build vectors.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads that embed, where the model is the built-in one.
    pub threads: usize,
    /// Vectors above which they stand in cells; the default suits all but tests.
    pub exact_most: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { threads: 1, exact_most: EXACT_MOST }
    }
}

/// What is built of.
pub struct Texts<'t> {
    /// How many doc ids there are.
    pub count: u32,
    /// The text in a doc id; empty for what is not to be found.
    pub text: &'t (dyn Fn(u32) -> Cow<'t, str> + Sync),
}

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// Texts are embedded.
    Embedding {
        /// Texts that have a vector.
        done: u64,
        /// Texts there are.
        total: u64,
    },
    /// Many vectors are put into cells; the share of that work that is done.
    Dividing(f64),
}

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Vectors {
    /// Builds the vectors of a part and opens them.
    ///
    /// What is there is replaced in one step at the end; readers of it keep what they have open.
    /// Of a provider's vectors, those that were made are kept beside the part however it ends, and
    /// not asked for again.
    pub fn build(
        part: &Path,
        model: &Model,
        texts: &Texts<'_>,
        options: Options,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vectors, Error> {
        let count = texts.count;
        let total = u64::from(count);
        let mut cache = match model.is_built_in() {
            true => None,
            false => Some(fill(part, model, texts, stop, progress)?),
        };
        let dimensions = match cache.as_ref().and_then(Cache::dimensions) {
            Some(dimensions) => dimensions,
            None => model.dimensions(stop)?,
        };
        let mut embed = |take: Take<'_>| match &mut cache {
            None => embed(model, texts, options.threads, stop, take),
            Some(cache) => gather(cache, dimensions, texts, stop, take),
        };
        let mut scales = Vec::with_capacity(count as usize);
        let mut writer = Writer::begin(part)?;
        let mut done = |scales: &[f32]| {
            // Of a provider's vectors that was told while they were made.
            if model.is_built_in() {
                progress(Progress::Embedding { done: scales.len() as u64, total });
            }
        };
        let shape = if count <= options.exact_most {
            embed(&mut |rows, more| {
                scales.extend(more);
                done(&scales);
                writer.write(rows)
            })?;
            writer.write_numbers(scales.iter().map(|scale| scale.to_le_bytes()))?;
            Shape::new(model.name(), dimensions, count, 0)
        } else {
            let mut spool = writer.spool()?;
            embed(&mut |rows, more| {
                scales.extend(more);
                done(&scales);
                spool.write(rows)
            })?;
            let rows = spool.read()?;
            let rows = cells::Rows { rows: &rows, scales: &scales, dimensions };
            let number = cells::number(count);
            let divided = cells::divide(rows, number, options.threads, stop, &mut |share| {
                progress(Progress::Dividing(share));
            })?;
            write_by_cell(&mut writer, rows, &divided)?;
            Shape::new(model.name(), dimensions, count, number)
        };
        writer.publish(part, shape)?;
        Vectors::open(part, model.name(), count)
            .ok_or_else(|| Error::Vanished { path: part.to_owned() })
    }
}

/// Takes the rows and scales of some texts, in order.
type Take<'a> = &'a mut dyn FnMut(&[u8], &[f32]) -> Result<(), Error>;

/// Asks a provider for the vectors of all texts that the cache beside the part has not.
fn fill(
    part: &Path,
    model: &Model,
    texts: &Texts<'_>,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<Cache, Error> {
    let mut cache = Cache::open(part.parent().unwrap_or(part), model.name(), stop)?;
    if let Some(before) = cache.dimensions() {
        match model.dimensions(stop) {
            Ok(now) if now != before => cache.reset()?,
            Err(Error::Stopped) => return Err(Error::Stopped),
            // Where it does not answer, the cache may hold all there is to know.
            _ => {}
        }
    }
    match fill_cache(&mut cache, model, texts, stop, progress) {
        // The provider has another model under the same name now.
        Err(Error::Lengths { .. }) => {
            cache.reset()?;
            fill_cache(&mut cache, model, texts, stop, progress)?;
        }
        filled => filled?,
    }
    Ok(cache)
}

fn fill_cache(
    cache: &mut Cache,
    model: &Model,
    texts: &Texts<'_>,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let total = u64::from(texts.count);
    let mut asked: Vec<(u128, Cow<'_, str>)> = Vec::new();
    for doc_id in 0..texts.count {
        if stop.requested() {
            return Err(Error::Stopped);
        }
        let text = (texts.text)(doc_id);
        let hash = cache::hash(&text);
        let is_wanted = !text.trim().is_empty() && !cache.has(hash);
        if is_wanted && asked.iter().all(|(other, _)| *other != hash) {
            asked.push((hash, text));
        }
        if asked.len() == KEPT || (doc_id + 1 == texts.count && !asked.is_empty()) {
            let inputs: Vec<&str> = asked.iter().map(|(_, text)| text.as_ref()).collect();
            let vectors = model.encode(&inputs, stop)?;
            let dimensions = vectors.first().map_or(0, Vec::len);
            let records = asked.iter().zip(vectors).map(|((hash, _), vector)| {
                let mut row = vec![0; vector.len()];
                let scale = quantise(&vector, &mut row);
                (*hash, scale, row)
            });
            cache.add(dimensions, records)?;
            asked.clear();
            progress(Progress::Embedding { done: u64::from(doc_id + 1), total });
        }
    }
    Ok(())
}

/// Hands over what the cache has of every text.
fn gather(
    cache: &mut Cache,
    dimensions: usize,
    texts: &Texts<'_>,
    stop: &Stop,
    take: Take<'_>,
) -> Result<(), Error> {
    let mut row = vec![0; dimensions];
    for doc_id in 0..texts.count {
        if stop.requested() {
            return Err(Error::Stopped);
        }
        let scale = cache.get(cache::hash(&(texts.text)(doc_id)), &mut row)?;
        if scale.is_none() {
            row.fill(0);
        }
        take(&row, &[scale.unwrap_or(0.0)])?;
    }
    Ok(())
}

/// Embeds every text in order, and hands over the rows and scales of some at a time.
fn embed(
    model: &Model,
    texts: &Texts<'_>,
    threads: usize,
    stop: &Stop,
    take: Take<'_>,
) -> Result<(), Error> {
    let threads = threads.max(1) as u32;
    for start in (0..texts.count).step_by((SLICE * threads) as usize) {
        let end = texts.count.min(start.saturating_add(SLICE * threads));
        let shares = thread::scope(|scope| {
            let threads: Vec<_> = (start..end)
                .step_by(SLICE as usize)
                .map(|from| from..end.min(from.saturating_add(SLICE)))
                .map(|share| scope.spawn(move || embed_share(model, texts, share, stop)))
                .collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect::<Result<Vec<(Vec<u8>, Vec<f32>)>, Error>>()
        });
        for (rows, scales) in shares? {
            take(&rows, &scales)?;
        }
    }
    Ok(())
}

fn embed_share(
    model: &Model,
    texts: &Texts<'_>,
    doc_ids: Range<u32>,
    stop: &Stop,
) -> Result<(Vec<u8>, Vec<f32>), Error> {
    let texts: Vec<Cow<'_, str>> = doc_ids.map(texts.text).collect();
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    let (mut rows, mut scales) = (Vec::new(), Vec::new());
    for vector in model.encode(&texts, stop)? {
        let start = rows.len();
        rows.resize(start + vector.len(), 0);
        scales.push(quantise(&vector, &mut rows[start..]));
    }
    Ok((rows, scales))
}

/// Writes every section of a file whose vectors stand in cells.
fn write_by_cell(
    writer: &mut Writer,
    rows: cells::Rows<'_>,
    cells: &cells::Clusters,
) -> Result<(), Error> {
    let count = cells.of.len();
    let mut starts = vec![0_u32; cells.scales.len() + 1];
    for cell in &cells.of {
        starts[*cell as usize + 1] += 1;
    }
    for cell in 1..starts.len() {
        starts[cell] += starts[cell - 1];
    }
    let mut next = starts.clone();
    let (mut doc_ids, mut places) = (vec![0_u32; count], vec![0_u32; count]);
    for (doc_id, cell) in cells.of.iter().enumerate() {
        let place = next[*cell as usize];
        next[*cell as usize] += 1;
        doc_ids[place as usize] = doc_id as u32;
        places[doc_id] = place;
    }
    for doc_id in &doc_ids {
        writer.write(rows.row(*doc_id as usize))?;
    }
    let bytes = |numbers: &[u32]| numbers.iter().map(|number| number.to_le_bytes()).collect();
    let scales = |scales: &mut dyn Iterator<Item = f32>| scales.map(f32::to_le_bytes).collect();
    let sections: [Vec<[u8; 4]>; 5] = [
        scales(&mut doc_ids.iter().map(|doc_id| rows.scales[*doc_id as usize])),
        bytes(&doc_ids),
        bytes(&places),
        bytes(&starts),
        scales(&mut cells.scales.iter().copied()),
    ];
    for section in sections {
        writer.write_numbers(section.into_iter())?;
    }
    writer.write(&cells.centres)
}
