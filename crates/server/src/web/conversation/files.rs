//! The pictures and files of messages, from the file store of the home.
//!
//! A file is hostile input too. Only pictures of a few raster formats are shown, and their first
//! bytes tell the type. Every other file is a download, and no browser acts on its content.

use std::io::{self, Read};
use std::task::{Context, Poll, ready};
use std::{fs::File, pin::Pin, sync::Arc};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use maud::{Markup, html};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::web::frame::site::{Problem, Site, SiteState, refused, run};
use crate::web::frame::upload::plain_name;
use verbatim_answer::conversation::DescribedConversation;
use verbatim_base::{call::Call, model::Hit};
use verbatim_engine::{Attachment, AttachmentFiles, SourceKind};
use verbatim_text::address::{encoded, id_in_path};
use verbatim_text::amount::bytes;

/// The types of pictures that are shown. SVG is left out, because it can hold scripts.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The maximum size of a picture that is shown, in bytes; larger pictures are downloads.
const MOST_SHOWN: u64 = 32 << 20;

const BLOCK: usize = 256 << 10;

/// The policy for a file that is opened in a tab of its own: it may run no script and load nothing.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'";

pub(super) struct MessageFiles {
    store: AttachmentFiles,
    address: String,
    kind: SourceKind,
    conversation: String,
    all: Vec<Attachment>,
    failure: Option<String>,
}

impl MessageFiles {
    pub(super) fn read(
        site: &Site,
        card: &DescribedConversation,
        kind: SourceKind,
    ) -> MessageFiles {
        let store = AttachmentFiles::from_config(site.engine.config());
        let listed = store.list(kind, &card.id);
        let failure = listed.as_ref().err().map(ToString::to_string);
        let all = listed.unwrap_or_default();
        let address = card.address();
        let conversation = card.id.clone();
        MessageFiles { store, address, kind, conversation, all, failure }
    }

    fn of_message<'a>(&'a self, hit: &'a Hit<'_>) -> impl Iterator<Item = &'a Attachment> {
        self.all.iter().filter(|file| file.is_of(&self.conversation, &hit.message_id))
    }

    pub(super) fn problem(&self) -> Markup {
        html! {
            @if let Some(failure) = &self.failure {
                p.say.warn { b { "Note" } " The pictures and files of this conversation are not shown: " (failure) "." }
            }
        }
    }

    pub(super) fn html(&self, hit: &Hit<'_>) -> Markup {
        let files: Vec<&Attachment> = self.of_message(hit).collect();
        html! {
            @if !files.is_empty() {
                ul.files aria-label="Pictures and files" {
                    @for file in files { li { (self.file(file)) } }
                }
            }
        }
    }

    pub(super) fn pictures(&self, hit: &Hit<'_>) -> usize {
        self.of_message(hit).filter(|file| is_picture(file) && self.store.has(file)).count()
    }

    fn file(&self, file: &Attachment) -> Markup {
        let address = format!("{}/file/{}", self.address, file.sha256());
        let name = plain_name(&file.name);
        html! {
            @if !self.store.has(file) {
                span.missing { bdi { (name) } " " span.note { "The copy is missing. " (remedy(self.kind)) } }
            } @else if is_picture(file) {
                // The width and height are set, so that the page does not move when the picture loads.
                a.thumb href=(address) {
                    img src=(address) alt=(name) width="240" height="180" loading="lazy" decoding="async";
                }
            } @else {
                a.btn href=(address) download=(name) { bdi { (name) } } " " span.note { (what_it_is(file)) }
            }
        }
    }

    /// Returns the names of a message's files, for pages that cannot show the files.
    pub(super) fn name_lines(&self, hit: &Hit<'_>) -> Vec<String> {
        let lines = self.of_message(hit).map(|file| {
            let name = plain_name(&file.name);
            format!("[{name}, {}: `verbatim export` writes it out]", what_it_is(file))
        });
        lines.collect()
    }
}

fn what_it_is(file: &Attachment) -> String {
    format!("{}, {}", file.media_type, bytes(file.bytes))
}

fn is_picture(file: &Attachment) -> bool {
    PICTURES.contains(&&*file.media_type) && file.bytes <= MOST_SHOWN
}

/// Answers with a file of a conversation. The hash of the content names the file.
pub(crate) async fn file(
    State(site): State<Arc<SiteState>>,
    Path((id, hash)): Path<(String, String)>,
) -> Response {
    match run(&site, move |site, call| find(site, &id, &hash, call)).await {
        Ok((content, file)) => {
            let is_picture = is_picture(&file);
            let media_type =
                if is_picture { &*file.media_type } else { "application/octet-stream" };
            let way = if is_picture { "inline" } else { "attachment" };
            let headers = [
                (header::CONTENT_TYPE, media_type.to_owned()),
                (
                    header::CONTENT_DISPOSITION,
                    format!("{way}; filename*=UTF-8''{}", encoded(&plain_name(&file.name))),
                ),
                (header::CONTENT_SECURITY_POLICY, POLICY.to_owned()),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
                (header::CACHE_CONTROL, "no-store".to_owned()),
            ];
            let body = FileBody { left: file.bytes, reading: spawn_blocking(|| next(content)) };
            (headers, Body::new(body)).into_response()
        }
        Err(problem) => refused(&problem),
    }
}

fn remedy(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Archive => "A transcript is read only once, so Verbatim cannot bring it back.",
        _ => "Import the export again to bring it back.",
    }
}

fn find(site: &Site, id: &str, hash: &str, call: &Call) -> Result<(File, Attachment), Problem> {
    let store = AttachmentFiles::from_config(site.engine.config());
    let id = id_in_path(id);
    // The files of an excluded conversation are not shown either.
    let mut files = Vec::new();
    for kind in [SourceKind::Export, SourceKind::Archive] {
        if site.engine.find(call).about(kind, id)?.is_some() {
            let of_kind = store.list(kind, id)?;
            files.extend(of_kind.into_iter().map(|file| (kind, file)));
        }
    }
    let Some((kind, file)) = files.into_iter().find(|(_, file)| file.sha256() == hash) else {
        let what = "There is no such file in this conversation.";
        return Err(Problem::Missing(what.to_owned()));
    };
    if !store.has(&file) {
        let name = plain_name(&file.name);
        let what = format!("The copy of {name} is missing. {}", remedy(kind));
        return Err(Problem::Missing(what));
    }
    Ok((store.open(&file)?, file))
}

/// The body of a file that is being sent. No thread waits while the client reads.
struct FileBody {
    left: u64,
    reading: JoinHandle<(File, io::Result<Bytes>)>,
}

fn next(mut file: File) -> (File, io::Result<Bytes>) {
    let mut block = Vec::with_capacity(BLOCK);
    let read = file.by_ref().take(BLOCK as u64).read_to_end(&mut block);
    (file, read.map(|_| block.into()))
}

impl HttpBody for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let read = match ready!(Pin::new(&mut self.reading).poll(context)) {
            Ok((file, Ok(block))) => {
                if (block.len() as u64) < self.left {
                    self.reading = spawn_blocking(|| next(file));
                }
                Ok(block)
            }
            Ok((_, Err(error))) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        };
        // If the file's length changed, the answer is aborted, because the headers contain the old length.
        let read = read.and_then(|block| match block.len() as u64 {
            length if length == 0 || length > self.left => Err(io::ErrorKind::UnexpectedEof.into()),
            length => {
                self.left -= length;
                Ok(Frame::data(block))
            }
        });
        if read.is_err() {
            self.left = 0;
        }
        Poll::Ready(Some(read))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
