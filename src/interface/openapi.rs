//! The API of a deployment as an OpenAPI 3.1 document.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    Chain, Deployment, ENDPOINTS, ERROR_CODES, Endpoint, Kind, Param, ParamKind, ParamRole, RECORDS, RangeEnd,
    RecordType, ResultLimit, Shape,
};

/// A decimal number as deployed services write it, or no value.
const DECIMAL: &str = r"^(-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)?$";
const INTEGER: &str = r"^(-?[0-9]+(\.0+)?)?$";
/// Longest number that is accepted.
const MAX_DIGITS: u32 = 1_024;

/// Names of a deployment that are not part of its [`Deployment`].
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    pub main_chain: &'a str,
    pub zone_chain: &'a str,
    pub base_url: &'a str,
}

/// The OpenAPI document; equal arguments give equal documents.
pub fn openapi(deployment: &Deployment, names: Names<'_>) -> Value {
    let mut paths = Map::new();
    for endpoint in &ENDPOINTS {
        paths.insert(deployment.expand(endpoint.path), json!({"get": operation(endpoint, deployment, names)}));
    }
    let records: Map<_, _> =
        RECORDS.iter().map(|record| (record.name.to_owned(), record_schema(record, deployment))).collect();
    let mut schemas = records;
    schemas.insert("Error".into(), error_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "On-chain data",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Read-only API of on-chain data. Every number is a string; an empty string is no value.",
        },
        "servers": [{"url": names.base_url}],
        "security": [security()],
        "tags": [{"name": "main", "description": "The main chain."}, {"name": "zone", "description": "The zone chain."}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": security_schemes(deployment)},
        "x-signature": {
            "algorithm": "HMAC-SHA256",
            "prehash": deployment.prehash_template(),
            "target": "path with query, byte for byte as sent",
            "timestamp": "ISO 8601, UTC, milliseconds",
            "encoding": deployment.signature_encoding().as_str(),
        },
        "x-error-codes": error_codes(),
    })
}

fn operation(endpoint: &Endpoint, deployment: &Deployment, names: Names<'_>) -> Value {
    let (tag, chain) = match endpoint.chain {
        Chain::Main => ("main", names.main_chain),
        Chain::Zone => ("zone", names.zone_chain),
    };
    let mut parameters = vec![parameter(
        "chainShortName",
        true,
        "Short name of the chain, in any case.",
        json!({"type": "string", "pattern": format!("^{}$", any_case(chain)), "examples": [chain]}),
    )];
    parameters.extend(endpoint.params.iter().filter_map(declared_parameter));
    if let Some(max_page_size) = deployment.page_size_max(endpoint) {
        let page = json!({"type": "integer", "format": "int64", "minimum": 1, "maximum": i64::MAX, "default": 1});
        let limit = json!({"type": "integer", "minimum": 1, "maximum": max_page_size, "default": 20});
        parameters.push(parameter("page", false, "Number of the page.", page));
        parameters.push(parameter("limit", false, "Number of records per page.", limit));
    }
    let mut operation = json!({
        "operationId": endpoint.name,
        "summary": endpoint.doc,
        "tags": [tag],
        "parameters": parameters,
        "responses": responses(endpoint, deployment),
        "x-result-limit": deployment.max_results(endpoint.limit),
    });
    if endpoint.limit == ResultLimit::LastYear {
        operation["x-last-year-only"] = true.into();
    }
    if let Shape::Paged { list, total, .. } = endpoint.shape {
        operation["x-paging"] = json!({"page": "page", "limit": "limit", "records": list, "total": total});
    }
    let ranges: Vec<Value> = endpoint.params.iter().filter_map(|param| range(endpoint, param)).collect();
    if !ranges.is_empty() {
        operation["x-ranges"] = ranges.into();
    }
    operation
}

fn parameter(name: &str, required: bool, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "required": required, "description": description, "schema": schema})
}

fn declared_parameter(param: &Param) -> Option<Value> {
    let schema = match param.kind {
        ParamKind::Text => json!({"type": "string", "minLength": 1}),
        ParamKind::Height | ParamKind::Time => {
            json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": i64::MAX})
        }
        ParamKind::Amount { min } => json!({
            "type": "string",
            "format": "decimal",
            "pattern": decimal_of_at_least(min),
            "maxLength": MAX_DIGITS,
        }),
        ParamKind::OneOf(values) => json!({"type": "string", "enum": values}),
        ParamKind::Hashes { per_request } => json!({
            "type": "array",
            "items": {"type": "string", "pattern": "^[^,]+$"},
            "minItems": 1,
            "maxItems": per_request,
        }),
    };
    let mut declared = parameter(param.wire()?, param.required, param.doc, schema);
    if param.kind == ParamKind::Time {
        declared["schema"]["x-unit"] = "milliseconds since 1970-01-01T00:00:00Z".into();
    }
    if matches!(param.kind, ParamKind::Hashes { .. }) {
        (declared["style"], declared["explode"]) = ("form".into(), false.into());
    }
    Some(declared)
}

/// Two parameters that bound a range: a request with the first above the second is rejected.
fn range(endpoint: &Endpoint, param: &Param) -> Option<Value> {
    let ParamRole::RangeStart(start, partner) = param.role else { return None };
    let end = endpoint.param(partner).filter(|end| end.range_end() == Some(RangeEnd::Upper))?.wire()?;
    let maximum = (param.kind == ParamKind::Time).then_some("P1Y");
    Some(json!({"start": start, "end": end, "maximum": maximum}))
}

/// Digits with an optional fraction, of a number of at least `min`: 0 or a power of ten.
fn decimal_of_at_least(min: u32) -> String {
    match min {
        0 => r"^[0-9]+(\.[0-9]+)?$".into(),
        min => format!(r"^0*[1-9][0-9]{{{},}}(\.[0-9]+)?$", min.ilog10()),
    }
}

/// A pattern for a name in upper and lower case.
fn any_case(name: &str) -> String {
    let letters = name.chars().map(|letter| match letter {
        'a'..='z' | 'A'..='Z' => format!("[{}{}]", letter.to_ascii_uppercase(), letter.to_ascii_lowercase()),
        '0'..='9' | '_' | '-' => letter.to_string(),
        _ => format!("\\{letter}"),
    });
    letters.collect()
}

fn responses(endpoint: &Endpoint, deployment: &Deployment) -> Value {
    let error = json!({"$ref": "#/components/schemas/Error"});
    let mut codes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for declared in &ERROR_CODES {
        for status in declared.statuses {
            codes.entry(*status).or_default().push(declared.code);
        }
    }
    let mut responses = Map::new();
    for (status, codes) in codes {
        let schema =
            if status == 200 { json!({"oneOf": [success_schema(endpoint, deployment), error]}) } else { error.clone() };
        let description = match status {
            200 => format!("Records, or an error with code {}.", codes.join(", ")),
            _ => format!("Error with code {}.", codes.join(", ")),
        };
        let content = json!({"application/json": {"schema": schema}});
        responses.insert(status.to_string(), json!({"description": description, "content": content}));
    }
    responses.into()
}

fn envelope(code: Value, data: Value) -> Value {
    let properties = json!({"code": code, "msg": {"type": "string"}, "data": data});
    json!({"type": "object", "properties": properties, "required": ["code", "msg", "data"]})
}

fn success_schema(endpoint: &Endpoint, deployment: &Deployment) -> Value {
    let records = json!({
        "type": "array",
        "items": {"$ref": format!("#/components/schemas/{}", endpoint.record().name)},
    });
    let data = match endpoint.shape {
        Shape::Direct => records,
        Shape::Paged { list, total, names_chain, .. } => {
            let count = json!({"type": "string", "pattern": "^[0-9]+$"});
            let mut page = Map::from_iter([
                ("page".to_owned(), count.clone()),
                ("limit".into(), count.clone()),
                ("totalPage".into(), count.clone()),
                (list.into(), records),
            ]);
            page[list]["maxItems"] = deployment.page_size_max(endpoint).into();
            page.extend(total.map(|total| (total.to_owned(), count)));
            if names_chain {
                page.insert("chainFullName".into(), json!({"type": "string"}));
                page.insert("chainShortName".into(), json!({"type": "string"}));
            }
            let required: Vec<String> = page.keys().cloned().collect();
            let page = json!({"type": "object", "properties": page, "required": required});
            json!({"type": "array", "items": page, "maxItems": 1})
        }
    };
    envelope(json!({"const": "0"}), data)
}

fn error_schema() -> Value {
    let codes: Vec<&str> = ERROR_CODES.iter().map(|declared| declared.code).collect();
    envelope(json!({"enum": codes}), json!({"type": "array", "maxItems": 0}))
}

fn error_codes() -> Value {
    let codes = ERROR_CODES.iter().map(|declared| {
        let meaning = json!({
            "description": declared.doc,
            "statuses": declared.statuses,
            "kind": declared.kind.name(),
            "retryable": declared.kind.is_retryable(),
        });
        (declared.code.to_owned(), meaning)
    });
    codes.collect::<Map<_, _>>().into()
}

fn record_schema(record: &RecordType, deployment: &Deployment) -> Value {
    let properties = record.sent().map(|(_, field)| {
        let names: Vec<String> = field.wire.iter().map(|name| deployment.expand(name)).collect();
        let mut schema = value_schema(field.kind, deployment);
        schema["description"] = field.doc.into();
        schema["x-attribute"] = field.name.into();
        if names.len() > 1 {
            schema["x-other-names"] = names[1..].into();
        }
        (names.into_iter().next().unwrap_or_else(|| field.name.to_owned()), schema)
    });
    json!({"type": "object", "description": record.doc, "properties": properties.collect::<Map<_, _>>()})
}

fn number_schema(pattern: &str, format: &str) -> Value {
    json!({"type": "string", "pattern": pattern, "format": format})
}

fn value_schema(kind: Kind, deployment: &Deployment) -> Value {
    match kind {
        Kind::Integer => number_schema(INTEGER, "int64"),
        Kind::Uint256 => number_schema(INTEGER, "uint256"),
        Kind::Time => number_schema("^([0-9]+)?$", "unix-milliseconds"),
        Kind::Amount | Kind::ApproxDecimal => number_schema(DECIMAL, "decimal"),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Utf8 => json!({"type": "string"}),
        Kind::Utf8List => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Direction => {
            let main = any_case(deployment.main());
            let zone = any_case(deployment.zone());
            json!({"type": "string", "pattern": format!("^({main}[Tt][Oo]{zone}|{zone}[Tt][Oo]{main})$")})
        }
    }
}

/// The four headers, all of which every request has.
const HEADERS: [(&str, &str, &str); 4] = [
    ("key", "KEY", "The key."),
    ("signature", "SIGN", "Signature of the request; see `x-signature`."),
    ("passphrase", "PASSPHRASE", "The passphrase."),
    ("timestamp", "TIMESTAMP", "Time of the request; see `x-signature`."),
];

fn security() -> Value {
    HEADERS.iter().map(|(name, ..)| ((*name).to_owned(), json!([]))).collect::<Map<_, _>>().into()
}

fn security_schemes(deployment: &Deployment) -> Value {
    let schemes = HEADERS.iter().map(|(name, header, description)| {
        let scheme =
            json!({"type": "apiKey", "in": "header", "name": deployment.header(header), "description": description});
        ((*name).to_owned(), scheme)
    });
    schemes.collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        let deployment = Deployment::new("XY", "alpha", "beta", "{timestamp}{target}", "hex").unwrap();
        openapi(&deployment, Names { main_chain: "MAIN", zone_chain: "Z.1", base_url: "/" })
    }

    #[test]
    fn document_has_the_names_of_the_deployment() {
        let document = document();
        assert_eq!(document, self::document());
        assert_eq!(document["paths"].as_object().unwrap().len(), ENDPOINTS.len());
        let blocks = &document["paths"]["/api/v5/alpha/beta/block/block-list"]["get"];
        assert_eq!(blocks["operationId"], "blocks");
        assert_eq!(blocks["parameters"][0]["schema"]["pattern"], r"^[Zz]\.1$");
        assert_eq!(document["components"]["securitySchemes"]["key"]["name"], "XY-ACCESS-KEY");
        assert_eq!(document["x-signature"]["encoding"], "hex");
        assert!(document["components"]["schemas"]["CrossChainTransaction"]["properties"]["betaTxHash"].is_object());
    }

    #[test]
    fn every_field_and_parameter_that_is_sent_is_described() {
        let document = document();
        for record in RECORDS {
            let properties = document["components"]["schemas"][record.name]["properties"].as_object().unwrap();
            let attributes: Vec<&str> =
                properties.values().filter_map(|schema| schema["x-attribute"].as_str()).collect();
            assert!(record.fields.iter().all(|field| attributes.contains(&field.name)), "{}", record.name);
            assert_eq!(attributes.len(), record.fields.len());
        }
        let ranges = |path: &str| document["paths"][path]["get"]["x-ranges"].clone();
        assert_eq!(
            ranges("/api/v5/alpha/token/token-list"),
            json!([{"start": "startTime", "end": "endTime", "maximum": "P1Y"}])
        );
    }

    #[test]
    fn least_amounts_are_patterns() {
        assert_eq!(decimal_of_at_least(0), r"^[0-9]+(\.[0-9]+)?$");
        assert_eq!(decimal_of_at_least(100), r"^0*[1-9][0-9]{2,}(\.[0-9]+)?$");
    }
}
