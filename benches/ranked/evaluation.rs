//! Measures the ranking on questions with known answers, in every mode.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use verbatim_base::call::Call;
use verbatim_engine::{
    self as engine, Branches, Config, Engine, ImportOptions, Mode, Question, Ranker, Resources,
    Scope, SourceKind, StoreAddress,
};

use crate::engine::{MODES, index};
use crate::quality::corpus::{Corpus, EvalQuery, EvalSet};
use crate::quality::figures::{Figures, QuestionFigures};
use crate::quality::{lines, published};

const MEMORY: usize = 512 << 20;

const DEPTH: usize = 10;

/// What is measured of the ranking.
#[derive(Debug, clap::Args)]
pub(crate) struct EvaluationArgs {
    /// Measure how good the ranking is, on these questions with known answers, and nothing else: an object of JSON
    /// a line, {"text", "conversation", "relevant": [ids]}; or a file of LongMemEval or LoCoMo, or a folder of BEAM
    /// or REALTALK, which need no CORPUS
    #[arg(value_name = "QUERIES")]
    pub(crate) queries: Option<PathBuf>,

    /// The messages, in order: an object of JSON a line, {"id", "conversation", "speaker", "text", "time"}
    #[arg(long, value_name = "FILE", requires = "queries")]
    corpus: Option<PathBuf>,

    /// Rank every question over all conversations, not within its own
    #[arg(long, requires = "queries")]
    across: bool,

    /// The model of the vectors, as `verbatim reindex --model` takes it
    #[arg(long, value_name = "NAME", requires = "queries")]
    model: Option<String>,

    /// The share of vectors in the mode `both`, in percent [default: that of the model]
    #[arg(long, value_name = "PERCENT", requires = "queries")]
    vector_share: Option<u8>,

    /// Rank in this index of a cluster, where the messages are imported and stay; an index with other messages is
    /// left alone
    #[arg(long, value_name = "ADDRESS", requires = "queries")]
    db: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long, requires = "queries")]
    json: bool,
}

pub(crate) fn run(args: &EvaluationArgs, queries: &Path) -> Result<()> {
    let set = match &args.corpus {
        Some(messages) => lines::read(queries, messages)?,
        None => published::read(queries)?,
    };
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let evaluation = Evaluation::prepare(set, args, folder.path())
        .with_context(|| queries.display().to_string())?;
    let mut modes = Vec::new();
    for (name, mode) in MODES {
        writeln!(io::stderr(), "mode {name}")?;
        modes.push((name, evaluation.figures(mode).with_context(|| format!("mode {name}"))?));
    }
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", evaluation.json(&modes))?;
        return Ok(());
    }
    evaluation.write_table(&modes, &mut out)?;
    Ok(())
}

struct Evaluation {
    engine: Engine,
    corpus: Corpus,
    queries: Vec<EvalQuery>,
    /// Whether every question is ranked over all conversations.
    is_across: bool,
}

impl Evaluation {
    /// Stores the messages in a folder or a cluster, with everything that ranking needs.
    fn prepare(set: EvalSet, args: &EvaluationArgs, folder: &Path) -> Result<Evaluation> {
        let EvalSet { mut corpus, mut queries } = set;
        queries.retain(|query| !query.relevant.is_empty());
        ensure!(!queries.is_empty(), "no question names its relevant messages");
        corpus.limit_roles();
        let database = folder.join("corpus.db");
        corpus.write(&database)?;
        let mut config = Config { home: folder.to_owned(), ..Config::default() };
        config.vector_share = args.vector_share;
        if let Some(model) = &args.model {
            config.embeddings = model.parse()?;
        }
        let engine = match &args.db {
            Some(address) => imported(&database, StoreAddress::from(address), &corpus, config)?,
            None => indexed(&database, config)?,
        };
        Ok(Evaluation { engine, corpus, queries, is_across: args.across })
    }

    fn figures(&self, mode: Mode) -> Result<Figures> {
        // The first question opens the index, so its time does not count.
        self.rank(&self.queries[0], mode)?;
        let mut questions = Vec::new();
        let mut took = Duration::ZERO;
        for query in &self.queries {
            let start = Instant::now();
            let found = self.rank(query, mode)?;
            took += start.elapsed();
            let found: Vec<&str> = found.iter().filter_map(|id| self.corpus.id(id)).collect();
            questions.push(QuestionFigures::of_ranking(&found, &query.relevant));
        }
        Ok(Figures::mean_of(&questions, took.as_secs_f64() * 1e3 / questions.len() as f64))
    }

    /// Returns the ids of the best messages for a question. It is an error if the question is not ranked by the
    /// whole mode, because its figures would be those of another one.
    fn rank(&self, query: &EvalQuery, mode: Mode) -> Result<Vec<String>> {
        let question = Question {
            concepts: vec![query.text.clone()],
            mode,
            scope: self.scope(query),
            limit: DEPTH,
            ..Question::default()
        };
        let call = Call::default();
        let ranker = Ranker::new(self.engine.all_sources(), &question, &call);
        let (ids, notes) = ranker.message_ids()?;
        if let Some(gap) = notes.iter().find(|note| note.is_gap()) {
            bail!("{gap}");
        }
        Ok(ids)
    }

    /// Returns the conversations that are ranked for a question: all, if the corpus has none of those that
    /// the question names.
    fn scope(&self, query: &EvalQuery) -> Scope {
        let names = query.conversations.iter().filter(|_| !self.is_across);
        let mut ids: Vec<String> =
            names.filter_map(|name| self.corpus.conversation(name)).collect();
        match ids.len() {
            0 => Scope::default(),
            1 => Scope { conversation: ids.pop(), ..Scope::default() },
            _ => {
                let ids = HashMap::from([(SourceKind::Export, ids.into_iter().collect())]);
                Scope { conversations: Some(Arc::new(ids)), ..Scope::default() }
            }
        }
    }

    /// Returns the name of the model, and the share of the messages that have a vector of it.
    fn embedded(&self) -> (String, f64) {
        let sources = self.engine.sources();
        let known = sources.first().map(|source| engine::embedded(source, &Call::default()));
        let (model, count) = known.unwrap_or_default();
        (model.to_owned(), count as f64 / self.corpus.messages() as f64)
    }

    /// Returns the share of vectors in the mode `both`, if the words of the best messages cover a question.
    fn vector_share(&self) -> f64 {
        (f64::from(self.engine.all_sources().vector_share()) * 100.0).round() / 100.0
    }

    fn json(&self, modes: &[(&str, Figures)]) -> Value {
        let (model, embedded) = self.embedded();
        json!({
            "modes": modes.iter().map(|(name, figures)| (*name, json!(figures))).collect::<Value>(),
            "model": model,
            "embedded": embedded,
            "vector_share": self.vector_share(),
        })
    }

    fn write_table(&self, modes: &[(&str, Figures)], out: &mut dyn Write) -> io::Result<()> {
        let (model, embedded) = self.embedded();
        writeln!(
            out,
            "questions: {}, messages: {}, conversations: {}{}\nvectors of {model}: {:.1} % of the messages; \
             their share in both: {:.2}\n",
            self.queries.len(),
            self.corpus.messages(),
            self.corpus.conversations(),
            if self.is_across { ", all in one" } else { "" },
            embedded * 100.0,
            self.vector_share()
        )?;
        writeln!(
            out,
            "mode    recall@5  recall@10 [95 %]          MRR@10 [95 %]          nDCG@10  ms/query"
        )?;
        for (name, figures) in modes {
            let [recall, mrr] = [figures.recall_at_10_interval, figures.mrr_at_10_interval]
                .map(|[low, high]| format!("[{low:.3}, {high:.3}]"));
            writeln!(
                out,
                "{name:<8}{:>8.3}{:>11.3} {recall}{:>8.3} {mrr}{:>9.3}{:>10.2}",
                figures.recall_at_5,
                figures.recall_at_10,
                figures.mrr_at_10,
                figures.ndcg_at_10,
                figures.ms_per_query
            )?;
        }
        Ok(())
    }
}

/// Indexes a database, with the vectors of the sentence model.
fn indexed(database: &Path, config: Config) -> Result<Engine> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let resources = Resources { memory: MEMORY, threads };
    let engine = index(Config { db: Some(database.into()), ..config }, resources)?;
    for source in engine.sources() {
        source.encode(threads, &Call::default(), &|_| ())?;
    }
    Ok(engine)
}

/// Imports a database into an index of a cluster, unless the index has other messages than the corpus.
fn imported(
    database: &Path,
    address: StoreAddress,
    corpus: &Corpus,
    config: Config,
) -> Result<Engine> {
    let call = Call::default();
    let engine = Engine::new(Config { db: Some(address.clone()), ..config });
    for source in engine.sources() {
        let (messages, _) = engine::indexed(&source, &call);
        ensure!(
            messages == 0 || messages == corpus.messages() as u64,
            "{address}: has {messages} messages that are not in the corpus; name an index that does not exist yet"
        );
    }
    let resources = Resources { memory: MEMORY, threads: 1 };
    let options = ImportOptions { branches: Branches::Shown, resources, on_wait: None };
    engine.import(&[database.to_owned()], options, &call, &|_| {})?;
    Ok(engine)
}
