//! The dry check: `CheckCompatibility` with sentences, and our own with everything in its place.

use super::verdict::{Answer, Question, answer};
use crate::context::Context;
use danube_core::schema::{JsonLevel, ProtobufLevel};
use danube_core::{Compatibility, Fault, Levels, SubjectName};
use danube_schema::{Break, Direction, Warning};
use danube_wire::proto::{control, danube_schema as proto};
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::CheckCompatibilityRequest,
) -> Result<proto::CheckCompatibilityResponse, Fault> {
    let question = Question {
        subject: SubjectName::parse(&request.subject)?,
        schema_type: request.schema_type.parse()?,
        definition: request.new_schema_definition.to_vec(),
        mode: mode(request.compatibility_mode.as_deref())?,
        levels: None,
    };
    let found = ask(context, question).await?;
    Ok(proto::CheckCompatibilityResponse {
        is_compatible: found.verdict.is_compatible(),
        errors: found.verdict.breaks.iter().map(ToString::to_string).collect(),
    })
}

pub(crate) async fn whole(
    context: &Arc<Context>,
    request: control::CheckSchemaRequest,
) -> Result<control::CheckSchemaResponse, Fault> {
    let subject = SubjectName::parse(&request.subject)?;
    let view = context.meta.view();
    let mut levels: Levels =
        view.subject_record(subject.as_str()).map_or_else(Levels::default, |known| known.levels);
    if let Some(level) = &request.json_level {
        levels.json = level.parse::<JsonLevel>()?;
    }
    if let Some(level) = &request.protobuf_level {
        levels.protobuf = level.parse::<ProtobufLevel>()?;
    }
    let question = Question {
        subject,
        schema_type: request.schema_type.parse()?,
        definition: request.schema_definition,
        mode: mode(request.compatibility_mode.as_deref())?,
        levels: Some(levels),
    };
    let found = ask(context, question).await?;
    Ok(control::CheckSchemaResponse {
        compatible: found.verdict.is_compatible(),
        truncated: found.verdict.truncated,
        fingerprint: found.schema.fingerprint().as_str().to_owned(),
        compatibility_mode: found.mode.to_string(),
        json_level: found.levels.json.to_string(),
        protobuf_level: found.levels.protobuf.to_string(),
        versions: found.versions,
        same_as: found.same.map(|(_, version)| version),
        breaks: found.verdict.breaks.into_iter().map(told).collect(),
        warnings: found.verdict.warnings.into_iter().map(warned).collect(),
    })
}

async fn ask(context: &Arc<Context>, question: Question) -> Result<Answer, Fault> {
    let view = context.meta.view();
    context.schemas.work(move |compiled| answer(compiled, &view, question)).await
}

/// Absent and empty mean the subject's own.
fn mode(text: Option<&str>) -> Result<Option<Compatibility>, Fault> {
    text.filter(|text| !text.is_empty()).map(str::parse).transpose()
}

fn told(found: Break) -> control::SchemaBreak {
    control::SchemaBreak {
        version: found.version,
        direction: match found.direction {
            Direction::NewReadsOld => "new_reads_old",
            Direction::OldReadsNew => "old_reads_new",
        }
        .to_owned(),
        path: found.path,
        rule: found.rule,
        old: found.old,
        new: found.new,
        why: found.why,
        witness: found.witness.map(|witness| witness.to_string()),
    }
}

fn warned(found: Warning) -> control::SchemaWarning {
    let Warning { version, path, rule, why } = found;
    control::SchemaWarning { version, path, rule, why }
}
