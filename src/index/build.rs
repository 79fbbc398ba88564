//! Builds a part: the sidecar, the posting lists, the manifest.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Error, Snapshot,
    invert::{Inverter, Resources},
    postings,
    segment::{COLUMNS, COMMON, GRAMS, Manifest, ROWS},
    store::{self, Conversation, Document},
};
use crate::{
    failpoint,
    model::Stop,
    text::{
        grams::{CommonGrams, Gram},
        like::is_regular,
    },
};

/// What is known of the messages before they are read.
#[derive(Clone, Copy, Debug)]
pub struct BuildPlan<'a> {
    /// Every conversation; documents name them by their place here.
    pub conversations: &'a [Conversation],
    /// Texts of messages spread over all of them; they tell which grams are common.
    pub sample: &'a [String],
    /// The snapshot that the part is to be searched with: its grams are common here too.
    pub beside: Option<&'a Snapshot>,
    /// How many messages there are.
    pub messages: u32,
    /// How many bytes their texts have, about.
    pub text_bytes: u64,
}

/// A part under construction, in a folder of its own.
#[derive(Debug)]
pub struct Build<'a> {
    folder: PathBuf,
    plan: BuildPlan<'a>,
    common: Arc<CommonGrams>,
    resources: Resources,
    rows: store::Writer,
    texts: Inverter,
    irregular_titles: Vec<bool>,
    text_bytes: u64,
    added: u32,
}

/// What a finished build holds, and what it takes on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Messages indexed.
    pub messages: u32,
    /// Bytes of text in them.
    pub text_bytes: u64,
    /// Bytes of posting lists.
    pub index_bytes: u64,
    /// Bytes of the sidecar.
    pub sidecar_bytes: u64,
}

impl<'a> Build<'a> {
    /// Begins a part in `folder`, which must be empty.
    pub fn start(folder: &Path, plan: BuildPlan<'a>, resources: Resources) -> Result<Self, Error> {
        let failed = |error| Error::Write { path: folder.to_owned(), error };
        let sample = || plan.sample.iter().map(String::as_str);
        let common = match plan.beside {
            Some(snapshot) => Arc::clone(&snapshot.common),
            None => Arc::new(CommonGrams::of_sample(sample())),
        };
        // The order and the columns take some 60 bytes a message beside what sorting takes.
        let resources = Resources {
            memory: resources.memory.saturating_sub(60 * plan.messages as usize),
            threads: resources.threads,
        };
        let texts =
            Inverter::start(folder, Arc::clone(&common), sample(), plan.text_bytes, resources)
                .map_err(failed)?;
        let rows =
            store::Writer::create(&folder.join(ROWS), plan.messages as usize).map_err(failed)?;
        failpoint::pass("part begun");
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
            rows,
            texts,
            text_bytes: 0,
            added: 0,
        })
    }

    /// Adds the next message in result order.
    pub fn add(&mut self, document: &Document<'_>) -> Result<(), Error> {
        let regular = !self.irregular_titles[document.conversation as usize]
            && document.shown.is_none_or(is_regular)
            && document.stored.is_none_or(is_regular);
        let failed = |error| Error::Write { path: self.folder.clone(), error };
        let titled = self.plan.conversations[document.conversation as usize].title.is_some();
        self.rows.add(document, regular, titled).map_err(failed)?;
        if regular {
            let text = |bytes| std::str::from_utf8(bytes).expect("regular text is UTF-8");
            self.texts
                .add(self.added, document.shown.map_or("", text), document.stored.map(text))
                .map_err(failed)?;
        }
        self.text_bytes += document.shown.map_or(0, <[u8]>::len) as u64;
        self.added += 1;
        Ok(())
    }

    /// Writes the posting lists and the manifest, and makes all of it durable; `progress` is told
    /// the share of the lists that is written.
    pub fn finish(self, stop: &Stop, mut progress: impl FnMut(f64)) -> Result<Size, Error> {
        let Build { folder, plan, common, resources, rows, texts, irregular_titles, .. } = self;
        let failed = |error| match stop.requested() {
            true => Error::Stopped,
            false => Error::Write { path: folder.clone(), error },
        };
        let title = |place: usize| match irregular_titles[place] {
            true => "",
            false => std::str::from_utf8(plan.conversations[place].title_bytes())
                .expect("regular text is UTF-8"),
        };
        let title_bytes = plan.conversations.iter().map(|c| c.title_bytes().len() as u64).sum();
        let sample = (0..plan.conversations.len()).step_by(1 + plan.conversations.len() / 20_000);
        let mut titles = Inverter::start(
            &folder,
            Arc::clone(&common),
            sample.map(title),
            title_bytes,
            Resources { memory: resources.memory / 8, threads: resources.threads },
        )
        .map_err(failed)?;
        for place in 0..plan.conversations.len() {
            titles.add(place as u32, title(place), None).map_err(failed)?;
        }
        failpoint::pass("part filled");
        let grams = folder.join(GRAMS);
        fs::create_dir(&grams).map_err(failed)?;
        let share = |gram: Gram| gram.0 as f64 / u64::MAX as f64;
        postings::write(
            &grams,
            self.added,
            texts,
            titles,
            &rows,
            plan.conversations.len(),
            |gram| {
                progress(share(gram));
                if stop.requested() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
            },
        )
        .map_err(|error| failed(io::Error::other(error)))?;
        failpoint::pass("posting lists written");
        let layout = rows.finish(&folder.join(COLUMNS), plan.conversations).map_err(failed)?;
        let mut file = File::create_new(folder.join(COMMON)).map_err(failed)?;
        let packed: Vec<u8> = common.packed().into_iter().flat_map(u64::to_le_bytes).collect();
        file.write_all(&packed).map_err(failed)?;
        drop(file);
        failpoint::pass("part written");
        let manifest = Manifest::seal(&folder, layout, self.text_bytes).map_err(failed)?;
        Ok(Size {
            messages: self.added,
            text_bytes: self.text_bytes,
            index_bytes: manifest.bytes(false),
            sidecar_bytes: manifest.bytes(true),
        })
    }
}
