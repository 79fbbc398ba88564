//! Makes one part of the parts that an index has grown by refreshes.
//!
//! Of the index alone, so that the database may go on changing; what has changed by then, a refresh
//! adds to the one part.

use std::{collections::HashMap, path::Path};

use crate::engine::{
    Engine, Error, Source,
    upkeep::refresh::{Progress, SAMPLE, lock, within},
};
use crate::{
    db::{self, Probe},
    index::{
        self, Build, BuildPlan, Document, IndexDir, Resources, Size, Snapshot, SnapshotBuilder,
    },
    map_faults,
    model::Stop,
};

/// The share of the messages that may stand in later parts or be dead before parts are folded.
const UNFOLDED: f64 = 0.1;

/// The share from which on folding no longer gives way to a database that is written to.
const OVERDUE: f64 = 0.3;

impl Engine {
    /// Returns whether the index of a source, which mirrors it, has so much in later parts or dead
    /// that searching it is slower than it could be.
    pub fn is_merge_due(&self, source: &Source) -> bool {
        self.current_index(source).is_ok_and(|snapshot| unfolded(&snapshot) > UNFOLDED)
    }

    /// Folds the index of a source if that is due, and gives way if the database changes meanwhile,
    /// unless that has been put off for too long; returns whether it has folded.
    pub(crate) fn merge_at_rest(
        &self,
        source: &Source,
        resources: Resources,
        stop: &Stop,
    ) -> Result<bool, Error> {
        let Ok(snapshot) = self.current_index(source) else { return Ok(false) };
        let share = unfolded(&snapshot);
        if share <= UNFOLDED {
            return Ok(false);
        }
        let state = db::state(&source.path)?;
        let halt = Stop::never();
        let mut look = |_| {
            let moved = share < OVERDUE && db::state(&source.path).is_ok_and(|now| now != state);
            if moved || stop.requested() {
                halt.request();
            }
        };
        match self.fold(source, resources, &halt, &mut look) {
            Err(error) if error.is_stopped() => Ok(false),
            folded => folded,
        }
    }

    /// Makes one part of all parts of a source's index, whichever state of the database it mirrors;
    /// returns whether there was more than one, or a message that was dead.
    ///
    /// Reads the index alone. It can be searched all the while.
    pub fn fold(
        &self,
        source: &Source,
        resources: Resources,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<bool, Error> {
        let index_dir =
            IndexDir::of(&self.config().index_folder(), Probe::of(&source.path)?.real());
        let writing = lock(&index_dir)?;
        let Some(current) = index_dir.current() else { return Ok(false) };
        let snapshot = index_dir.open(&current)?;
        if snapshot.sizes().len() == 1 && snapshot.messages() == snapshot.max_doc() {
            writing.clean();
            return Ok(false);
        }
        within(&writing, |folder| {
            let before = map_faults::count();
            let size = fold_into(folder, &snapshot, resources, stop, progress)?;
            if map_faults::count() != before || !snapshot.is_intact() {
                return Err(Error::Torn { folder: index_dir.folder().to_owned() });
            }
            let mut draft = SnapshotBuilder::new(snapshot.state(), snapshot.reading());
            draft.add(folder);
            draft.publish(&writing)?;
            writing.record("folded", size.messages.into());
            Ok(Some(size))
        })?;
        Ok(true)
    }
}

/// Returns the share of messages in later parts and of dead ones.
fn unfolded(snapshot: &Snapshot) -> f64 {
    let sizes = snapshot.sizes();
    let dead: u32 = sizes.iter().map(|(_, dead)| dead).sum();
    let later: u32 = sizes[1..].iter().map(|(messages, _)| messages).sum();
    f64::from(dead + later) / f64::from(sizes[0].0.max(1))
}

/// Builds one part of everything that is live in a snapshot.
fn fold_into(
    folder: &Path,
    snapshot: &Snapshot,
    resources: Resources,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<Size, Error> {
    progress(Progress::Ordering);
    let mut doc_ids: Vec<u32> =
        (0..snapshot.max_doc()).filter(|doc_id| snapshot.is_live(*doc_id)).collect();
    // Runs in order already, of which the standard library's sort makes one.
    doc_ids.sort_by(|a, b| snapshot.order(*a, *b));
    let mut conversations: Vec<index::Conversation> = Vec::new();
    let mut numbers: HashMap<(Vec<u8>, Option<Vec<u8>>), u32> = HashMap::new();
    // By part and the conversation's number there.
    let mut number_of: Vec<Vec<u32>> = Vec::new();
    for part in 0..snapshot.parts().len() {
        let mut in_part = Vec::new();
        for number in 0..snapshot.conversations_in(part) {
            let (id, title) = snapshot.conversation_in(part, number);
            let title = title.map(<[u8]>::to_vec);
            let number = *numbers.entry((id.to_vec(), title.clone())).or_insert_with(|| {
                let id = String::from_utf8_lossy(id).into_owned();
                conversations.push(index::Conversation { id, title });
                conversations.len() as u32 - 1
            });
            in_part.push(number);
        }
        number_of.push(in_part);
    }
    let sample: Vec<String> = doc_ids
        .iter()
        .step_by(doc_ids.len().div_ceil(SAMPLE.0).max(1))
        .map(|doc_id| {
            let text = snapshot.content(*doc_id);
            let bytes = &text.as_bytes()[..text.len().min(SAMPLE.1)];
            String::from_utf8_lossy(bytes).into_owned()
        })
        .collect();
    let plan = BuildPlan {
        conversations: &conversations,
        sample: &sample,
        beside: None,
        messages: doc_ids.len() as u32,
        text_bytes: snapshot.text_bytes(),
    };
    let mut build = Build::start(folder, plan, resources)?;
    let starts: Vec<u32> = snapshot.parts().into_iter().map(|part| part.doc_ids.start).collect();
    let mut id = String::new();
    let (mut done, mut bytes) = (0, 0);
    for doc_id in &doc_ids {
        let part = starts.partition_point(|start| start <= doc_id) - 1;
        let document = snapshot.document(*doc_id, &mut id);
        let conversation = number_of[part][document.conversation as usize];
        bytes += document.shown.map_or(0, <[u8]>::len) as u64;
        build.add(&Document { conversation, ..document })?;
        done += 1;
        if done % 1024 == 0 {
            if stop.requested() {
                return Err(db::Error::Stopped.into());
            }
            progress(Progress::Reading { done, total: doc_ids.len() as u64, bytes });
        }
    }
    Ok(build.finish(stop, |share| progress(Progress::Writing(share)))?)
}
