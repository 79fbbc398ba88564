//! Answers of embedding providers: unit vectors of one length, or an error. An error message never
//! shows the key.
//!
//! Input: the answer.

use std::time::Duration;

use verbatim_embed::{
    Key, Remote,
    remote::{RemoteModel, parse, said},
};

const KEY: &str = "sk-7";

/// The most characters that are repeated of a provider's message, with what goes before them.
const LONGEST_MESSAGE: usize = 210;

pub(super) fn run(answer: &[u8]) {
    let remote = Remote {
        endpoint: "http://localhost:1".to_owned(),
        model: "m".to_owned(),
        key: Key::new(KEY),
        first_wait: Duration::ZERO,
        timeout: Duration::from_secs(1),
    };
    let message = said(answer, &remote);
    assert!(message.chars().count() <= LONGEST_MESSAGE && !message.contains(KEY), "{message:?}");
    let Ok(vectors) = parse(answer) else { return };
    let Ok(vectors) = RemoteModel::new(remote).check_and_normalise(vectors) else { return };
    for vector in &vectors {
        assert_eq!(vector.len(), vectors[0].len());
        let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        assert!(length == 0.0 || (length - 1.0).abs() < 1e-3, "{length}");
    }
}
