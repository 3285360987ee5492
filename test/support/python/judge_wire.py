"""Judges recorded calls by botocore's models of the services: reads a list of calls on stdin, writes what is wrong with them.
With names of operations as arguments (`ec2:RunInstances`), writes those that this botocore does not know.

Of a request every parameter must be one that the operation has, of the right type, with what is required. Of an answer every element
must be one that the operation's output has, of the right type. A text of an enumeration must be one of its values.
"""

import base64
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

import botocore.session
from botocore.validate import ParamValidator

LOADER = botocore.session.get_session()
MODELS = {}
# What the documentation of the services shows in answers, in addition to the values of their models: by the shape's name.
ALSO_ANSWERED = {("AttachmentStatus", "available"), ("State", "available"), ("ResourceStatus", "REVIEW_IN_PROGRESS")}


def model_of(service):
    if service not in MODELS:
        MODELS[service] = LOADER.get_service_model({"servicequotas": "service-quotas"}.get(service, service))
    return MODELS[service]


def tree_of(fields):
    """`A.1.B=x` as `{"A": {"1": {"B": "x"}}}`."""
    tree = {}
    for name, value in fields:
        at = tree
        *path, last = name.split(".")
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value
    return tree


def wire_name(protocol, name, shape):
    own = shape.serialization.get("name")
    if protocol != "ec2":
        return own or name
    special = shape.serialization.get("queryName")
    if special:
        return special
    text = own or name
    return text[0].upper() + text[1:]


def scalar_problems(shape, text, where):
    kind = shape.type_name
    try:
        if kind in ("integer", "long"):
            int(text)
        elif kind in ("float", "double"):
            float(text)
        elif kind == "boolean" and text not in ("true", "false"):
            return [f"{where}: {text!r} is no boolean"]
        elif kind == "blob":
            base64.b64decode(text, validate=True)
        elif kind == "timestamp" and "T" not in text:
            return [f"{where}: {text!r} is no timestamp"]
        elif kind == "string" and shape.enum and text not in shape.enum and (shape.name, text) not in ALSO_ANSWERED:
            return [f"{where}: {text!r} is not an allowed value"]
    except ValueError:
        return [f"{where}: {text!r} is no {kind}"]
    return []


def query_problems(protocol, shape, tree, where):
    kind = shape.type_name
    if kind == "structure":
        if not isinstance(tree, dict):
            return [f"{where}: is a structure"]
        known = {wire_name(protocol, name, each): each for name, each in shape.members.items()}
        required = {wire_name(protocol, name, shape.members[name]) for name in shape.required_members}
        problems = [f"{where}.{name}: is missing" for name in sorted(required - set(tree))]
        for name, value in tree.items():
            if name not in known:
                problems.append(f"{where}.{name}: there is no such parameter")
            else:
                problems += query_problems(protocol, known[name], value, f"{where}.{name}")
        return problems
    if kind == "list":
        items = tree
        if protocol != "ec2" and not shape.serialization.get("flattened"):
            member = shape.member.serialization.get("name", "member")
            if tree == "":
                return []
            if not isinstance(tree, dict) or list(tree) != [member]:
                return [f"{where}: is a list of {member}"]
            items = tree[member]
        if not isinstance(items, dict):
            return [f"{where}: is a list"]
        if sorted(items, key=int) != [str(i + 1) for i in range(len(items))]:
            return [f"{where}: its items are numbered {sorted(items)}"]
        return [p for i, v in items.items() for p in query_problems(protocol, shape.member, v, f"{where}[{i}]")]
    return [f"{where}: has parts"] if isinstance(tree, dict) else scalar_problems(shape, tree, where)


def json_problems(shape, value, where):
    """What botocore's own validator lets pass: unknown names."""
    kind = shape.type_name
    if kind == "structure" and isinstance(value, dict):
        problems = []
        for name, each in value.items():
            if name not in shape.members:
                problems.append(f"{where}.{name}: there is no such field")
            else:
                problems += json_problems(shape.members[name], each, f"{where}.{name}")
        return problems
    if kind == "list" and isinstance(value, list):
        return [p for i, v in enumerate(value) for p in json_problems(shape.member, v, f"{where}[{i}]")]
    return []


def local(tag):
    return tag.split("}")[-1]


def xml_problems(protocol, shape, node, where):
    kind = shape.type_name
    if kind == "structure":
        known = {each.serialization.get("name", name): each for name, each in shape.members.items()}
        problems, flat = [], {}
        for child in node:
            name = local(child.tag)
            if name not in known:
                problems.append(f"{where}.{name}: there is no such element")
            elif known[name].serialization.get("flattened"):
                flat.setdefault(name, []).append(child)
            else:
                problems += xml_problems(protocol, known[name], child, f"{where}.{name}")
        for name, children in flat.items():
            for child in children:
                problems += xml_problems(protocol, known[name].member, child, f"{where}.{name}")
        return problems
    if kind == "list":
        item = shape.member.serialization.get("name", "item" if protocol == "ec2" else "member")
        wrong = sorted({local(child.tag) for child in node} - {item})
        if wrong:
            return [f"{where}: has {', '.join(wrong)} among its {item}"]
        return [p for i, child in enumerate(node) for p in xml_problems(protocol, shape.member, child, f"{where}[{i}]")]
    if kind == "map":
        return []
    if len(node):
        return [f"{where}: has parts"]
    text = node.text or ""
    return scalar_problems(shape, text, where) if text else []


def request_problems(call, operation, protocol):
    shape, where = operation.input_shape, f"{call['service']}:{operation.name}"
    if protocol == "json":
        words = json.loads(call["request"] or "{}")
        if shape is None:
            return [f"{where}: takes nothing"] if words else []
        report = ParamValidator().validate(words, shape)
        problems = [f"{where}: {report.generate_report()}"] if report.has_errors() else []
        return problems + json_problems(shape, words, where)
    fields = [f for f in urllib.parse.parse_qsl(call["request"], keep_blank_values=True) if f[0] not in ("Action", "Version")]
    if shape is None:
        return [f"{where}: takes nothing"] if fields else []
    return query_problems(protocol, shape, tree_of(fields), where)


def answer_problems(call, operation, protocol):
    shape, where = operation.output_shape, f"{call['service']}:{operation.name} answers"
    if call["status"] >= 300 or shape is None:
        return []
    if protocol == "json":
        return json_problems(shape, json.loads(call["answer"] or "{}"), where)
    root = ElementTree.fromstring(call["answer"])
    wrapper = shape.serialization.get("resultWrapper") or operation.output_shape.serialization.get("resultWrapper")
    if protocol == "query":
        found = [child for child in root if local(child.tag) == (wrapper or f"{operation.name}Result")]
        if not found:
            return [f"{where}: has no {wrapper}"] if shape.members else []
        root = found[0]
    # EC2 says `return` also where its model does not have it.
    for child in [c for c in root if local(c.tag) in ("requestId", "ResponseMetadata", "return")]:
        root.remove(child)
    return xml_problems(protocol, shape, root, where)


def problems_of(call):
    model = model_of(call["service"])
    protocol = model.resolved_protocol
    protocol = "json" if protocol.startswith("json") else protocol
    try:
        operation = model.operation_model(call["action"])
    except Exception:
        return [f"{call['service']}: there is no {call['action']}"]
    return request_problems(call, operation, protocol) + answer_problems(call, operation, protocol)


def is_known(name):
    service, action = name.split(":")
    return action in model_of(service).operation_names


if __name__ == "__main__":
    if len(sys.argv) > 1:
        json.dump([name for name in sys.argv[1:] if not is_known(name)], sys.stdout)
        sys.exit()
    calls = json.load(sys.stdin)
    found = sorted({problem for call in calls for problem in problems_of(call)})
    json.dump({"judged": len(calls), "actions": sorted({f"{c['service']}:{c['action']}" for c in calls}), "problems": found}, sys.stdout)
