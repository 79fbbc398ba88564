//! Merges the segments that refreshes have added to an index into one segment.
//!
//! A merge reads only the index, so the database may change meanwhile. The next refresh adds the changes.

use std::{collections::HashMap, path::Path};

use super::refresh::{Progress, Sample, lock, within};
use crate::error::{Error, Result};
use crate::source::Source;
use verbatim_base::call::{Call, Stop};
use verbatim_base::map_faults::FaultWatch;
use verbatim_chats::db;
use verbatim_index::{
    self as index, Build, BuildPlan, Document, Resources, Size, Snapshot, SnapshotBuilder,
};

/// Share of messages that are deleted or in later segments, above which a merge is due.
const DUE: f64 = 0.1;

/// Share of messages that are deleted or in later segments, above which a merge does not stop for
/// writes to the database.
const OVERDUE: f64 = 0.3;

/// Merges the index of a source if a merge is due. Returns whether it was merged. If the database changes
/// during the merge, the merge is stopped, unless it is overdue.
pub(crate) fn merge_at_rest(source: &Source, resources: Resources, call: &Call) -> Result<bool> {
    let Ok(snapshot) = source.current_index(call) else { return Ok(false) };
    let share = unmerged(&snapshot);
    if share <= DUE {
        return Ok(false);
    }
    let path = source.path()?;
    let state = db::state(path)?;
    let halt = Call::default();
    let merged = source.merge(resources, &halt.stop, &mut |_| {
        let has_changed = share < OVERDUE && db::state(path).is_ok_and(|now| now != state);
        if has_changed || call.stop.requested() {
            halt.stop.request();
        }
    });
    match merged {
        Err(error) if error.is_stopped() => Ok(false),
        merged => merged,
    }
}

impl Source {
    /// Returns whether a merge is due: the index is current, and a large share of its messages is deleted or
    /// in later segments.
    pub fn is_merge_due(&self, call: &Call) -> bool {
        self.current_index(call).is_ok_and(|snapshot| unmerged(&snapshot) > DUE)
    }

    /// Merges all segments of the index into one, even if the index is outdated. Returns false if there was
    /// only one segment, without deleted messages.
    ///
    /// A merge reads only the index, which can be searched meanwhile.
    pub fn merge(
        &self,
        resources: Resources,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<bool> {
        let index_dir = self.index_dir()?;
        let writing = lock(&index_dir)?;
        let Some(current) = index_dir.current() else { return Ok(false) };
        let snapshot = index_dir.open(&current)?;
        if snapshot.sizes().len() == 1 && snapshot.messages() == snapshot.max_doc() {
            writing.clean();
            return Ok(false);
        }
        within(&writing, |folder| {
            let faults = FaultWatch::begin();
            let size = merge_into(folder, &snapshot, resources, stop, progress)?;
            if faults.has_noticed() || !snapshot.is_intact() {
                return Err(Error::Torn { folder: index_dir.folder().to_owned() });
            }
            let mut builder = SnapshotBuilder::new(snapshot.state(), snapshot.reading());
            builder.add(folder, &size);
            builder.publish(&writing)?;
            writing.record("merged", size.messages.into());
            Ok(Some(size))
        })?;
        Ok(true)
    }
}

/// Returns the share of messages that are in later segments or deleted.
fn unmerged(snapshot: &Snapshot) -> f64 {
    let sizes = snapshot.sizes();
    let deleted: u32 = sizes.iter().map(|(_, deleted)| deleted).sum();
    let later: u32 = sizes[1..].iter().map(|(messages, _)| messages).sum();
    f64::from(deleted + later) / f64::from(sizes[0].0.max(1))
}

/// Builds one segment of all messages of a snapshot that are not deleted.
fn merge_into(
    folder: &Path,
    snapshot: &Snapshot,
    resources: Resources,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<Size> {
    progress(Progress::Ordering { done: 0, total: u64::from(snapshot.messages()) });
    let mut doc_ids: Vec<u32> =
        (0..snapshot.max_doc()).filter(|doc_id| snapshot.is_alive(*doc_id)).collect();
    // Each segment is a sorted run, and the sort of the standard library merges such runs.
    doc_ids.sort_by(|a, b| snapshot.order(*a, *b));
    let (conversations, number_of) = renumber(snapshot);
    let mut sample = Sample::new(doc_ids.len(), resources);
    for doc_id in doc_ids.iter().step_by(sample.step(doc_ids.len())) {
        sample.add(snapshot.beginning(*doc_id, sample.bytes()).into_owned());
    }
    let plan = BuildPlan {
        conversations: &conversations,
        sample: &sample.texts,
        beside: None,
        messages: doc_ids.len() as u32,
        text_bytes: snapshot.text_bytes(),
    };
    let mut build = Build::start(folder, plan, resources)?;
    let starts: Vec<u32> = snapshot.segments().into_iter().map(|it| it.doc_ids.start).collect();
    let mut buffer = index::DocumentBuffer::default();
    let mut done = 0;
    let mut bytes = 0;
    for doc_id in &doc_ids {
        let segment = starts.partition_point(|start| start <= doc_id) - 1;
        let document = snapshot.document(*doc_id, &mut buffer);
        let conversation = number_of[segment][document.conversation as usize];
        bytes += document.shown.map_or(0, <[u8]>::len) as u64;
        build.add(&Document { conversation, ..document })?;
        done += 1;
        if done % 1024 == 0 {
            stop.check(db::Error::Stopped)?;
            progress(Progress::Reading { done, total: doc_ids.len() as u64, bytes });
        }
    }
    Ok(build.finish(stop, |share| progress(Progress::Writing(share)))?)
}

/// Returns the conversations of all segments without duplicates. For each segment, returns also the new
/// numbers of its conversations.
fn renumber(snapshot: &Snapshot) -> (Vec<index::ConversationTitle>, Vec<Vec<u32>>) {
    let mut conversations: Vec<index::ConversationTitle> = Vec::new();
    let mut numbers: HashMap<(Vec<u8>, Option<Vec<u8>>), u32> = HashMap::new();
    let mut number_of: Vec<Vec<u32>> = Vec::new();
    for segment in 0..snapshot.segments().len() {
        let mut in_segment = Vec::new();
        for number in 0..snapshot.conversations_in(segment) {
            let (id, title) = snapshot.conversation_in(segment, number);
            let title = title.map(<[u8]>::to_vec);
            let number = *numbers.entry((id.to_vec(), title.clone())).or_insert_with(|| {
                let id = String::from_utf8_lossy(id).into_owned();
                conversations.push(index::ConversationTitle { id, title });
                conversations.len() as u32 - 1
            });
            in_segment.push(number);
        }
        number_of.push(in_segment);
    }
    (conversations, number_of)
}
