//! The stylesheet, the script and the icon. Each address contains a hash of the content, so
//! browsers can cache the files for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use verbatim_text::hash::fnv1a;

pub(crate) struct Asset {
    name: &'static str,
    kind: &'static str,
    content: &'static str,
}

pub(crate) static STYLE: Asset = Asset {
    name: "style.css",
    kind: "text/css; charset=utf-8",
    content: include_str!("style.css"),
};

pub(super) static SCRIPT: Asset = Asset {
    name: "script.js",
    kind: "text/javascript; charset=utf-8",
    // One file is one request.
    content: concat!(include_str!("script.js"), include_str!("idiomorph.min.js")),
};

pub(super) static FAVICON: Asset =
    Asset { name: "favicon.svg", kind: "image/svg+xml", content: include_str!("favicon.svg") };

static ALL: [&Asset; 3] = [&STYLE, &SCRIPT, &FAVICON];

static HASH: LazyLock<String> = LazyLock::new(|| {
    let contents: String = ALL.iter().map(|asset| asset.content).collect();
    format!("{:016x}", fnv1a(contents.as_bytes()))
});

impl Asset {
    pub(super) fn address(&self) -> String {
        format!("/static/{}/{}", *HASH, self.name)
    }

    pub(crate) fn content(&self) -> &'static str {
        self.content
    }

    fn answer(&self, cache: &'static str) -> Response {
        let headers = [(header::CONTENT_TYPE, self.kind), (header::CACHE_CONTROL, cache)];
        (headers, self.content).into_response()
    }
}

/// Answers with a static file; an address with an outdated hash is not found.
pub(crate) async fn asset(Path((hash, name)): Path<(String, String)>) -> Response {
    match ALL.iter().find(|asset| asset.name == name && *HASH == hash) {
        Some(asset) => asset.answer("public, max-age=31536000, immutable"),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Answers browsers that look for an icon at its old address.
pub(crate) async fn favicon() -> Response {
    FAVICON.answer("public, max-age=86400")
}
