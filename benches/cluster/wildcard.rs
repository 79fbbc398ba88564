//! The field type `wildcard` of the cluster, as a side of the benchmark. Only texts of messages are searched.

use std::{collections::HashMap, fmt::Write, path::Path};

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use verbatim_base::model::{Hit, Request};

use crate::{ClusterRest, race::Racer};

const INDEX: &str = "verbatim-bench-wildcard";

/// Bytes of documents in one request.
const BATCH_BYTES: usize = 8 << 20;

pub(crate) struct Wildcard {
    cluster: ClusterRest,
}

impl Wildcard {
    /// Fills an index, unless it exists and `keep` is set.
    pub(crate) fn open(cluster: &ClusterRest, database: &Path, keep: bool) -> Result<Wildcard> {
        let ours = Wildcard { cluster: cluster.clone() };
        let is_there = cluster.ask("GET", INDEX, None)?.get(INDEX).is_some();
        if !keep || !is_there {
            ours.fill(database)?;
        }
        Ok(ours)
    }

    fn fill(&self, database: &Path) -> Result<()> {
        self.cluster.ask("DELETE", INDEX, None)?;
        let body = json!({
            "settings": {
                "number_of_shards": 3, "number_of_replicas": 0, "refresh_interval": "-1",
                "sort.field": "s", "sort.order": "desc",
            },
            "mappings": { "dynamic": false, "properties": {
                "s": { "type": "double" },
                "role": { "type": "keyword" },
                "t": { "type": "wildcard", "doc_values": false },
            } },
        });
        let made = self.cluster.ask("PUT", INDEX, Some(body.to_string()))?;
        ensure!(made["acknowledged"] == true, "{made}");
        let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut select = connection.prepare(
            "SELECT id, role, CAST(create_time AS REAL), CAST(content AS TEXT) FROM messages",
        )?;
        let mut rows = select.query([])?;
        let mut batch = String::new();
        while let Some(row) = rows.next()? {
            let text: Option<String> = row.get(3).unwrap_or_default();
            let one = json!({
                "id": row.get::<_, String>(0)?, "role": row.get::<_, Option<String>>(1)?,
                "s": row.get::<_, Option<f64>>(2)?, "t": text,
            });
            write!(batch, "{{\"index\":{{}}}}\n{one}\n")?;
            if batch.len() > BATCH_BYTES {
                self.send(std::mem::take(&mut batch))?;
            }
        }
        self.send(batch)?;
        self.cluster.ask("POST", &format!("{INDEX}/_refresh"), None)?;
        self.cluster.ask("POST", &format!("{INDEX}/_forcemerge?max_num_segments=1"), None)?;
        Ok(())
    }

    fn send(&self, batch: String) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let path = format!("{INDEX}/_bulk?filter_path=errors");
        let answer = self.cluster.ask("POST", &path, Some(batch))?;
        ensure!(answer["errors"] == false, "{answer}");
        Ok(())
    }
}

impl Racer for Wildcard {
    fn ask(&self, request: &Request) -> Result<Vec<Hit<'static>>> {
        let text = request.text.replace('\\', "\\\\").replace('*', "\\*").replace('?', "\\?");
        let pattern = format!("*{}*", text.replace('%', "*").replace('_', "?"));
        let mut filters = Vec::new();
        if !request.text.is_empty() {
            filters.push(json!({ "wildcard": { "t": {
                "value": pattern, "case_insensitive": true } } }));
        }
        if !request.roles.is_empty() {
            filters.push(json!({ "terms": { "role": request.roles } }));
        }
        let bounds = [("gte", request.since), ("lte", request.until)];
        let bounds = bounds.into_iter().filter_map(|(name, at)| Some((name, at?.seconds)));
        let bounds: HashMap<&str, i64> = bounds.collect();
        if !bounds.is_empty() {
            filters.push(json!({ "range": { "s": bounds } }));
        }
        let body = json!({
            "size": request.limit, "sort": [{ "s": "desc" }], "track_total_hits": false,
            "query": { "bool": { "filter": filters } },
        });
        let path = format!("{INDEX}/_search");
        let answer: Value = self.cluster.ask("POST", &path, Some(body.to_string()))?;
        let hits = answer["hits"]["hits"].as_array().with_context(|| answer.to_string())?;
        let hit = |it: &Value| Hit {
            message_id: it["_source"]["id"].as_str().unwrap_or_default().to_owned().into(),
            conversation_id: "".into(),
            title: "".into(),
            role: "".into(),
            time: None,
            content: it["_source"]["t"].as_str().unwrap_or_default().to_owned().into(),
            position: None,
        };
        Ok(hits.iter().map(hit).collect())
    }
}
