//! Formats of experiment and lab files for editors and readers: a JSON Schema and the reference in
//! Markdown, both generated from the tables that the reader uses.

use crate::spec::keys::{self, Form, Key, SECTIONS, Section, Vary};
use crate::spec::kind::{CONFIDENCES, FRAME_MAX, FRAME_MIN, Kind};
use fwdlab_packet::size::{GENOME, NAMED, SEQUENCE_MAX};
use serde_json::{Map, Value, json};

/// Returns the JSON Schema (draft 2020-12) of an experiment file.
pub fn schema() -> Value {
    let about = "What is tested, with which traffic, how often.";
    let mut root = of_file(SECTIONS, "fwdlab experiment", about);
    root["properties"]["factor"]["items"]["properties"]["levels"]["items"] = level();
    root
}

/// Returns the reference of all keys of an experiment file as Markdown.
pub fn reference() -> String {
    reference_of(SECTIONS)
}

/// Returns the JSON Schema (draft 2020-12) of the file that these tables describe, the top first.
pub(crate) fn of_file(file: &'static [Section], title: &str, about: &str) -> Value {
    let mut root = object(&file[0], file);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!(title);
    root["description"] = json!(about);
    root
}

/// Returns the reference of the file that these tables describe: one Markdown table for each.
pub(crate) fn reference_of(file: &'static [Section]) -> String {
    let mut out = String::new();
    let all = || file.iter().flat_map(|section| section.keys);
    let has_unit = all().any(|key| !key.unit.is_empty());
    let has_vary = all().any(|key| key.vary != Vary::Never);
    for section in file {
        let heading = match (section.path, section.header()) {
            ("", _) => "Top of the file".to_owned(),
            (_, header) if header.is_empty() => format!("A {} as a table", section.name()),
            (_, header) => format!("`{header}`"),
        };
        out.push_str(&format!("### {heading}\n\n{}\n\n", section.doc));
        let columns = [
            ("key", true),
            ("value", true),
            ("unit", has_unit),
            ("default", true),
            ("varies", has_vary),
            ("meaning", true),
            ("example", true),
        ];
        let row = |cells: [&str; 7]| {
            let shown = cells.iter().zip(columns).filter(|(_, (_, shown))| *shown);
            let cells: Vec<&str> = shown.map(|(cell, _)| *cell).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        out.push_str(&row(columns.map(|(name, _)| name)));
        out.push_str(&row(["---"; 7]).replace(' ', ""));
        for key in section.keys {
            out.push_str(&row(cells(key).each_ref().map(String::as_str)));
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

/// Returns the row of a key in the reference.
fn cells(key: &Key) -> [String; 7] {
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
    [
        format!("`{}`", key.name),
        key.kind.expected().replace('|', "\\|"),
        unit.to_owned(),
        code(key.default),
        varies.to_owned(),
        key.doc.to_owned(),
        format!("`{} = {example}`", key.name),
    ]
}

/// Returns a table with these keys and the tables of `file` below it, and no others.
fn object(section: &Section, file: &'static [Section]) -> Value {
    let keys = section.keys.iter().map(|key| (key.name, property(key)));
    let below = section.below(file).map(|below| {
        let table = object(below, file);
        let value = match below.form {
            Form::List => json!({ "type": "array", "description": below.doc, "items": table }),
            Form::Table | Form::Inline => table,
        };
        (below.name(), value)
    });
    let properties: Map<String, Value> =
        keys.chain(below).map(|(name, value)| (name.to_owned(), value)).collect();
    let mut table = json!({
        "type": "object",
        "description": section.doc,
        "properties": properties,
        "additionalProperties": false,
    });
    let keys = section.keys.iter().filter(|key| key.required).map(|key| key.name);
    let tables = section.below(file).filter(|below| below.required).map(Section::name);
    let required: Vec<&str> = keys.chain(tables).collect();
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
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
    let frame = frame_size();
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
        Kind::Arguments => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
        Kind::List(&item) => json!({ "type": "array", "items": of_kind(item) }),
        Kind::Name => json!({ "type": "string", "pattern": "^[0-9A-Za-z][0-9A-Za-z._-]*$" }),
        Kind::Mac => {
            json!({ "type": "string", "pattern": "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$" })
        }
        Kind::Address => json!({ "type": "string", "pattern": "^[0-9A-Fa-f.:]+/[0-9]+$" }),
        Kind::HostAddress => json!({ "type": "string", "pattern": "^[0-9A-Fa-f.:]+$" }),
        Kind::Word { words, .. } => json!({ "enum": words }),
        Kind::Duration { .. } | Kind::Seconds => {
            json!({ "type": "string", "pattern": r"^ *[0-9._]+ *(ns|us|µs|ms|s|min) *$" })
        }
        Kind::Percent => json!({ "type": "string", "pattern": r"^ *[0-9._]+ *% *$" }),
        Kind::PacketRate => json!({ "anyOf": [
            { "type": "number", "minimum": 1 },
            { "type": "string", "pattern": r"^ *[0-9._]+ *[kMG]?pps *$" },
        ]}),
        Kind::BitRate => json!({ "type": "string", "pattern": r"^ *[0-9._]+ *[kMG]?bit/s *$" }),
        Kind::Rate => json!({ "anyOf": [
            { "const": "max" },
            { "type": "number", "minimum": 1 },
            { "type": "string", "pattern": r"^ *[0-9._]+ *(%|[kMG]?(pps|bit/s)) *$" },
        ]}),
        Kind::FrameSize => {
            json!({ "anyOf": [frame.clone(), { "type": "array", "items": frame, "minItems": 1 }] })
        }
        Kind::Flows => object(&keys::FLOWS, &[]),
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

/// One size, or a mix of several.
fn frame_size() -> Value {
    let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
    let letters: String = GENOME.iter().map(|(letter, _)| letter).collect();
    json!({ "anyOf": [
        { "type": "integer", "minimum": FRAME_MIN, "maximum": FRAME_MAX },
        { "enum": names },
        { "type": "string", "pattern": format!("^genome:[{letters}]{{1,{SEQUENCE_MAX}}}$") },
    ]})
}

/// A level is a value, an address range of `flows`, a table of settings, or a list of words.
fn level() -> Value {
    let mut table = object(&keys::LEVEL, &[]);
    for key in keys::settings() {
        // A level is one frame size or directory; a list of them is a separate factor.
        let value = match key.kind {
            Kind::FrameSize => frame_size(),
            Kind::Directory => json!({ "type": "string", "minLength": 1 }),
            _ => of_kind(key.kind),
        };
        table["properties"][key.name] = value;
    }
    json!({ "anyOf": [
        { "type": ["string", "number", "boolean"] },
        object(&keys::FLOWS, &[]),
        table,
        { "type": "array", "items": { "type": "string" } },
    ]})
}
