//! Code, logs and data as assistants write them and tools return them, from templates.

use std::fmt::Write;

use super::prose::{Prose, capitalized};
use super::random::Random;

/// Templates of one language. In them `~f` stands for a function in snake case, `~c` for one in
/// camel case, `~T` for a type, `~v` for a variable, `~s` for a few words, `~n` for a number, `~h`
/// for hexadecimal digits, `~u` for a UUID, `~p` for a path and `~d` for a date and time.
struct Language {
    fence: &'static str,
    snippets: &'static [&'static str],
}

const LANGUAGES: [Language; 11] = [
    Language {
        fence: "rust",
        snippets: &[
            "pub fn ~f(~v: &str) -> Result<~T, Error> {\n    let ~v = ~v.trim();\n    if ~v.is_empty() {\n        return Err(Error::~T);\n    }\n    Ok(~T::new(~v))\n}\n\n",
            "#[derive(Debug, Clone)]\nstruct ~T {\n    ~v: String,\n    ~v: Vec<u8>,\n    ~f: Option<usize>,\n}\n\n",
            "impl ~T {\n    fn ~f(&mut self) {\n        for ~v in self.~v.iter() {\n            println!(\"{~v}: {}\", self.~f);\n        }\n    }\n}\n\n",
            "let ~v: HashMap<String, ~T> = ~v.iter().map(|~v| (~v.id.clone(), ~v)).collect();\n",
            "match self.~f(~n) {\n    Some(~v) => ~v,\n    None => panic!(\"~s\"),\n}\n",
            "// ~s\nuse std::collections::~T;\n",
        ],
    },
    Language {
        fence: "python",
        snippets: &[
            "def ~f(self, ~v, ~v=None):\n    \"\"\"~s.\"\"\"\n    if ~v is None:\n        ~v = []\n    for ~v in range(~n):\n        ~v.append(self.~f(~v))\n    return ~v\n\n",
            "import numpy as np\nimport pandas as pd\nfrom ~v.~v import ~T\n\n",
            "class ~T(BaseModel):\n    ~v: str\n    ~f: int = ~n\n\n    def __init__(self, ~v):\n        super().__init__()\n        self.~v = ~v\n\n",
            "with open(\"~p.json\", \"r\", encoding=\"utf-8\") as f:\n    ~v = json.load(f)\n",
            "df = pd.read_csv('~p.csv')\ndf['~f'] = df['~v'].apply(lambda x: x * ~n)\nprint(df.head())\n",
            "try:\n    ~v = await ~f(~v)\nexcept ~TError as e:\n    logger.error(f\"~s: {e}\")\n    raise\n",
        ],
    },
    Language {
        fence: "typescript",
        snippets: &[
            "export async function ~c(~v: string): Promise<~T> {\n  const response = await fetch(`/api/~v/${~v}`);\n  if (!response.ok) {\n    throw new Error('~s');\n  }\n  return response.json();\n}\n\n",
            "interface ~T {\n  id: string;\n  ~c: number;\n  ~v?: ~T[];\n}\n\n",
            "const [~v, set~T] = useState<~T | null>(null);\nuseEffect(() => {\n  ~c(~v).then(set~T);\n}, [~v]);\n",
            "const ~c = ~v.filter(item => item.~v > ~n).map(({ ~v, ~c }) => ({ ~v, ~c }));\n",
            "// ~s\nconsole.log('~v:', ~v.~c);\n",
        ],
    },
    Language {
        fence: "sql",
        snippets: &[
            "SELECT ~v.id, ~v.~f, COUNT(*) AS ~f\nFROM ~v\nLEFT JOIN ~f ON ~f.~v_id = ~v.id\nWHERE ~v.created_at > '~d'\nGROUP BY ~v.id\nORDER BY ~f DESC\nLIMIT ~n;\n\n",
            "CREATE TABLE ~f (\n    id BIGSERIAL PRIMARY KEY,\n    ~f VARCHAR(~n) NOT NULL,\n    ~v TIMESTAMP DEFAULT NOW()\n);\n\n",
            "UPDATE ~f SET ~v = ~n WHERE ~f IN (SELECT id FROM ~v WHERE ~v LIKE '%~v%');\n",
            "CREATE INDEX idx_~f ON ~f (~v);\n",
        ],
    },
    Language {
        fence: "bash",
        snippets: &[
            "$ cd ~p && git checkout -b ~v-~n\n$ git commit -m \"~s\"\n",
            "docker run --rm -p ~n:~n -v $(pwd)/~v:/~v ~v:latest\n",
            "for file in ~p/*.log; do\n    grep -n \"~v\" \"$file\" | awk '{print $~n}' >> ~f.txt\ndone\n",
            "curl -X POST https://api.~v.example.com/v1/~v \\\n  -H \"Content-Type: application/json\" \\\n  -d '{\"~f\": \"~v\", \"~v\": ~n}'\n",
            "export ~f=~h\nsudo systemctl restart ~v\n",
        ],
    },
    Language {
        fence: "json",
        snippets: &[
            "{\n  \"id\": \"~u\",\n  \"name\": \"~s\",\n  \"~f\": ~n,\n  \"tags\": [\"~v\", \"~v\"],\n  \"createdAt\": \"~d\"\n}\n",
            "  \"~c\": {\"type\": \"string\", \"description\": \"~s\", \"default\": \"~v\"},\n",
            "  {\"~f\": \"~s\", \"score\": 0.~n, \"url\": \"https://www.~v.example.org/~v/~n\"},\n",
        ],
    },
    Language {
        fence: "go",
        snippets: &[
            "func (s *~T) ~T(ctx context.Context, ~v string) (*~T, error) {\n\t~v, err := s.~c(ctx, ~v)\n\tif err != nil {\n\t\treturn nil, fmt.Errorf(\"~s: %w\", err)\n\t}\n\treturn ~v, nil\n}\n\n",
            "type ~T struct {\n\t~T string `json:\"~f\"`\n\t~T int    `json:\"~f,omitempty\"`\n}\n\n",
        ],
    },
    Language {
        fence: "html",
        snippets: &[
            "<div class=\"~v-~v\" id=\"~c\">\n  <h2>~s</h2>\n  <a href=\"/~v/~n\">~v</a>\n</div>\n",
            ".~v-~v {\n  display: flex;\n  margin: ~npx auto;\n  color: #~h;\n}\n",
        ],
    },
    Language {
        fence: "c",
        snippets: &[
            "static int ~f(struct ~v *~v, size_t ~v)\n{\n\tif (!~v || ~v > ~n)\n\t\treturn -EINVAL;\n\tmemcpy(~v->~v, buf, sizeof(~v));\n\treturn 0;\n}\n\n",
            "#include <~v/~v.h>\n#define MAX_~f ~n\n",
            "    printf(\"~s: %d\\n\", ~v[~n]);\n",
        ],
    },
    Language {
        fence: "markdown",
        snippets: &[
            "| --- | --- | --- |\n| ~v | ~n.~n | ~s |\n| ~c | ~n.~n | ~T |\n",
            "~n.~n ~T ~v ............ ~n\n",
            "------------------------\n~n,~n,~n,~n,~h,~n\n",
        ],
    },
    Language {
        fence: "yaml",
        snippets: &[
            "~v:\n  ~v: ~n\n  ~f: \"~s\"\n  image: registry.example.com/~v/~v:~n\n",
            "    - name: ~s\n      run: ~v --~v ~p\n",
        ],
    },
];

/// Lines of tools' output other than code.
const OUTPUT: [&str; 9] = [
    "~dZ INFO  [~v-~n] ~T: ~s request_id=~u\n",
    "~dZ WARN  [~v-~n] ~T.~c took ~nms: ~s\n",
    "~dZ ERROR [main] com.example.~v.~T - ~s\n\tat com.example.~v.~T.~c(~T.java:~n)\n\tat com.example.~v.~T.~c(~T.java:~n)\n",
    "Traceback (most recent call last):\n  File \"/usr/src/app/~p.py\", line ~n, in ~f\n    ~v = self.~f(~v)\n~TError: ~s\n",
    "[~n] ~s. https://www.~v.example.com/~v/~v?id=~n\n~s. ~s.\n\n",
    "test ~v::~f ... ok\ntest ~v::~f ... FAILED\n",
    "-rw-r--r-- 1 app app ~n ~v.~v\ndrwxr-xr-x 2 app app 4096 ~v\n",
    "~h  ~p.rs\n",
    "├── ~v.~v\n│   └── ~T.~v\n",
];

/// Appends a code block of about `bytes` bytes between fences.
pub(crate) fn block(prose: &Prose, bytes: usize, random: &mut Random, out: &mut String) {
    let language = &LANGUAGES[random.below(LANGUAGES.len())];
    out.push_str("\n```");
    out.push_str(language.fence);
    out.push('\n');
    fill_from(language.snippets, prose, bytes, random, out);
    out.push_str("```\n");
}

/// Appends about `bytes` bytes of a tool's output: a log, a listing, a file.
pub(crate) fn output(prose: &Prose, bytes: usize, random: &mut Random, out: &mut String) {
    let one = OUTPUT[random.below(OUTPUT.len())];
    let snippets =
        if random.chance(0.5) { &[one] } else { LANGUAGES[random.below(LANGUAGES.len())].snippets };
    fill_from(snippets, prose, bytes, random, out);
}

fn fill_from(
    snippets: &[&str],
    prose: &Prose,
    bytes: usize,
    random: &mut Random,
    out: &mut String,
) {
    // A block uses few names, which recur.
    let mut names = [""; 6];
    for name in &mut names {
        *name = prose.topic(random);
    }
    let end = out.len() + bytes;
    while out.len() < end {
        fill(random.pick(snippets), &names, prose, random, out);
    }
}

fn fill(snippet: &str, names: &[&str], prose: &Prose, random: &mut Random, out: &mut String) {
    let mut rest = snippet;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let name = random.pick(names);
        match rest.as_bytes()[at + 1] {
            b'f' => {
                out.push_str(name);
                out.push('_');
                out.push_str(random.pick(names));
            }
            b'c' => {
                out.push_str(name);
                out.push_str(&capitalized(random.pick(names)));
            }
            b'T' => {
                out.push_str(&capitalized(name));
                if random.chance(0.5) {
                    out.push_str(&capitalized(random.pick(names)));
                }
            }
            b'v' => out.push_str(name),
            b's' => prose.phrase(random.between(2, 6), false, random, out),
            b'n' => number(random, out),
            b'h' => hex(random, out),
            b'u' => uuid(random, out),
            b'p' => {
                out.push_str(name);
                out.push('/');
                out.push_str(random.pick(names));
            }
            b'd' => date(random, out),
            other => unreachable!("no template has ~{}", char::from(other)),
        }
        rest = &rest[at + 2..];
    }
    out.push_str(rest);
}

fn number(random: &mut Random, out: &mut String) {
    let digits = random.between(1, 6) as u32;
    push(out, format_args!("{}", random.below(10usize.pow(digits))));
}

fn hex(random: &mut Random, out: &mut String) {
    push(out, format_args!("{:08x}", random.bits() as u32));
}

fn date(random: &mut Random, out: &mut String) {
    let (year, month, day) =
        (random.between(2019, 2025), random.between(1, 12), random.between(1, 28));
    let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
    push(out, format_args!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"));
}

/// Appends a UUID of version 4.
pub(crate) fn uuid(random: &mut Random, out: &mut String) {
    let (high, low) = (random.bits(), random.bits());
    push(
        out,
        format_args!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0xfff,
            low & 0xffff_ffff_ffff
        ),
    );
}

/// Appends a rare text, as most messages have: an id, an address, a version.
pub(crate) fn particular(prose: &Prose, random: &mut Random, out: &mut String) {
    match random.below(10) {
        0 => uuid(random, out),
        1 => hex(random, out),
        2 => push(out, format_args!("ORD-{}", random.between(10_000, 99_999_999))),
        3 => {
            let host = prose.topic(random);
            let page = prose.topic(random);
            let id = random.below(1_000_000);
            push(out, format_args!("https://{host}.example.com/{page}/"));
            base36(6, random, out);
            push(out, format_args!("?id={id}"));
        }
        4 => {
            push(out, format_args!("`{}_", prose.topic(random)));
            base36(4, random, out);
            out.push('`');
        }
        5 => push(out, format_args!("{}@{}.com", prose.topic(random), prose.topic(random))),
        6 => {
            let (major, minor, patch) = (random.below(20), random.below(40), random.below(2_000));
            push(out, format_args!("v{major}.{minor}.{patch}"));
        }
        7 => {
            let address = random.bits() >> random.below(40);
            push(out, format_args!("0x{address:x}"));
        }
        8 => {
            let (first, second) = (prose.topic(random), prose.topic(random));
            push(out, format_args!("{}{}", capitalized(first), capitalized(second)));
        }
        _ => push(out, format_args!("#{}", random.between(1, 200_000))),
    }
}

fn base36(digits: usize, random: &mut Random, out: &mut String) {
    for _ in 0..digits {
        out.push(char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[random.below(36)]));
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes all text");
}
