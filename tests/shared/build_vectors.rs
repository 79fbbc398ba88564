//! Vectors of texts, built without an engine.

use std::{borrow::Cow, path::Path};

use verbatim_base::call::Stop;
use verbatim_embed::{EmbedProgress, Model, Texts};
use verbatim_index::{VectorBuilder, VectorOptions, Vectors};

/// Builds the vectors of a segment as the engine does.
pub(crate) fn build_with(
    segment: &Path,
    model: &Model,
    texts: &[String],
    options: VectorOptions,
    stop: &Stop,
    progress: &mut dyn FnMut(EmbedProgress),
) -> Result<Vectors, Box<dyn std::error::Error>> {
    let text = |doc_id: u32| Cow::Borrowed(texts[doc_id as usize].as_str());
    let texts = Texts { count: texts.len() as u32, text: &text };
    let cache = segment.parent().unwrap();
    let encoder = model.encoder(cache, &texts, options.threads, stop, progress)?;
    let (name, dimensions) = (model.name(), encoder.dimensions());
    let mut builder = VectorBuilder::begin(segment, name, dimensions, texts.count, options)?;
    encoder
        .run::<Box<dyn std::error::Error>>(&mut |rows, scales| Ok(builder.add(rows, scales)?))?;
    Ok(builder.finish(stop, &mut |_| ())?)
}
