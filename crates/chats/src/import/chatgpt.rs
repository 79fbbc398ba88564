//! ChatGPT's exports: a tree of messages in `mapping`.

mod content;
mod files;
mod metadata;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use self::metadata::Metadata;
use crate::import::citations::{self, Author};
use crate::import::fields::{derive_id, own_id, time};
use crate::import::format::{FileLayout, Format, ObjectFormat};
use crate::import::json::{Damage, ObjectFields, Raw};
use crate::import::tally::{Branches, ImportTally, Reason};
use verbatim_base::model::{AttachedFile, Conversation, Instant, Message};
use verbatim_text::{address::encoded, parts::CALL};

pub(super) const SOURCE_FORMAT: Format = Format {
    name: "chatgpt",
    label: "ChatGPT",
    is_conversation: |fields| {
        // The settings of many programs have a `mapping` too, so other field names are required.
        let heading = ["title", "create_time", "current_node", "id", "conversation_id"];
        let is_headed = heading.iter().any(|name| fields.get(name).is_some());
        is_headed && !fields.has("inserted_at") && fields.get("mapping").is_some_and(is_tree)
    },
    layout: FileLayout::Object(ObjectFormat {
        messages: "mapping",
        marks: &[],
        foreign: &["inserted_at", "fragments"],
        list: "conversations",
        read: |fields, branches, tally| conversation(fields, branches, tally).map(Some),
    }),
};

/// Returns whether a `mapping` may be a tree of messages. Its first object must have an author or a content,
/// because the conversations of other services have a `mapping` too. A tree may have no message. Of a damaged tree
/// it is not known.
fn is_tree(mapping: Raw<'_>) -> bool {
    let mut nodes = mapping.items().unwrap_or_default();
    nodes.extend(mapping.fields().into_iter().flatten().map(|(_, node)| node));
    let mut has_only_others = false;
    for node in nodes {
        let Ok([message, parent, children]) = node.last_fields(["message", "parent", "children"])
        else {
            return true;
        };
        has_only_others |= message.is_some_and(|it| !it.is_null() && !it.is_object());
        if let Some(message) = message.filter(|message| message.is_object()) {
            let own = message.last_fields(["author", "role", "content", "fragments"]);
            return own.map_or(true, |[author, role, content, fragments]| {
                fragments.is_none() && author.or(role).or(content).is_some()
            });
        }
        if message.or(parent).or(children).is_none() {
            return false;
        }
    }
    !has_only_others
}

fn conversation(
    fields: &ObjectFields<'_>,
    branches: Branches,
    tally: &mut ImportTally,
) -> Result<Conversation, Reason> {
    let mapping = fields.get("mapping").filter(|mapping| mapping.is_object() || mapping.is_array());
    let tree = Tree::read(mapping.ok_or(Reason::NoMessages("mapping"))?)?;
    let shown = tree.shown_path(fields.text("current_node").as_deref())?;
    if branches == Branches::Shown {
        tally.leave_out_branches(tree.messages() - tree.count_messages(&shown));
    }
    let mut order = shown.clone();
    if branches == Branches::All {
        order.extend(tree.unshown_nodes(&shown));
    }
    let mut messages: Vec<Message> = Vec::with_capacity(order.len());
    let mut files = Vec::new();
    // The place of each node's message in `messages`. A node without a message has the place of its parent's.
    let mut read: Vec<Option<usize>> = vec![None; tree.nodes.len()];
    for (place, at) in order.into_iter().enumerate() {
        let node = &tree.nodes[at];
        let before = node.parent.and_then(|parent| read[parent]);
        read[at] = before;
        let Some(raw) = node.message else { continue };
        let Some((mut message, own)) = message(raw, &node.id, tally)? else {
            tally.empty += 1;
            continue;
        };
        if place >= shown.len() {
            message.follows = Some(before.map_or(String::new(), |at| messages[at].id.clone()));
        }
        read[at] = Some(messages.len());
        files.extend(own.into_iter().map(|file| AttachedFile { message: messages.len(), ..file }));
        messages.push(message);
    }
    let own_id = own_id(fields, ["id", "conversation_id", "uuid"]);
    let create_time = fields.get("create_time").and_then(time);
    let title = fields.text("title").map(Cow::into_owned);
    Ok(Conversation {
        link: own_id.as_ref().map(|id| format!("https://chatgpt.com/c/{}", encoded(id))),
        id: own_id.unwrap_or_else(|| derive_id(create_time, title.as_deref(), &messages)),
        title,
        create_time,
        update_time: fields.get("update_time").and_then(time),
        model: fields.text("default_model_slug").map(Cow::into_owned),
        archived: fields.get("is_archived").is_some_and(Raw::is_true),
        starred: fields.get("is_starred").is_some_and(Raw::is_true),
        messages,
        files,
        ..Conversation::default()
    })
}

/// Reads one message and its files; returns `None` if the message has neither text nor files.
fn message(
    raw: Raw<'_>,
    node: &str,
    tally: &mut ImportTally,
) -> Result<Option<(Message, Vec<AttachedFile>)>, Damage> {
    let [author, own_role, metadata, recipient, content, id, created, updated] =
        raw.last_fields([
            "author",
            "role",
            "metadata",
            "recipient",
            "content",
            "id",
            "create_time",
            "update_time",
        ])?;
    let role = match author {
        Some(author) if author.is_object() => author.last_fields(["role"])?[0],
        Some(author) => Some(author),
        None => own_role,
    };
    let mut role = role.and_then(Raw::text).unwrap_or_default().into_owned();
    let metadata = metadata.map(Metadata::read).transpose()?.unwrap_or_default();
    let recipient = recipient.and_then(Raw::text).unwrap_or_default();
    // A message of another shape.
    let other = match content {
        Some(_) => None,
        None if raw.is_object() => raw.last_fields(["parts", "text"])?.into_iter().flatten().next(),
        None => Some(raw),
    };
    if other.is_some() {
        tally.unknown("a message without content", 1);
    }
    let content = content.or(other);
    // Most messages are only a text, which needs no JSON tree.
    let plain =
        content.filter(|_| !recipient.starts_with(content::CANVAS)).and_then(content::only_text);
    let (mut content, tree) = match plain {
        Some(text) => (text, None),
        None => {
            let content = content.map(Raw::value).transpose()?;
            let text = content.as_ref().map(|it| content::text(it, &recipient, tally));
            (text.unwrap_or_default(), content)
        }
    };
    let files = files::message_files(&metadata, tree.as_ref());
    let is_context = tree.as_ref().is_some_and(content::is_context);
    if let Some(instructions) = &metadata.instructions
        && content.trim().is_empty()
    {
        content.clone_from(instructions);
    }
    // ChatGPT puts custom instructions, memories and what it does not show into each conversation; nobody said
    // them there.
    if is_context
        || metadata.instructions.is_some()
        || metadata.is_hidden && role == "user"
        || !raw.is_object()
    {
        role = "system".to_owned();
    }
    let author = match role.as_str() {
        "user" | "system" => None,
        "tool" => Some(Author::Tool),
        _ => Some(Author::Model),
    };
    if let Some(Cow::Owned(stripped)) = author.map(|it| citations::strip(&content, it)) {
        content = stripped;
    }
    if let Some(shown) = content::with_widget(&content, metadata.widget.as_deref(), tally) {
        content = citations::strip(&shown, Author::Model).into_owned();
    }
    let content = metadata.add_to_text(content);
    if content.trim().is_empty() {
        return Ok(None);
    }
    let content =
        if is_call(&role, &recipient) { format!("{CALL}{recipient}]\n{content}") } else { content };
    let id = id.and_then(Raw::text).filter(|id| !id.is_empty()).unwrap_or(Cow::Borrowed(node));
    let message = Message {
        id: id.into_owned(),
        role,
        content,
        create_time: created.and_then(time),
        update_time: updated.and_then(time),
        model: metadata.model.map(Cow::into_owned),
        attachments: metadata.names,
        ..Message::default()
    };
    Ok(Some((message, files)))
}

/// Returns whether a message calls a tool. A document that a call writes is shown as an answer.
fn is_call(role: &str, recipient: &str) -> bool {
    role == "assistant"
        && !["", "all"].contains(&recipient)
        && !recipient.starts_with(content::CANVAS)
        && !recipient.contains([']', '\n'])
}

type Age = (Option<Instant>, usize);

struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    by_id: HashMap<Cow<'a, str>, usize>,
    links: Vec<[usize; 2]>,
}

struct Node<'a> {
    id: Cow<'a, str>,
    parent: Option<usize>,
    message: Option<Raw<'a>>,
    has_lost_parent: bool,
}

impl<'a> Tree<'a> {
    fn read(mapping: Raw<'a>) -> Result<Tree<'a>, Damage> {
        let mut entries: Vec<(Cow<'a, str>, Raw<'a>)> = Vec::new();
        if mapping.is_array() {
            for item in mapping.items()? {
                let id = item.last_fields(["id"])?[0].and_then(Raw::text);
                let id = id.unwrap_or_else(|| Cow::Owned(entries.len().to_string()));
                entries.push((id, item));
            }
        } else {
            entries.extend(mapping.fields()?);
        }
        let count = entries.len();
        let nodes = Vec::with_capacity(count);
        let by_id = HashMap::with_capacity(count);
        let mut tree = Tree { nodes, by_id, links: Vec::with_capacity(count) };
        let mut named = Vec::with_capacity(count);
        for (at, (id, node)) in entries.into_iter().enumerate() {
            let [message, parent, children] =
                node.last_fields(["message", "parent", "children"])?;
            named.push((parent.and_then(Raw::string), children));
            tree.by_id.insert(id.clone(), at);
            let message = message.filter(|message| !message.is_null());
            tree.nodes.push(Node { id, parent: None, message, has_lost_parent: false });
        }
        for (at, (parent, _)) in named.iter().enumerate() {
            // The previous place is a good guess, because most parents come right before their children.
            let found = parent.as_deref().and_then(|id| tree.find(id, at.wrapping_sub(1)));
            tree.nodes[at].has_lost_parent = parent.is_some() && found.is_none();
            tree.nodes[at].parent = found;
        }
        let mut is_listed = vec![false; tree.nodes.len()];
        for (at, (_, children)) in named.into_iter().enumerate() {
            let Some(list) = children else { continue };
            for child in list.items()?.into_iter().filter_map(Raw::string) {
                let Some(child) = tree.find(&child, at + 1) else { continue };
                // If a node does not name its parent, the list of children decides.
                let parent = *tree.nodes[child].parent.get_or_insert(at);
                if parent == at && !std::mem::replace(&mut is_listed[child], true) {
                    tree.links.push([at, child]);
                }
            }
        }
        // Children that no list of children contains come last, in the order of their ids.
        let mut unlisted: Vec<usize> = (0..tree.nodes.len()).filter(|at| !is_listed[*at]).collect();
        unlisted.sort_by(|a, b| tree.nodes[*a].id.cmp(&tree.nodes[*b].id));
        for at in unlisted {
            if let Some(parent) = tree.nodes[at].parent {
                tree.links.push([parent, at]);
            }
        }
        Ok(tree)
    }

    /// Returns the node with an id. Looks at `guess` first, because the node is probably there.
    fn find(&self, id: &str, guess: usize) -> Option<usize> {
        let is_unique = self.by_id.len() == self.nodes.len();
        let is_there = is_unique && self.nodes.get(guess).is_some_and(|node| node.id == id);
        if is_there { Some(guess) } else { self.by_id.get(id).copied() }
    }

    fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for [parent, child] in &self.links {
            children[*parent].push(*child);
        }
        children
    }

    fn messages(&self) -> u64 {
        self.nodes.iter().filter(|node| node.message.is_some()).count() as u64
    }

    fn count_messages(&self, nodes: &[usize]) -> u64 {
        nodes.iter().filter(|at| self.nodes[**at].message.is_some()).count() as u64
    }

    /// Returns the nodes that the service shows, first to last. If their path to the root is broken, puts the
    /// newest path of each other part of the tree before them.
    fn shown_path(&self, current: Option<&str>) -> Result<Vec<usize>, Damage> {
        let current = current.and_then(|id| self.by_id.get(id));
        let path = current.map(|at| self.path_to(*at)).unwrap_or_default();
        let is_usable = self.count_messages(&path) > 0;
        if is_usable && !self.is_torn(&path) {
            return Ok(path);
        }
        let ages = self.ages()?;
        let mut is_parent = vec![false; self.nodes.len()];
        self.links.iter().for_each(|[parent, _]| is_parent[*parent] = true);
        let all: Vec<usize> = (0..self.nodes.len()).collect();
        let path = if is_usable {
            path
        } else {
            self.newest(&all, &ages, &is_parent).map(|at| self.path_to(at)).unwrap_or_default()
        };
        if !self.is_torn(&path) {
            return Ok(path);
        }
        let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut roots = all;
        for at in self.all_nodes() {
            roots[at] = self.nodes[at].parent.map_or(at, |parent| roots[parent]);
            parts.entry(roots[at]).or_default().push(at);
        }
        parts.remove(&roots[path[0]]);
        let newest = parts.values().filter_map(|part| self.newest(part, &ages, &is_parent));
        let mut paths: Vec<Vec<usize>> = newest.map(|at| self.path_to(at)).collect();
        paths.sort_by_key(|path| path.iter().find_map(|at| ages[*at].0));
        paths.push(path);
        Ok(paths.concat())
    }

    /// Returns whether a path begins in the middle of a conversation: its first node has lost its parent, or
    /// is one of several first messages.
    fn is_torn(&self, path: &[usize]) -> bool {
        let Some(first) = path.first().map(|at| &self.nodes[*at]) else { return false };
        if first.parent.is_some() || first.has_lost_parent {
            return first.parent.is_none();
        }
        let mut firsts =
            self.nodes.iter().filter(|node| node.parent.is_none() && node.message.is_some());
        first.message.is_some() && firsts.nth(1).is_some()
    }

    fn path_to(&self, node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut seen = HashSet::new();
        let mut next = Some(node);
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            path.push(at);
            next = self.nodes[at].parent;
        }
        path.reverse();
        path
    }

    /// Returns the time and the depth of each node. A node without a time has the time of its parent.
    fn ages(&self) -> Result<Vec<Age>, Damage> {
        let mut ages = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let picked =
                node.message.map(|message| message.last_fields(["create_time"])).transpose()?;
            ages.push((picked.and_then(|[created]| created).and_then(time), 0));
        }
        for at in self.all_nodes() {
            if let Some(parent) = self.nodes[at].parent {
                let (time, depth) = ages[parent];
                ages[at] = (ages[at].0.or(time), depth + 1);
            }
        }
        Ok(ages)
    }

    /// Returns the newest leaf of these nodes. If there is no leaf, because the parents form a cycle, returns
    /// the newest node.
    fn newest(&self, nodes: &[usize], ages: &[Age], is_parent: &[bool]) -> Option<usize> {
        // A leaf comes before any other node.
        nodes.iter().copied().max_by_key(|at| (!is_parent[*at], ages[*at], &self.nodes[*at].id))
    }

    fn unshown_nodes(&self, path: &[usize]) -> Vec<usize> {
        let shown: HashSet<usize> = path.iter().copied().collect();
        self.all_nodes().into_iter().filter(|at| !shown.contains(at)).collect()
    }

    /// Returns every node, branch by branch, parents before children.
    fn all_nodes(&self) -> Vec<usize> {
        let mut starts: Vec<usize> = (0..self.nodes.len()).collect();
        // Roots come before nodes that are only in a cycle.
        starts.sort_by_key(|at| (self.nodes[*at].parent.is_some(), &self.nodes[*at].id));
        let children = self.children();
        let mut all = Vec::with_capacity(self.nodes.len());
        let mut seen = HashSet::new();
        for start in starts {
            let mut waiting = vec![start];
            while let Some(at) = waiting.pop() {
                if seen.insert(at) {
                    all.push(at);
                    waiting.extend(children[at].iter().rev());
                }
            }
        }
        all
    }
}
