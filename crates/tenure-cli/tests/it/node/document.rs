//! The API's description of itself, as a judge of answers and of what may be sent.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::client::Answer;

/// An OpenAPI document.
pub struct Document(pub Value);

/// Something that can be asked.
pub struct Operation<'a> {
    pub path: &'a str,
    pub method: String,
    told: &'a Value,
    document: &'a Document,
}

impl Document {
    pub fn operations(&self) -> Vec<Operation<'_>> {
        let paths = self.0["paths"].as_object().unwrap();
        let operations = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter();
            methods.map(move |(method, told)| {
                let method = method.to_uppercase();
                Operation { path, method, told, document: self }
            })
        });
        operations.collect()
    }

    pub fn operation(&self, method: &str, path: &str) -> Operation<'_> {
        let found = self.operations().into_iter().find(|it| it.method == method && it.path == path);
        found.unwrap_or_else(|| panic!("{method} {path} is not described"))
    }

    /// The schema, with all that it refers to.
    fn validator(&self, schema: &Value) -> Validator {
        let mut schema = schema.clone();
        schema["components"] = self.0["components"].clone();
        jsonschema::validator_for(&strict(schema)).unwrap()
    }
}

impl Operation<'_> {
    /// Demands that an answer is one that the document speaks of: its status, its kind, its fields.
    pub fn allows(&self, answer: &Answer) {
        let (method, path) = (&self.method, self.path);
        let told = &self.told["responses"][answer.status.to_string()];
        assert!(told.is_object(), "{method} {path} answered what is not described: {answer:?}");
        let Some(content) = told["content"].as_object() else {
            return assert!(answer.body.is_empty(), "{method} {path} has no body: {answer:?}");
        };
        let kind = answer.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default();
        let described = content.get(kind);
        let described =
            described.unwrap_or_else(|| panic!("{method} {path} answered `{kind}`, which is not described"));
        if kind.ends_with("json") {
            let validator = self.document.validator(&described["schema"]);
            let body = answer.json();
            let problems: Vec<_> = validator.iter_errors(&body).map(|error| error.to_string()).collect();
            assert!(problems.is_empty(), "{method} {path}: {problems:?}: {answer:?}");
        }
        if kind == "application/problem+json" {
            answer.refuses(answer.status, "");
        }
    }

    pub fn statuses(&self) -> BTreeSet<u16> {
        self.told["responses"].as_object().unwrap().keys().map(|status| status.parse().unwrap()).collect()
    }

    pub fn needs_the_token(&self) -> bool {
        self.told["security"][0]["token"].is_array()
    }

    /// Whether a body is as described; an empty one where none is demanded.
    pub fn takes_body(&self, body: &str) -> bool {
        let told = &self.told["requestBody"];
        if body.is_empty() {
            return told["required"] != true;
        }
        let schema = &told["content"]["application/json"]["schema"];
        serde_json::from_str(body).is_ok_and(|body| self.document.validator(schema).is_valid(&body))
    }

    /// The fields of its body, by name, with their schemas.
    pub fn fields(&self) -> Vec<(&str, &Value)> {
        let mut schema = &self.told["requestBody"]["content"]["application/json"]["schema"];
        let referred =
            schema["oneOf"].as_array().and_then(|any| any.iter().find(|it| it["$ref"].is_string()));
        schema = referred.unwrap_or(schema);
        let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next());
        let schema = name.map_or(schema, |name| &self.document.0["components"]["schemas"][name]);
        let fields = schema["properties"].as_object().into_iter().flatten();
        fields.map(|(name, schema)| (name.as_str(), schema)).collect()
    }

    /// Its parameters in the query, by name, with their schemas.
    pub fn parameters(&self) -> Vec<(&str, &Value)> {
        let parameters = self.told["parameters"].as_array().into_iter().flatten();
        let queried = parameters.filter(|parameter| parameter["in"] == "query");
        queried.map(|parameter| (parameter["name"].as_str().unwrap(), &parameter["schema"])).collect()
    }

    /// Whether a parameter may have this value.
    pub fn takes_value(&self, schema: &Value, value: &str) -> bool {
        // In a query everything is text; it is a number if one is wanted and it is written as one.
        let wanted = if schema["type"] == "integer" { value.parse().map(Value::Number).ok() } else { None };
        self.document.validator(schema).is_valid(&wanted.unwrap_or_else(|| json!(value)))
    }
}

/// No field may come that is not described, but where more is announced.
fn strict(mut schema: Value) -> Value {
    if let Some(schemas) = schema["components"]["schemas"].as_object_mut() {
        for (name, schema) in schemas {
            if schema["type"] == "object" && name != "Problem" {
                schema["additionalProperties"] = json!(false);
            }
        }
    }
    schema
}
