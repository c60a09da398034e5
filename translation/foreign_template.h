// The check of templates whose authors write no kubegang Job: its sentences name fields that they
// have. Pure.
#pragma once

#include "kube/api/raw_json.h"
#include "translation/template_check.h"

namespace control {

enum class TemplateOf { kJob, kBatchJob, kGatedPods };

// check_template(), for the author of another kind.
TemplateFacts check_template(const kube::RawJson& pod_template, TemplateOf owner);

}  // namespace control
