//! The format of experiment files for editors and for people: a JSON Schema and
//! the reference in Markdown, both made from the tables that the reader uses.

use crate::spec::keys::{self, Key, SECTIONS, Section, Vary};
use crate::spec::kind::{CONFIDENCES, FRAME_MAX, FRAME_MIN, Kind};
use serde_json::{Map, Value, json};

/// JSON Schema (draft 2020-12) of an experiment file.
pub fn schema() -> Value {
    let mut root = object(&keys::ROOT);
    let mut testbed = object(&keys::TESTBED);
    insert(&mut testbed, keys::SIM.name(), object(&keys::SIM));
    for (name, table) in [
        (keys::TESTBED.name(), testbed),
        (keys::DUT.name(), object(&keys::DUT)),
        (keys::FACTOR.name(), factors()),
        (keys::TRAFFIC.name(), object(&keys::TRAFFIC)),
        (keys::TRIAL.name(), object(&keys::TRIAL)),
        (keys::DESIGN.name(), object(&keys::DESIGN)),
        (keys::COMPARE.name(), object(&keys::COMPARE)),
        (keys::PROFILE.name(), object(&keys::PROFILE)),
    ] {
        insert(&mut root, name, table);
    }
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("fwdlab experiment");
    root["description"] = json!("What is tested, with which traffic, how often.");
    root["required"] = json!(["version"]);
    root
}

/// The reference of all keys as Markdown: one table for each table of the file.
pub fn reference() -> String {
    let mut out = String::new();
    for section in SECTIONS {
        let heading = match section.path {
            "" => "Top of the file".to_owned(),
            "factor" => "`[[factor]]`".to_owned(),
            "factor.level" => "A level as a table".to_owned(),
            path => format!("`[{path}]`"),
        };
        out.push_str(&format!("### {heading}\n\n{}\n\n", section.doc));
        out.push_str("| key | value | unit | default | varies | meaning | example |\n");
        out.push_str("|---|---|---|---|---|---|---|\n");
        for key in section.keys {
            out.push_str(&reference_row(key));
        }
        if section.path == keys::LEVEL.path {
            let names: Vec<String> =
                keys::settings().map(|key| format!("`{}`", key.name)).collect();
            out.push_str(&format!("\nSettings of a level: {}.\n", names.join(", ")));
        }
        out.push('\n');
    }
    out.pop();
    out
}

fn reference_row(key: &Key) -> String {
    let code = |text: &str| match text {
        "" => "-".to_owned(),
        _ => format!("`{}`", text.replace('|', "\\|")),
    };
    let varies = match key.vary {
        Vary::Never => "-",
        Vary::Restart => "from run to run",
        Vary::Live => "live",
    };
    let unit = if key.unit.is_empty() { "-" } else { key.unit };
    let example = match key.example {
        "" => key.default,
        example => example,
    };
    format!(
        "| `{}` | {} | {unit} | {} | {varies} | {} | `{} = {example}` |\n",
        key.name,
        key.kind.expected(),
        code(key.default),
        key.doc,
        key.name
    )
}

/// A table with these keys and no others.
fn object(section: &Section) -> Value {
    let properties: Map<String, Value> =
        section.keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    json!({
        "type": "object",
        "description": section.doc,
        "properties": properties,
        "additionalProperties": false,
    })
}

fn insert(table: &mut Value, name: &str, value: Value) {
    table["properties"][name] = value;
}

fn property(key: &Key) -> Value {
    let mut value = of_kind(key.kind);
    value["description"] = match key.unit {
        "" => json!(key.doc),
        unit => json!(format!("{} Unit: {unit}.", key.doc)),
    };
    value
}

fn of_kind(kind: Kind) -> Value {
    let frame = json!({ "type": "integer", "minimum": FRAME_MIN.0, "maximum": FRAME_MAX.0 });
    match kind {
        Kind::Integer { min, max: i64::MAX } => json!({ "type": "integer", "minimum": min }),
        Kind::Integer { min, max } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Text | Kind::File => json!({ "type": "string", "minLength": 1 }),
        Kind::Directory => json!({ "anyOf": [
            { "type": "string", "minLength": 1 },
            { "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1 },
        ]}),
        Kind::Command => json!({ "type": "string", "pattern": "[^ \\t\\n]" }),
        Kind::Commands => {
            json!({ "type": "array", "items": { "type": "string", "pattern": "[^ \\t\\n]" } })
        }
        Kind::Words => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Word { words, .. } => json!({ "enum": words }),
        Kind::Duration { .. } => {
            json!({ "type": "string", "pattern": r"^ *[0-9._]+ *(ns|us|µs|ms|s|min) *$" })
        }
        Kind::Percent => json!({ "type": "string", "pattern": r"^ *[0-9._]+ *% *$" }),
        Kind::PacketRate => json!({ "anyOf": [
            { "type": "number", "minimum": 1 },
            { "type": "string", "pattern": r"^ *[0-9._]+ *[kMG]?pps *$" },
        ]}),
        Kind::Rate => json!({ "anyOf": [
            { "const": "max" },
            { "type": "number", "minimum": 1 },
            { "type": "string", "pattern": r"^ *[0-9._]+ *(%|[kMG]?(pps|bit/s)) *$" },
        ]}),
        Kind::FrameSize => {
            json!({ "anyOf": [frame.clone(), { "type": "array", "items": frame, "minItems": 1 }] })
        }
        Kind::Flows => object(&keys::FLOWS),
        Kind::Firewall => json!({ "anyOf": [
            { "enum": ["none", "stateless", "stateful"] },
            { "type": "string", "pattern": "^rules:[0-9]+$" },
            { "type": "string", "pattern": "[./]" },
        ]}),
        Kind::Mask => json!({
            "type": "string",
            "pattern": "^([0-9a-fA-F]{1,8}(,[0-9a-fA-F]{1,8})*)?$",
        }),
        Kind::Sysctls => json!({ "type": "object" }),
        Kind::Variables { .. } => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "integer"] },
        }),
        Kind::Patterns => json!({
            "type": "object",
            "additionalProperties": { "type": "string" },
        }),
        Kind::Effects => json!({
            "type": "object",
            "additionalProperties": { "type": "number", "exclusiveMinimum": 0, "maximum": 1000 },
        }),
        Kind::Levels => json!({ "type": "array", "minItems": 1 }),
        Kind::Baseline => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
        Kind::Confidence => json!({ "enum": CONFIDENCES }),
    }
}

fn factors() -> Value {
    let mut factor = object(&keys::FACTOR);
    let mut level = object(&keys::LEVEL);
    for key in keys::settings() {
        // A level is one frame size or directory; a list of them is a factor of its own.
        let value = match key.kind {
            Kind::FrameSize => {
                json!({ "type": "integer", "minimum": FRAME_MIN.0, "maximum": FRAME_MAX.0 })
            }
            Kind::Directory => json!({ "type": "string", "minLength": 1 }),
            _ => of_kind(key.kind),
        };
        insert(&mut level, key.name, value);
    }
    level["required"] = json!(["label"]);
    insert_items(&mut factor, level);
    factor["required"] = json!(["name", "levels"]);
    json!({ "type": "array", "description": keys::FACTOR.doc, "items": factor })
}

/// A level is a value, an address range of `flows`, a bundle, or a list of words.
fn insert_items(factor: &mut Value, bundle: Value) {
    factor["properties"]["levels"]["items"] = json!({ "anyOf": [
        { "type": ["string", "number", "boolean"] },
        object(&keys::FLOWS),
        bundle,
        { "type": "array", "items": { "type": "string" } },
    ]});
}
