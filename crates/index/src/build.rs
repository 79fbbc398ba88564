//! Builds a segment: the document store, the posting lists, the manifest.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::artifact::write_file;
use super::invert::{Inverter, Resources};
use super::postings::{DocBits, PostingsWriter};
use super::segment::{COLUMNS, COMMON, GRAMS, PLAIN, ROWS, SIGNATURES, SegmentManifest, Size};
use super::signature::SignatureWriter;
use super::store::{ConversationTitle, DocStoreWriter, Document};
use super::{Result, Snapshot, lists, write_error, write_error_unless_stopped};
use verbatim_base::{call::Stop, failpoint, private};
use verbatim_text::{fold::fold, grams::CommonGrams, like::is_regular};

/// The facts about a segment that are known before its messages are read.
#[derive(Clone, Copy, Debug)]
pub struct BuildPlan<'a> {
    /// All conversations. Documents refer to a conversation by its place in this list.
    pub conversations: &'a [ConversationTitle],
    /// Sampled texts from all parts of the database. They decide which grams are common.
    pub sample: &'a [String],
    /// The snapshot that the segment is added to. The segment uses the snapshot's common grams.
    pub beside: Option<&'a Snapshot>,
    /// The number of messages that will be added. It only sets the sizes of buffers.
    pub messages: u32,
    /// The approximate total length of the texts in bytes.
    pub text_bytes: u64,
}

/// The maximum number of bytes of the sample that are read: enough to find the grams in a fiftieth
/// of the texts.
const MAX_SAMPLED: usize = 4 << 20;

/// A segment under construction.
#[derive(Debug)]
pub struct Build<'a> {
    folder: PathBuf,
    plan: BuildPlan<'a>,
    common: Arc<CommonGrams>,
    resources: Resources,
    store: DocStoreWriter,
    texts: Inverter,
    signatures: SignatureWriter,
    /// For each message, whether its text is plain: folding changes its ASCII letters only.
    plain: Vec<bool>,
    irregular_titles: Vec<bool>,
    text_bytes: u64,
    added: u32,
}

impl<'a> Build<'a> {
    /// Begins a segment in an empty folder.
    pub fn start(folder: &Path, plan: BuildPlan<'a>, resources: Resources) -> Result<Self> {
        let sampled: usize = plan.sample.iter().map(String::len).sum();
        let step = sampled.div_ceil(MAX_SAMPLED).max(1);
        let sample: Vec<&str> = plan.sample.iter().step_by(step).map(String::as_str).collect();
        let common = match plan.beside {
            Some(snapshot) => Arc::clone(&snapshot.common),
            None => Arc::new(CommonGrams::from_sample(sample.iter().copied())),
        };
        // The document store's columns take about 60 bytes per message.
        let resources = Resources {
            memory: resources.memory.saturating_sub(60 * plan.messages as usize),
            threads: resources.threads,
        };
        let texts = Inverter::start(
            folder,
            Arc::clone(&common),
            sample.iter().copied(),
            plan.text_bytes,
            resources,
        )
        .map_err(write_error(folder))?;
        let messages = plan.messages as usize;
        let store =
            DocStoreWriter::create(folder, ROWS, messages, plan.conversations.len(), &sample)
                .map_err(write_error(folder))?;
        let signatures =
            SignatureWriter::create(folder, SIGNATURES).map_err(write_error(folder))?;
        failpoint::pass("segment begun");
        Ok(Build {
            folder: folder.to_owned(),
            irregular_titles: plan
                .conversations
                .iter()
                .map(|c| !is_regular(c.title_bytes()))
                .collect(),
            plan,
            common,
            resources,
            store,
            texts,
            signatures,
            plain: Vec::with_capacity(messages),
            text_bytes: 0,
            added: 0,
        })
    }

    /// Adds the next message in result order.
    pub fn add(&mut self, document: &Document<'_>) -> Result<()> {
        let is_plain = self.write(document).map_err(write_error(&self.folder))?;
        self.plain.push(is_plain);
        self.text_bytes += document.shown.map_or(0, <[u8]>::len) as u64;
        self.added += 1;
        Ok(())
    }

    fn write(&mut self, document: &Document<'_>) -> io::Result<bool> {
        let regular = !self.irregular_titles[document.conversation as usize]
            && document.shown.is_none_or(is_regular)
            && document.stored.is_none_or(is_regular);
        let titled = self.plan.conversations[document.conversation as usize].title.is_some();
        self.store.add(document, regular, titled)?;
        if !regular {
            return Ok(false);
        }
        let shown = regular_text(document.shown.unwrap_or_default());
        let stored = document.stored.map(regular_text);
        let is_loose = self.texts.add(self.added, shown, stored)?;
        if stored.is_some() {
            return Ok(false);
        }
        self.signatures.add(self.added, shown)?;
        Ok(!is_loose && is_folded(shown))
    }

    /// Writes the posting lists and the manifest, and makes the segment durable. Calls `progress` with the
    /// written share of the lists.
    pub fn finish(self, stop: &Stop, mut progress: impl FnMut(f64)) -> Result<Size> {
        let folder = self.folder.clone();
        self.finish_files(stop, &mut progress).map_err(write_error_unless_stopped(&folder, stop))
    }

    fn finish_files(self, stop: &Stop, progress: &mut impl FnMut(f64)) -> io::Result<Size> {
        let titles = self.invert_titles()?;
        failpoint::pass("segment filled");
        let Build { folder, plan, common, store, texts, signatures, plain, .. } = self;
        let grams = folder.join(GRAMS);
        private::create_dir(&grams)?;
        let postings = PostingsWriter { texts, titles, store: &store };
        let written = postings.write(&grams, |gram| {
            progress(gram.0 as f64 / u64::MAX as f64);
            stop.check(io::ErrorKind::Interrupted)?;
            Ok(())
        });
        written.map_err(lists::io_error)?;
        failpoint::pass("posting lists written");
        let (layout, [rows, columns]) = store.finish(&folder, COLUMNS, plan.conversations)?;
        let packed: Vec<u8> = common.packed().into_iter().flat_map(u64::to_le_bytes).collect();
        let common = write_file(&folder, COMMON, &packed)?;
        let plain = write_file(&folder, PLAIN, &DocBits::from_bools(&plain).to_bytes())?;
        let signatures = signatures.finish()?;
        failpoint::pass("segment written");
        let written = [rows, columns, common, plain, signatures];
        let (manifest, manifest_checksum) =
            SegmentManifest::seal(&folder, layout, self.text_bytes, &written)?;
        Ok(Size {
            messages: self.added,
            text_bytes: self.text_bytes,
            index_bytes: manifest.index_bytes(),
            store_bytes: manifest.store_bytes(),
            manifest_checksum,
        })
    }

    /// Inverts the titles of all conversations that have messages. Irregular titles count as empty.
    fn invert_titles(&self) -> io::Result<Inverter> {
        let conversations = self.plan.conversations;
        let bytes = conversations.iter().map(|c| c.title_bytes().len() as u64).sum();
        let sample = (0..conversations.len()).step_by(1 + conversations.len() / 20_000);
        let Resources { memory, threads } = self.resources;
        let mut titles = Inverter::start(
            &self.folder,
            Arc::clone(&self.common),
            sample.map(|place| self.title(place)),
            bytes,
            Resources { memory: memory / 8, threads },
        )?;
        for (number, place) in (0..).zip(self.store.conversations()) {
            titles.add(number, self.title(*place as usize), None)?;
        }
        Ok(titles)
    }

    fn title(&self, place: usize) -> &str {
        let is_irregular = self.irregular_titles[place];
        if is_irregular { "" } else { regular_text(self.plan.conversations[place].title_bytes()) }
    }
}

fn regular_text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("regular text is UTF-8")
}

/// Returns whether folding changes ASCII letters only.
fn is_folded(text: &str) -> bool {
    text.is_ascii() || text.chars().all(|c| c.is_ascii() || fold(c) == c)
}
