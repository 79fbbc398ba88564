//! Copies the contents of files into an attachment store, within its size limits.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::{collections::HashMap, fs, thread, time::Duration};

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{alphabet, read::DecoderReader};
use sha2::{Digest, Sha256};

use super::attachment::Attachment;
use super::media_type::{PLAIN_TEXT, type_of};
use super::store::{AttachmentStore, FILES, UNDER_WAY, failed, hex};
use crate::error::{Error, Result};
use verbatim_base::call::Call;
use verbatim_base::private::{self, FileLock};

/// Maximum size of one file in bytes. Larger files are left out.
pub const MAX_FILE: u64 = 100_000_000;

/// Maximum size of all files together, in bytes.
pub const MAX_ALL: u64 = 8_000_000_000;

/// Wait between two attempts to lock the store.
const PAUSE: Duration = Duration::from_millis(50);

/// Number of bytes that are copied at once. The first block tells the type of a file.
const BLOCK: usize = 64 << 10;

/// Base64 with or without `=` at its end.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Debug)]
pub(super) struct AttachmentWriter<'a> {
    pub(super) store: &'a AttachmentStore,
    pub(super) call: &'a Call,
    /// The lock of the store and the total size of its files; `None` until the first file is kept.
    open: Option<(FileLock, u64)>,
}

/// The reason why a file is not kept.
pub(super) enum LeftOut {
    TooLarge,
    NoRoom,
    /// The file cannot be read. The sentence says why, without the file's name.
    Unreadable(String),
    /// A transcript has something else in the place of the file's content. The sentence says what.
    NoContent(&'static str),
    /// The store cannot be written.
    Failed(Error),
}

impl<'a> AttachmentWriter<'a> {
    pub(super) fn new(store: &'a AttachmentStore, call: &'a Call) -> AttachmentWriter<'a> {
        AttachmentWriter { store, call, open: None }
    }

    /// Checks the size of a file against the limits of the store.
    pub(super) fn admit(&mut self, bytes: u64) -> Result<(), LeftOut> {
        let used = self.begin().map_err(LeftOut::Failed)?;
        if bytes > MAX_FILE {
            return Err(LeftOut::TooLarge);
        }
        if used + bytes > MAX_ALL { Err(LeftOut::NoRoom) } else { Ok(()) }
    }

    pub(super) fn write_file(&mut self, input: &mut dyn Read) -> Result<Attachment, LeftOut> {
        let store = self.store;
        let io_failed = |source| LeftOut::Failed(failed(&store.folder)(source));
        self.begin().map_err(LeftOut::Failed)?;
        let mut file = store.begun_file().map_err(io_failed)?;
        let mut block = vec![0; BLOCK];
        let mut hash = Sha256::new();
        let mut bytes = 0;
        let mut media_type = None;
        loop {
            let read = match input.read(&mut block) {
                Ok(read) => &block[..read],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(LeftOut::Unreadable(error.to_string())),
            };
            media_type.get_or_insert_with(|| type_of(read));
            if read.is_empty() {
                break;
            }
            bytes += read.len() as u64;
            self.admit(bytes)?;
            hash.update(read);
            file.write_all(read).map_err(io_failed)?;
        }
        let sha256 = hex(&hash.finalize());
        let path = store.file_path(&sha256);
        if fs::metadata(&path).is_ok_and(|found| found.len() == bytes) {
            drop(file);
        } else {
            private::replace(file.into_temp_path(), &path).map_err(io_failed)?;
            self.open.as_mut().expect("it is open").1 += bytes;
        }
        let media_type = media_type.unwrap_or(PLAIN_TEXT).to_owned();
        Ok(Attachment { media_type, bytes, sha256, ..Attachment::default() })
    }

    /// Waits before the lock is tried again; returns false if the work is stopped.
    pub(super) fn wait(&self) -> bool {
        thread::sleep(PAUSE);
        !self.call.stop.requested()
    }

    /// Locks the store, if this import has not locked it yet; returns the bytes of its files.
    pub(super) fn begin(&mut self) -> Result<u64> {
        if let Some((_, used)) = &self.open {
            return Ok(*used);
        }
        let lock = self.store.lock(&mut |_| self.wait())?;
        let contents = self.store.hashed(FILES, "")?;
        let used = contents.iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum();
        self.store.mark()?;
        self.open = Some((lock, used));
        Ok(used)
    }

    /// Copies a file that a transcript holds as Base64 into the store.
    pub(super) fn write_base64(&mut self, text: &str) -> Result<Attachment, LeftOut> {
        let mut text = Cow::Borrowed(text);
        if text.contains(|c: char| c.is_ascii_whitespace() || ['-', '_'].contains(&c)) {
            let lines = text.split_ascii_whitespace().collect::<String>();
            text = Cow::Owned(lines.replace('-', "+").replace('_', "/"));
        }
        if text.is_empty() {
            return Err(LeftOut::NoContent("the transcript has nothing of its content"));
        }
        if text.contains("://") {
            return Err(LeftOut::NoContent(
                "the transcript has an address in the place of its content",
            ));
        }
        match self.write_file(&mut DecoderReader::new(text.as_bytes(), &BASE64)) {
            Err(LeftOut::Unreadable(_)) => Err(LeftOut::NoContent(
                "the transcript has something else in the place of its content",
            )),
            written => written,
        }
    }

    pub(super) fn write_lists(&self, lists: HashMap<String, Vec<Attachment>>) -> Result<()> {
        for (conversation, list) in lists {
            let path = self.store.list_path(&conversation);
            let written = serde_json::to_vec(&list).map_err(io::Error::from);
            written.and_then(|list| self.store.put(&path, &list)).map_err(failed(&path))?;
        }
        Ok(())
    }

    /// Unlocks the store. `is_whole` says whether a list names every new file.
    pub(super) fn close(&mut self, is_whole: bool) -> Result<()> {
        match self.open.take() {
            Some(_lock) if is_whole => {
                let path = self.store.folder.join(UNDER_WAY);
                fs::remove_file(&path).map_err(failed(&path))
            }
            _ => Ok(()),
        }
    }
}
